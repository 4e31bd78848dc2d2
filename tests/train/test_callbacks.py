"""Callbacks: what they are told, how they end a run, and those that come with pmt."""

import io
import sys
from types import SimpleNamespace

import pytest
from install_hints import install_hint
from toy_trainer import Stop, Toy, data, flat

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
