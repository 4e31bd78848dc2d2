"""The result of a training run: its history, as text, HTML and a plot."""

from __future__ import annotations

import html
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pmt._util.extras import import_extra
from pmt._util.tables import html_table, shortened, table
from pmt.model import Model
from pmt.train.run.history_columns import columns
from pmt.train.run.result_plot import plot_records

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from pandas import DataFrame

__all__ = ["RunResult"]

_VALID = ("valid_loss", "valid_accuracy")
_STATES = {"aligned": "the aligned model", "head": "the model with its head trained"}
_SHOWN_STATES = 7


@dataclass
class RunResult:
    """Outcome of a run.

    Attributes
    ----------
    model : Model
        The trained model, in the state that was kept.
    epochs : list of dict
        One record per epoch: ``epoch`` (a fraction at the end of a run whose budget ends within
        one), ``train_loss`` and ``train_accuracy`` (before each step's update, over the epoch; no
        accuracy without labels), ``valid_loss`` and ``valid_accuracy`` (where validation data was
        given), ``held_out_loss`` (of the loss that is trained) and ``held_out_accuracy`` (where
        images choose the best state), ``changed`` weights, ``forwards`` (perturbed forwards so far,
        of a suffix of the network each), ``macs`` (of all forwards so far), ``seconds``;
        ``taken_back``, true where the epoch was worse than the best state and the run was reverted
        to that.
    phases : list of dict
        The records of the states before the first step, if any: ``phase`` is ``"start"`` (the
        original model), ``"aligned"`` or ``"head"`` (with its head trained); the other entries are
        those of epochs. Where cross-validation judges the head, start and head have
        ``out_of_fold_loss`` and ``out_of_fold_accuracy``, on all training images.
    kept : dict
        The record of the state that was kept, a phase or an epoch; empty where the model ends
        with the last step.
    refit : dict
        The record of the kept state after its head was trained on the held-out images too; empty
        where it was not.
    held_out : int
        Training images that were held out to choose it.
    notes : list of str
        Phases that the options name and that were left out, and why; and why no state is chosen.
    folder : pathlib.Path or None
        The run folder.
    """

    model: Model
    epochs: list[dict[str, Any]]
    phases: list[dict[str, Any]] = field(default_factory=list)
    kept: dict[str, Any] = field(default_factory=dict)
    refit: dict[str, Any] = field(default_factory=dict)
    held_out: int = 0
    notes: list[str] = field(default_factory=list)
    folder: Path | None = None

    @property
    def before(self) -> dict[str, float]:
        """``valid_loss`` and ``valid_accuracy`` before training, if they were measured."""
        start = next((phase for phase in self.phases if phase.get("phase") == "start"), {})
        return {name: start[name] for name in _VALID if name in start}

    @property
    def after(self) -> dict[str, float]:
        """The same of the model as it is now."""
        last = [*self.phases, *self.epochs][-1:] or [{}]
        record = self.refit or self.kept or last[0]
        return {name: record[name] for name in _VALID if name in record}

    def verdict(self) -> str:
        """Return which state was kept, in a line; empty where the model ends with the last step."""
        if not self.kept:
            return ""
        images = f"the {self.held_out:,} held-out images"
        validated = any("out_of_fold_loss" in phase for phase in self.phases)
        if self.kept.get("phase") == "start":
            by = ", its head by cross-validation" if validated else ""
            return (
                f"kept the original model: on {images} no phase was better by more than one "
                f"standard error{by}, no epoch by more than two"
            )
        state = self.kept.get("epoch")
        name = _STATES[self.kept["phase"]] if state is None else f"epoch {state:g}"
        refit = "; then its head was trained on all images" if self.refit else ""
        if validated and self.kept.get("phase") == "head":
            images = "all images by cross-validation"
        return f"kept {name}, the best on {images}{refit}"

    def to_frame(self) -> DataFrame:
        """Return the phases and epochs as a pandas DataFrame, a row each, indexed by state.

        Raises
        ------
        ImportError
            If pandas is missing.
        """
        pandas = import_extra("pandas", "a data frame needs pandas", "callbacks")
        records = [*self.phases, *self.epochs, *filter(None, [self.refit])]
        states = [record.get("epoch", record.get("phase", "start")) for record in records]
        own = ("kind", "phase", "epoch", "layers")
        rows = [{k: v for k, v in record.items() if k not in own} for record in records]
        frame: DataFrame = pandas.DataFrame(rows, index=pandas.Index(states, name="state"))
        return frame

    def _rows(self) -> tuple[list[str], list[list[str]]]:
        """Return titles and cells; of many epochs the first, the last and the kept one."""
        records = [*self.phases, *self.epochs, *filter(None, [self.refit])]
        keys = {"epoch"}.union(*records)
        found = [column for column in columns(records) if column.key in keys]
        rows = [[column.cell(record, "-") for column in found] for record in records]
        kept = [place for place, record in enumerate(records) if record == self.kept]
        return [column.title for column in found], shortened(rows, _SHOWN_STATES, keep=kept)

    def _remarks(self) -> list[str]:
        return [*self.notes, *filter(None, [self.verdict()])]

    def __str__(self) -> str:
        return "\n".join([table(*self._rows()), *self._remarks()])

    __repr__ = __str__

    def _repr_html_(self) -> str:
        remarks = "".join(f"<p>{html.escape(line)}</p>" for line in self._remarks())
        return html_table("", *self._rows()) + remarks

    def plot(self, ax: Axes | None = None, *, valid: str = "validation images") -> Axes:
        """Plot loss (left axis, filled) and accuracy (right axis, hollow) over epochs.

        A gray bar marks the state that was kept; the point after the last epoch is that state with
        its head trained on all images.

        Parameters
        ----------
        ax : matplotlib.axes.Axes, optional
            Axes to draw on, also of a grid: nothing lies right of them. New ones by default.
        valid : str
            Name of the images given as ``valid``, such as ``"test images"``.

        Returns
        -------
        matplotlib.axes.Axes
            The axes of the loss.

        Raises
        ------
        ImportError
            If matplotlib is missing.
        TypeError
            If ``ax`` is not an Axes.
        """
        return plot_records(self.phases, self.epochs, self.kept, self.refit, ax=ax, valid=valid)
