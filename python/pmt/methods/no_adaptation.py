"""No adaptation: the network as it is, measured."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pmt.cost import Cost
from pmt.datasets import Dataset
from pmt.model import Model
from pmt.result import RunResult
from pmt.run_folder import RunFolder
from pmt.stepper import Stepper
from pmt.threads import thread_count
from pmt.training_run import Progress, Trainer

__all__ = ["NoAdaptation", "NoAdaptationOptions"]


@dataclass(frozen=True)
class NoAdaptationOptions:
    """Options that all trainers have; none of them does anything here."""

    layers: str = "all"
    epochs: int = 0
    macs: int = 0
    batch: int = 1
    learning_rate: float = 0.0
    final_learning_rate: float = 0.0
    warmup_epochs: int = 0
    seed: int = 1

    def replace(self, **changes: Any) -> NoAdaptationOptions:
        """Return a copy with some options changed.

        Raises
        ------
        ValueError
            If an option is unknown.
        """
        known = [field.name for field in dataclasses.fields(self)]
        for name in changes:
            if name not in known:
                raise ValueError(f"unknown option {name!r}; options are {', '.join(known)}")
        return dataclasses.replace(self, **changes)


class NoAdaptation(Trainer):
    """Measures the model on the held-out data and leaves it as it is.

    Parameters
    ----------
    options : NoAdaptationOptions, optional
        They do nothing; other methods' names are taken, so that methods can be swapped.
    threads : int
        Threads of the evaluation.
    **changes
        Options that differ.

    Raises
    ------
    ValueError
        If an option is unknown.
    """

    name = "no_adaptation"
    options: NoAdaptationOptions

    def __init__(
        self, options: NoAdaptationOptions | None = None, *, threads: int = 0, **changes: Any
    ) -> None:
        self.options = (options or NoAdaptationOptions()).replace(**changes)
        self.threads = thread_count(threads)

    def cost(self, model: Model, *, samples: int | None = None) -> Cost:
        """Return a cost of nothing."""
        return Cost(forwards=0, macs=0)

    def stepper(self, model: Model, samples: int) -> Stepper:
        """Raise: there are no steps.

        Raises
        ------
        NotImplementedError
            Always.
        """
        raise NotImplementedError("no adaptation takes no steps")

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
        """Evaluate the model on ``valid``, as the one record of a run; see :meth:`Trainer.fit`."""
        model.check_classes(data)
        folder = RunFolder(out) if out is not None else None
        if folder is not None:
            self.open_folder(folder, model, source or {}, keep_best)
        measured = {}
        if valid is not None:
            evaluation = model.evaluate(valid, threads=self.threads)
            measured = {"valid_loss": evaluation.loss, "valid_accuracy": evaluation.accuracy}
        record = {"kind": "epoch", "step": -1, "epoch": 0, **measured}
        record |= {"changed": 0, "forwards": 0, "macs": 0, "seconds": 0.0}
        if folder is not None:
            folder.keep_metrics_before(-1)
            folder.append({"kind": "start", "step": -1, **measured})
            folder.append(record)
            folder.finish()
        best = record if keep_best and measured else {}
        image = model.image() if best else None
        return RunResult(model, [record], measured, folder.path if folder else None, best, image)
