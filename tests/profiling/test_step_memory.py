"""Memory over a training step: the core's plan drawn out, and the bound of back-propagation."""

import numpy as np
import pytest
from networks import residual_network

import pmt
from pmt.cli import main
from pmt.profiling.profile import profile_method
from pmt.profiling.step_memory import KINDS, StepMemory, step_memory
from pmt.train.costs.memory import peak_moment


def overlapping(step: StepMemory) -> list[tuple[str, str]]:
    """Name the pairs of buffers that share a byte at an operation."""
    pairs = [(a, b) for i, a in enumerate(step.buffers) for b in step.buffers[i + 1 :]]
    return [
        (a.what, b.what)
        for a, b in pairs
        if max(a.begin, b.begin) < min(a.end, b.end)
        and max(a.offset, b.offset) < min(a.offset + a.bytes, b.offset + b.bytes)
    ]


def lengths(step: StepMemory) -> list[tuple[str, int]]:
    return [(stretch.title, stretch.end - stretch.begin) for stretch in step.stretches]


CASES = [
    ("cifar10_mcunet", "default", {"layers": "B2,head", "batch": 1}),
    ("cifar10_mcunet", "paper", {"layers": "B1,head", "batch": 20}),
    ("cifar10_mcunet", "weight_layer_wise", {"layers": "B2", "batch": 1}),
    ("fashion_mnist_dscnn", "node_layer_wise", {"layers": "all", "batch": 2}),
]


@pytest.mark.parametrize(("name", "method", "options"), CASES)
def test_a_step_is_the_plan_drawn_out(name, method, options):
    model = pmt.load(name)
    step = step_memory(model, method, **options)
    profile = profile_method(model, method, **options)
    peak = peak_moment(profile.device, profile.ops)
    stays = profile.memory.sram - profile.device.activation_bytes
    assert step.bytes == profile.memory.sram
    assert step.alive().max() == peak.bytes + stays
    assert max(buffer.offset + buffer.bytes for buffer in step.buffers) <= step.bytes
    assert {buffer.kind for buffer in step.buffers} <= set(KINDS)
    assert overlapping(step) == []


def test_the_main_pass_stops_for_the_queries_of_each_layer():
    model = pmt.load("fashion_mnist_dscnn")
    step = step_memory(model, "default", layers="B4,head", batch=1)
    # 13 ops, of which 9 and 10 stream together: a query of either begins with the stream.
    assert lengths(step) == [
        ("forward", 9),
        ("query of depthwise4", 4),
        ("query of pointwise4", 4),
        ("forward", 4),
    ]
    assert [b.what for b in step.buffers if b.kind == "kept"] == ["project3_add"]


def test_a_query_of_nodes_starts_behind_the_layer_and_one_of_all_layers_at_the_first():
    step = step_memory(pmt.load("fashion_mnist_dscnn"), "node_model_wise", layers="B4", batch=1)
    assert lengths(step) == [("forward", 10), ("query of depthwise4", 4), ("forward", 3)]
    assert [b.what for b in step.buffers if b.kind == "kept"] == ["depthwise4"]


def test_back_propagation_is_forward_and_backward():
    model = residual_network()
    step = step_memory(model, "bp_int8", layers="B3", batch=1)
    assert [s.title for s in step.stretches] == ["forward", "backward"]
    assert not step.planned
    assert step.alive().max() == step.bytes
    assert step.bytes == profile_method(model, "bp_int8", layers="B3", batch=1).memory.sram
    assert overlapping(step) == []
    assert np.all(step.alive() > 0)


def test_the_command_draws_the_step(tmp_path):
    pytest.importorskip("matplotlib").use("Agg")
    path = tmp_path / "step.svg"
    command = ["profile", "fashion_mnist_dscnn", "--method", "paper", "--layers", "B4"]
    assert main([*command, "--plot-step", str(path)]) == 0
    assert "activations of a query" in path.read_text()


def test_a_wrong_suffix_is_found_before_the_work(capsys):
    pytest.importorskip("matplotlib")
    assert (
        main(["profile", "fashion_mnist_dscnn", "--method", "paper", "--plot-step", "x.gif"]) == 2
    )
    assert capsys.readouterr().err == (
        "pmt: error: --plot-step x.gif: the suffix must be .png, .svg or .pdf\n"
    )
