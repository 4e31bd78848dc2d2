"""Callbacks and other observers of a run: events, early stopping, progress, divergence."""

import io
import sys
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from install_hints import install_hint
from networks import residual_network
from toy_trainer import HEAD, Stop, Toy, data, flat

import pmt
from pmt._util.progress import ProgressLine
from pmt.callbacks import (
    EarlyStopping,
    EpochEnd,
    Event,
    PhaseEnd,
    StepEnd,
    StopTraining,
    TensorBoardLog,
)
from pmt.model import ImageScores
from pmt.train.prepare.preparation import Phase, PhaseWork
from pmt.train.run.head import HeadStart, Refit
from pmt.train.run.keep_best import FEW, KeepBest
from pmt.train.run.loop import stepper_state
from pmt.train.run.observers import Divergence, Observer, ShownProgress, State
from pmt.train.run.store import FolderStore, MemoryStore

FALLING = [(2.0, 0.1), (1.5, 0.2), (1.25, 0.3), (1.0, 0.4)]


def fit(*callbacks, losses=FALLING, **arguments):
    trainer = Toy(losses=losses)
    return trainer.run(held_out=data(5, 9), callbacks=callbacks, **arguments)


def test_a_run_tells_of_phases_steps_and_epochs():
    told: list[Event] = []
    result = fit(told.append)
    kinds = [type(event) for event in told]
    assert kinds == [PhaseEnd, *([StepEnd] * 3 + [EpochEnd]) * 3]
    assert [event.step for event in told] == [0, 1, 2, 3, 3, 4, 5, 6, 6, 7, 8, 9, 9]
    assert {event.steps for event in told} == {9}
    assert told[0].record["phase"] == "start"
    assert [told[4].record, told[8].record, told[12].record] == result.epochs
    assert told[1].record["changed"] == 3


def returns(event: Event) -> bool:
    return isinstance(event, StepEnd) and event.step == 4


def raises(event: Event) -> None:
    if returns(event):
        raise StopTraining


@pytest.mark.parametrize("callback", [returns, raises])
def test_a_callback_ends_the_run_in_its_best_state(tmp_path, callback):
    losses, told = [(2.0, 0.1), (1.0, 0.2), (1.5, 0.2)], []
    result = fit(callback, told.append, losses=losses, out=tmp_path / "run")
    assert [event.step for event in told if isinstance(event, StepEnd)] == [1, 2, 3, 4]
    assert [epoch["epoch"] for epoch in result.epochs] == [1, 1.3333]
    assert result.verdict() == "kept epoch 1, the best on the 5 held-out images"
    folder = pmt.RunFolder(tmp_path / "run")
    assert folder.done
    assert folder.read_metrics()[-1] == {"kind": "stop", "step": 3}
    # A run that was ended is finished: it is returned, not gone on with.
    again = fit(losses=[], out=tmp_path / "run")
    assert again.epochs == result.epochs
    assert again.model.image() == result.model.image()


def test_a_run_may_end_before_its_first_step():
    result = fit(lambda event: True)
    assert result.epochs == []
    assert result.verdict().startswith("kept the original model")


def test_another_error_of_a_callback_ends_the_run_with_a_checkpoint(tmp_path):
    def wrong(event: Event) -> None:
        if event.step == 4:
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        fit(wrong, out=tmp_path / "run")
    assert pmt.RunFolder(tmp_path / "run").load_checkpoint()[1] == 4


def test_early_stopping_waits_for_a_lower_loss(tmp_path):
    stopping = EarlyStopping(patience=2)
    losses = [(2.0, 0.1), (1.5, 0.2), (1.5, 0.2), (1.75, 0.2)]
    for _ in range(2):  # the same object serves another run
        trainer = Toy(losses=[*losses, *flat(9)], epochs=8)
        result = trainer.run(held_out=data(5, 9), callbacks=[stopping])
        assert [epoch["epoch"] for epoch in result.epochs] == [1, 2, 3]
    with pytest.raises(ValueError, match=r"^patience=0 must be 1 or more$"):
        EarlyStopping(patience=0)
    with pytest.raises(TypeError, match=r"^patience=1.5 must be an integer$"):
        EarlyStopping(patience=1.5)
    message = (
        r"^monitor='loss' is not a figure of an epoch; it has train_loss, train_accuracy, "
        r"held_out_loss, held_out_accuracy$"
    )
    with pytest.raises(ValueError, match=message):
        fit(EarlyStopping(monitor="loss"))


