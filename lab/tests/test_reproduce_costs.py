"""Studies of memory and multiply-accumulates: every figure beside the paper's."""

from __future__ import annotations

import json

import pytest
from firmware_tools import EMULATOR, need_firmware_tools

from pmt_lab.reproduce import (
    costs,
    full_model_cost,
    memory_formulas,
    memory_overview,
    sparse_cost,
)
from pmt_lab.reproduce.study import Context, published


def rows_of(study, data):
    """Return the rows in short: subject, ours, the paper's, verdict."""
    made = study.compare(data, published(study.name))
    return [(r.what, r.ours and round(r.ours, 1), r.theirs, r.verdict) for r in made]


def as_kept(data):
    """Return data as a result file gives it back."""
    return json.loads(json.dumps(data, allow_nan=False))


def test_memory_overview(tmp_path):
    study = memory_overview.STUDY
    data = as_kept(study.measure("small", Context(tmp_path)))
    assert rows_of(study, data) == [
        ("parameters", 477.4, 478, "reproduced"),
        ("activations at the peak of inference", 160.0, 190, "lower bound"),
        ("BP-free, all layers, parameters and peak of inference", 637.4, 668, "lower bound"),
        ("BP-free, all layers, as planned", 593.4, 668, "better"),
        ("BP float32, all layers", 5.5, 7.4, "lower bound"),
        ("BP int8 over BP-free, all layers", 3.1, 5.46, "lower bound"),
        ("PyTorch's process over BP-free, all layers", None, "more than 400", "not run"),
        ("BP-free, all layers", 593.4, "at most 1024", "reproduced"),
        ("BP int8, all layers", 1812.6, "more than 1024", "reproduced"),
        ("BP-free, block 3", 123.6, "at most 256", "reproduced"),
    ]
    with_torch = {**data, "torch_process_bytes": 300 * 2**20}
    row = ("PyTorch's process over BP-free, all layers", 517.7, "more than 400", "reproduced")
    assert row in rows_of(study, with_torch)


COUNTED = {
    "target": "stm32h7b3i-dk",
    "megahertz": 280.0,
    "kernels": "arm_dsp",
    "forward": 37_072_703,
    "step": 12_224_859_133,
}


def test_full_model_cost(tmp_path, monkeypatch):
    study = full_model_cost.STUDY
    asked = []
    monkeypatch.setattr(costs, "_instructions", lambda *given: asked.append(given[:4]) or COUNTED)
    data = as_kept(study.measure("full", Context(tmp_path)))
    assert asked == [("cifar10_mcunet", "paper14", 50, "stm32h7b3i-dk")]
    every = "all convolutions' outputs in float32, int8 network and image"
    assert rows_of(study, data) == [
        (f"BP memory, {every}", 3650.4, 3650, "reproduced"),
        ("BP memory, float32, 14 layers", 1703.4, 3650, "lower bound"),
        ("BP memory, int8, 14 layers", 943.5, 3650, "lower bound"),
        ("BP-free memory, parameters and peak of inference", 637.4, 668, "lower bound"),
        ("BP-free memory, all layers, as planned", 593.4, 668, "better"),
        ("BP-free memory, 14 layers, as planned", 291.3, None, "not published"),
        ("BP compute, 14 layers", 53.7, 76.2, "not reproduced"),
        ("BP-free compute, forward and queries", 7859.0, 7857.5, "reproduced"),
        ("BP-free compute, rounded as printed before it is multiplied", 7857.5, 7857.5,
         "reproduced"),
        ("BP-free compute, all that a device does", 8137.1, None, "not published"),
        ("BP-free latency", 43660.2, 72839, "projected"),
        ("BP-free end-to-end time", 2183010.6, 3.64e6, "projected"),
        ("BP-free step over an inference", 329.8, None, "not published"),
        ("BP latency, TF-Lite", None, 13398, "not run"),
        ("BP-free latency, TF-Lite", None, 428496, "not run"),
        ("BP end-to-end time, TF-Lite", None, 6.70e5, "not run"),
        ("BP-free end-to-end time, TF-Lite", None, 2.14e7, "not run"),
    ]  # fmt: skip
    (projected,) = [
        row for row in study.compare(data, published(study.name)) if row.what == "BP-free latency"
    ]
    assert projected.why == (
        "no board was measured: 12,224,859,133 instructions counted under QEMU, projected at one "
        "a cycle of 280 MHz"
    )


