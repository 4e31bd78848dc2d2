"""Settings of layers from measurements: the formulas, the budget, and runs that use them."""

from __future__ import annotations

import json

import numpy as np
import pytest
from networks import labels, pixels, residual_network, smooth_network

import pmt
from pmt import _core
from pmt.datasets import Dataset
from pmt.train.costs.work import probe_work, zeroth_order_work
from pmt.train.layer_settings import (
    describe_layers,
    settings_from_array,
    settings_in_force,
    settings_to_array,
)

MEASURED = {"mu": "calibrated", "allocation": "variance", "rule": "measured"}
RUN = {"layers": "all", "epochs": 3, "batch": 4, "queries": 8, "probe_samples": 3}
RUN |= {"preparation": "align", **MEASURED}


def data(count=12, seed=0):
    model = residual_network()
    return Dataset(pixels(model, count, seed), labels(model, count, seed), tuple("abcd"), "random")


def core_trainer(model, layers, batch, threads=1, **changes):
    options = pmt.preset("default", **changes).to_core()
    return _core.Trainer(model.core, options, model.select_layers(layers), batch, threads)


def calibrated(model, layers, count, **changes):
    trainer = core_trainer(model, layers, count, **changes)
    return trainer.calibrate(model.prepare(pixels(model, count)), labels(model, count), 0)


def test_variance_along_signs_is_the_squared_norm_of_the_gradient():
    # The loss is smooth in the head's weights: no rounding noise, and a gradient that is exact.
    model = smooth_network()
    images, y = model.prepare(pixels(model, 6)), labels(model, 6)
    exact = core_trainer(model, "head", 1, rule="by_dimension")
    gradients = [
        exact.estimate(images[i : i + 1], y[i : i + 1], 0, 0)[0].astype(np.float64)
        for i in range(6)
    ]
    squares = np.mean([np.sum(g**2) for g in gradients])
    options = {"rule": "weight", "train_bias": False, "mu": "calibrated", "probe_queries": 512}
    found = calibrated(model, "head", 6, **options)
    at_one, at_four = found["measurements"][0]["weight_variance"]
    # 6 * 512 draws of nearly normal differences: 2.6 % standard deviation.
    assert at_one == pytest.approx(squares, rel=0.12)
    assert at_four == pytest.approx(16 * squares, rel=0.12)
    assert [s.mu_weight for s in found["settings"]] == [1]


@pytest.mark.parametrize(
    ("rule", "regions"), [("weight", 1), ("node", 1), ("pooled", 1), ("pooled", 3)]
)
def test_the_error_is_that_of_the_estimates(rule, regions):
    # One layer's gradients by the real weights: over many steps, around their mean.
    model, count, queries = residual_network(), 5, 12
    images, y = model.prepare(pixels(model, count)), labels(model, count)
    options = {"rule": rule, "allocation": "variance", "queries": queries, "probe_queries": 200}
    options["regions"] = regions
    layers = model.select_layers("B1,B2")
    found = calibrated(model, "B1,B2", count, **options)
    trainer = core_trainer(model, "B1,B2", count, **options)
    for index, op in enumerate(layers):
        scales = model.core.weight_scales(op).astype(np.float64)
        weights = model.core.weights(op)
        depthwise = model.core.ops()[op]["kind"] == "depthwise_conv2d"
        by_weight = np.broadcast_to(
            scales if depthwise else scales.reshape(-1, *[1] * (weights.ndim - 1)), weights.shape
        ).reshape(-1)
        estimates = np.stack(
            [trainer.estimate(images, y, step, index)[0] / by_weight for step in range(40)]
        ).astype(np.float64)
        spread = np.sum(np.var(estimates, axis=0, ddof=1))
        predicted = found["measurements"][index]["error"] / queries
        assert predicted == pytest.approx(spread, rel=0.35)


CANDIDATES = (("weight", 1), ("node", 1), ("pooled", 1), ("pooled", 2), ("pooled", 4))


def biases(model, op, measured, mu_node, batch):
    """Squared biases of pooled gradients, where node gradients do not depend on the inputs."""
    tensors = model.core.tensors()
    one = model.core.ops()[op]
    ratio = tensors[one["inputs"][0]]["scale"] / tensors[one["output"]]["scale"]
    by_node = measured["node_variance"][0] / mu_node**2
    inputs = measured["input_squares"] / measured["nodes"]
    found = []
    for region in measured["regions"]:
        by_region = region["variance"][0] / mu_node**2
        gradients = by_node - by_region * region["columns"] / measured["nodes"]
        deviations = inputs - region["mean_squares"] / region["columns"]
        found.append(ratio**2 * max(gradients, 0) * max(deviations, 0) / batch)
    return found


