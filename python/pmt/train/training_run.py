"""The loop of a training run, the same for every trainer.

It keeps to the schedule, evaluates after every epoch, and where there is a run folder writes
metrics and checkpoints, from which an interrupted run goes on bit for bit.
"""

from __future__ import annotations

import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from types import MappingProxyType
from typing import Any

import numpy as np
import numpy.typing as npt

from pmt._util.processes import thread_count
from pmt._util.progress import ProgressLine
from pmt.datasets import Dataset
from pmt.model import Model
from pmt.train.costs.work import Cost
from pmt.train.preparation import Preparation
from pmt.train.result import RunResult
from pmt.train.run_config import RunConfig, RunOptions, contents_of
from pmt.train.run_folder import RunFolder
from pmt.train.run_metrics import RunHistory
from pmt.train.schedule import Schedule
from pmt.train.stepper import Stepper

__all__ = ["Progress", "Trainer"]

_SECONDS_BETWEEN_CHECKPOINTS = 10.0

Progress = bool | Callable[[int, dict[str, Any]], None]


class Trainer(ABC):
    """Base of trainers: options, a cost, and :meth:`fit`.

    Parameters
    ----------
    options : dataclass, optional
        All options; by default those of ``options_class()``.
    threads : int
        Threads to use; 0 takes all, but one in a worker of a process pool.
    **changes
        Options that differ.

    Attributes
    ----------
    name : str
        Name of the kind of trainer, as in a run folder's ``config.toml``.
    options_class : type
        Class of the options: a frozen dataclass of str, int, float and bool.
    options : dataclass
        The options.
    threads : int
        Threads of the evaluation, and of the training where it uses the core.
    extensions : dict of str to str
        Names of the user's own estimator and optimizer, as in ``config.toml``.
    """

    name: str
    options_class: type[Any]
    options: RunOptions
    threads: int
    extensions: Mapping[str, str] = MappingProxyType({})

    def __init__(self, options: Any = None, *, threads: int = 0, **changes: Any) -> None:
        base = options if options is not None else self.options_class()
        self.options = base.replace(**changes)
        self.threads = thread_count(threads)

    @abstractmethod
    def cost(self, model: Model, *, samples: int | None = None) -> Cost:
        """Count one step's work, for the options' batch or another number of samples."""

    @abstractmethod
    def stepper(self, model: Model, samples: int) -> Stepper:
        """Return the stepper of a run on ``model``, with so many training samples."""

    @property
    def preparation(self) -> Preparation:
        """The preparation of a model before the first step."""
        return Preparation(self.options, threads=self.threads)

    def schedule(self, model: Model, samples: int) -> Schedule:
        """Return the schedule of a run on so many samples."""
        macs = self.cost(model).macs if self.options.macs > 0 else None
        return Schedule(self.options, samples, macs, self.preparation.cost(model, samples).macs)

    def fit(
        self,
        model: Model,
        data: Dataset,
        *,
        valid: Dataset | None = None,
        out: str | Path | RunFolder | None = None,
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
        out : str, pathlib.Path or RunFolder, optional
            Run folder. If it holds an unfinished run of the same options, data and model (as it
            was before training, or as the run saved it last), that run is resumed, bit for bit; a
            finished one is returned as it is. One process at a time works in a folder.
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
            If data and model do not fit, the run folder belongs to another run (the error says
            what differs) or is damaged, or ``keep_best`` has no ``valid``.
        BlockingIOError
            If another process works in the run folder.
        OSError
            If the run folder cannot be written, or is removed while the run trains in it.
        KeyboardInterrupt
            On Ctrl-C, within a second. The checkpoint in ``out`` is of a whole step, mostly of the
            last one.
        """
        if keep_best and valid is None:
            raise ValueError("keep_best=True needs valid=..., images held out to choose on")
        model.check_classes(data)
        folder = RunFolder.of(out) if out is not None else None
        run = _Run(self, model, data, valid, folder, progress, keep_best)
        if folder is None:
            return run.execute(source or {})
        if not folder.exists():
            folder.check_free()
        folder.path.absolute().parent.mkdir(parents=True, exist_ok=True)
        with folder.lock.holding(f"out={str(folder.path)!r}"):
            folder.remove_strays()
            return run.execute(source or {})


class _Run:
    """One call of :meth:`Trainer.fit`."""

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
        self.preparation = trainer.preparation.cost(model, len(data))
        self.schedule = trainer.schedule(model, len(data))
        model.prepare(data.images[:1])  # what does not fit is refused before a folder is made
        self.folder = folder
        self.progress = progress
        self.keep_best = keep_best
        self.step = 0
        self.prepared = False
        self.history = RunHistory(trainer.cost(model), self.preparation)
        self.best_image: bytes | None = None

    def execute(self, source: dict[str, Any]) -> RunResult:
        state = self._open_folder(source)
        whole = self.step == self.schedule.steps == self.history.recorded_to
        if self.folder is not None and self.folder.done and whole:
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
            self._save()
            line.clear()
        if self.folder is not None:
            self.folder.finish()
        return self._result(before)

    def _result(self, before: dict[str, float]) -> RunResult:
        best = self.history.best or {}
        image = self.best_image
        if best and image is None and self.folder is not None:
            image = self.folder.best.read_bytes()
        return RunResult(
            self.model,
            self.history.of_kind("epoch"),
            before,
            self.folder.path if self.folder else None,
            {"epoch": 0, **best} if best else {},
            image,
        )

    def _open_folder(self, source: dict[str, Any]) -> dict[str, npt.NDArray[Any]] | None:
        """Create the run, or take the model back to its checkpoint and return the state with it."""
        if self.folder is None:
            return None
        config = RunConfig(
            self.trainer.options,
            source,
            contents_of(self.model, self.data, self.valid),
            self.trainer.name,
            self.keep_best,
            self.trainer.extensions,
        )
        if not self.folder.exists():
            self.folder.create(self.model, config)
            return None
        self._check_same_run(self.folder, config)
        saved, self.step = self.folder.load_checkpoint()
        self.prepared = self.folder.is_prepared(saved)
        for layer in saved.layers:
            self.model.core.set_parameters(
                layer.index, saved.core.weights(layer.index), saved.core.bias(layer.index)
            )
            self.model.core.set_weight_scales(layer.index, saved.core.weight_scales(layer.index))
        for record in self.folder.keep_metrics_before(self.step):
            self.history.add(record)
        return self.folder.load_state(saved)

    def _check_same_run(self, folder: RunFolder, config: RunConfig) -> None:
        """Raise a ValueError that says what differs, if the folder belongs to another run."""
        trainer = self.trainer
        differences = [f"trainer: there {folder.trainer()!r}, here {trainer.name!r}"]
        if folder.trainer() == trainer.name:
            there = folder.config(type(trainer.options))
            if not there.contents:
                raise ValueError(
                    f"out={str(folder.path)!r} holds a run of an older version of pmt, which did "
                    "not note which model and data it is of; start it again in another folder"
                )
            if folder.is_checkpoint(self.model):  # it came from this very run
                model_crc = there.contents.get("model_crc32", 0)
                config = replace(config, contents={**config.contents, "model_crc32": model_crc})
            differences = there.differences(config)
        if differences:
            raise ValueError(
                f"out={str(folder.path)!r} holds a run with other options or data; choose another "
                f"folder, or give what it began with: {'; '.join(differences)}"
            )

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
        known = self.history.of_kind("start")
        if known:
            return {key: known[0][key] for key in ("valid_loss", "valid_accuracy")}
        if self.step > 0:
            return {}
        before = self._validate()
        self._record({"kind": "start", "step": -1, **before, **self._compare(before)})
        return before

    def _prepare(self) -> None:
        """Prepare the model, unless the checkpoint is of a prepared one; then make its stepper."""
        if self.prepared or self.preparation.macs == 0:
            return
        self.trainer.preparation.apply(self.model, self.data)
        self.stepper = self.trainer.stepper(self.model, len(self.data))
        self._record_prepared()
        self.prepared = True
        self._save()

    def _record_prepared(self) -> None:
        if self.history.of_kind("prepared"):
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

    def _compare(self, measured: dict[str, float]) -> dict[str, bool]:
        """Keep the model if it is the best so far."""
        if not self.keep_best:
            return {}
        last = self.history.best
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
        if not self.schedule.ends_epoch(self.step) or self.history.recorded_to == self.step:
            return
        measured = self._validate()
        self._record(
            {
                "kind": "epoch",
                "step": self.step - 1,
                "epoch": self.schedule.epochs_after(self.step),
                **self.history.training_figures(self.trainer.options.batch),
                **measured,
                **self._compare(measured),
                **self.history.totals(),
                **self.stepper.describe(),
            }
        )

    def _record(self, record: dict[str, Any]) -> None:
        self.history.add(record)
        if self.folder is not None:
            self.folder.lock.check()
            self.folder.append(record)

    def _save(self) -> None:
        whole = self.stepper.steps_taken == self.step - self.first
        # Until it is prepared, the folder holds the model as it came.
        if self.folder is not None and whole and (self.step > 0 or self.prepared):
            self.folder.lock.check()
            self.folder.save_checkpoint(self.model, step=self.step, state=self.stepper.state())


def _rank(record: Mapping[str, float]) -> tuple[float, float]:
    return record["valid_loss"], -record["valid_accuracy"]
