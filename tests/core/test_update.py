"""What a step keeps for the next, updates of biases alone, and rounding."""

import numpy as np
import pytest
from networks import bright_dataset, random_dataset, residual_network

import pmt
from pmt import _core

OPTIONS = {"layers": "B2,B3", "epochs": 2, "batch": 4, "queries": 6}


def test_plain_descent_leaves_nothing_beside_the_model(tmp_path):
    model = residual_network()
    pmt.ZOTrainer(**OPTIONS).fit(model, random_dataset(model, 12), out=tmp_path, progress=False)
    assert not list(tmp_path.glob("*.npz"))


def test_a_mean_prediction_of_another_training_is_refused():
    model = residual_network()

    def trainer(**changes) -> _core.Trainer:
        options = pmt.preset("default", queries=2, loss="entropy", **changes).to_core()
        return _core.Trainer(model.core, options, [2], 1)

    assert trainer().surprisal().size == 0
    own = trainer(diversity=0.5)
    values = own.surprisal()
    assert values.tolist() == [0.0] * model.classes
    for wrong in (values[:-1], np.full_like(values, np.nan)):
        with pytest.raises(ValueError, match="the mean prediction is damaged or of another"):
            own.restore_surprisal(wrong)
    assert (own.surprisal() == values).all()
    with pytest.raises(TypeError, match="values must be a C-contiguous NumPy array of float32"):
        own.restore_surprisal(values.astype(np.float64))


def test_the_device_counts_what_biases_alone_take():
    model = residual_network()

    def arena(**changes) -> int:
        options = pmt.preset("default", queries=2, rule="weight", **changes).to_core()
        return _core.DeviceMemory(model.core, options, [2, 3], 1).arena_bytes

    # Without perturbed weights, and less room for sums.
    assert arena(train_weights=False) <= arena() - 144


@pytest.mark.filterwarnings("ignore:.* in valid are also in data")
@pytest.mark.parametrize(
    "changes",
    [{}, {"rule": "by_dimension", "learning_rate": 0.5, "bias_rate": 1.0, "head_rate": 1.0}],
)
def test_biases_alone_leave_the_weights_and_learn(changes):
    model = residual_network()
    before = model.copy()
    bright = bright_dataset()
    trainer = pmt.methods.trainer(
        "bias_only", epochs=8, batch=20, queries=16, keep_best=False, **changes
    )
    result = trainer.fit(model, bright, valid=bright, progress=False)
    assert result.epochs[-1]["valid_loss"] < 0.85 * result.before["valid_loss"]
    for layer in model.layers:
        assert (model.core.weights(layer.index) == before.core.weights(layer.index)).all()
        assert (model.core.bias(layer.index) != before.core.bias(layer.index)).any()


def updated_head(rounding: str, weight_sum: int, bias_sum: int):
    """Update the residual network's head, 4 classes of 8 weights, from zeros; all sums alike."""
    model = residual_network()
    options = pmt.preset(
        "default",
        rule="weight",
        queries=4,
        mu_weight=2,
        baseline="clean",
        step="gradient",
        rounding=rounding,
        quantization_aware_scaling=False,
        gradient_norm_scaling="none",
        seed=3,
    )
    head = model.layers[-1]
    sums = (np.full(32, weight_sum), np.full(4, bias_sum), 5, 5)
    weights, bias = np.zeros((4, 8), np.int8), np.zeros(4, np.int32)
    new = _core.updated(model.core, options.to_core(), head.index, 1, 1.0, sums, weights, bias)
    assert (weights == 0).all()
    assert (bias == 0).all()
    return *new, _core.bias_steps(model.core, head.index, 2)


def test_an_update_divides_sums_by_queries_sets_and_perturbations():
    one = _core.LOSS_ONE * 5 * 4  # in units of the loss, over the sets of signs and the queries
    weights, bias, steps = updated_head("nearest", 3 * 2 * one, 7 * one)
    assert weights.shape == (4, 8)
    assert (weights == -3).all()
    assert (steps >= 1).all()
    assert bias.tolist() == [-round(7 / step) for step in steps.tolist()]
    assert (updated_head("nearest", -1000 * 2 * one, 0)[0] == 127).all()


def test_stochastic_rounding_reads_sixteen_bits_a_weight():
    """Sixteen signs at a time of the stream for rounding: a word's bits, the lowest first."""
    one = _core.LOSS_ONE * 5 * 4
    weights, _, _ = updated_head("stochastic", one, 0)  # half a step each
    head = residual_network().layers[-1].index
    signs = _core.signs("philox", 3, 1, head, 0, 0, 3, 16 * 32).reshape(32, 16)
    words = [sum(1 << i for i in range(16) if row[i] < 0) for row in signs]
    expected = [-((0x8000 + word) >> 16) for word in words]
    assert set(expected) == {0, -1}
    assert weights.reshape(-1).tolist() == expected


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"weights": np.zeros(31, np.int8)}, "weights, bias and their sums must have the layer's"),
        ({"sums": (np.zeros(32, np.int64), np.zeros(4, np.int64), 0, 1)}, "samples and sets"),
        ({"op": 4}, "op 4 is not a layer with weights"),
        ({"bias": np.zeros(4)}, "bias must be a C-contiguous NumPy array of int32"),
    ],
)
def test_an_update_of_other_sizes_is_refused(changes, message):
    model = residual_network()
    given = {
        "op": model.layers[-1].index,
        "step": 0,
        "learning_rate": 1.0,
        "sums": (np.zeros(32, np.int64), np.zeros(4, np.int64), 1, 1),
        "weights": np.zeros(32, np.int8),
        "bias": np.zeros(4, np.int32),
        **changes,
    }
    options = pmt.preset("default", rule="weight").to_core()
    with pytest.raises((ValueError, TypeError), match=message):
        _core.updated(model.core, options, **given)