@pytest.mark.parametrize("queries", [4, 400])
@pytest.mark.parametrize(("mu_weight", "mu_node"), [(32, 1), (2, 4)])
def test_the_measured_rule_takes_the_smallest_error(mu_weight, mu_node, queries):
    # Small steps of the nodes drown in rounding noise, so that some layers' weights win; with many
    # queries the bias of pooled gradients counts.
    model = residual_network()
    shared = {"allocation": "variance", "mu_weight": mu_weight, "mu_node": mu_node}
    shared |= {"queries": queries, "probe_queries": 64}
    errors = [
        [
            m["error"]
            for m in calibrated(model, "all", 4, rule=rule, regions=k, **shared)["measurements"]
        ]
        for rule, k in CANDIDATES
    ]
    found = calibrated(model, "all", 4, rule="measured", **shared)
    names = {0: "weight", 1: "node", 3: "pooled"}
    settings = found["settings"]
    assert settings[-1].estimator == _core.Estimator.closed_form
    for index, op in enumerate(model.select_layers("all")[:-1]):
        bias = biases(model, op, found["measurements"][index], mu_node, 4)
        totals = [e[index] / queries + b for e, b in zip(errors, [0, 0, *bias], strict=True)]
        best = CANDIDATES[int(np.argmin(totals))]
        assert (names[settings[index].estimator], settings[index].regions) == best


@pytest.mark.parametrize("step", range(4))
def test_an_estimator_whose_losses_do_not_vary_is_not_chosen(step):
    # Eight queries often turn no right answer into a wrong one.
    model = residual_network()
    trainer = core_trainer(model, "all", 4, rule="measured", loss="zero_one", probe_queries=8)
    found = trainer.calibrate(model.prepare(pixels(model, 4, step)), labels(model, 4, step), step)
    seen = set()
    for one, measured in zip(found["settings"], found["measurements"], strict=True):
        variances = [measured["weight_variance"][0], measured["node_variance"][0]]
        variances += [region["variance"][0] for region in measured["regions"]]
        place = one.estimator if one.estimator < 2 else 2 + (1, 2, 4).index(one.regions)
        assert variances[place] > 0 or not any(variances)
        seen |= {v > 0 for v in variances}
    assert seen == {False, True}


def test_the_measured_rule_finds_layers_of_every_kind():
    model, kinds = residual_network(), set()
    for mu_weight, mu_node, queries in ((32, 1, 4000), (2, 4, 4), (2, 4, 4000)):
        found = calibrated(
            model, "all", 4, rule="measured", mu_weight=mu_weight, mu_node=mu_node, queries=queries
        )
        kinds |= {s.estimator.name for s in found["settings"]}
    assert kinds == {
        "weight_perturbation", "node_perturbation", "pooled_perturbation", "closed_form"
    }  # fmt: skip


def test_allocation_follows_the_root_of_error_over_cost():
    assert _core.allocate_queries([(1.0, 1), (1.0, 4)], 60) == [100, 50]
    assert _core.allocate_queries([(0.0, 1), (0.0, 4)], 60) == [60, 60]


def test_the_budget_of_uniform_queries_holds():
    model = residual_network()
    layers = model.select_layers("all")
    options = pmt.preset("default", queries=50, rule="weight", allocation="variance").to_core()
    found = calibrated(model, "all", 4, queries=50, rule="weight", allocation="variance")
    uniform = zeroth_order_work(model.core, options, layers).queries
    own = zeroth_order_work(model.core, options, layers, found["settings"]).queries
    assert 0.99 * uniform < own <= uniform
    assert len({s.queries for s in found["settings"]}) > 1


@pytest.mark.parametrize(
    "options",
    [
        {"mu": "calibrated", "rule": "by_dimension"},
        {"allocation": "variance", "rule": "node"},
        {"allocation": "variance", "rule": "pooled", "regions": 3},
        {"mu": "calibrated"},
        {"rule": "measured"},
        dict(MEASURED),
    ],
)
def test_probes_are_counted(options):
    model = residual_network()
    found = calibrated(model, "all", 3, **options)
    work = probe_work(
        model.core, pmt.preset("default", **options).to_core(), model.select_layers("all")
    )
    assert (found["forwards"], found["macs"]) == (3 * work.forwards, 3 * work.macs)
    assert found["forwards"] > 0


