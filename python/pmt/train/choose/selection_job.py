"""Selection from a data source: which images train and choose, and what is compared."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from pmt._util.checks import OptionError
from pmt._util.did_you_mean import did_you_mean
from pmt.model import Model
from pmt.protocol import DataSource, Split, SplitChoice
from pmt.train.choose.selection import CRITERIA, Selection, default_candidates, select
from pmt.train.options import TrainingOptions

__all__ = ["SelectJob", "SelectionResult", "select_block"]


@dataclass(frozen=True)
class SelectJob:
    """A choice of the block to train, see :func:`select_block`.

    Parameters
    ----------
    model : Model
        The model; its weights do not change.
    data : DataSource
        The images.
    split : SplitChoice
        Choice of the images that train and those that choose.
    options : TrainingOptions
        Options of each trial run; ``layers`` are those of the candidate; ``macs``,
        ``head_epochs`` and ``keep_best`` are not used.
    candidates : tuple of str, optional
        Blocks or layers, several joined by ``+``; by default the blocks ``B1``, ``B2``, ...
    criterion : {"loss", "accuracy"}
        Measure that is compared on the held-out images.
    seeds : int
        Trial runs of each candidate, 1 or more.
    out : str or pathlib.Path, optional
        Folder for a run folder of each trial run, from which the same call continues.
    threads : int
        Threads to use, 0 for all; the result does not depend on it.
    """

    model: Model
    data: DataSource
    split: SplitChoice = field(default_factory=SplitChoice)
    options: TrainingOptions = field(default_factory=lambda: TrainingOptions(epochs=1))
    candidates: tuple[str, ...] | None = None
    criterion: str = "loss"
    seeds: int = 1
    out: str | Path | None = None
    threads: int = 0


@dataclass(frozen=True)
class SelectionResult:
    """Outcome of a job, and the options of its trial runs."""

    selection: Selection
    options: TrainingOptions

    def to_json(self) -> dict[str, Any]:
        """Return the figures for JSON."""
        found = self.selection
        rows = []
        for candidate in found.candidates:
            row = asdict(candidate)
            row["margin"]["significant"] = candidate.margin.significant
            row["gain"]["significant"] = candidate.gain.significant
            rows.append({**row, "layers": candidate.layers, "verdict": found.verdict(candidate)})
        return {
            "best": found.best.name,
            "criterion": found.criterion,
            "significant": found.significant,
            "rivals": [candidate.name for candidate in found.rivals],
            "before": {"loss": found.loss, "accuracy": found.accuracy},
            "held_out": found.held_out,
            "seeds": found.seeds,
            "candidates": rows,
            "forwards": found.forwards,
            "macs": found.macs,
            "options": {k: v for k, v in asdict(self.options).items() if k != "layers"},
        }


def select_block(
    job: SelectJob, *, opened: Callable[[Split], None] | None = None
) -> SelectionResult:
    """Train each candidate for a short time and choose on held-out images.

    Parameters
    ----------
    job : SelectJob
        The model, the images and what to compare.
    opened : callable, optional
        Called with the images before any training.

    Returns
    -------
    SelectionResult
        The best candidate, with what sets it off from the others.

    Raises
    ------
    ValueError, FileNotFoundError
        As :meth:`pmt.protocol.SplitChoice.of` and
        :func:`pmt.train.choose.selection.select`; or if no image is held out.
    KeyboardInterrupt
        On Ctrl-C; with ``out``, the same call continues from there.
    """
    if job.criterion not in CRITERIA:
        near = did_you_mean(job.criterion, CRITERIA)
        raise OptionError("criterion", f" {job.criterion!r} is unknown{near}")
    names = default_candidates(job.model) if job.candidates is None else job.candidates
    images = job.split.of(job.data, job.model)
    if opened is not None:
        opened(images)
    found = select(
        job.model,
        images.train,
        images.choosing(),
        options=job.options,
        candidates=names,
        epochs=job.options.epochs,
        criterion=job.criterion,
        seeds=job.seeds,
        out=job.out,
        threads=job.threads,
    )
    return SelectionResult(found, job.options)
