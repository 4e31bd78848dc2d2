"""Extensions that wrap around, lose a mask, change the history, or keep what no file holds."""

import re
from typing import Any

import numpy as np
import pytest
from networks import random_dataset, residual_network

import pmt

SHORT: dict[str, Any] = {
    "batch": 4, "epochs": 1, "preparation": "none", "layers": "head",
    "keep_best": False, "threads": 1,
}  # fmt: skip


def fitted(model: pmt.Model | None = None, **changes: Any) -> pmt.RunResult:
    model = residual_network() if model is None else model
    data = random_dataset(model, 8)
    fit = {name: changes.pop(name) for name in ("callbacks", "out") if name in changes}
    return pmt.ZOTrainer(**{**SHORT, **changes}).fit(model, data, progress=False, **fit)


@pytest.mark.parametrize("kind", [np.int64, np.uint64])
@pytest.mark.parametrize("end", ["min", "max"])
def test_an_update_saturates(kind, end):
    model = residual_network()
    before = model.core.weights(model.layers[-1].index)
    value = getattr(np.iinfo(kind), end)
    fitted(model, optimizer=lambda layer, gradient, rate: np.full(gradient.shape, value, kind))
    weights = model.core.weights(model.layers[-1].index)
    if value == 0:
        np.testing.assert_array_equal(weights, before)
    else:
        assert set(np.unique(weights)) == {127 if value > 0 else -127}


def gradients(change: Any) -> Any:
    return lambda engine, images, classes, step: {
        layer: change(np.zeros(engine.weights(layer).shape)) for layer in engine.layers
    }


def masked(values: Any) -> Any:
    return np.ma.masked_array(values, np.ones(np.shape(values), bool))


@pytest.mark.parametrize(
    ("changes", "error"),
    [
        ({"estimator": gradients(masked)},
         "the estimator's gradient of 'head' is a masked array, whose mask counts for nothing; "
         "fill it"),
        ({"estimator": gradients(lambda g: g + 1j)},
         "the estimator's gradient of 'head' must be real numbers; got complex128"),
        ({"estimator": gradients(lambda g: "abc")},
         "the estimator's gradient of 'head' must be real numbers; got <U3"),
        ({"estimator": lambda *_: None},
         "the estimator must return a dict of gradients by layer; got None"),
        ({"estimator": lambda *_: np.zeros((4, 8), np.int8)},
         "the estimator must return a dict of gradients by layer; got an array of int8"),
        ({"estimator": lambda *_: {"down": 0}},
         "the estimator returned a gradient of 'down', which is none of engine.layers (head) nor "
         "their biases (NAME.bias)"),
        ({"estimator": lambda *_: {"head": np.zeros((8, 4))}},
         "the estimator's gradient of 'head' must have shape (4, 8); got (8, 4)"),
        ({"estimator": lambda *_: {"head.bias": np.array([0, 1, np.nan, 2])}},
         "the estimator's gradient of 'head.bias' holds NaN or infinity"),
        ({"optimizer": lambda layer, g, rate: g},
         "the optimizer's update of 'head' must be integers of shape (4, 8); got float64 of shape "
         "(4, 8); round it, and convert by .astype(int)"),
        ({"optimizer": lambda layer, g, rate: masked(np.zeros(g.shape, int))},
         "the optimizer's update of 'head' is a masked array, whose mask counts for nothing; fill "
         "it"),
        ({"optimizer": lambda layer, g, rate: g + 1j},
         "the optimizer's update of 'head' must be real numbers; got complex128"),
        ({"loss": lambda z, y: masked(z[..., 0])},
         "loss <lambda> returned a masked array, whose mask counts for nothing; fill it"),
        ({"loss": lambda z, y: z[..., 0] + 1j},
         "loss <lambda> must return real numbers; got complex ones"),
    ],
)  # fmt: skip
def test_what_an_extension_returns_is_checked(changes, error):
    model = residual_network()
    with pytest.raises((ValueError, TypeError), match=f"^{re.escape(error)}$"):
        fitted(model, **changes)
    assert model.image() == residual_network().image()