def test_each_layer_estimates_with_its_own_settings():
    # Equal to a trainer whose options say the same for all.
    model = residual_network()
    images, y = model.prepare(pixels(model, 3)), labels(model, 3)
    layers = model.select_layers("B1,B2")
    settings = [
        _core.LayerSettings(
            queries=4 + 3 * i, mu_weight=1 + i, mu_node=2 + i, estimator=_core.Estimator(i % 2)
        )
        for i in range(len(layers))
    ]
    own = core_trainer(model, "B1,B2", 3)
    own.configure(settings)
    for i, one in enumerate(settings):
        same = core_trainer(
            model,
            "B1,B2",
            3,
            queries=one.queries,
            mu_weight=one.mu_weight,
            mu_node=one.mu_node,
            rule=("weight", "node")[one.estimator],
        )
        for a, b in zip(own.estimate(images, y, 7, i), same.estimate(images, y, 7, i), strict=True):
            np.testing.assert_array_equal(a, b)


def test_threads_do_not_change_a_byte():
    images = []
    for threads in (1, 3):
        model = residual_network()
        pmt.ZOTrainer(threads=threads, mu_per_channel=True, calibration_steps=2, **RUN).fit(
            model, data(), progress=False
        )
        images.append(model.image())
    assert images[0] == images[1]


class Stop(BaseException):
    """Stands for a kill."""


def test_settings_of_a_pmt_without_regions_are_resumed_bit_for_bit(tmp_path):
    def callback(done, record):
        if done == 3:
            raise Stop

    options = {**RUN, "rule": "by_dimension", "calibration_steps": 100}
    trainer = pmt.ZOTrainer(**options)
    whole, resumed = residual_network(), residual_network()
    trainer.fit(whole, data(), progress=False)
    with pytest.raises(Stop):
        trainer.fit(residual_network(), data(), out=tmp_path / "run", progress=callback)
    stored = tmp_path / "run" / "checkpoint-3.npz"
    with np.load(stored) as arrays:
        settings = arrays["layer_settings"]
    np.savez(stored, layer_settings=settings[:, :4])
    trainer.fit(resumed, data(), out=tmp_path / "run", progress=False)
    assert resumed.image() == whole.image()


@pytest.mark.parametrize("stop", [1, 3, 4, 5])
def test_a_run_is_resumed_across_a_measurement_bit_for_bit(tmp_path, stop):
    def callback(done, record):
        if done == stop:
            raise Stop

    whole = residual_network()
    options = {**RUN, "calibration_steps": 4}
    straight = pmt.ZOTrainer(**options).fit(whole, data(), out=tmp_path / "whole", progress=False)
    with pytest.raises(Stop):
        pmt.ZOTrainer(**options).fit(
            residual_network(), data(), out=tmp_path / "run", progress=callback
        )
    model = residual_network()
    resumed = pmt.ZOTrainer(**options).fit(model, data(), out=tmp_path / "run", progress=False)
    assert model.image() == whole.image()
    for name in ("train_loss", "layers", "forwards", "macs"):
        assert [r[name] for r in resumed.epochs] == [r[name] for r in straight.epochs]


def bundled_run(threads, out=None, progress=False):
    model = pmt.load("fashion_mnist_dscnn")
    noisy = pmt.datasets.bundled("train").take(16)
    pmt.ZOTrainer(
        layers="B4,head", rule="pooled", regions=2, epochs=2, batch=4, queries=4,
        preparation="none", threads=threads,
    ).fit(model, noisy, out=out, progress=progress)  # fmt: skip
    return model.image()


def test_pooled_nodes_train_the_bundled_network_and_resume_bit_for_bit(tmp_path):
    def callback(done, record):
        if done == 3:
            raise Stop

    whole = bundled_run(1)
    assert whole != pmt.load("fashion_mnist_dscnn").image()
    assert bundled_run(3) == whole
    with pytest.raises(Stop):
        bundled_run(1, tmp_path / "run", callback)
    assert bundled_run(1, tmp_path / "run") == whole
    for kernels in _core.available_kernels():
        with pytest.MonkeyPatch.context() as environment:
            environment.setenv("PMT_ISA", kernels)
            assert bundled_run(1) == whole, kernels


def test_records_tell_the_settings_and_what_the_probes_took(tmp_path):
    model = residual_network()
    trainer = pmt.ZOTrainer(**RUN, calibration_steps=9)
    bound = trainer.cost(model)
    result = trainer.fit(model, data(), out=tmp_path / "run", progress=False)
    text = (tmp_path / "run" / "metrics.jsonl").read_text()
    lines = [json.loads(line) for line in text.splitlines()]
    steps = [line for line in lines if line["kind"] == "step"]
    assert steps[0]["macs"] > steps[1]["macs"] == steps[8]["macs"]
    last = result.epochs[-1]
    assert last["macs"] == sum(step["macs"] for step in steps)
    assert last["macs"] <= 9 * bound.macs
    assert last["forwards"] == sum(step["forwards"] for step in steps)
    layers = last["layers"]
    assert set(layers) == {layer.name for layer in model.layers}
    assert layers["head"] == {"estimator": "closed_form"}
    others = [one for name, one in layers.items() if name != "head"]
    assert all(one["mu"] in (1, 2, 4, 8) and one["queries"] % 2 == 0 for one in others)


