"""ZOTrainer.fit: history, run folders, resuming, interrupts, bad input."""

from __future__ import annotations

import json
import math

import numpy as np
import pytest
from networks import labels, pixels, residual_network

import pmt
from pmt.datasets import Dataset
from pmt.train.schedule import Schedule

OPTIONS = {"layers": "B3,head", "epochs": 3, "batch": 4, "queries": 6, "preparation": "align"}


def data(count: int = 12, seed: int = 0) -> Dataset:
    model = residual_network()
    names = tuple("abcd")
    return Dataset(pixels(model, count, seed), labels(model, count, seed), names, "random")


class Stop(BaseException):
    """Stands for a kill or an interrupt."""


def stop_at(step: int):
    def callback(done, record):
        if done == step:
            raise Stop

    return callback


def test_fit_returns_the_history_and_trains_in_place():
    model = residual_network()
    start = model.image()
    result = pmt.ZOTrainer(**OPTIONS).fit(model, data(), valid=data(5, 9), progress=False)
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
    pmt.ZOTrainer(**OPTIONS).fit(model, data(), progress=False)
    changed = {
        layer.name
        for layer in model.layers
        if (model.core.weights(layer.index) != before.core.weights(layer.index)).any()
    }
    assert changed == {"down", "head"}


def test_the_loss_falls_on_data_that_can_be_learned():
    model = residual_network()
    rng = np.random.default_rng(0)
    y = rng.integers(0, 4, 80)
    images = rng.integers(0, 60, (80, 8, 8, 3)).astype(np.uint8)
    images += (y * 60).astype(np.uint8)[:, None, None, None]  # brightness tells the class
    bright = Dataset(images, y, tuple("abcd"), "brightness")
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


def test_mcunet_paper14_costs_what_the_paper_says(mcunet_path):
    model = pmt.load(mcunet_path, classes=10)
    blocks = {"paper14": 7857.9e6, "B3": 1160.3e6}
    for block, expected in blocks.items():
        trainer = pmt.ZOTrainer(preset="paper", layers=block, queries=50, rule="weight")
        head = 1600  # the paper counts the 42 convolutions, without the new head
        counted = trainer.cost(model, samples=1).macs - head * (1 + 50 * len(model.blocks[block]))
        assert round(counted / 1e6, 1) == round(expected / 1e6, 1)


@pytest.mark.parametrize("stop", [1, 3, 7])
def test_resume_is_bit_exact(tmp_path, stop):
    whole = residual_network()
    straight = pmt.ZOTrainer(**OPTIONS).fit(
        whole, data(), valid=data(5, 9), out=tmp_path / "whole", progress=False
    )
    with pytest.raises(Stop):
        pmt.ZOTrainer(**OPTIONS).fit(
            residual_network(),
            data(),
            valid=data(5, 9),
            out=tmp_path / "run",
            progress=stop_at(stop),
        )
    assert not pmt.RunFolder(tmp_path / "run").done
    model = residual_network()
    resumed = pmt.ZOTrainer(**OPTIONS).fit(
        model, data(), valid=data(5, 9), out=tmp_path / "run", progress=False
    )
    assert model.image() == whole.image()
    for name in ("train_loss", "valid_loss", "changed", "forwards"):
        assert [r[name] for r in resumed.epochs] == [r[name] for r in straight.epochs]
    assert (tmp_path / "run" / "checkpoint.pmt").read_bytes() == (
        tmp_path / "whole" / "checkpoint.pmt"
    ).read_bytes()
    assert resumed.before == straight.before


def test_a_crash_between_checkpoint_and_metrics_loses_nothing(tmp_path):
    whole = residual_network()
    pmt.ZOTrainer(**OPTIONS).fit(whole, data(), out=tmp_path / "whole", progress=False)
    with pytest.raises(Stop):
        pmt.ZOTrainer(**OPTIONS).fit(
            residual_network(), data(), out=tmp_path / "run", progress=stop_at(4)
        )
    metrics = tmp_path / "run" / "metrics.jsonl"
    metrics.write_text(metrics.read_text() + '{"kind": "step", "step": 4, "loss_su')
    model = residual_network()
    pmt.ZOTrainer(**OPTIONS).fit(model, data(), out=tmp_path / "run", progress=False)
    assert model.image() == whole.image()
    steps = [json.loads(line)["step"] for line in metrics.read_text().splitlines()]
    assert sorted(set(steps)) == list(range(9))


def test_a_folder_of_another_run_is_refused(tmp_path):
    pmt.ZOTrainer(**OPTIONS).fit(residual_network(), data(), out=tmp_path / "run", progress=False)
    with pytest.raises(ValueError, match="holds a run with other options or data"):
        pmt.ZOTrainer(**{**OPTIONS, "seed": 5}).fit(
            residual_network(), data(), out=tmp_path / "run", progress=False
        )
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "file").touch()
    with pytest.raises(FileExistsError, match="already exists and holds no run"):
        pmt.ZOTrainer(**OPTIONS).fit(residual_network(), data(), out=tmp_path / "full")


