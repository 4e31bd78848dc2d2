"""Sparse back-propagation on small networks: scores by hand, training, resuming, contributions."""

import json

import numpy as np
import pytest
from networks import bright_dataset, random_dataset, residual_network, smooth_network
from toy_trainer import Stop, stop_at
from trained_weights import weight_masks

import pmt

torch = pytest.importorskip("torch")

from pmt.baselines.backprop import BackpropOptions, IntegerNetwork  # noqa: E402
from pmt.baselines.backprop.scheme import LayerUpdate, UpdateScheme  # noqa: E402
from pmt.baselines.sparse_update.channels import channel_potentials  # noqa: E402
from pmt.baselines.sparse_update.contribution import Contributions, analyze, scheme_memory  # noqa: E402
from pmt.baselines.sparse_update.options import MCUTrainOptions, TinyTrainOptions  # noqa: E402
from pmt.baselines.sparse_update.trainer import (  # noqa: E402
    MCUTrainTrainer,
    TinyTrainTrainer,
    full_backward_macs,
)

pytestmark = pytest.mark.usefixtures("one_torch_thread")


def scheme_file(tmp_path, model: pmt.Model, *updates: LayerUpdate):
    path = tmp_path / "scheme.json"
    UpdateScheme(updates).save(path, model)
    return path


def test_potentials_of_a_linear_head_by_hand():
    model = smooth_network(size=2, hidden=2, classes=3)
    data = random_dataset(model, 5)
    prepared = model.prepare(data.images)
    found = channel_potentials(model, prepared, data.labels, [1])[1]
    graph = model.to_graph()
    head = graph.ops[1]
    expected = np.zeros(8)
    for image, label in zip(prepared, data.labels, strict=True):
        x = model.core.activations(image)[1].ravel().astype(float) - graph.tensors[1].zero_point
        scale = graph.tensors[1].scale * head.weight_scales.astype(float)
        logits = (head.weights.astype(float) @ x + head.bias) * scale
        p = np.exp(logits - logits.max())
        p /= p.sum()
        p[label] -= 1.0
        gradient = (p * scale) @ head.weights.astype(float)
        expected += (x * gradient) ** 2 / (2 * len(data))
    np.testing.assert_allclose(found, expected, rtol=1e-4)


def test_potentials_sum_over_positions_before_the_square():
    model = residual_network()
    data = random_dataset(model, 3)
    prepared = model.prepare(data.images)
    found = channel_potentials(model, prepared, data.labels, [1, 3], chunk=2)
    network = IntegerNetwork(model).requires_grad_(False)
    activations = network.activations(torch.from_numpy(prepared).float().requires_grad_())
    for op, tensor in ((1, 1), (3, 3)):
        assert found[op].shape == (activations[tensor].shape[3],)
        assert (found[op] >= 0).all()
    # One more channel at zero changes nothing: a channel that stands at its zero has no potential.
    silent = (activations[3].abs().sum((0, 1, 2)) == 0).numpy()
    assert (found[3][silent] == 0).all()
    whole = channel_potentials(model, prepared, data.labels, [1, 3])
    np.testing.assert_allclose(found[3], whole[3], rtol=1e-5)


def test_mcutrain_changes_what_its_scheme_says(tmp_path):
    model = residual_network()
    path = scheme_file(
        tmp_path, model, LayerUpdate(2, 4, True), LayerUpdate(5, 0, True), LayerUpdate(7, 8, False)
    )
    before = model.copy()
    trainer = MCUTrainTrainer(scheme=str(path), epochs=4, batch=10, learning_rate=0.05, threads=1)
    masks = weight_masks(before, trainer.scheme(before))
    trainer.fit(model, bright_dataset(40, 0), progress=False)
    for layer in model.layers:
        weights = before.core.weights(layer.index), model.core.weights(layer.index)
        changed = weights[0] != weights[1]
        allowed = masks.get(layer.index, np.zeros(changed.shape, bool))
        assert not (changed & ~allowed).any()
        assert changed.any() == allowed.any()
        biases = before.core.bias(layer.index) != model.core.bias(layer.index)
        assert biases.any() == (layer.index in (2, 5))


@pytest.mark.filterwarnings("ignore:.* in valid are also in data")
def test_mcutrain_learns():
    model = residual_network()
    whole = UpdateScheme.whole([3, 5, 7], model)
    text = json.dumps(whole.to_json(model))
    trainer = MCUTrainTrainer(scheme=text, epochs=6, batch=20, learning_rate=0.1, threads=1)
    data = bright_dataset(80, 0)
    result = trainer.fit(model, data, valid=data, progress=False)
    assert result.epochs[-1]["valid_loss"] < 0.8 * result.before["valid_loss"]
    assert result.epochs[-1]["macs"] == trainer.cost(model).macs * 4 * 6


