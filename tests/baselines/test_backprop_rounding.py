"""Rounding of updates to whole weight steps; NumPy alone."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pmt import _core
from pmt.baselines.backprop.options import BackpropOptions
from pmt.baselines.backprop.stepper import random_bits, updated_bias, updated_weights

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