def test_a_finished_run_is_returned_as_it_is(tmp_path):
    model = residual_network()
    first = pmt.ZOTrainer(**OPTIONS).fit(model, data(), out=tmp_path / "run", progress=False)
    again = pmt.ZOTrainer(**OPTIONS).fit(
        residual_network(), data(), out=tmp_path / "run", progress=False
    )
    assert again.model.image() == model.image()
    assert again.epochs == first.epochs


def test_a_damaged_checkpoint_is_named(tmp_path):
    pmt.ZOTrainer(**OPTIONS).fit(residual_network(), data(), out=tmp_path / "run", progress=False)
    checkpoint = tmp_path / "run" / "checkpoint.pmt"
    checkpoint.write_bytes(checkpoint.read_bytes()[:-1])
    with pytest.raises(ValueError, match=r"checkpoint\.pmt: .*; the run cannot be resumed"):
        pmt.ZOTrainer(**OPTIONS).fit(residual_network(), data(), out=tmp_path / "run")


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"queries": 0}, "queries=0 must be 2..4096"),
        ({"queries": 0, "baseline": "clean"}, "queries=0 must be 1..4096"),
        ({"mu_weight": 0}, "mu_weight=0 must be 1..64"),
        ({"seed": 0, "generator": "xorshift32"}, "seed=0 must be 1..4294967295"),
        ({"learning_rate": math.nan}, "learning_rate=nan must be a finite number > 0"),
        ({"rounding": "up"}, "rounding='up' is unknown; choose one of nearest, stochastic"),
        ({"bathc": 3}, "option 'bathc' is unknown; did you mean 'batch'"),
        ({"preset": "papper"}, "preset='papper' is unknown; did you mean 'paper'"),
    ],
)
def test_bad_options_name_argument_value_and_rule(change, message):
    with pytest.raises(ValueError, match=message.replace("(", r"\(")):
        pmt.ZOTrainer(**change)


def test_the_core_checks_options_itself():
    options = pmt.preset("default").to_core()
    options.queries = 0
    model = residual_network()
    with pytest.raises(
        ValueError, match=r"queries must be 1\.\.4096, at least 2 with leave-one-out"
    ):
        pmt._core.Trainer(model.core, options, [0], 1)
    options = pmt.preset("paper").to_core()
    options.seed = 0
    with pytest.raises(ValueError, match="XORShift32 needs a seed other than 0"):
        pmt._core.Trainer(model.core, options, [0], 1)
    options = pmt.preset("default").to_core()
    with pytest.raises(ValueError, match=r"the op has no weights to train \(index 4\)"):
        pmt._core.Trainer(model.core, options, [4], 1)
    with pytest.raises(ValueError, match="layers must be ascending, each once"):
        pmt._core.Trainer(model.core, options, [3, 0], 1)


def test_labels_and_layers_that_do_not_fit_are_refused():
    model = residual_network()
    five = Dataset(pixels(model, 5), np.arange(5), tuple("abcde"), "five")
    with pytest.raises(ValueError, match="has label 4, the model has 4 classes"):
        pmt.ZOTrainer(**OPTIONS).fit(model, five)
    with pytest.raises(ValueError, match="'B9' is neither a block"):
        pmt.ZOTrainer(layers="B9").fit(model, data())
    with pytest.raises(ValueError, match="batch=25 is larger than the training set of 12 samples"):
        pmt.ZOTrainer(layers="B1").fit(model, data())
    message = (
        r"^batch=25 is larger than the 16 training images left, 4 of 20 are held out to choose the "
        r"best state; use a smaller batch$"
    )
    with pytest.raises(ValueError, match=message):
        pmt.ZOTrainer(layers="B1").fit(model, data(20))


def test_every_sample_is_seen_once_an_epoch_in_an_order_of_the_seed():
    options = pmt.preset("default", epochs=2, batch=4)
    schedule = Schedule(options, 13)
    assert schedule.steps == 6
    first = np.concatenate([schedule.indices(step) for step in range(3)])
    second = np.concatenate([schedule.indices(step) for step in range(3, 6)])
    assert len(set(first)) == len(set(second)) == 12
    assert first.tolist() != second.tolist()
    assert Schedule(options, 13).indices(0).tolist() == [9, 2, 4, 12]
    other = options.replace(seed=2)
    assert Schedule(other, 13).indices(0).tolist() != [9, 2, 4, 12]


def test_learning_rate_follows_a_cosine_to_its_final_fraction():
    options = pmt.preset("default", epochs=10, batch=1, learning_rate=0.2, final_learning_rate=0.1)
    schedule = Schedule(options, 1)
    rates = [schedule.learning_rate(step) for step in range(10)]
    assert rates[0] == 0.2
    assert rates[5] == 0.11
    assert rates[9] == pytest.approx(0.02 + 0.18 * (1 + math.cos(0.9 * math.pi)) / 2, rel=1e-5)


def test_the_text_of_a_result_is_a_table():
    model = residual_network()
    result = pmt.ZOTrainer(**{**OPTIONS, "epochs": 1}).fit(
        model, data(), valid=data(5, 9), progress=False
    )
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