def test_sparse_cost(tmp_path, monkeypatch):
    study = sparse_cost.STUDY
    context = Context(tmp_path / "sparse-cost", jobs=1, collect=True)
    data = as_kept(study.measure("small", context))
    assert rows_of(study, data) == [
        ("BP accuracy, float32", None, None, "not run"),
        ("BP accuracy, int8 with float32 copies", None, None, "not run"),
        ("BP accuracy, int8 alone", None, None, "not run"),
        ("BP-free accuracy, paper's method, rate 0.001", None, None, "not run"),
        ("BP-free accuracy, paper's method, rate 0.0001", None, None, "not run"),
        ("BP-free accuracy, unprepared default", None, None, "not run"),
        ("BP memory, float32", 750.2, 3650, "lower bound"),
        ("BP memory, int8", 189.2, 3650, "lower bound"),
        ("BP-free memory, parameters and peak of inference", 189.2, 209, "lower bound"),
        ("BP-free memory, as planned", 123.6, 209, "better"),
        ("BP-free memory, the paper's peak of inference and block 3", 219.2, 209, "not reproduced"),
        ("BP compute", 32.4, 40.4, "not reproduced"),
        ("BP-free compute, forward and queries", 1160.5, 1162.5, "reproduced"),
        ("BP-free compute, rounded as printed before it is multiplied", 1162.5, 1162.5,
         "reproduced"),
        ("BP-free compute, all that a device does", 1208.7, None, "not published"),
        ("BP-free latency", None, 9939, "not run"),
        ("BP-free end-to-end time", None, 4.97e5, "not run"),
        ("BP-free step over an inference", None, None, "not run"),
        ("BP latency", None, 495, "not run"),
        ("BP end-to-end time", None, 2.48e4, "not run"),
    ]  # fmt: skip
    counted = {**COUNTED, "megahertz": 216.0, "step": 1_600_984_894}
    monkeypatch.setattr(costs, "_instructions", lambda *given: counted)
    monkeypatch.setattr(sparse_cost, "measure_grids", lambda *given: {"grids": {}})
    monkeypatch.setattr(sparse_cost, "cifar10_grid", lambda *given: None)
    full = rows_of(study, study.measure("full", context))
    assert full[0] == ("BP accuracy, float32", None, 61.78, "not run")
    assert full[3] == ("BP-free accuracy, paper's method, rate 0.001", None, 62.33, "not run")
    assert ("BP-free latency", 7412.0, 9939, "projected") in full
    step = ("BP-free step over an inference", 43.2, None, "not published")
    assert step in full


def test_the_accuracies_of_sparse_cost_come_from_its_sweeps(tmp_path):
    pytest.importorskip("torch")
    context = Context(tmp_path / "sparse-cost", jobs=1)
    data = as_kept(sparse_cost.STUDY.measure("small", context))
    rows = rows_of(sparse_cost.STUDY, data)[:6]
    assert [(what, theirs, said) for what, _, theirs, said in rows] == [
        ("BP accuracy, float32", None, "not published"),
        ("BP accuracy, int8 with float32 copies", None, "not published"),
        ("BP accuracy, int8 alone", None, "not published"),
        ("BP-free accuracy, paper's method, rate 0.001", None, "not published"),
        ("BP-free accuracy, paper's method, rate 0.0001", None, "not published"),
        ("BP-free accuracy, unprepared default", None, "not published"),
    ]
    assert all(0 <= ours <= 100 for _, ours, _, _ in rows)