def test_early_stopping_waits_for_a_higher_accuracy():
    losses = [(2.0, 0.1), (1.5, 0.2), (1.5, 0.3), (1.75, 0.3)]
    result = fit(EarlyStopping(1, "held_out_accuracy"), losses=losses)
    assert [epoch["held_out_accuracy"] for epoch in result.epochs] == [0.2, 0.3, 0.3]


def test_an_ended_run_that_was_killed_ends_on_resuming(tmp_path, monkeypatch):
    losses = iter([(2.0, 0.1), (1.0, 0.2), (1.5, 0.2)])
    with monkeypatch.context() as patched:
        patched.setattr(pmt.RunFolder, "finish", lambda self: (_ for _ in ()).throw(Stop))
        with pytest.raises(Stop):
            fit(returns, losses=losses, out=tmp_path / "run")
    result = fit(losses=[], out=tmp_path / "run")
    assert [epoch["epoch"] for epoch in result.epochs] == [1, 1.3333]
    kinds = [record["kind"] for record in pmt.RunFolder(tmp_path / "run").read_metrics()]
    assert kinds.count("stop") == 1


def test_phases_of_a_run_killed_in_its_preparation_are_told_again(tmp_path, monkeypatch):
    told = []
    noisy = pmt.corruptions.corrupt(pmt.datasets.bundled("train").take(60), "fog", 5)
    trainer = pmt.ZOTrainer(layers="B1,head", epochs=1, queries=2)

    def killed(event: Event) -> None:
        told.append(event.record.get("phase"))
        if told == ["start", "head"]:
            raise Stop

    for _ in range(2):
        model = pmt.load("fashion_mnist_dscnn")
        try:
            trainer.fit(model, noisy, out=tmp_path / "run", progress=False, callbacks=[killed])
        except Stop:
            continue
    assert told[:4] == ["start", "head", "start", "head"]


def test_a_tensorboard_log_writes_figures_over_macs(monkeypatch, tmp_path):
    written = []

    class Writer:
        def __init__(self, folder: str) -> None:
            assert folder == str(tmp_path)

        def add_scalar(self, name: str, value: float, macs: int) -> None:
            written.append((name, value, macs))

        def flush(self) -> None:
            pass

    monkeypatch.setitem(sys.modules, "tensorboardX", SimpleNamespace(SummaryWriter=Writer))
    fit(TensorBoardLog(tmp_path))
    losses = [entry for entry in written if entry[0] == "held_out_loss"]
    assert [(value, macs) for _, value, macs in losses] == [
        (2.0, 0), (1.5, 3000), (1.25, 6000), (1.0, 9000)
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("make", "package"),
    [
        (lambda: TensorBoardLog("log"), "a TensorBoard log needs tensorboardX"),
        (lambda: fit().to_frame(), "a data frame needs pandas"),
    ],
)
def test_a_missing_package_is_named(monkeypatch, make, package):

    for name in ("tensorboardX", "pandas"):
        monkeypatch.setitem(sys.modules, name, None)
    with pytest.raises(ImportError) as caught:
        make()
    assert str(caught.value) == f"{package}: {install_hint('callbacks')}"


def test_a_frame_has_a_row_for_each_state():
    pytest.importorskip("pandas")
    frame = fit().to_frame()
    assert frame.index.name == "state"
    assert list(frame.index) == ["start", 1, 2, 3]
    assert list(frame["held_out_loss"]) == [2.0, 1.5, 1.25, 1.0]