def test_without_measurements_nothing_is_added():
    model = residual_network()
    result = pmt.ZOTrainer(layers="B3,head", epochs=1, batch=4, queries=6).fit(
        model, data(), progress=False
    )
    assert "layers" not in result.epochs[0]


def test_settings_go_through_an_array():
    settings = [
        _core.LayerSettings(
            queries=6, mu_weight=2, mu_node=3, estimator=_core.Estimator(e), regions=1 + e
        )
        for e in range(4)
    ]
    array = settings_to_array(settings)
    assert array.tolist() == [[6, 2, 3, 0, 1], [6, 2, 3, 1, 2], [6, 2, 3, 2, 3], [6, 2, 3, 3, 4]]
    again = settings_from_array(array, 4)
    assert [s.pack() for s in again] == [s.pack() for s in settings]
    wrong = r"^layer_settings: int32 \(4, {}\) must be int32 \({}, 5\), a row for each layer$"
    with pytest.raises(ValueError, match=wrong.format(5, 2)):
        settings_from_array(array, 2)
    with pytest.raises(ValueError, match=wrong.format(4, 4)):
        settings_from_array(array[:, :4], 4)
    with pytest.raises(ValueError, match="is not a valid Estimator"):
        settings_from_array(array + np.array([0, 0, 0, 4, 0], np.int32), 4)


def test_layers_are_described_by_what_they_perturb():
    both = {"queries": 6, "mu_weight": 2, "mu_node": 3, "regions": 4}
    layers = [
        {"name": "a", "estimator": "weight_perturbation", **both},
        {"name": "b", "estimator": "node_perturbation", **both},
        {"name": "c", "estimator": "closed_form", **both},
        {"name": "d", "estimator": "pooled_perturbation", **both},
    ]
    assert describe_layers(layers) == {
        "a": {"estimator": "weight_perturbation", "queries": 6, "mu": 2},
        "b": {"estimator": "node_perturbation", "queries": 6, "mu": 3},
        "c": {"estimator": "closed_form"},
        "d": {"estimator": "pooled_perturbation", "queries": 6, "mu": 3, "regions": 4},
    }


def test_the_settings_in_force_tell_the_regions_of_a_plane():
    # No more than there are positions: the stem has 8 x 8, `down` 4 x 4.
    trainer = core_trainer(residual_network(), "stem,down,head", 1, rule="pooled", regions=5)
    assert [(s.estimator.name, s.regions) for s in settings_in_force(trainer)] == [
        ("pooled_perturbation", 5),
        ("pooled_perturbation", 4),
        ("closed_form", 1),
    ]


def test_probes_take_whole_pairs():
    with pytest.raises(
        ValueError,
        match=r"^pairs='antithetic' takes two queries per direction, in a probe too: "
        r"probe_queries=3 must be even$",
    ):
        pmt.preset("default", rule="measured", pairs="antithetic", probe_queries=3)
    pmt.preset("default", pairs="antithetic", probe_queries=3)  # probes nothing


@pytest.mark.parametrize("changes", [{name: value} for name, value in MEASURED.items()])
def test_model_wise_cannot_be_measured(changes):
    with pytest.raises(ValueError, match="scope='model_wise' perturbs all layers at once"):
        pmt.preset("default", scope="model_wise", **{"rule": "by_dimension", **changes})


def test_wrong_settings_are_refused_and_the_old_ones_stay():
    model = residual_network()
    trainer = core_trainer(model, "B1", 2)
    before = trainer.layers()
    wrong = _core.LayerSettings(
        queries=0, mu_weight=1, mu_node=1, estimator=_core.Estimator.weight_perturbation
    )
    with pytest.raises(ValueError, match=r"a layer's queries must be 1\.\.4096"):
        trainer.configure([wrong] * len(before))
    for regions in (0, 17):
        many = _core.LayerSettings(
            queries=4,
            mu_weight=1,
            mu_node=1,
            estimator=_core.Estimator.pooled_perturbation,
            regions=regions,
        )
        with pytest.raises(ValueError, match="a layer's regions must be 1 to 16 along each side"):
            trainer.configure([many] * len(before))
    with pytest.raises(ValueError, match="settings must be given for every layer"):
        trainer.configure([wrong] * (len(before) + 1))
    assert trainer.layers() == before
