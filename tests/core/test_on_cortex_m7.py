"""The exact head and the arm_dsp kernels on an emulated Cortex-M7: the bytes of the host."""

from collections.abc import Iterable
from dataclasses import replace

import numpy as np
import pytest
from firmware_tools import COMPILER, CORE, FLAGS, need_firmware_tools, run_on_cortex_m7, succeed

import pmt
from pmt import _core, corruptions, datasets
from pmt.net.graph import graph_of_activations

SAMPLES, FOLDS = 60, 3


def head_of(model: pmt.Model) -> pmt.Model:
    """Return the last layer as a network of its own."""
    graph = model.to_graph()
    op = graph.ops[-1]
    tensors = [graph.tensors[op.inputs[0]], graph.tensors[op.output]]
    return pmt.Model.from_graph(graph_of_activations(tensors, [replace(op, inputs=(0,), output=1)]))


def array(kind: str, name: str, values: Iterable[int]) -> str:
    return f"alignas(16) {kind} {name}[] = {{{', '.join(map(str, values))}}};\n"


def test_a_board_solves_the_head_to_the_bytes_of_the_host(tmp_path):
    model = pmt.load("fashion_mnist_dscnn")
    foggy = corruptions.corrupt(datasets.bundled("train").take(SAMPLES), "fog", 5, seed=0)
    inputs = model.core.inputs(model.prepare(foggy.images), model.core.op_count - 1)[:, 0, 0]
    labels = np.ascontiguousarray(foggy.labels, np.int64)
    folds = (np.arange(SAMPLES) % FOLDS).astype(np.uint8)
    head = head_of(model)
    (tmp_path / "head_data.hpp").write_text(
        "#include <cstdint>\n"
        f"constexpr int32_t data_samples = {SAMPLES}, data_features = {inputs.shape[1]};\n"
        f"constexpr int32_t data_fold_count = {FOLDS};\n"
        + array("uint8_t", "data_image", head.image())
        + array("const int8_t", "data_inputs", inputs.ravel())
        + array("const uint8_t", "data_labels", labels)
        + array("const uint8_t", "data_folds", folds)
    )
    before = head.image()
    strength, *_ = _core.solve_head(head.core, 0, inputs, labels, "cross_entropy", folds)
    assert head.image() != before
    expected = _core.crc32(head.image()[16:])
    parts = ("base", "image", "kernels", "learn", "net", "ops", "zo")
    log = run_on_cortex_m7("head_on_board.cpp", parts, tmp_path)
    assert log == f"strength {int(strength * 1000)} crc32 {expected:08x}\n"


OTHERS = {
    "cortex-m4": ("-mcpu=cortex-m4", "-mthumb", "-mfpu=fpv4-sp-d16", "-mfloat-abi=hard"),
    "cortex-m33": ("-mcpu=cortex-m33", "-mthumb", "-mfpu=fpv5-sp-d16", "-mfloat-abi=hard"),
    "cortex-m3": ("-mcpu=cortex-m3", "-mthumb"),
}


def test_the_assembly_computes_what_the_portable_kernels_do(tmp_path):
    log = run_on_cortex_m7("arm_dsp_comparison.cpp", ("base", "kernels"), tmp_path)
    assert log == "equal in 1706 cases\n"


@pytest.mark.parametrize("core", OTHERS)
def test_the_kernels_compile_for_other_cores(core, tmp_path):
    """With the DSP extension they are the device's kernels; without it the portable ones are."""
    need_firmware_tools("arm-none-eabi-objdump")
    text = ""
    for source in sorted((CORE / "kernels").rglob("*.cpp")):
        target = tmp_path / f"{source.stem}.o"
        succeed(COMPILER, *FLAGS, *OTHERS[core], f"-I{CORE.parent}", "-c", source, "-o", target)
        if source.stem == "device_kernels":
            text = succeed("arm-none-eabi-objdump", "-dr", target)
    assert ("arm_dsp_kernels" in text) == (core != "cortex-m3")
    assert ("portable_kernels" in text) == (core == "cortex-m3")
