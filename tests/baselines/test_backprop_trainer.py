"""Training by back-propagation: updates, run loop, costs."""

import doctest
import importlib
import subprocess
import sys

import numpy as np
import pytest
from networks import labels, pixels, residual_network

import pmt
from pmt.baselines.backprop import BackpropOptions, BackpropTrainer
from pmt.baselines.backprop.scheme import LayerUpdate, UpdateScheme
from pmt.datasets import Dataset

torch = pytest.importorskip("torch")

from pmt.baselines.backprop import FloatNetwork, exact_gradient, preset  # noqa: E402
from pmt.baselines.backprop.stepper import BackpropStepper  # noqa: E402

MODES = [
    {"rounding": "stochastic"},
    {"rounding": "nearest", "momentum": 0.9},
    {"rounding": "shadow", "momentum": 0.9},
    {"arithmetic": "float32", "momentum": 0.5},
]


@pytest.fixture
def model():
    return residual_network()


def data(model: pmt.Model, count: int = 20, seed: int = 0) -> Dataset:
    return Dataset(pixels(model, count, seed), labels(model, count), tuple("abcd"), "random")


def parameters(model: pmt.Model, index: int) -> tuple[np.ndarray, np.ndarray]:
    return model.core.weights(index).copy(), model.core.bias(index).copy()


def changed_layers(before: pmt.Model, after: pmt.Model) -> dict[str, tuple[bool, bool]]:
    """By layer: whether weights and whether biases changed."""
    found = {}
    for layer in before.layers:
        pairs = zip(parameters(before, layer.index), parameters(after, layer.index), strict=True)
        found[layer.name] = tuple(bool((a != b).any()) for a, b in pairs)
    return {name: both for name, both in found.items() if any(both)}


def step_of(model: pmt.Model, options: BackpropOptions, scheme=None, rate=0.01) -> BackpropStepper:
    """A stepper that has taken one step on eight images."""
    scheme = scheme or BackpropTrainer(options).scheme(model)
    stepper = BackpropStepper(model, scheme, options, threads=1)
    stepper.step(model.prepare(pixels(model, 8)), labels(model, 8), 0, rate)
    return stepper


def test_a_step_is_the_exact_gradient_with_quantization_aware_scaling(model):
    images, wanted = model.prepare(pixels(model, 8)), labels(model, 8)
    gradient = exact_gradient(model, images, wanted, "expand")
    old, old_bias = parameters(model, 1)
    scales = model.core.weight_scales(1).astype(np.float64)
    state = step_of(model, BackpropOptions(rounding="shadow")).state()
    update = 0.01 * gradient.weights.reshape(16, 8) / scales[:, None] ** 2
    np.testing.assert_allclose(
        state["weights1"].reshape(16, 8), old.reshape(16, 8) - update, rtol=1e-4, atol=1e-4
    )
    bias = old_bias - 0.01 * gradient.bias / (scales * np.float32(0.02)) ** 2
    np.testing.assert_allclose(state["bias1"], bias, rtol=1e-4)


def test_in_real_numbers_that_is_the_step_of_the_float_network(model):
    scale = model.core.weight_scales(7).astype(np.float64)[:, None]
    start = parameters(model, 7)[0].reshape(4, 8) * scale
    integers = step_of(model.copy(), BackpropOptions(layers="head", rounding="shadow"))
    floats = step_of(model.copy(), BackpropOptions(layers="head", arithmetic="float32"))
    moved = integers.state()["weights7"] * scale - start
    expected = floats.state()["weights7"] - start
    cosine = (moved * expected).sum() / np.linalg.norm(moved) / np.linalg.norm(expected)
    assert cosine > 0.99
    assert np.linalg.norm(moved) / np.linalg.norm(expected) == pytest.approx(1, abs=0.1)


def test_without_the_scaling_it_is_the_plain_gradient(model):
    images, wanted = model.prepare(pixels(model, 8)), labels(model, 8)
    gradient = exact_gradient(model, images, wanted, "head").weights.reshape(4, 8)
    old = parameters(model, 7)[0].reshape(4, 8)
    options = BackpropOptions(rounding="shadow", quantization_aware_scaling=False)
    found = step_of(model, options, rate=50.0).state()["weights7"]
    np.testing.assert_allclose(found, old - 50 * gradient, rtol=1e-4, atol=1e-4)


