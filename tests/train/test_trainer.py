"""The run loop for any trainer: state beside the model, interrupts, the best model, budgets."""

import json
import shutil
import sys
from pathlib import Path

import numpy as np
import pytest
from networks import residual_network
from toy_trainer import Stop, Toy, ToyOptions, data, flat, stop_at

import pmt
from pmt.cli.output import EpochLines, Output
from pmt.train.schedule import Schedule


def contents(folder):
    files = {p.name: p.read_bytes() for p in folder.iterdir()}
    files["metrics.jsonl"] = [
        {k: v for k, v in json.loads(line).items() if k != "seconds"}
        for line in files["metrics.jsonl"].splitlines()
    ]
    return files


@pytest.mark.parametrize("stop", [1, 3, 5, 8])
def test_a_run_with_state_resumes_bit_for_bit(tmp_path, stop):
    Toy().run(out=tmp_path / "whole")
    with pytest.raises(Stop):
        Toy().run(out=tmp_path / "run", progress=stop_at(stop))
    assert (tmp_path / "run" / f"checkpoint-{stop}.npz").is_file()
    Toy().run(out=tmp_path / "run")
    assert contents(tmp_path / "run") == contents(tmp_path / "whole")
    assert "checkpoint-9.npz" in contents(tmp_path / "run")


def test_a_kill_between_the_state_and_the_model_leaves_the_last_checkpoint(tmp_path):
    Toy().run(out=tmp_path / "whole")
    out = tmp_path / "run"
    for stop in (2, 5):
        with pytest.raises(Stop):
            Toy().run(out=out, progress=stop_at(stop))
        if stop == 2:
            shutil.copytree(out, tmp_path / "two")
    # As if the state of step 5 had been written, but not yet the model.
    (tmp_path / "two" / "checkpoint-5.npz").write_bytes((out / "checkpoint-5.npz").read_bytes())
    (tmp_path / "two" / ".checkpoint-5.npz.3.00000000.1.part").touch()
    Toy().run(out=tmp_path / "two")
    assert contents(tmp_path / "two") == contents(tmp_path / "whole")


def test_a_state_that_is_gone_or_damaged_is_named(tmp_path):
    out = tmp_path / "run"
    with pytest.raises(Stop):
        Toy().run(out=out, progress=stop_at(4))
    state = out / "checkpoint-4.npz"
    whole = state.read_bytes()
    state.write_bytes(whole[:-30])
    with pytest.raises(ValueError, match=r"checkpoint-4\.npz: .*; the run cannot be resumed"):
        Toy().run(out=out)
    state.unlink()
    with pytest.raises(ValueError, match=r"checkpoint-4\.npz is missing; the run cannot be"):
        Toy().run(out=out)
    with (out / "checkpoint-4.npz").open("wb") as file:
        np.savez(file, other=np.zeros(3))
    with pytest.raises(ValueError, match="velocity is missing from the checkpoint; the run cannot"):
        Toy().run(out=out)
    checkpoint = out / "checkpoint.pmt"
    checkpoint.write_bytes(checkpoint.read_bytes()[:-1])
    with pytest.raises(ValueError, match=r"checkpoint\.pmt: .*; the run cannot be resumed"):
        Toy().run(out=out)


def test_a_step_torn_by_ctrl_c_is_not_saved(tmp_path, monkeypatch):
    monkeypatch.setattr("pmt.train.run.loop._SECONDS_BETWEEN_CHECKPOINTS", 0.0)
    Toy().run(out=tmp_path / "whole")

    def torn(stepper):
        stepper.stop_in_step = 6

    with pytest.raises(KeyboardInterrupt):
        Toy(change=torn).run(out=tmp_path / "run")
    assert pmt.RunFolder(tmp_path / "run").load_checkpoint()[1] == 6
    Toy().run(out=tmp_path / "run")
    assert contents(tmp_path / "run") == contents(tmp_path / "whole")


def test_an_epoch_whose_evaluation_was_interrupted_is_evaluated_on_resuming(tmp_path):
    whole = Toy(losses=flat(4)).run(valid=data(5, 9), out=tmp_path / "whole")

    def torn(stepper):
        stepper.stop_in_evaluation = True

    with pytest.raises(Stop):
        Toy(losses=flat(1)).run(valid=data(5, 9), out=tmp_path / "run", progress=stop_at(2))
    with pytest.raises(KeyboardInterrupt):
        Toy(change=torn).run(valid=data(5, 9), out=tmp_path / "run")
    assert pmt.RunFolder(tmp_path / "run").load_checkpoint()[1] == 3
    resumed = Toy(losses=flat(3)).run(valid=data(5, 9), out=tmp_path / "run")
    assert [r["epoch"] for r in resumed.epochs] == [1, 2, 3]
    assert contents(tmp_path / "run") == contents(tmp_path / "whole")
    assert resumed.before == whole.before == {"valid_loss": 1.0, "valid_accuracy": 0.5}


