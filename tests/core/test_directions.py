"""Directions of the queries, from Python: the options, their errors, and whole training runs."""

from __future__ import annotations

import math
import re
from typing import Any

import numpy as np
import pytest
from networks import labels, pixels, residual_network

from pmt import _core
from pmt.train.costs.work import zeroth_order_work
from pmt.train.options import TrainingOptions, preset


def core_trainer(model: Any, options: TrainingOptions, threads: int = 1) -> _core.Trainer:
    layers = model.select_layers("all")
    return _core.Trainer(model.core, options.to_core(), layers, options.batch, threads)


def parameters(model: Any) -> list[np.ndarray]:
    return [np.array(model.core.weights(layer.index)) for layer in model.layers]


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        (
            {"directions": "gaussian"},
            "directions='gaussian' is unknown; choose one of rademacher, hadamard, coordinate",
        ),
        (
            {"sparsity": 1.0},
            "sparsity=1.0 must be 0 <= x < 1 (the share of weights that a step leaves out)",
        ),
        (
            {"sparsity": math.nan},
            "sparsity=nan must be 0 <= x < 1 (the share of weights that a step leaves out)",
        ),
        ({"mask_interval": 0}, "mask_interval=0 must be 1..1000000"),
        (
            {"pairs": "antithetic", "queries": 7},
            "pairs='antithetic' takes two queries per direction: queries=7 must be even",
        ),
        (
            {"pairs": "antithetic", "directions": "coordinate"},
            "pairs='antithetic' does not go with directions='coordinate', which moves each "
            "coordinate one way; use pairs='one_sided'",
        ),
        (
            {"hadamard_index": "running"},
            "hadamard_index='running' numbers the Hadamard rows of all samples; use it with "
            "directions='hadamard' and sharing='per_sample'",
        ),
        (
            {"hadamard_index": "running", "directions": "hadamard", "sharing": "batch"},
            "hadamard_index='running' numbers the Hadamard rows of all samples; use it with "
            "directions='hadamard' and sharing='per_sample'",
        ),
        (
            {"directions": "coordinate", "scope": "model_wise"},
            "directions='coordinate' moves one coordinate of one layer at a time; use "
            "scope='layer_wise'",
        ),
    ],
)
def test_choices_that_do_not_go_together_are_refused(changes: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=f"^{re.escape(message)}$"):
        preset("default", **{"gradient_norm_scaling": "none", **changes})


@pytest.mark.parametrize("directions", ["rademacher", "hadamard", "coordinate"])
@pytest.mark.parametrize("rule", ["weight", "node"])
def test_weights_left_out_never_change(directions: str, rule: str) -> None:
    """The same draw for two steps: what they change together is no more than the active share."""
    options = preset(
        "default",
        gradient_norm_scaling="none",
        directions=directions,
        rule=rule,
        batch=2,
        queries=8,
        sparsity=0.75,
        mask_interval=2,
        learning_rate=3.0,
    )
    model = residual_network()
    before = parameters(model)
    trainer = core_trainer(model, options)
    for step in range(2):
        trainer.step(model.prepare(pixels(model, 2)), labels(model, 2), step, 3.0)
    changed = []
    for layer, old, new in zip(model.layers, before, parameters(model), strict=True):
        changed.append(int((old != new).sum()))
        active = layer.weights - int(np.float32(0.75) * np.float32(layer.weights) + 0.5)
        assert changed[-1] <= active
    assert sum(changed) > 50


def test_coordinates_count_themselves() -> None:
    model = residual_network()
    options = preset(
        "default",
        gradient_norm_scaling="none",
        directions="coordinate",
        rule="weight",
        sparsity=0.5,
    )
    counts = [layer["queries"] for layer in core_trainer(model, options).layers()]
    expected = [
        layer.weights - int(np.float32(0.5) * np.float32(layer.weights) + 0.5) + layer.biases
        for layer in model.layers
    ]
    assert counts == expected
    layers = model.select_layers("all")
    assert zeroth_order_work(model.core, options.to_core(), layers).forwards == sum(expected)
    without = preset(
        "default",
        gradient_norm_scaling="none",
        directions="coordinate",
        rule="weight",
        train_bias=False,
    )
    counts = [layer["queries"] for layer in core_trainer(model, without).layers()]
    assert counts == [layer.weights for layer in model.layers]


def estimate(model: Any, options: TrainingOptions, layer: int, step: int = 0) -> np.ndarray:
    trainer = core_trainer(model, options)
    images, y = model.prepare(pixels(model, options.batch)), labels(model, options.batch)
    return np.asarray(trainer.estimate(images, y, step, layer)[0], dtype=np.float64)


def cosine(a: np.ndarray, b: np.ndarray) -> float:
    return float(a.ravel() @ b.ravel() / np.linalg.norm(a) / np.linalg.norm(b))


def test_on_a_real_network_complete_hadamard_rows_agree_with_coordinates() -> None:
    """Apart from rounding noise and curvature; random signs of as many queries do not."""
    common = {
        "rule": "weight",
        "train_bias": False,
        "batch": 4,
        "mu_weight": 4,
        "baseline": "clean",
    }
    model = residual_network()
    layer = min(range(len(model.layers)), key=lambda i: model.layers[i].weights)
    rows = 1 << (model.layers[layer].weights - 1).bit_length()
    exact = estimate(
        model,
        preset("default", gradient_norm_scaling="none", directions="coordinate", **common),
        layer,
    )
    hadamard = estimate(
        model,
        preset(
            "default", gradient_norm_scaling="none", directions="hadamard", queries=rows, **common
        ),
        layer,
    )
    random = estimate(
        model, preset("default", gradient_norm_scaling="none", queries=rows, **common), layer
    )
    assert cosine(hadamard, exact) > cosine(random, exact) > 0.3
    assert cosine(hadamard, exact) > 0.8