def test_momentum_adds_the_last_direction_and_weight_decay_the_weight(model):
    options = BackpropOptions(layers="head", rounding="shadow", momentum=0.5, weight_decay=0.125)
    stepper = step_of(model, options, rate=1e-9)
    first = stepper.state()["weights7_momentum"]
    stepper.step(model.prepare(pixels(model, 8)), labels(model, 8), 1, 1e-9)
    second = stepper.state()["weights7_momentum"]
    np.testing.assert_allclose(second, 1.5 * first, rtol=1e-3)
    plain = BackpropOptions(layers="head", rounding="shadow", momentum=0.5)
    without = step_of(residual_network(), plain, rate=1e-9).state()["weights7_momentum"]
    old = parameters(residual_network(), 7)[0].reshape(4, 8)
    np.testing.assert_allclose(first - without, 0.125 * old, rtol=1e-2, atol=1e-2)


def test_dead_channels_stay_as_they_are(model):
    graph = model.to_graph()
    graph.ops[1].weight_scales[3] = 4e-9
    model = pmt.Model.from_graph(graph)
    old, old_bias = parameters(model, 1)
    options = BackpropOptions(layers="expand", learning_rate=1.0, momentum=0.5, weight_decay=0.5)
    step_of(model, options, rate=1.0)
    new, new_bias = parameters(model, 1)
    assert (new.reshape(16, 8)[3] == old.reshape(16, 8)[3]).all()
    assert new_bias[3] == old_bias[3]
    assert (new != old).any()


def test_only_what_is_chosen_is_trained(model):
    def trained(**changes):
        copy = model.copy()
        step_of(copy, BackpropOptions(**changes), rate=0.1)
        return changed_layers(model, copy)

    assert trained(layers="head") == {"head": (True, True)}
    assert trained(layers="B2,head", train_weights=False) == {
        "depth": (False, True),
        "project": (False, True),
        "head": (False, True),
    }
    assert trained(layers="down", train_bias=False) == {"down": (True, False)}


def test_presets_are_the_baselines(model):
    def trained(name):
        copy = model.copy()
        step_of(copy, preset(name), rate=1.0)
        return changed_layers(model, copy)

    assert trained("bp_last_layer") == {"head": (True, True)}
    biases = {(False, True)}
    assert set(trained("bp_bias_only").values()) == biases
    assert len(trained("bp_bias_only")) == len(trained("bp_int8")) == 6
    assert preset("bp_fp32").arithmetic == "float32"
    shadow = BackpropOptions(rounding="shadow", epochs=3, learning_rate=0.0003)
    assert preset("bp_int8_shadow", epochs=3) == shadow
    assert BackpropTrainer(preset="bp_fp32").options == preset("bp_fp32")
    with pytest.raises(ValueError, match="preset='bp' is unknown; choose one of bp_fp32, bp_int8"):
        preset("bp")


@pytest.mark.parametrize("op", [1, 2, 5, 7])
def test_a_scheme_may_choose_channels(model, op):
    def by_channel():
        return np.moveaxis(model.to_graph().ops[op].weights, -1, 0)

    old = by_channel()
    gradient = exact_gradient(model, model.prepare(pixels(model, 8)), labels(model, 8), op)
    in_layout = np.moveaxis(gradient.weights.reshape(model.to_graph().ops[op].weights.shape), -1, 0)
    sizes = np.abs(in_layout.reshape(len(old), -1)).sum(axis=1)
    chosen = sorted(int(c) for c in np.argsort(sizes)[-2:])
    scheme = UpdateScheme((LayerUpdate(op, 2, False, tuple(chosen)),))
    step_of(model, BackpropOptions(), scheme, rate=2.0)
    changed = (by_channel() != old).reshape(len(old), -1).any(axis=1)
    assert np.flatnonzero(changed).tolist() == chosen


def test_channels_that_nobody_chose_are_refused(model):
    scheme = UpdateScheme((LayerUpdate(1, 2, False),))
    with pytest.raises(ValueError, match="expand: 2 of 8 channels are to be trained, but none is"):
        BackpropStepper(model, scheme, BackpropOptions(), 1)


