"""ZOTrainer.fit: history, costs, batches, the schedule, bad input."""

import math
from contextlib import nullcontext

import numpy as np
import pytest
from networks import bright_dataset, pixels, residual_network
from toy_trainer import data

import pmt
from pmt.datasets import Dataset
from pmt.train.schedule import Schedule

OPTIONS = {"layers": "B3,head", "epochs": 3, "batch": 4, "queries": 6, "preparation": "align"}


def fit(model=None, valid=None, **arguments):
    """Train a model, by default a new one, on the same twelve images."""
    trainer = pmt.ZOTrainer(**{**OPTIONS, **arguments.pop("options", {})})
    model = model or residual_network()
    return trainer.fit(model, data(12), valid=valid, **{"progress": False, **arguments})


def test_fit_returns_the_history_and_trains_in_place():
    model = residual_network()
    start = model.image()
    result = fit(model, data(5, 9))
    assert result.model is model
    assert model.image() != start
    assert [record["epoch"] for record in result.epochs] == [1, 2, 3]
    assert set(result.before) == {"valid_loss", "valid_accuracy"}
    evaluation = model.evaluate(data(5, 9))
    assert result.epochs[-1]["valid_loss"] == evaluation.loss
    # The head's gradient is exact: only B3 is queried, 6 forwards for each of 12 samples.
    assert [record["forwards"] for record in result.epochs] == [72, 144, 216]


def test_only_the_chosen_layers_change():
    model = residual_network()
    before = model.copy()
    fit(model)
    changed = {
        layer.name
        for layer in model.layers
        if (model.core.weights(layer.index) != before.core.weights(layer.index)).any()
    }
    assert changed == {"down", "head"}


@pytest.mark.filterwarnings("ignore:.* in valid are also in data")
def test_the_loss_falls_on_data_that_can_be_learned():
    model = residual_network()
    bright = bright_dataset()
    trainer = pmt.ZOTrainer(
        layers="all", epochs=8, batch=20, queries=16, learning_rate=0.5, keep_best=False
    )
    result = trainer.fit(model, bright, valid=bright, progress=False)
    assert result.epochs[-1]["valid_loss"] < 0.6 * result.before["valid_loss"]


def test_cost_counts_forwards_and_macs():
    model = residual_network()
    macs = {layer.name: layer.macs for layer in model.layers}
    total = sum(macs.values())
    cost = pmt.ZOTrainer(layers="B2", queries=10, batch=3, rule="weight").cost(model)
    suffix = [total - sum(list(macs.values())[:i]) for i in (2, 3)]
    assert cost.forwards == 3 * 10 * 2
    assert cost.macs == 3 * (total + 10 * sum(suffix))


def test_labels_and_layers_that_do_not_fit_are_refused():
    model = residual_network()
    five = Dataset(pixels(model, 5), np.arange(5), tuple("abcde"), "five")
    left = (
        r"^batch=24 is larger than the 16 training images left, 4 of 20 are held out to choose the "
        r"best state; use a smaller batch$"
    )
    for layers, images, message in (
        ("B1", five, "has label 4, the model has 4 classes"),
        ("B9", data(12), "'B9' is neither a block"),
        ("B1", data(12), "batch=24 is larger than the training set of 12 samples"),
        ("B1", data(20), left),
    ):
        with pytest.raises(ValueError, match=message):
            pmt.ZOTrainer(layers=layers, batch=24).fit(model, images)


@pytest.mark.parametrize(
    ("count", "options", "taken", "left"),
    [
        (14, {}, 14, "the 14 training images"),
        (30, {}, 24, "the 24 training images left"),
        (30, {"keep_best": False}, 25, ""),
        (40, {"preset": "paper"}, 40, "the 40 training images"),
    ],
)
def test_a_batch_that_nobody_chose_fits_the_images(count, options, taken, left, tmp_path):
    trainer = pmt.ZOTrainer(layers="B1", epochs=1, queries=2, **options)
    batch, run = trainer.options.batch, tmp_path / "run"
    message = f"^batch {batch}, the default, is larger than {left}: a step takes all of them$"
    expected = pytest.warns(UserWarning, match=message) if left else nullcontext()
    with expected:
        trainer.fit(residual_network(), data(count), out=run, progress=False)
    assert pmt.RunFolder(run).read_config()[0].batch == taken
    assert trainer.options.batch == batch
    with expected if left else nullcontext():  # the finished run is found again
        again = trainer.fit(residual_network(), data(count), out=run, progress=False)
    assert len(again.epochs) == 1


def test_every_sample_is_seen_once_an_epoch_in_an_order_of_the_seed():
    options = pmt.preset("default", epochs=2, batch=4)
    schedule = Schedule(options, 13)
    assert schedule.steps == 6
    first = np.concatenate([schedule.indices(step) for step in range(3)])
    second = np.concatenate([schedule.indices(step) for step in range(3, 6)])
    assert len(set(first)) == len(set(second)) == 12
    assert first.tolist() != second.tolist()
    assert Schedule(options, 13).indices(0).tolist() == [6, 7, 4, 2]
    other = options.replace(seed=2)
    assert Schedule(other, 13).indices(0).tolist() != [6, 7, 4, 2]


def test_learning_rate_follows_a_cosine_to_its_final_fraction():
    options = pmt.preset("default", epochs=10, batch=1, learning_rate=0.2, final_learning_rate=0.1)
    schedule = Schedule(options, 1)
    rates = [schedule.learning_rate(step) for step in range(10)]
    assert rates[0] == 0.2
    assert rates[5] == 0.11000001
    assert rates[9] == pytest.approx(0.02 + 0.18 * (1 + math.cos(0.9 * math.pi)) / 2, rel=1e-5)


def test_the_text_of_a_result_is_a_table():
    result = fit(valid=data(5, 9), options={"epochs": 1})
    title, start, epoch, note, choice = str(result).splitlines()
    assert " ".join(title.split()) == (
        "epoch train loss train acc valid loss valid acc changed forwards GMAC seconds"
    )
    assert note.startswith("not aligned: the model holds no statistics of clean images; ")
    assert choice == "no state is chosen: 12 training images are too few to hold some out"
    assert start.split()[:3] == ["start", "-", "-"]
    assert epoch.split()[0] == "1"
    assert len({len(title), len(start), len(epoch)}) == 1
    assert result._repr_html_().startswith("<table><thead><tr><th>epoch</th>")
