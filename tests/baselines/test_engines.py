"""Training by an engine's losses alone: on the core's engine, the bytes of the core's trainer."""

from __future__ import annotations

import dataclasses
import re

import pytest
from networks import labels, pixels, residual_network

import pmt
from pmt.baselines.engines import CoreEngine, EngineTrainer

WEIGHT = pmt.TrainingOptions(
    gradient_norm_scaling="none",
    preparation="none",
    rule="weight",
    queries=6,
    batch=5,
    mu_weight=3,
    seed=7,
)
STEPS = [
    {},
    {"baseline": "clean"},
    {"sharing": "batch"},
    {"sharing": "batch", "baseline": "clean", "generator": "xorshift32"},
    {"scope": "model_wise", "layers": "all"},
    {"scope": "model_wise", "sharing": "batch", "pairs": "antithetic"},
    {"pairs": "antithetic", "baseline": "clean"},
    {"step": "gradient", "learning_rate": 1e-3},
    {"step": "gradient", "learning_rate": 1e-3, "gradient_norm_scaling": "queries"},
    {
        "step": "gradient",
        "learning_rate": 1e-3,
        "gradient_norm_scaling": "queries_and_samples",
        "rounding": "nearest",
    },
    {"step": "gradient", "learning_rate": 30.0, "quantization_aware_scaling": False},
    {"rounding": "nearest", "learning_rate": 2.0},
    {"train_bias": False},
    {"int8_logits": True, "mu_weight": 8},
]


def batch(model, count: int = 5):
    return model.prepare(pixels(model, count)), labels(model, count)


@pytest.mark.parametrize("changes", STEPS)
def test_the_cores_engine_leaves_the_bytes_of_the_cores_trainer(changes):
    options = WEIGHT.replace(layers="all").replace(**changes)
    core, engine = residual_network(), residual_network()
    images, classes = batch(core)
    own = pmt.ZOTrainer(options, threads=1).stepper(core, len(classes))
    other = EngineTrainer(CoreEngine(engine, int8_logits=options.int8_logits, threads=1), options)
    for step in range(3):
        rate = options.learning_rate / (1 + step)
        results = [t.step(images, classes, step, rate) for t in (own, other)]
        assert results[0] == results[1]
    assert results[0]["changed"] > 0
    assert core.image() == engine.image()


def test_a_step_on_a_smaller_batch_and_dead_channels():
    graph = residual_network().to_graph()
    graph.ops[0].weight_scales[2] = 1e-9
    core, engine = pmt.Model.from_graph(graph), pmt.Model.from_graph(graph)
    images, classes = batch(core, 3)
    own = pmt.ZOTrainer(WEIGHT, threads=1).stepper(core, 3)
    other = EngineTrainer(CoreEngine(engine, threads=1), WEIGHT)
    results = [t.step(images, classes, 4, 0.5) for t in (own, other)]
    assert results[0] == results[1]
    assert core.image() == engine.image()


def test_forwards_are_counted():
    model = residual_network()
    images, classes = batch(model)
    trainer = EngineTrainer(CoreEngine(model), WEIGHT.replace(layers="all"))
    trainer.step(images, classes, 0, 0.5)
    assert trainer.forwards == 5 * 6 * len(model.layers)


class Broken(CoreEngine):
    left = 9

    def losses(self, images, labels):
        self.left -= 1
        if self.left < 0:
            raise RuntimeError("the engine stopped")
        return super().losses(images, labels)


def test_an_engine_that_stops_in_a_step_keeps_its_weights():
    model = residual_network()
    before = model.image()
    images, classes = batch(model)
    with pytest.raises(RuntimeError, match="the engine stopped"):
        EngineTrainer(Broken(model), WEIGHT).step(images, classes, 0, 0.5)
    assert model.image() == before


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"rule": "by_dimension"}, "rule='by_dimension' must be 'weight' with this engine"),
        ({"directions": "hadamard"}, "directions='hadamard' must be 'rademacher' with this"),
        ({"optimizer": "adam"}, "optimizer='adam' must be 'sgd' with this engine"),
        ({"sparsity": 0.5}, "sparsity=0.5 must be 0.0 with this engine"),
        ({"loss": "hinge"}, "loss='hinge' must be 'cross_entropy' with this engine"),
        ({"int8_logits": True}, "int8_logits=True must be False with this engine"),
        ({"train_weights": False}, "train_weights=False must be True with this engine"),
        (
            {"gradient_norm_scaling": "measured"},
            "gradient_norm_scaling='measured' must be 'none', 'queries' or 'queries_and_samples'",
        ),
        ({"layers": "B9"}, "B9"),
    ],
)
def test_options_that_need_more_than_a_loss_are_refused(changes, message):
    options = dataclasses.replace(WEIGHT, **changes)
    with pytest.raises(ValueError, match=re.escape(message)):
        EngineTrainer(CoreEngine(residual_network()), options)