@pytest.mark.parametrize("mode", MODES, ids=lambda mode: mode.get("rounding", "float32"))
def test_an_interrupted_run_goes_on_bit_for_bit(model, tmp_path, mode):
    trainer = BackpropTrainer(epochs=3, batch=5, learning_rate=0.02, **mode)
    whole = model.copy()
    expected = trainer.fit(whole, data(model), valid=data(model, 6, 9), progress=False)

    def stop(step, record):
        if step == 6:
            raise KeyboardInterrupt

    run = {"valid": data(model, 6, 9), "out": tmp_path / "run"}
    with pytest.raises(KeyboardInterrupt):
        trainer.fit(model.copy(), data(model), progress=stop, **run)
    resumed = model.copy()
    found = trainer.fit(resumed, data(model), progress=False, **run)
    assert resumed.image() == whole.image()
    keys = ("train_loss", "train_accuracy", "valid_loss", "valid_accuracy", "changed", "macs")
    for record, other in zip(found.epochs, expected.epochs, strict=True):
        assert [record[key] for key in keys] == [other[key] for key in keys]


def test_a_state_of_another_training_is_refused(model):
    shadow = step_of(model.copy(), BackpropOptions(rounding="shadow"))
    with pytest.raises(ValueError, match="not those of this training: bias0, bias1"):
        shadow.load_state({})
    state = shadow.state()
    state["bias7"] = state["bias7"][:2]
    with pytest.raises(ValueError, match=r"bias7: the checkpoint has float64 \(2,\), this"):
        shadow.load_state(state)


@pytest.mark.filterwarnings("ignore:.* in valid are also in data")
@pytest.mark.parametrize("mode", [{"rounding": "stochastic"}, {"arithmetic": "float32"}])
def test_training_lowers_the_loss_of_a_real_network(mode):
    model = pmt.load("fashion_mnist_dscnn")
    images = pmt.corruptions.corrupt(pmt.datasets.bundled("train").take(100), "contrast", 5)
    trainer = BackpropTrainer(epochs=3, batch=25, learning_rate=0.02, **mode)
    result = trainer.fit(model, images, valid=images, progress=False)
    assert result.epochs[-1]["valid_loss"] < 0.75 * result.before["valid_loss"]
    assert result.epochs[-1]["changed"] > 0


@pytest.mark.filterwarnings("ignore:.* in valid are also in data")
def test_with_float32_the_float_network_is_measured_and_the_model_is_its_quantization(model):
    images = data(model)
    trainer = BackpropTrainer(arithmetic="float32", epochs=2, batch=10, learning_rate=1e-12)
    result = trainer.fit(model, images, valid=images, progress=False)
    with torch.no_grad():
        logits = FloatNetwork(model)(torch.from_numpy(model.prepare(images.images)))
    loss = torch.nn.functional.cross_entropy(logits, torch.tensor(images.labels))
    assert result.epochs[-1]["valid_loss"] == pytest.approx(float(loss), abs=1e-4)
    assert changed_layers(residual_network(), model) == {}


def test_cost_is_forward_input_gradients_and_weight_gradients(model):
    macs = {layer.name: layer.macs for layer in model.layers}
    assert macs == {
        "stem": 13824, "expand": 8192, "depth": 9216, "project": 8192, "down": 9216, "head": 32
    }  # fmt: skip
    forward = sum(macs.values())

    def cost(**changes):
        found = BackpropTrainer(**changes).cost(model, samples=10)
        assert found.forwards == 0
        return found.macs / 10

    assert cost() == 3 * forward - 13824
    assert cost(train_weights=False) == 2 * forward - 13824
    assert cost(layers="head") == forward + 32
    # The gradient comes back through project, down and head to the output of depth.
    assert cost(layers="depth") == forward + (8192 + 9216 + 32) + 9216
    assert BackpropTrainer(batch=7).cost(model).macs == 7 * (3 * forward - 13824)


def test_the_examples_of_the_docstrings_hold():
    for name in ("trainer", "networks"):
        module = importlib.import_module(f"pmt.baselines.backprop.{name}")
        assert doctest.testmod(module).failed == 0


def test_without_torch_the_package_imports_and_training_says_what_to_install(monkeypatch):
    code = "import sys; sys.modules['torch'] = None; import pmt.baselines.backprop"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
    monkeypatch.setitem(sys.modules, "torch", None)
    monkeypatch.delitem(sys.modules, "pmt.baselines.backprop.networks")
    with pytest.raises(ImportError, match=r'pip install "poor-mans-training\[torch\]"'):
        importlib.import_module("pmt.baselines.backprop.networks")
