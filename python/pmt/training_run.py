"""The loop of a training run, the same for every trainer.

It keeps to the schedule, evaluates after every epoch, and where there is a run folder writes
metrics and checkpoints, from which an interrupted run goes on bit for bit.
"""

from __future__ import annotations

import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from pmt import _core
from pmt.cost import Cost
from pmt.datasets import Dataset
from pmt.model import Model
from pmt.progress import ProgressLine
from pmt.result import RunResult
from pmt.run_folder import RunFolder, RunOptions
from pmt.schedule import Schedule
from pmt.stepper import Stepper

__all__ = ["Progress", "Trainer"]

_SECONDS_BETWEEN_CHECKPOINTS = 10.0

Progress = bool | Callable[[int, dict[str, Any]], None]


class Trainer(ABC):
    """What every trainer has in common: options, a cost, and :meth:`fit`.

    Attributes
    ----------
    name : str
        Of the kind of trainer, as in a run folder's ``config.toml``.
    options : dataclass
        Frozen; str, int, float and bool only.
    threads : int
        Threads of the evaluation, and of the training where it uses the core.
    """

    name: str
    options: RunOptions
    threads: int

    @abstractmethod
    def cost(self, model: Model, *, samples: int | None = None) -> Cost:
        """Count one step's work, for the options' batch or another number of samples."""

    @abstractmethod
    def stepper(self, model: Model, samples: int) -> Stepper:
        """Return what takes the steps of a run on ``model``, with so many training samples."""

    def preparation_cost(self, model: Model, samples: int) -> Cost:
        """Count the work of :meth:`prepare` on so many training samples; by default none."""
        return Cost(0, 0)

    def prepare(self, model: Model, data: Dataset) -> None:
        """Change a model before the first step of a run on these images; by default not at all."""
        return None

    def schedule(self, model: Model, samples: int) -> Schedule:
        """Return the schedule of a run on so many samples."""
        macs = self.cost(model).macs if self.options.macs > 0 else None
        options = self.scheduled_options(model)
        return Schedule(options, samples, macs, self.preparation_cost(model, samples).macs)

    def scheduled_options(self, model: Model) -> RunOptions:
        """Return the options that the schedule of a run on a model is made of."""
        return self.options

    def open_folder(
        self, folder: RunFolder, model: Model, source: dict[str, Any], keep_best: bool
    ) -> bool:
        """Create the folder of a run; or see that it is there already, and this trainer's.

        Returns
        -------
        bool
            Whether it was there.

        Raises
        ------
        ValueError
            If it belongs to another run.
        FileExistsError
            If it holds something else.
        """
        if not folder.exists():
            folder.create(model, self.options, source, trainer=self.name, keep_best=keep_best)
            return False
        there = (*folder.read_config(), folder.trainer(), folder.keeps_best())
        if there != (self.options, source, self.name, keep_best):
            raise ValueError(
                f"out={str(folder.path)!r} holds a run with other options or data; choose another "
                "folder"
            )
        return True

    def fit(
        self,
        model: Model,
        data: Dataset,
        *,
        valid: Dataset | None = None,
        out: str | Path | None = None,
        source: dict[str, Any] | None = None,
        progress: Progress = True,
        keep_best: bool = False,
    ) -> RunResult:
        """Train the model in place.

        Parameters
        ----------
        model : Model
            The model; its weights change.
        data : Dataset
            Training images and labels.
        valid : Dataset, optional
            Evaluated before training, after every epoch and at the end.
        out : str or pathlib.Path, optional
            Run folder. If it holds an unfinished run of the same options, that run is resumed,
            bit for bit; a finished one is returned as it is.
        source : dict, optional
            Where model and data come from, for the run folder's ``config.toml``.
        progress : bool or callable
            Show a progress line on a terminal; or call ``progress(step, record)`` after each step.
        keep_best : bool
            Keep the model with the least loss on ``valid`` (of equal losses the higher accuracy,
            then the earlier), the untrained one included: as ``RunResult.best``, and ``best.pmt``
            in the run folder. Choosing by loss is less noisy than by accuracy. ``model`` itself
            ends with the last step. What ``valid`` then says of the best model is too good: hold
            it out from the training images, and measure on others.

        Returns
        -------
        RunResult
            History and the trained model.

        Raises
        ------
        ValueError
            If data and model do not fit, the run folder belongs to another run, or ``keep_best``
            has no ``valid``.
        KeyboardInterrupt
            On Ctrl-C, within a second. The checkpoint in ``out`` is of a whole step, mostly of the
            last one.
        """
        if keep_best and valid is None:
            raise ValueError("keep_best=True needs valid=..., images held out to choose on")
        model.check_classes(data)
        folder = RunFolder(out) if out is not None else None
        run = _Run(self, model, data, valid, folder, progress, keep_best)
        return run.execute(source or {})


