"""The linear head trained alone, on features that are computed once."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from interruptions import cut_and_resumed

import pmt
from pmt import corruptions, datasets
from pmt.firmware import export
from pmt.train.prepare import linear_head
from pmt.train.prepare.linear_head import HeadTraining
from pmt.train.prepare.preparation import Preparation

MODEL = "fashion_mnist_dscnn"
FORWARD = 1_561_440  # multiply-accumulates of an image, the head's included
HEAD = 1_280


def noisy(count, split="train", seed=0):
    return corruptions.corrupt(datasets.bundled(split).take(count), "gaussian_noise", 5, seed=seed)


def options(**changes):
    chosen = {"head_epochs": 2, "preparation": "head", **changes}
    return pmt.train.options.preset("default", **chosen)


def train_head(model, data, *, epochs=2, threads=1, exactly=None):
    return HeadTraining(epochs, 0.5, seed=1).run(model, data, threads=threads, epochs=exactly)


def parameters(model):
    return {
        layer.name: (model.core.weights(layer.index), model.core.bias(layer.index))
        for layer in model.layers
    }


@pytest.mark.parametrize("threads", [1, 2])
def test_inputs_are_the_activations_that_a_layer_sees(threads):
    model = pmt.load(MODEL)
    images = model.prepare(noisy(5).images)
    for index, op in enumerate(model.core.ops()):
        seen = model.core.inputs(images, index, threads)
        for image, one in zip(images, seen, strict=True):
            assert np.array_equal(one, model.core.activations(image)[op["inputs"][0]])


def test_inputs_of_an_op_that_is_not_there_are_refused():
    model = pmt.load(MODEL)
    ops = model.core.op_count
    for op in (-1, ops):
        with pytest.raises(ValueError, match=f"op {op} must be 0..{ops - 1}"):
            model.core.inputs(model.prepare(noisy(1).images), op)


def test_the_head_gets_the_bytes_of_a_run_on_it(monkeypatch):
    """Without random rounding, steps on features are steps on images."""
    own = linear_head._core_options

    def to_nearest(seed):
        options = own(seed)
        options.rounding = "nearest"
        return options

    monkeypatch.setattr(linear_head, "_core_options", to_nearest)
    on_features, on_images = pmt.load(MODEL), pmt.load(MODEL)
    data = noisy(130)
    train_head(on_features, data, exactly=2)
    alike = {
        "keep_best": False,
        "batch": 50,
        "learning_rate": 0.5,
        "head_rate": 1.0,
        "rounding": "nearest",
    }
    plain = options(layers="head", preparation="none", epochs=2, **alike)
    pmt.ZOTrainer(plain).fit(on_images, data, progress=False)
    assert on_features.image() == on_images.image()
    assert on_features.image() != pmt.load(MODEL).image()


def test_the_head_learns_and_nothing_else_changes():
    data, test = noisy(600), noisy(500, "test", seed=1)
    model = pmt.load(MODEL)
    before, loss = parameters(model), model.evaluate(test).loss
    train_head(model, data, epochs=12)
    after = parameters(model)
    changed = [n for n in before if not np.array_equal(before[n][0], after[n][0])]
    assert changed == [model.layers[-1].name]
    assert model.evaluate(test).loss < loss - 0.05


def test_threads_do_not_change_a_byte():
    images = []
    for threads in (1, 2):
        model = pmt.load(MODEL)
        train_head(model, noisy(200), threads=threads)
        images.append(model.image())
    assert images[0] == images[1]


def test_it_costs_a_forward_an_image_and_the_head_in_every_epoch():
    model = pmt.load(MODEL)
    assert model.macs == FORWARD
    cost = HeadTraining(3, 0.5, seed=1).macs(model, 130)
    # Each of the 2 steps of an epoch has 50 images; its gradient takes two more products.
    assert cost == 130 * (FORWARD - HEAD) + 3 * 2 * 50 * 3 * HEAD


@pytest.mark.parametrize("epochs", [2, 6])
def test_longer_passes_cost_more(epochs):
    model = pmt.load(MODEL)
    work = train_head(model, noisy(130), exactly=epochs)
    assert work.epochs == epochs
    assert work.macs == HeadTraining(epochs, 0.5, seed=1).macs(model, 130)


def test_a_head_of_other_classes_takes_ten_times_as_many():
    data = datasets.bundled("train").take(300)
    turned = replace(data, labels=(data.labels + 3) % 10)
    model = pmt.load(MODEL)
    before = model.evaluate(turned).accuracy
    assert train_head(model, turned, epochs=12).epochs == 120
    assert before < 0.1
    assert model.evaluate(turned).accuracy > 0.8


@pytest.mark.parametrize(
    ("data", "turn", "epochs"),
    [
        (noisy(300), lambda labels: labels, (12,)),  # right but for a shift of the images
        (datasets.bundled("train").take(5), lambda labels: (labels + 3) % 10, (12,)),  # too few
        (datasets.bundled("train").take(40), lambda labels: labels * 0, (12, 36, 120)),
    ],
    ids=["a shift", "few images", "one class"],
)
def test_other_images_take_the_passes_given(data, turn, epochs):
    one = replace(data, labels=turn(data.labels))
    assert train_head(pmt.load(MODEL), one, epochs=12).epochs in epochs


@pytest.mark.parametrize(
    ("changes", "trained"),
    [
        ({}, True),
        ({"layers": "B1,head"}, True),
        ({"layers": "B1"}, False),
        ({"preparation": "none"}, False),
        ({"rule": "weight"}, True),
    ],
)
def test_only_a_head_among_the_trained_layers_is_trained_alone(changes, trained):
    cost = Preparation(options(**changes)).cost(pmt.load(MODEL), 100)
    assert (cost.macs > 0) is trained


def test_the_head_before_training_is_part_of_the_run(tmp_path):
    data, valid = noisy(150), noisy(100, "test", seed=1)
    trainer = pmt.ZOTrainer(
        options(
            layers="B1,head",
            queries=2,
            epochs=1,
            learning_rate=0.05,
            final_learning_rate=1.0,
            keep_best=False,
        )
    )
    start = pmt.load(MODEL)
    whole = trainer.fit(start.copy(), data, valid=valid, out=tmp_path / "whole", progress=False)
    by_hand = start.copy()
    work = train_head(by_hand, data)
    plain = pmt.ZOTrainer(trainer.options.replace(preparation="none"))
    after = plain.fit(by_hand, data, progress=False)
    assert whole.model.image() == after.model.image()
    assert [phase.get("head_epochs") for phase in whole.phases] == [None, work.epochs]
    assert whole.epochs[-1]["macs"] == after.epochs[-1]["macs"] + work.macs + work.choice_macs
    assert whole.epochs[-1]["forwards"] == after.epochs[-1]["forwards"]
    resumed = cut_and_resumed(trainer, start, data, valid, tmp_path / "cut")
    assert resumed.model.image() == whole.model.image()
    assert resumed.epochs == [
        {**again, "seconds": one["seconds"]}
        for again, one in zip(whole.epochs, resumed.epochs, strict=True)
    ]


@pytest.mark.parametrize(("layers", "trained"), [("B1", False), ("B1,head", True)])
def test_an_export_trains_the_head_alone_only_where_it_is_exported(tmp_path, layers, trained):
    start = pmt.load(MODEL)
    data = noisy(60)
    chosen = options(queries=2, batch=2)
    export.export(
        start,
        out=tmp_path / "out",
        target="qemu-mps2-an500",
        dataset=data,
        options=chosen,
        layers=layers,
        steps=1,
    )
    exported = pmt.load(tmp_path / "out" / "model" / "model.pmt")
    expected = start.copy()
    if trained:
        train_head(expected, data)
    for name, (weights, bias) in parameters(expected).items():
        assert np.array_equal(parameters(exported)[name][0], weights)
        assert np.array_equal(parameters(exported)[name][1], bias)