def test_without_tools_no_instruction_is_counted(tmp_path, monkeypatch):
    monkeypatch.setattr("shutil.which", lambda tool: None)
    given = ("cifar10_mcunet", "B3", 2, "stm32f746g-disco", Context(tmp_path))
    assert costs._instructions(*given) is None
    data = full_model_cost.STUDY.measure("full", Context(tmp_path))
    latency = ("BP-free latency", None, 72839, "not run")
    assert latency in rows_of(full_model_cost.STUDY, data)


def test_counted_instructions_are_kept(tmp_path, monkeypatch):
    monkeypatch.setattr("shutil.which", lambda tool: tool)
    counts = []
    monkeypatch.setattr(costs, "_counted", lambda words, target: counts.append(target) or COUNTED)

    def count(target):
        given = ("cifar10_mcunet", "B3", 50, target, Context(tmp_path))
        return costs._instructions(*given)

    assert count("stm32f746g-disco") == COUNTED
    assert count("stm32f746g-disco") == COUNTED
    assert counts == ["stm32f746g-disco"]
    count("stm32h7b3i-dk")  # what is kept is of another board
    assert counts == ["stm32f746g-disco", "stm32h7b3i-dk"]


def test_instructions_are_those_of_pmt_profile(tmp_path):
    need_firmware_tools("make", EMULATOR)
    told = []
    context = Context(tmp_path, tell=told.append)
    given = ("fashion_mnist_dscnn", "B4", 2, "stm32f746g-disco", context)
    counted = costs._instructions(*given)
    assert told == [
        "pmt profile fashion_mnist_dscnn --instructions --method paper --layers B4 --queries 2 "
        "--target stm32f746g-disco"
    ]
    assert (counted["kernels"], counted["megahertz"]) == ("arm_dsp", 216.0)
    assert 2e6 < counted["forward"] < counted["step"] < 40e6


def test_memory_formulas(tmp_path):
    study = memory_formulas.STUDY
    data = as_kept(study.measure("full", Context(tmp_path)))
    beyond = "beyond parameters and a forward"
    found = [
        (what, ours, round(theirs, 1) if isinstance(theirs, float) else theirs, said)
        for what, ours, theirs, said in rows_of(study, data)
    ]
    assert found == [
        ("inference, 1 image, 2 d_a + d_w", 81.8, 160.3, "better"),
        (f"weight perturbation, vanilla, 1 image, {beyond}", None, 453.9, "not run"),
        (f"weight perturbation, efficient, 1 image, {beyond}", 10.4, 8.4, "reproduced"),
        (f"node perturbation, vanilla, 1 image, {beyond}", None, 1235.2, "not run"),
        (f"node perturbation, efficient, 1 image, {beyond}", 10.2, 98.4, "better"),
        (f"back-propagation, 1 image, {beyond}", 1287.2, 1235.2, "reproduced"),
        (f"weight perturbation, efficient, 8 images, {beyond}", 133.2, 8.4, "not reproduced"),
        (f"node perturbation, efficient, 8 images, {beyond}", 131.6, 157.2, "reproduced"),
        (f"back-propagation, 8 images, {beyond}", 2807.2, 6704.0, "lower bound"),
        ("peak of node over weight perturbation, 1 image", 1.8, "slightly larger", "reproduced"),
        ("peak of back-propagation over node perturbation, 1 image", 3.1, "much larger",
         "reproduced"),
    ]  # fmt: skip


@pytest.mark.parametrize("module", [memory_overview, full_model_cost, memory_formulas, sparse_cost])
def test_plots_draw_on_axes_and_without(module, tmp_path):
    plt = pytest.importorskip("matplotlib.pyplot")
    study = module.STUDY
    data = study.measure("small", Context(tmp_path / study.name, collect=True))
    given = plt.subplots()[1]
    assert study.plot(data, ax=given) is given
    assert "KB" in given.get_xlabel()
    assert study.plot(data).figure is not given.figure
    plt.close("all")