class _Run:
    """One call of fit."""

    def __init__(
        self,
        trainer: Trainer,
        model: Model,
        data: Dataset,
        valid: Dataset | None,
        folder: RunFolder | None,
        progress: Progress,
        keep_best: bool,
    ) -> None:
        self.trainer = trainer
        self.model = model
        self.data = data
        self.valid = valid
        self.cost = trainer.cost(model)
        self.preparation = trainer.preparation_cost(model, len(data))
        self.schedule = trainer.schedule(model, len(data))
        model.prepare(data.images[:1])  # what does not fit is refused before a folder is made
        self.folder = folder
        self.progress = progress
        self.keep_best = keep_best
        self.step = 0
        self.records: list[dict[str, Any]] = []
        self.best_image: bytes | None = None

    def execute(self, source: dict[str, Any]) -> RunResult:
        state = self._open_folder(source)
        if self.folder is not None and self.folder.done:
            return self._result(self._before())
        self.stepper = self.trainer.stepper(self.model, len(self.data))
        self._load_state(state)
        self.first = self.step
        before = self._before()
        self._prepare()
        line = ProgressLine(self.schedule.steps, done=self.step)
        saved = time.monotonic()
        try:
            self._end_epoch()  # of a run that was interrupted before it had evaluated
            while self.step < self.schedule.steps:
                self._one_step(line)
                if time.monotonic() - saved > _SECONDS_BETWEEN_CHECKPOINTS:
                    self._save()
                    saved = time.monotonic()
        finally:
            line.clear()
            self._save()
        if self.folder is not None:
            self.folder.finish()
        return self._result(before)

    def _result(self, before: dict[str, float]) -> RunResult:
        best = self._best() or {}
        image = self.best_image
        if best and image is None and self.folder is not None:
            image = self.folder.best.read_bytes()
        return RunResult(
            self.model,
            [r for r in self.records if r["kind"] == "epoch"],
            before,
            self.folder.path if self.folder else None,
            {"epoch": 0, **best} if best else {},
            image,
        )

    def _open_folder(self, source: dict[str, Any]) -> dict[str, npt.NDArray[Any]] | None:
        """Create the run, or take the model back to its checkpoint and return the state with it."""
        if self.folder is None:
            return None
        if not self.trainer.open_folder(self.folder, self.model, source, self.keep_best):
            return None
        saved, self.step = self.folder.load_checkpoint()
        for layer in saved.layers:
            self.model.core.set_parameters(
                layer.index, saved.core.weights(layer.index), saved.core.bias(layer.index)
            )
            self.model.core.set_weight_scales(layer.index, saved.core.weight_scales(layer.index))
        self.records = self.folder.keep_metrics_before(self.step)
        return self.folder.load_state(saved)

    def _load_state(self, state: dict[str, npt.NDArray[Any]] | None) -> None:
        if state is None or self.step == 0:
            return
        try:
            self.stepper.load_state(state)
        except ValueError as error:
            where = self.folder.path if self.folder else ""
            raise ValueError(f"{where}: {error}; the run cannot be resumed") from error

    def _before(self) -> dict[str, float]:
        if self.valid is None:
            return {}
        known = [r for r in self.records if r["kind"] == "start"]
        if known:
            return {key: known[0][key] for key in ("valid_loss", "valid_accuracy")}
        if self.step > 0:
            return {}
        before = self._validate()
        self._record({"kind": "start", "step": -1, **before, **self._compare(before)})
        return before

    def _prepare(self) -> None:
        """Let the trainer prepare the model, unless the checkpoint is of a prepared one."""
        if self.step > 0 or self.preparation.macs == 0:
            return
        self.trainer.prepare(self.model, self.data)
        if any(r["kind"] == "prepared" for r in self.records):
            return
        measured = self._validate()
        work = {"forwards": self.preparation.forwards, "macs": self.preparation.macs}
        record = {"kind": "prepared", "step": -1, **measured, **work}
        self._record({**record, **(self._compare(measured) if measured else {})})

    def _validate(self) -> dict[str, float]:
        if self.valid is None:
            return {}
        evaluation = self.stepper.evaluate(self.model, self.valid, self.trainer.threads)
        return {"valid_loss": evaluation.loss, "valid_accuracy": evaluation.accuracy}

    def _best(self) -> dict[str, Any] | None:
        return next((r for r in reversed(self.records) if r.get("best")), None)

    def _compare(self, measured: dict[str, float]) -> dict[str, bool]:
        """Keep the model if it is the best so far."""
        if not self.keep_best:
            return {}
        last = self._best()
        better = last is None or _rank(measured) < _rank(last)
        if better and self.folder is not None:
            self.folder.save_best(self.model, step=self.step)
        elif better:
            self.best_image = self.model.image()
        return {"best": better}

    def _one_step(self, line: ProgressLine) -> None:
        start = time.monotonic()
        indices = self.schedule.indices(self.step)
        result = self.stepper.step(
            self.model.prepare(self.data.images[indices]),
            np.ascontiguousarray(self.data.labels[indices]),
            self.step,
            self.schedule.learning_rate(self.step),
        )
        record = {"kind": "step", "step": self.step, **result}
        record["seconds"] = round(time.monotonic() - start, 4)
        self._record(record)
        self.step += 1
        self._end_epoch()
        if callable(self.progress):
            self.progress(self.step, record)
        elif self.progress:
            line.update(self.step, f"loss {result['loss']:.4f}")

    def _end_epoch(self) -> None:
        """Evaluate and record an epoch that has ended, unless that is done."""
        if not self.schedule.ends_epoch(self.step) or self._recorded_to() == self.step:
            return
        steps = [r for r in self.records if r["kind"] == "step"]
        recorded = self._recorded_to()
        last = [r for r in steps if r["step"] >= recorded]
        measured = self._validate()
        self._record(
            {
                "kind": "epoch",
                "step": self.step - 1,
                "epoch": self.schedule.epochs_after(self.step),
                **_training_figures(last, self.trainer.options.batch),
                **measured,
                **self._compare(measured),
                "changed": sum(r["changed"] for r in last),
                "forwards": self.preparation.forwards
                + sum(r.get("forwards", self.cost.forwards) for r in steps),
                "macs": self.preparation.macs + sum(r.get("macs", self.cost.macs) for r in steps),
                **self.stepper.describe(),
                "seconds": round(sum(r["seconds"] for r in steps), 2),
            }
        )

    def _recorded_to(self) -> int:
        """Return the number of steps before the last one whose epoch is recorded; -1 for none."""
        return max((r["step"] + 1 for r in self.records if r["kind"] == "epoch"), default=-1)

    def _record(self, record: dict[str, Any]) -> None:
        self.records.append(record)
        if self.folder is not None:
            self.folder.append(record)

    def _save(self) -> None:
        whole = self.stepper.steps_taken == self.step - self.first
        # Before the first step the folder holds the model as it came, to be prepared again.
        if self.folder is not None and whole and self.step > 0:
            self.folder.save_checkpoint(self.model, step=self.step, state=self.stepper.state())


def _rank(record: Mapping[str, float]) -> tuple[float, float]:
    return record["valid_loss"], -record["valid_accuracy"]


def _training_figures(records: list[dict[str, Any]], batch: int) -> dict[str, float]:
    """Return mean loss and accuracy over the samples of some steps, if there are any."""
    if not records:
        return {}
    seen = len(records) * batch
    correct = sum(r["correct"] for r in records)
    return {"train_loss": _loss_sum(records, batch) / seen, "train_accuracy": correct / seen}


def _loss_sum(records: list[dict[str, Any]], batch: int) -> float:
    """Sum the loss over the samples of some steps, in nats."""
    if all("loss_sum" in r for r in records):
        return float(sum(r["loss_sum"] for r in records) / _core.LOSS_ONE)
    return float(sum(r["loss"] * batch for r in records))