@pytest.mark.parametrize("name", ["", "Shell", "DatabricksShell"])  # Jupyter, Colab, Databricks
def test_a_notebook_shows_the_progress_line(name, monkeypatch):
    jupyter = type("ZMQInteractiveShell", (), {})
    shell = type(name, (jupyter,), {})() if name else jupyter()
    monkeypatch.setitem(sys.modules, "IPython", SimpleNamespace(get_ipython=lambda: shell))
    stream = io.StringIO()
    line = ProgressLine(4, stream=stream)
    line.start -= 1.0
    line.update(1, "loss 1.0")
    line.clear()
    assert stream.getvalue().startswith("\r 25 %  step 1/4  ")
    assert "\x1b" not in stream.getvalue()


def scores(loss: float, right: int = 4) -> ImageScores:
    return ImageScores(np.full(8, loss), np.arange(8) < right)


def run(**attributes: Any) -> Any:
    history = SimpleNamespace(best=None)
    return SimpleNamespace(**{"stopped": False, "step": 0, "history": history, **attributes})


def copied(observer: Any, other: Any) -> Any:
    """Return another observer, with the state of the first from a checkpoint."""
    state = observer.state()
    assert set(state) == set(observer.arrays)
    other.load_state({**state, "of_the_stepper": np.zeros(1)})
    assert list(stepper_state({**state, "of_the_stepper": np.zeros(1)})) == ["of_the_stepper"]
    return other


def test_an_observer_does_nothing_by_itself():
    observer, state = Observer(), State("start", {}, {})
    observer.judge(run(), state)
    assert (state.better, state.worse) == (None, False)
    assert observer.state() == {}


@pytest.mark.parametrize("backtrack", [True, False])
def test_keep_best_judges_by_the_held_out_images(backtrack):
    def judged(name: str, loss: float, better: bool | None = None) -> tuple[bool | None, bool]:
        state = State(name, {"held_out": scores(loss)}, {}, better=better)
        keeper.judge(run(), state)
        return state.better, state.worse

    keeper = KeepBest(backtrack)
    assert judged("start", 2.0) == (True, False)
    assert judged("head", 2.0, better=False) == (False, backtrack)  # cross-validation has judged
    assert judged("epoch", 1.0) == (True, False)
    keeper = copied(keeper, KeepBest(backtrack))
    assert judged("epoch", 1.5) == (False, backtrack)
    assert judged("epoch", 0.5) == (True, False)


def test_divergence_warns_of_an_end_that_is_worse_than_the_start():
    watch = Divergence()
    trainer = Toy()
    for loss, right in ((1.0, 4), (1.5, 3)):
        watch.judge(run(), State("epoch", {"valid": scores(loss, right)}, {}))
    with pytest.warns(
        UserWarning, match=r"accuracy 0\.5000 -> 0\.3750, loss 1\.0000 -> 1\.5000 on"
    ):
        watch.end(run(trainer=trainer))
    # The model of a run that was killed after its last epoch is measured again.
    found = {"valid": scores(0.5)}
    copied(watch, Divergence()).end(run(trainer=trainer, scores=lambda name: found))


@pytest.mark.parametrize(
    ("losses", "right"),
    [
        ((2.0, 0.5, 1.0, 1.0), 1),  # less accurate, and the loss is 0.3 standard errors higher
        ((0.5, 0.5, 0.5, 0.5), 1),  # less accurate, and the loss is lower
        ((2.0, 2.0, 2.0, 2.0), 2),  # the loss is clearly higher, and as many are right
        ((2.0, 2.0, 2.0, 2.0), 3),
    ],
)
def test_divergence_takes_a_lower_accuracy_and_a_clearly_higher_loss(losses, right):
    watch = Divergence()
    for values, correct in (((1.0, 1.0, 1.0, 1.0), 2), (losses, right)):
        found = ImageScores(np.array(values), np.arange(4) < correct)
        watch.judge(run(), State("epoch", {"valid": found}, {}))
    assert watch.found() == ""
    watch.judge(
        run(), State("epoch", {"valid": ImageScores(np.full(4, 2.0), np.arange(4) < 1)}, {})
    )
    assert watch.found() != ""