@pytest.mark.parametrize("kind", ["mcutrain", "tinytrain"])
def test_a_resumed_run_keeps_its_choice(tmp_path, kind):
    def trainer():
        common = {"epochs": 3, "batch": 10, "learning_rate": 0.05, "threads": 1}
        if kind == "tinytrain":
            return TinyTrainTrainer(memory=1000, backward_macs=0.6, inspect=3, **common)
        path = scheme_file(tmp_path, residual_network(), LayerUpdate(5, 2, True))
        return MCUTrainTrainer(scheme=str(path), **common)

    data = bright_dataset(40, 0)
    whole, model = residual_network(), residual_network()
    trainer().fit(whole, data, out=tmp_path / "whole", progress=False)
    with pytest.raises(Stop):
        trainer().fit(model, data, out=tmp_path / "run", progress=stop_at(5))
    # The weights by which the choice was made have moved on.
    trainer().fit(model, data, out=tmp_path / "run", progress=False)
    for layer in whole.layers:
        np.testing.assert_array_equal(
            model.core.weights(layer.index), whole.core.weights(layer.index)
        )
    folder = pmt.RunFolder(tmp_path / "run")
    assert folder.trainer() == kind
    assert json.loads(folder.read_config()[0].chosen)["layers"][0]["chosen"]
    other = type(trainer())(trainer().options, threads=1, seed=9)
    with pytest.raises(ValueError, match="holds a run with other options or data"):
        other.fit(residual_network(), data, out=tmp_path / "run", progress=False)


def test_tinytrain_stays_within_its_budgets():
    model = residual_network()
    trainer = TinyTrainTrainer(memory=600, backward_macs=0.5, inspect=3, batch=10, threads=1)
    scheme = trainer.choose(model, bright_dataset(40, 0))
    assert scheme_memory(model, scheme).total <= 600
    bound = TinyTrainTrainer(trainer.options, chosen=json.dumps(scheme.to_json(model)), threads=1)
    assert bound.cost(model).macs <= trainer.cost(model).macs
    assert trainer.cost(model).macs == 10 * (model.macs + int(0.5 * full_backward_macs(model)))
    assert all(u.chosen for u in scheme.layers if u.op != 7)


def test_contributions_are_measured_once_and_make_a_scheme(tmp_path):
    model = residual_network()
    data, valid = bright_dataset(40, 0), bright_dataset(40, 1)
    options = BackpropOptions(epochs=1, batch=20, learning_rate=0.02)
    cache = tmp_path / "contributions.json"
    few = {"ratios": (0.5, 1.0), "stride": 2, "cache": cache, "options": options, "threads": 1}
    found = analyze(model, data, valid, **few)
    # Biases of the last 2, 4 and all 5 layers; the stem has 3 input channels, its half is 1.
    assert sorted(found.biases) == [2, 4, 5]
    assert len(found.weights) == 10
    kept = json.loads(cache.read_text())
    assert len(kept["accuracies"]) == 1 + 3 + 10
    del kept["accuracies"]["weights down 1"]
    cache.write_text(json.dumps(kept))
    assert analyze(model, data, valid, **few) == found
    with pytest.raises(ValueError, match="holds an analysis of other weights, data or options"):
        analyze(model, data, bright_dataset(40, 2), **few)
    scheme = found.scheme(model, 500)
    assert scheme_memory(model, scheme).total <= 500
    cache.write_text("[1]")
    with pytest.raises(ValueError, match="no contribution analysis"):
        analyze(model, data, valid, **few)


def test_the_scheme_with_the_largest_gain_is_taken():
    model = residual_network()
    found = Contributions(
        before=0.5,
        biases={1: 0.55, 2: 0.52, 3: 0.52, 4: 0.52, 5: 0.5},
        weights={("down", 0.5): 0.6, ("down", 1.0): 0.61, ("project", 1.0): 0.58},
    )
    # Layers before the head: stem, expand, depth, project, down. `down` alone gains 0.05 by its
    # biases, 0.05 and 0.06 by its weights; with `project` the biases gain 0.02, its weights 0.06.
    most = found.scheme(model, 10**6)
    assert most.by_op().keys() == {3, 5, 7}
    assert (most.by_op()[3].channels, most.by_op()[5].channels) == (16, 8)
    # The weights of `down` are 576, its input 512; half of both and 32 + 16 + 8 of the rest fit.
    less = found.scheme(model, 700)
    assert {u.op: u.channels for u in less.layers} == {5: 4, 7: 8}
    with pytest.raises(ValueError, match="budget=3 bytes is below the least, 8"):
        found.scheme(model, 3)
    with pytest.raises(ValueError, match="the analysis is of another network"):
        found.scheme(smooth_network(), 10**6)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (lambda: MCUTrainOptions(layers="B1"), "layers='B1' has no meaning here"),
        (lambda: MCUTrainTrainer(scheme="9KB"), "scheme='9KB' is neither a file nor one of 49KB"),
        (lambda: TinyTrainOptions(backward_macs=0.0), "backward_macs=0.0 must be above 0"),
        (lambda: TinyTrainOptions(memory=-1), "memory=-1 must be 0 or more"),
        (lambda: TinyTrainOptions(inspect=0), "inspect=0 must be 1 or more"),
    ],
)
def test_options_are_checked(options, message):
    with pytest.raises(ValueError, match=message):
        options()