def test_an_epoch_sums_up_its_steps_by_their_mean_losses():
    result = Toy().run()
    assert [r["train_loss"] for r in result.epochs] == [2.0, 5.0, 8.0]
    assert [r["train_accuracy"] for r in result.epochs] == [0.25] * 3
    assert [r["changed"] for r in result.epochs] == [9] * 3
    assert [r["forwards"] for r in result.epochs] == [30, 60, 90]
    assert [r["macs"] for r in result.epochs] == [3000, 6000, 9000]


@pytest.mark.parametrize(
    ("macs", "steps", "epochs"),
    [(4999, 4, [1, 1.3333]), (6000, 6, [1, 2]), (2000, 2, [0.6667]), (1000, 1, [0.3333])],
)
def test_a_budget_ends_the_run_after_its_last_whole_step(tmp_path, macs, steps, epochs):
    result = Toy(macs=macs, losses=flat(9)).run(valid=data(5, 9), out=tmp_path / "run")
    assert [r["epoch"] for r in result.epochs] == epochs
    assert result.epochs[-1]["macs"] == 1000 * steps <= macs
    assert all("valid_loss" in r for r in result.epochs)
    # The last record is of the steps since the one before.
    assert result.epochs[-1]["changed"] == 3 * (steps - 3 * (len(epochs) - 1))
    assert f"{epochs[-1]}" in str(result)
    with pytest.raises(Stop):
        Toy(macs=macs, losses=flat(9)).run(
            valid=data(5, 9), out=tmp_path / "two", progress=stop_at(1)
        )
    Toy(macs=macs, losses=flat(9)).run(valid=data(5, 9), out=tmp_path / "two")
    assert contents(tmp_path / "two") == contents(tmp_path / "run")


def test_a_budget_that_holds_no_step_is_refused():
    message = "macs=999 is less than the 1000 multiply-accumulates of one step; raise it, or use a"
    with pytest.raises(ValueError, match=message):
        Toy(macs=999).run()
    message = "macs=999 is less than the 1500 multiply-accumulates of the preparation and one step"
    with pytest.raises(ValueError, match=message):
        Schedule(ToyOptions(macs=999), 13, 1000, 500)
    with pytest.raises(ValueError, match="a schedule needs step_macs"):
        Schedule(ToyOptions(macs=10), 13)


def test_the_schedule_spans_the_budget_exactly():
    options = ToyOptions(macs=80_500, batch=1, learning_rate=0.2, final_learning_rate=0.0)
    schedule = Schedule(options, 13, 10_000)
    assert schedule.steps == 8
    assert schedule.learning_rate(0) == 0.2
    assert schedule.learning_rate(4) == 0.1
    assert schedule.learning_rate(8) == 0.0


def test_zeroth_order_training_keeps_to_a_budget_too():
    trainer = pmt.ZOTrainer(layers="B3", batch=4, queries=6)
    model = residual_network()
    macs = 5 * trainer.cost(model).macs
    result = pmt.ZOTrainer(trainer.options, macs=macs + 1).fit(model, data(), progress=False)
    assert [r["epoch"] for r in result.epochs] == [1, 1.6667]
    assert result.epochs[-1]["macs"] == macs


def instructions_of(call) -> int:
    """The bytecode instructions of pmt that a call runs."""
    count = 0

    def trace(frame, event, argument):
        nonlocal count
        if not frame.f_code.co_filename.startswith(str(Path(pmt.__file__).parent)):
            return None
        frame.f_trace_opcodes = True
        count += event == "opcode"
        return trace

    before = sys.gettrace()
    sys.settrace(trace)
    try:
        call()
    finally:
        sys.settrace(before)
    return count


def run_of(epochs: int, out: Path) -> None:
    model = residual_network()
    # The first one is the best: whoever looks for it from the end looks through all.
    trainer = Toy(epochs=epochs, losses=[(0.5, 0.9), *flat(epochs)])
    lines = EpochLines(pmt.RunFolder(out), trainer.schedule(model, 8), Output(None))
    trainer.fit(model, data(8), held_out=data(5, 9), out=out, progress=lines.after_step)
    lines.finish()


def test_twice_the_epochs_are_twice_the_work(tmp_path, monkeypatch):
    """The work of a run besides its steps grows with its epochs, not with their square."""
    # Checkpoints that the time asks for are no work of the epochs.
    monkeypatch.setattr("pmt.train.run.loop._SECONDS_BETWEEN_CHECKPOINTS", 1e9)
    run_of(1, tmp_path / "first")  # imports
    work = {n: instructions_of(lambda n=n: run_of(n, tmp_path / str(n))) for n in (10, 60, 110)}
    assert work[110] - work[60] < 1.02 * (work[60] - work[10])
