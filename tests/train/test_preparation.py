"""Preparation: every method may begin with it, and it leaves the same bytes whichever it is."""

from dataclasses import replace

import pytest
from networks import convolution_before_mean

import pmt
from pmt import corruptions, datasets, methods
from pmt.net.graph import Op
from pmt.train.options import TrainingOptions
from pmt.train.prepare import align
from pmt.train.prepare.clean_statistics import (
    measure_statistics,
    stored_statistics,
    with_statistics,
)
from pmt.train.prepare.preparation import PREPARATIONS, Preparation

OPTIONS = {"seed": 3, "align_images": 40}
DATA = corruptions.corrupt(datasets.bundled("train").take(120), "gaussian_noise", 5)
TRAINED = [name for name in methods.METHODS if name not in ("no_adaptation", "preparation_only")]


@pytest.fixture(scope="module")
def start():
    model = pmt.load("fashion_mnist_dscnn")
    clean = datasets.bundled("test").take(64)
    return with_statistics(model, measure_statistics(model, clean.images))


@pytest.fixture(scope="module")
def prepared(start):
    """Return the prepared model's bytes, by preparation."""
    images = {}
    for name in PREPARATIONS:
        model = start.copy()
        trainer = methods.trainer("preparation_only", preparation=name, **OPTIONS)
        result = trainer.fit(model, DATA, progress=False)
        least = trainer.preparation.cost(start, 120).macs
        choice = sum(phase.get("head_choice_macs", 0) for phase in result.phases)
        assert least + choice <= result.epochs[-1]["macs"]
        # A search takes as many candidates as it finds hopeful.
        assert result.epochs[-1]["macs"] <= (3 if "input" in name else 1.2) * least + choice
        images[name] = model.image()
    return images


def need_packages_of(name):
    if methods.METHODS[name].kind.trainer.startswith("pmt.baselines."):
        pytest.importorskip("torch")


def test_each_preparation_leaves_other_bytes(start, prepared):
    assert prepared["none"] == start.image()
    assert len(set(prepared.values())) == len(PREPARATIONS)


def test_an_alignment_is_that_of_align_on_as_many_images(start, prepared):
    # All images, so that which ones are drawn does not matter.
    model, by_hand = start.copy(), start.copy()
    options = methods.options_of("default", preparation="align", align_images=120)
    Preparation(options).apply(model, DATA)
    align(by_hand, DATA.images, stored_statistics(by_hand))
    assert model.image() == by_hand.image()
    assert model.image() != prepared["align"]


@pytest.mark.parametrize("name", TRAINED)
@pytest.mark.parametrize("preparation", ["align", "head", "align+head", "input+align+head"])
def test_every_method_begins_with_the_same_bytes(start, prepared, name, preparation):
    need_packages_of(name)
    changes = {} if methods.METHODS[name].own_layers else {"layers": "B2,head"}
    trainer = methods.trainer(name, preparation=preparation, **OPTIONS, **changes)
    model = start.copy()
    trainer.preparation.apply(model, DATA)
    assert model.image() == prepared[preparation]


@pytest.mark.parametrize("name", ["default", "paper", "mezo", "bp_int8", "bp_fp32", "tinytrain"])
def test_a_run_takes_its_first_step_from_the_prepared_model(start, prepared, name):
    """The first step's loss is measured before its update."""
    need_packages_of(name)
    losses = []
    for model, preparation in [(start.copy(), "input+align+head"), (start.copy(), "none")]:
        if preparation == "none":
            methods.trainer("preparation_only", **OPTIONS).fit(model, DATA, progress=False)
            assert model.image() == prepared["input+align+head"]
        trainer = methods.trainer(
            name,
            preparation=preparation,
            epochs=1,
            batch=60,
            keep_best=False,
            **OPTIONS,
            **few_queries(name),
        )
        records = []
        trainer.fit(model, DATA, progress=lambda step, record, to=records: to.append(record))
        losses.append(records[0]["loss"])
    assert losses[0] == losses[1]


def few_queries(name):
    return {"queries": 2} if name in ("default", "paper", "mezo") else {}


def test_a_method_without_preparation_starts_from_the_model_itself():
    without = [
        name
        for name in methods.METHODS
        if not methods.METHODS[name].kind.trainer.startswith("pmt.baselines.")
        and methods.options_of(name).preparation == "none"
    ]
    assert without == [
        "no_adaptation",
        "pooled",
        "paper",
        "released",
        "weight_layer_wise",
        "node_layer_wise",
        "weight_model_wise",
        "node_model_wise",
        "mezo",
        "deepzero",
        "deepzero_sparse",
        "bias_only",
        "last_layer",
    ]


def test_a_network_that_ends_in_no_layer_says_why_its_head_is_not_trained(start):
    graph = start.to_graph()
    last = graph.tensors[graph.output]
    graph.tensors.append(replace(last, name="again"))
    graph.ops.append(Op("mean", "mean0", (graph.output,), len(graph.tensors) - 1))
    graph.output = len(graph.tensors) - 1
    preparation = Preparation(TrainingOptions(preparation="head", layers="all"))
    assert preparation.notes(pmt.Model.from_graph(graph), DATA) == [
        "head not trained alone: the network ends in mean 'mean0', not in a layer with weights"
    ]


@pytest.mark.parametrize("range_of_outputs", [2.0, 0.125])
def test_a_convolution_before_a_final_mean_is_a_head(range_of_outputs):
    """A 1x1 convolution and a mean are the linear layer of the mean features."""
    model = convolution_before_mean(range_of_outputs)
    shifted = pmt.corruptions.corrupt(
        pmt.datasets.bundled("train").take(400), "contrast", 4, seed=0
    )
    test = pmt.corruptions.corrupt(pmt.datasets.bundled("test"), "contrast", 4, seed=1)
    before = model.evaluate(test).accuracy
    trainer = pmt.ZOTrainer(layers="head", epochs=1, queries=2, preparation="head", threads=1)
    result = trainer.fit(model, shifted, progress=False)
    assert [phase["phase"] for phase in result.phases] == ["start", "head"]
    assert result.notes == []
    assert before < 0.3
    assert model.evaluate(test).accuracy > 0.7


def test_a_budget_plans_no_filters_for_inputs_that_are_no_pixels():
    model = pmt.load("cifar10_mcunet")
    trainer = pmt.ZOTrainer(macs=10**12)
    of_pixels = trainer.schedule(model, 40)
    others = trainer.schedule(model, 40, pixels=False)
    assert others.steps > of_pixels.steps
    phases = trainer.preparation.phases(model, 40, pixels=False)
    assert [phase.name for phase in phases] == ["aligned", "head"]