def test_an_engine_takes_only_weights_that_it_can_hold():
    engine = pmt.Engine(residual_network(), "head")
    weights = engine.weights("head")
    wrong = weights.copy()
    wrong[0, 0] = -128
    expected = (
        "weights of layer 'head' holds -128: they are symmetric, -127 to 127; clip them by "
        "numpy.clip(weights, -127, 127)"
    )
    with pytest.raises(ValueError, match=f"^{re.escape(expected)}$"):
        engine.set_weights("head", wrong)
    with pytest.raises(TypeError, match=r"^weights of layer 'head' is a masked array, whose mask"):
        engine.set_weights("head", masked(weights))
    np.testing.assert_array_equal(engine.weights("head"), weights)
    engine.model.core.set_parameters(engine.model.layers[-1].index, wrong, engine.bias("head"))
    engine.set_weights("head", wrong)  # of a file, which may hold it


def test_a_huge_gradient_is_bounded_without_a_warning():
    fitted(estimator=gradients(lambda g: g - 1e308))


class Kept:
    """An optimizer with a state."""

    def __init__(self, state: Any, restored: Any = None) -> None:
        self.kept = state
        self.restored = restored

    def __call__(self, layer: str, gradient: Any, rate: float) -> Any:
        return np.zeros(gradient.shape, int)

    def state(self) -> Any:
        return self.kept

    def load_state(self, state: Any) -> None:
        self.kept = state if self.restored is None else self.restored


@pytest.mark.parametrize(
    ("optimizer", "error"),
    [
        (Kept([1, 2]), "Kept.state() must return a dict of arrays; got list"),
        (Kept({"a/../x": 1}), "Kept.state() holds 'a/../x': a name must be text without slashes"),
        (Kept({"": 1}), "Kept.state() holds '': a name must be text without slashes"),
        (Kept({3: 1}), "Kept.state() holds 3: a name must be text without slashes"),
        (Kept({"x": object()}),
         "optimizer.x of Kept.state() must be an array of numbers or text; got an array of "
         "objects"),
        (Kept({"x": [[1], [1, 2]]}),
         "optimizer.x of Kept.state() must be an array of numbers or text; got an array of "
         "objects"),
        (Kept({"x": masked(np.zeros(3))}),
         "optimizer.x of Kept.state() must be an array of numbers or text; got a masked array"),
        (Kept({"x": np.zeros(3)}, {"x": np.ones(3)}),
         "Kept.load_state(state) must restore what state() returned; 'x' differs"),
        (Kept({"x": np.zeros(3)}, {}),
         "Kept.load_state(state) must restore what state() returned; 'x' differs"),
        (Kept({"x": np.zeros(3)}, {"x": np.zeros(3, np.float32)}),
         "Kept.load_state(state) must restore what state() returned; 'x' differs"),
    ],
)  # fmt: skip
def test_a_state_that_no_checkpoint_restores_is_refused_before_the_first_step(
    optimizer, error, tmp_path
):
    with pytest.raises((TypeError, ValueError), match=f"^{re.escape(error)}$"):
        fitted(optimizer=optimizer, out=tmp_path / "run")


def test_numbers_and_text_are_a_state():
    fitted(optimizer=Kept({"x": np.full(3, np.nan), "n": 3, "text": "abc", "c": 1j}))


def test_callbacks_cannot_change_the_history(tmp_path):
    def spoil(event: Any) -> None:
        event.record["loss"] = event.record["train_loss"] = -1.0

    def spoil_steps(step: int, record: dict[str, Any]) -> None:
        record["loss_sum"] = -1

    plain = fitted(out=tmp_path / "plain")
    seen: list[float] = []
    changed = fitted(
        callbacks=[spoil, lambda event: seen.append(event.record.get("train_loss", 0.0))],
        out=tmp_path / "run",
    )
    assert changed.epochs[0]["train_loss"] == plain.epochs[0]["train_loss"] == seen[-1] > 0
    model = residual_network()
    data = random_dataset(model, 8)
    result = pmt.ZOTrainer(**SHORT).fit(model, data, progress=spoil_steps)
    assert result.epochs[0]["train_loss"] == plain.epochs[0]["train_loss"]


def test_a_callable_that_saturates_is_told():
    def large(z: Any, y: Any) -> Any:
        return np.full(z.shape[:2], 5000.0)

    expected = (
        "every loss of a step is beyond -1024 to 1024, which is what counts: nothing is learned "
        "from it; let python:large return a smaller multiple"
    )
    with pytest.warns(UserWarning, match=f"^{re.escape(expected)}$") as told:
        fitted(loss=large, epochs=3)
    assert len(told) == 1
    assert told[0].filename == __file__
