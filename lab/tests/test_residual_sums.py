"""The benchmark of residual sums: its network, its steps, and its tables on the page."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

import pmt

torch = pytest.importorskip("torch")
benchmark = pytest.importorskip("residual_sums")

LAB = Path(__file__).parents[1]
B8_SUM, B9_SUM = 30, 34  # the first sum that another one reads, and that one


@pytest.fixture(scope="module")
def model():
    return pmt.load("cifar10_mcunet")


@pytest.fixture(scope="module")
def images(model):
    random = np.random.default_rng(0)
    return random.integers(-128, 128, (4, *model.input_shape), dtype=np.int8)


def test_with_sums_in_int8_it_is_the_core_s_network(model, images):
    network = benchmark.Network(model, "int8")
    with torch.no_grad():
        known = network._activations(torch.from_numpy(images), len(network.graph.ops) - 1)
        assert (network.run_from(20, known).numpy() == model.logits(images)).all()


def test_where_layers_round_only_sums_that_a_sum_reads_differ(model, images):
    graph = model.to_graph()
    assert [graph.ops[i].name for i in (B8_SUM, B9_SUM)] == ["b8.add", "b9.add"]
    assert graph.ops[B8_SUM].output in graph.ops[B9_SUM].inputs
    with torch.no_grad():
        int8, rounded, real = (
            benchmark.Network(model, sums)._activations(torch.from_numpy(images), B9_SUM + 2)
            for sums in benchmark.SUMS
        )
    same = {
        op.name for op in graph.ops[: B9_SUM + 2] if (int8[op.output] == rounded[op.output]).all()
    }
    assert same == {op.name for op in graph.ops[:B9_SUM] if op.kind != "add"}
    b2 = graph.ops[9].output
    low = -128 - graph.tensors[b2].zero_point
    assert (real[b2].round().clamp(low, low + 255) == int8[b2]).all()
    assert (int8[b2 + 1] != real[b2 + 1]).any()


def test_a_step_moves_whole_steps_of_four_layers_towards_a_lower_loss(model, images):
    network = benchmark.Network(model, "int8")
    before = {name: value.clone() for name, value in network.named_parameters()}
    labels = torch.tensor([0, 1, 2, 3])
    with torch.no_grad():
        benchmark.Trainer(network, 1).step(torch.from_numpy(images), labels, 0.0039)
    moved = {n for n, value in network.named_parameters() if (value != before[n]).any()}
    assert moved == {f"{part}.{i}" for i in (13, 17, 20, 24) for part in ("weights", "biases")}
    assert all((value == value.round()).all() for value in network.parameters())


def test_the_page_of_the_released_settings_shows_the_tables():
    stored = json.loads((LAB / "results" / "residual-sums.json").read_text())
    page = (LAB / "pages" / "released.md").read_text(encoding="utf-8")
    for table in benchmark.tables_of(stored).split("\n\n"):
        assert f"\n```\n{table}\n```\n" in page
