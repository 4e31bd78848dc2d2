"""Training by back-propagation: updates, their rounding, run loop, costs."""

import doctest
import importlib
import subprocess
import sys

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from networks import labels, pixels, residual_network

import pmt
from pmt import _core
from pmt.baselines.backprop import BackpropOptions, BackpropTrainer
from pmt.baselines.backprop.scheme import LayerUpdate, UpdateScheme
from pmt.baselines.backprop.stepper import random_bits, updated_bias, updated_weights
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
    trainer = BackpropTrainer(epochs=3, batch=25, learning_rate=0.005, **mode)
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


FLOATS = st.floats(-20000, 20000, width=32)


def weights(*values: float) -> np.ndarray:
    return np.array(values, np.float32)


@given(update=FLOATS, bits=st.integers(0, 65535))
def test_stochastic_and_nearest_are_the_cores(update, bits):
    for name in ("stochastic", "nearest"):
        expected = np.clip(-_core.round_update(update, name, bits), -127, 127)
        found = updated_weights(weights(0), weights(update), name, np.array([bits], np.int32))
        assert found[0] == expected


@pytest.mark.parametrize("update", [0.25, -0.25, 0.0001, -3.7, 1.0])
def test_stochastic_rounding_is_right_on_average(update):
    bits = np.arange(65536, dtype=np.int32)
    old = np.zeros(65536, np.float32)
    new = updated_weights(old, np.full(65536, update, np.float32), "stochastic", bits)
    assert new.mean(dtype=np.float64) == pytest.approx(-update, abs=2**-16)
    assert set(np.unique(new)) <= {-np.floor(update), -np.ceil(update)}


def test_truncation_cuts_the_new_weight_off_toward_zero():
    old = weights(5, 5, -5, -5, 0)
    update = weights(0.01, -0.01, 0.01, -0.01, 0.9)
    assert updated_weights(old, update, "truncation").tolist() == [4, 5, -5, -4, 0]


def test_nearest_loses_what_is_less_than_half_a_step_and_shadow_keeps_it():
    old, update = weights(5, 5, -127, 127), weights(0.49, -0.51, 1.0, -1.0)
    assert updated_weights(old, update, "nearest").tolist() == [5, 6, -127, 127]
    assert updated_weights(old, update, "shadow").tolist() == pytest.approx([4.51, 5.51, -127, 127])


@pytest.mark.parametrize("rounding", ["stochastic", "nearest", "truncation", "shadow"])
def test_what_is_no_number_changes_nothing(rounding):
    update = weights(np.nan, np.inf, -np.inf)
    found = updated_weights(weights(5, 5, 5), update, rounding, np.zeros(3, np.int32))
    assert found.tolist() == [5, -127, 127]
    bias = updated_bias(np.array([7.0]), np.array([np.nan]), rounding)
    assert bias.tolist() == [7.0]


def test_biases_round_to_nearest_and_stay_inside_int32():
    old, update = np.array([10.0, 10.0, -(2.0**31)]), np.array([2.6, -2.6, 5.0])
    assert updated_bias(old, update, "stochastic").tolist() == [7, 13, -(2**31)]
    assert updated_bias(old, update, "nearest").tolist() == [7, 13, -(2**31)]
    assert updated_bias(old, update, "truncation").tolist() == [8, 12, -(2**31)]
    assert updated_bias(old, update, "shadow").tolist() == pytest.approx([7.4, 12.6, -(2**31)])


def test_random_bits_are_a_function_of_seed_step_and_layer():
    bits = random_bits(1, 2, 3, 1001)
    assert bits[:4].tolist() == [47504, 63177, 4600, 43940]
    assert (bits.min() >= 0, bits.max() <= 65535, len(bits)) == (True, True, 1001)
    assert bits.mean() == pytest.approx(32768, rel=0.05)
    others = [random_bits(2, 2, 3, 8), random_bits(1, 3, 3, 8), random_bits(1, 2, 4, 8)]
    assert all((other != bits[:8]).any() for other in others)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"rounding": "up"}, "rounding='up' is unknown; choose one of stochastic, nearest"),
        ({"arithmetic": "int4"}, "arithmetic='int4' is unknown; did you mean 'int8'"),
        ({"learning_rate": 0.0}, "learning_rate=0.0 must be a finite number > 0"),
        ({"final_learning_rate": 2.0}, "final_learning_rate=2.0 must be 0..1"),
        ({"momentum": 1.0}, "momentum=1.0 must be 0 <= x < 1"),
        ({"weight_decay": -0.1}, "weight_decay=-0.1 must be 0..1"),
        ({"batch": 0}, "batch=0 must be 1..1000000"),
        ({"train_weights": False, "train_bias": False}, "leave nothing to train"),
        ({"queries": 3}, "option 'queries' is unknown; choose one of layers, epochs"),
    ],
)
def test_options_outside_their_range_are_refused(change, message):
    with pytest.raises(ValueError, match=message):
        BackpropOptions().replace(**change)
    with pytest.raises(TypeError, match="epochs=True must be an int"):
        BackpropOptions(epochs=True)