@pytest.mark.parametrize(
    ("better_by", "many", "few"),
    [
        ((0.0, 0.0, 0.0, 0.5, 0.5), False, False),  # by 1.6 standard errors
        ((0.0, 0.0, 0.5, 0.5, 0.5), True, False),  # by 2.4
        ((0.0, 0.5, 0.5, 0.5, 0.5), True, True),  # by 4
    ],
)
def test_a_state_must_be_better_by_two_standard_errors_and_an_epoch_on_few_images_by_three(
    better_by, many, few
):
    for name, copies in (("aligned", 1), ("head", 1), ("epoch", 1), ("epoch", FEW)):
        kept = few if (name, copies) == ("epoch", 1) else many or copies == FEW
        keeper = KeepBest(backtrack=True)
        images = 5 * copies
        first = ImageScores(np.ones(images), np.ones(images, bool))
        keeper.judge(run(), State("start", {"held_out": first}, {}))
        losses = 1.0 - np.tile(better_by, copies)
        state = State(name, {"held_out": ImageScores(losses, np.ones(images, bool))}, {})
        keeper.judge(run(), state)
        assert (state.better, state.worse) == (kept, False)


def test_a_head_is_solved_again_from_the_one_before_its_first_training(tmp_path):
    model = residual_network()
    before = np.array(model.core.weights(HEAD))
    start = HeadStart()
    start.before_phase(run(model=model), Phase("aligned", 0, lambda *_: None))
    assert start.state() == {}
    start.before_phase(run(model=model), Phase("head", 0, lambda *_: None))
    start.after_state(run(model=model), State("head", {}, {}, better=True))
    scales = model.core.weight_scales(HEAD)
    model.core.set_parameters(HEAD, before // 2, model.core.bias(HEAD))
    model.core.set_weight_scales(HEAD, scales * np.float32(2.0))
    # An alternative that is not kept changes nothing.
    start.before_phase(run(model=model), Phase("head_alone", 0, lambda *_: None, True))
    start.after_state(run(model=model), State("head_alone", {}, {}, better=False))
    seen = []

    def solve_head(given, *_):
        seen.append((np.array(given.core.weights(HEAD)), given.core.weight_scales(HEAD)))
        return PhaseWork(5)

    solved = SimpleNamespace(phases=[{"phase": "head", "head_strength": 2.0}])
    trainer = SimpleNamespace(preparation=SimpleNamespace(solve_head=solve_head))
    again = copied(start, HeadStart()).solve_again(
        run(model=model, history=solved, trainer=trainer), []
    )
    assert again == 5
    assert (seen[0][0] == before).all()
    assert (seen[0][1] == scales).all()


@pytest.mark.parametrize("record", [{}, {"phase": "head", "best": False}])
def test_refit_leaves_a_run_alone_whose_head_is_not_kept(record):
    Refit().end(run(history=SimpleNamespace(phases=[record], refit=None)))


def test_progress_is_told_after_each_step():
    told: list[Any] = []
    shown = ShownProgress(lambda *step: told.append(step))
    one = run(step=3)
    shown.begin(one)
    shown.after_step(one, {"loss": 1.0})
    shown.pause(one)
    assert told == [(3, {"loss": 1.0})]
    assert ShownProgress(True).line is None


def test_a_store_gives_back_what_it_keeps(tmp_path):
    out = tmp_path / "run"
    Toy().run(out=out)
    for store in (MemoryStore(), FolderStore(pmt.RunFolder(out))):
        model = residual_network()
        weights = model.core.weights(HEAD) // 2
        model.core.set_parameters(HEAD, weights, model.core.bias(HEAD))
        store.keep(run(model=model, step=2), refit=True)
        assert (store.best().core.weights(HEAD) == weights).all()
        if store.folder is not None:
            assert store.folder.best_is_refit()
        assert store.is_done() is (store.folder is not None)
