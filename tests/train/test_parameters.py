"""A trainer's parameters: read, changed, printed and cloned as scikit-learn does."""

import dataclasses

import pytest
from sklearn.base import clone
from toy_trainer import Toy

import pmt
from pmt.baselines.sparse_update.trainer import MCUTrainTrainer


class Momentum(pmt.ZOTrainer):
    """A trainer of a user's own with an argument that is not an option."""

    def __init__(self, *, momentum=0.9, **options):
        super().__init__(**options)
        self.momentum = momentum


TRAINERS = {
    "ZOTrainer()": lambda: pmt.ZOTrainer(),
    "ZOTrainer(layers='B2,head', epochs=4)": lambda: pmt.ZOTrainer(epochs=4, layers="B2,head"),
    "ZOTrainer(learning_rate=0.05, threads=2)": lambda: pmt.ZOTrainer(
        learning_rate=0.05, threads=2
    ),
    "ZOTrainer(preset='paper')": lambda: pmt.ZOTrainer(preset="paper"),
    "ZOTrainer(preset='paper', epochs=4)": lambda: pmt.ZOTrainer(pmt.preset("paper", epochs=4)),
    "Momentum(epochs=2)": lambda: Momentum(epochs=2),
    "Momentum(epochs=2, momentum=0.5)": lambda: Momentum(epochs=2, momentum=0.5),
    "ZOTrainer(loss=<built-in function divmod>)": lambda: pmt.ZOTrainer(loss=divmod),
    "BackpropTrainer(layers='head')": lambda: pmt.backprop.BackpropTrainer(layers="head"),
    "BackpropTrainer(preset='bp_last_layer', epochs=3)": lambda: pmt.backprop.BackpropTrainer(
        preset="bp_last_layer", epochs=3
    ),
    "MCUTrainTrainer(epochs=3)": lambda: MCUTrainTrainer(epochs=3),
}


@pytest.mark.parametrize("text", TRAINERS)
def test_the_repr_shows_what_differs_from_the_preset(text):
    assert repr(TRAINERS[text]()) == text


@pytest.mark.parametrize("text", [text for text in TRAINERS if "<" not in text])
def test_the_repr_is_the_call_that_makes_the_trainer(text):
    kinds = (pmt.ZOTrainer, pmt.backprop.BackpropTrainer, MCUTrainTrainer, Momentum)
    again = eval(text, {kind.__name__: kind for kind in kinds})
    assert again.get_params() == TRAINERS[text]().get_params()


@pytest.mark.parametrize("text", TRAINERS)
def test_clones_are_equal_and_independent(text):
    trainer = TRAINERS[text]()
    made = clone(trainer)
    assert made is not trainer
    assert made.get_params() == trainer.get_params()
    made.set_params(epochs=7)
    assert made.options.epochs == 7
    assert trainer.options.epochs != 7


def test_parameters_are_the_options_and_the_threads():
    trainer = pmt.ZOTrainer(layers="B2", threads=3)
    own = {"threads": 3, "estimator": None, "optimizer": None}
    assert trainer.get_params() == {**dataclasses.asdict(trainer.options), **own}
    assert trainer.get_params(deep=False) == trainer.get_params(deep=True)
    assert Momentum(momentum=0.5).get_params()["momentum"] == 0.5


def test_set_params_changes_the_trainer_and_returns_it():
    trainer = Momentum(preset="paper")
    assert trainer.set_params(epochs=2, threads=1, momentum=0.1) is trainer
    assert (trainer.options, trainer.threads) == (pmt.preset("paper", epochs=2), 1)
    assert trainer.momentum == 0.1
    assert trainer.set_params() is trainer
    assert trainer.options == pmt.preset("paper", epochs=2)


@pytest.mark.parametrize(
    ("changes", "error", "message"),
    [
        ({"epochs": 3, "queries": 0}, ValueError, "queries=0 must be 2..4096"),
        ({"epochs": 3, "rate": 0.1}, ValueError, "option 'rate' is unknown"),
        ({"epochs": 3, "threads": -1}, ValueError, "threads must be 0 (all) or more; got -1"),
    ],
)
def test_where_one_change_is_refused_nothing_changes(changes, error, message):
    trainer = pmt.ZOTrainer(epochs=9)
    with pytest.raises(error) as raised:
        trainer.set_params(**changes)
    assert str(raised.value).startswith(message)
    assert repr(trainer) == "ZOTrainer(epochs=9)"


def test_a_trainer_without_options_class_has_a_repr():
    assert repr(Toy(epochs=2)).startswith("Toy(epochs=2, threads=1, losses=<")


def test_a_callable_loss_is_a_parameter_that_an_option_s_word_replaces():
    trainer = pmt.ZOTrainer(loss=divmod)
    assert trainer.get_params()["loss"] is divmod
    assert trainer.set_params(loss="entropy").options.loss == "entropy"
    assert trainer.loss_function is None
