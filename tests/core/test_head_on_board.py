"""The exact head on an emulated Cortex-M7: the bytes of the host."""

from collections.abc import Iterable
from dataclasses import replace

import numpy as np
from firmware_tools import run_on_cortex_m7

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
