"""Zeroth-order training of a model: the loop around the core's step."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from pmt import _core
from pmt.cost import Cost
from pmt.costs.zeroth_order_work import zeroth_order_work
from pmt.datasets import Dataset
from pmt.model import Model
from pmt.options import TrainingOptions, preset
from pmt.progress import ProgressLine
from pmt.result import RunResult
from pmt.run_folder import RunFolder
from pmt.schedule import Schedule
from pmt.threads import thread_count

__all__ = ["Cost", "ZOTrainer"]

_SECONDS_BETWEEN_CHECKPOINTS = 10.0


class ZOTrainer:
    """Trains layers of an int8 model with forward passes alone.

    Parameters
    ----------
    options : TrainingOptions, optional
        All options; by default the preset's.
    preset : {"default", "paper"}
        Where ``options`` is not given.
    threads : int
        Threads to use; 0 takes all, but one in a worker of a process pool. The result does not
        depend on it.
    **changes
        Options that differ from the preset, see :class:`pmt.TrainingOptions`.

    Raises
    ------
    ValueError, TypeError
        If an option is unknown or outside its range.

    Examples
    --------
    >>> import pmt
    >>> model = pmt.load("fashion_mnist_dscnn")
    >>> data = pmt.corruptions.corrupt(pmt.datasets.bundled("train"), "gaussian_noise", 5)
    >>> trainer = pmt.ZOTrainer(layers="B1,head", epochs=1, queries=2, batch=100)
    >>> result = trainer.fit(model, data, progress=False)
    >>> len(result.epochs)
    1
    """

    def __init__(
        self,
        options: TrainingOptions | None = None,
        *,
        preset: str = "default",
        threads: int = 0,
        **changes: Any,
    ) -> None:
        base = options if options is not None else _preset(preset)
        self.options = base.replace(**changes)
        self.threads = thread_count(threads)

    def cost(self, model: Model, *, samples: int | None = None) -> Cost:
        """Count one step's work: clean forward, queries, node gradients with their forwards.

        Parameters
        ----------
        model : Model
            The model to train.
        samples : int, optional
            Batch size; the options' by default.

        Returns
        -------
        Cost
            See :class:`pmt.costs.work.Work`.
        """
        layers = model.select_layers(self.options.layers)
        work = zeroth_order_work(model.core, self.options.to_core(), layers)
        return work.cost(samples if samples is not None else self.options.batch)

    def fit(
        self,
        model: Model,
        data: Dataset,
        *,
        valid: Dataset | None = None,
        out: str | Path | None = None,
        source: dict[str, Any] | None = None,
        progress: bool | Callable[[int, dict[str, Any]], None] = True,
    ) -> RunResult:
        """Train the model in place.

        Parameters
        ----------
        model : Model
            The model; its weights change.
        data : Dataset
            Training images and labels.
        valid : Dataset, optional
            Evaluated before training and after every epoch.
        out : str or pathlib.Path, optional
            Run folder. If it holds an unfinished run of the same options, that run is resumed,
            bit for bit; a finished one is returned as it is.
        source : dict, optional
            Where model and data come from, for the run folder's ``config.toml``.
        progress : bool or callable
            Show a progress line on a terminal; or call ``progress(step, record)`` after each step.

        Returns
        -------
        RunResult
            History and the trained model.

        Raises
        ------
        ValueError
            If data and model do not fit, or the run folder belongs to another run.
        KeyboardInterrupt
            On Ctrl-C, within a second. The model is as after the last whole step, which is also
            the checkpoint in ``out``.
        """
        model.check_classes(data)
        return _Run(self, model, data, valid, out, source or {}, progress).execute()

    def _core_trainer(self, model: Model) -> _core.Trainer:
        layers = model.select_layers(self.options.layers)
        return _core.Trainer(
            model.core, self.options.to_core(), layers, self.options.batch, self.threads
        )


class _Run:
    """One call of fit."""

    def __init__(
        self,
        trainer: ZOTrainer,
        model: Model,
        data: Dataset,
        valid: Dataset | None,
        out: str | Path | None,
        source: dict[str, Any],
        progress: bool | Callable[[int, dict[str, Any]], None],
    ) -> None:
        self.trainer = trainer
        self.options = trainer.options
        self.model = model
        self.valid = valid
        self.cost = trainer.cost(model)
        self.schedule = Schedule(trainer.options, len(data))
        self.images = model.prepare(data.images)
        self.labels = np.ascontiguousarray(data.labels)
        self.folder = RunFolder(out) if out is not None else None
        self.source = source
        self.progress = progress
        self.step = 0
        self.records: list[dict[str, Any]] = []

    def execute(self) -> RunResult:
        self._open_folder()
        before = self._before()
        core = self.trainer._core_trainer(self.model)
        line = ProgressLine(self.schedule.steps, done=self.step)
        saved = time.monotonic()
        try:
            while self.step < self.schedule.steps:
                self._one_step(core, line)
                if time.monotonic() - saved > _SECONDS_BETWEEN_CHECKPOINTS:
                    self._save()
                    saved = time.monotonic()
        finally:
            line.clear()
            self._save()
        if self.folder is not None:
            self.folder.finish()
        epochs = [r for r in self.records if r["kind"] == "epoch"]
        return RunResult(self.model, epochs, before, self.folder.path if self.folder else None)

    def _open_folder(self) -> None:
        if self.folder is None:
            return
        if not self.folder.exists():
            self.folder.create(self.model, self.options, self.source)
            return
        options, source = self.folder.read_config()
        if options != self.options or source != self.source:
            raise ValueError(
                f"out={str(self.folder.path)!r} holds a run with other options or data; choose "
                "another folder"
            )
        saved, self.step = self.folder.load_checkpoint()
        for layer in saved.layers:
            self.model.core.set_parameters(
                layer.index, saved.core.weights(layer.index), saved.core.bias(layer.index)
            )
        self.records = self.folder.keep_metrics_before(self.step)

    def _before(self) -> dict[str, float]:
        if self.valid is None:
            return {}
        known = [r for r in self.records if r["kind"] == "start"]
        if known:
            return {key: known[0][key] for key in ("valid_loss", "valid_accuracy")}
        if self.step > 0:
            return {}
        before = self._validate()
        self._record({"kind": "start", "step": -1, **before})
        return before

    def _validate(self) -> dict[str, float]:
        if self.valid is None:
            return {}
        evaluation = self.model.evaluate(self.valid, threads=self.trainer.threads)
        return {"valid_loss": evaluation.loss, "valid_accuracy": evaluation.accuracy}

    def _one_step(self, core: _core.Trainer, line: ProgressLine) -> None:
        start = time.monotonic()
        indices = self.schedule.indices(self.step)
        result = core.step(
            self.images[indices],
            self.labels[indices],
            self.step,
            self.schedule.learning_rate(self.step),
        )
        record = {"kind": "step", "step": self.step, **result}
        record["seconds"] = round(time.monotonic() - start, 4)
        self.step += 1
        self._record(record)
        if self.step % self.schedule.steps_per_epoch == 0:
            self._end_epoch()
        if callable(self.progress):
            self.progress(self.step, record)
        elif self.progress:
            line.update(self.step, f"loss {result['loss']:.4f}")

    def _end_epoch(self) -> None:
        steps = [r for r in self.records if r["kind"] == "step"]
        last = steps[-self.schedule.steps_per_epoch :]
        seen = self.schedule.steps_per_epoch * self.options.batch
        losses = sum(r["loss_sum"] for r in last) / _core.LOSS_ONE
        self._record(
            {
                "kind": "epoch",
                "step": self.step - 1,
                "epoch": self.step // self.schedule.steps_per_epoch,
                "train_loss": losses / seen,
                "train_accuracy": sum(r["correct"] for r in last) / seen,
                **self._validate(),
                "changed": sum(r["changed"] for r in last),
                "forwards": self.cost.forwards * self.step,
                "macs": self.cost.macs * self.step,
                "seconds": round(sum(r["seconds"] for r in steps), 2),
            }
        )

    def _record(self, record: dict[str, Any]) -> None:
        self.records.append(record)
        if self.folder is not None:
            self.folder.append(record)

    def _save(self) -> None:
        if self.folder is not None:
            self.folder.save_checkpoint(self.model, step=self.step)


_preset = preset
