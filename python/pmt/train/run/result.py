"""The result of a training run: its history, as text, HTML and a plot."""

from __future__ import annotations

import html
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

from pmt._util.extras import data_frame, import_extra
from pmt._util.optional_types import Axes, DataFrame
from pmt._util.plots import COLORS, FAINT, SMALL, one_axes
from pmt._util.text import counted, html_table, shortened, table
from pmt.model import Model
from pmt.train.prepare.preparation import HEADS
from pmt.train.run.keep_best import FEW
from pmt.train.run.metrics import StateRecord

_VALID = ("valid_loss", "valid_accuracy")
_STATES = {
    "aligned": "the aligned model",
    "input": "the model aligned behind its input stage",
    "head": "the model with its head trained",
    "head_alone": "the unaligned model with its head trained",
}
_SHOWN_STATES = 7
Record = Mapping[str, Any]

# Colors; in gray, the markers' filling tells loss and accuracy apart.
_LOSS, _ACCURACY = COLORS["blue"], COLORS["vermilion"]
_FILLINGS = {"loss": "full", "accuracy": "none"}
# By the prefix of their figures: how lines look, loss and accuracy alike.
_LINES: dict[str, dict[str, Any]] = {
    "train": {"linestyle": "--", "marker": "o"},
    "held_out": {"linestyle": ":", "marker": "s"},
    "valid": {"linestyle": "-", "marker": "^"},
}
_KEPT: dict[str, Any] = {"color": FAINT, "linewidth": 5, "alpha": 0.4, "zorder": 0}
# Room right of the last state, for the ticks of the accuracy.
_ROOM = 0.14
_TICKS = (0, 0.2, 0.4, 0.6, 0.8, 1)
# Names of phases stand aslant where a state has less.
_INCHES_OF_A_STATE = 0.5


class Column(NamedTuple):
    """A column: its title, the entry of a record, its least width and its format."""

    title: str
    key: str
    width: int
    form: str

    def cell(self, record: Mapping[str, Any], missing: str) -> str:
        """Return the text of a record of a phase or an epoch: a state's name, work in GMAC."""
        if self.key == "epoch":
            return str(record.get("epoch", record.get("phase", "start")))
        if self.key not in record:
            return missing
        value = record[self.key]
        return self.form.format(value / 1e9 if self.key == "macs" else value)


def columns(records: Iterable[Mapping[str, Any]], watched: str = "valid") -> list[Column]:
    """Return the columns; that of cross-validation only where one of the records has it.

    ``watched`` is the word for the images that are watched.
    """
    found = [
        Column("epoch", "epoch", 10, "{}"),
        Column("train loss", "train_loss", 10, "{:.4f}"),
        Column("train acc", "train_accuracy", 9, "{:.4f}"),
        Column("out-of-fold", "out_of_fold_loss", 11, "{:.4f}"),
        Column("held-out", "held_out_loss", 8, "{:.4f}"),
        Column(f"{watched} loss", "valid_loss", 9, "{:.4f}"),
        Column(f"{watched} acc", "valid_accuracy", 8, "{:.4f}"),
        Column("changed", "changed", 9, "{:,}"),
        Column("forwards", "forwards", 10, "{:,}"),
        Column("GMAC", "macs", 9, "{:,.1f}"),
        Column("seconds", "seconds", 7, "{:.1f}"),
    ]
    if any("out_of_fold_loss" in record for record in records):
        return found
    return [column for column in found if column.key != "out_of_fold_loss"]


@dataclass
class RunResult:
    """Outcome of a run.

    Attributes
    ----------
    model : Model
        The trained model, in the state that was kept.
    epochs : list of StateRecord
        A dict for each epoch: ``epoch`` (a fraction at the end of a run whose budget ends within
        one), ``train_loss`` and ``train_accuracy`` (before each step's update, over the epoch; no
        accuracy without labels), ``valid_loss`` and ``valid_accuracy`` (where validation data was
        given), ``held_out_loss`` (of the loss that is trained) and ``held_out_accuracy`` (where
        images choose the best state), ``changed`` weights, ``forwards`` (perturbed forwards so far,
        of a suffix of the network each), ``macs`` (of all forwards so far), ``seconds``;
        ``taken_back``, true where the epoch was worse than the best state and the run was reverted
        to that.
    phases : list of StateRecord
        The records of the states before the first step, if any: ``phase`` is ``"start"`` (the
        original model), ``"aligned"``, ``"input"`` (aligned behind the filters of ``input_stage``),
        ``"head"`` (with its head trained) or ``"head_alone"`` (with its head trained, and not
        aligned); the other entries are those of epochs. Where
        cross-validation judges the head, start and head have ``out_of_fold_loss`` and
        ``out_of_fold_accuracy``, on all training images.
    kept : StateRecord
        The record of the state that was kept, a phase or an epoch; empty where the model ends
        with the last step.
    refit : StateRecord
        The record of the kept state after its head was trained on the held-out images too; empty
        where it was not.
    held_out : int
        Training images that were held out to choose it.
    notes : list of str
        Phases that the options name and that were left out, and why; why no state is chosen; and
        which files cannot hold the filters that the model has got.
    folder : pathlib.Path or None
        The run folder.
    """

    model: Model
    epochs: list[StateRecord]
    phases: list[StateRecord] = field(default_factory=list)
    kept: StateRecord = field(default_factory=StateRecord)
    refit: StateRecord = field(default_factory=StateRecord)
    held_out: int = 0
    notes: list[str] = field(default_factory=list)
    folder: Path | None = None

    @property
    def before(self) -> dict[str, float]:
        """``valid_loss`` and ``valid_accuracy`` before training, if they were measured."""
        states: list[Record] = [phase for phase in self.phases if phase.get("phase") == "start"]
        start = states[0] if states else {}
        return {name: start[name] for name in _VALID if name in start}

    @property
    def after(self) -> dict[str, float]:
        """The same of the model as it is now."""
        last = [*self.phases, *self.epochs][-1:] or [StateRecord()]
        record: Record = self.refit or self.kept or last[0]
        return {name: record[name] for name in _VALID if name in record}

    def verdict(self) -> str:
        """Return which state was kept, in a line; empty where the model ends with the last step."""
        if not self.kept:
            return ""
        images = f"the {counted(self.held_out, 'held-out image')}"
        validated = any("out_of_fold_loss" in phase for phase in self.phases)
        if self.kept.get("phase") == "start":
            by = ", its head by cross-validation" if validated else ""
            few = ", no epoch by more than three" if self.held_out < FEW else ""
            what = "no phase" if few else "no phase or epoch"
            return (
                f"kept the original model: on {images} {what} was better by more than two standard "
                f"errors{by}{few}"
            )
        state = self.kept.get("epoch")
        name = _STATES[self.kept["phase"]] if state is None else f"epoch {state:g}"
        refit = "; then its head was trained on all images" if self.refit else ""
        if validated and self.kept.get("phase") in HEADS:
            images = "all images by cross-validation"
        return f"kept {name}, the best on {images}{refit}"

    def to_frame(self) -> DataFrame:
        """Return the phases and epochs as a pandas DataFrame, a row each, indexed by state.

        Raises
        ------
        ImportError
            If pandas is missing.
        """
        records = [*self.phases, *self.epochs, *filter(None, [self.refit])]
        states = [record.get("epoch", record.get("phase", "start")) for record in records]
        own = ("kind", "phase", "epoch", "layers")
        rows = [{k: v for k, v in record.items() if k not in own} for record in records]
        return data_frame(rows, states, "state")

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
        return _plot_records(self.phases, self.epochs, self.kept, self.refit, ax=ax, valid=valid)


def _plot_records(
    phases: Sequence[Record],
    epochs: Sequence[Record],
    kept: Record,
    refit: Record,
    *,
    ax: Axes | None,
    valid: str,
) -> Axes:
    """Draw loss (left axis) and accuracy (right axis) of all states, and mark the kept one.

    ``valid`` is the name of those images. Nothing lies right of the axes, where a neighbor's label
    would be.
    """
    own = ax is None
    ax = one_axes(ax, 6, 3.5)
    right = ax.twinx()
    places = [*range(1 - len(phases), 1), *(epoch["epoch"] for epoch in epochs)]
    states = [*phases, *epochs]
    kept_place = places[states.index(kept)] if kept in states else None
    records = [list(zip(places, states, strict=True))]
    if refit:  # of the kept state, so that no line leads to it from the last epoch
        places.append(max(places, default=0) + 1)
        records.append([(places[-1], refit)])
    names = {"train": "training images", "held_out": "held-out images", "valid": valid}
    drawn = [split for split in _LINES if _draw_split(ax, right, records, split, names[split])]
    _scale(ax, right, places)
    _label_axes(ax, right)
    _name_states(ax, [phase.get("phase", "start") for phase in phases], places, bool(refit))
    marks = [] if kept_place is None else [ax.axvline(kept_place, label="kept state", **_KEPT)]
    _add_legend(ax, right, {split: names[split] for split in drawn}, marks, own)
    return ax


def _style(split: str) -> dict[str, Any]:
    return {"markersize": 4, "linewidth": 1.4, **_LINES[split]}


def _draw_split(
    ax: Any, right: Any, connected: Sequence[Sequence[tuple[float, Record]]], split: str, name: str
) -> bool:
    """Draw the lines of a split, and tell whether there is one."""
    drawn = False
    for axes, measure, color in ((ax, "loss", _LOSS), (right, "accuracy", _ACCURACY)):
        key = f"{split}_{measure}"
        label = f"{measure}, {name}"
        for records in connected:
            points = [(x, record[key]) for x, record in records if key in record]
            if not points:
                continue
            style = {**_style(split), "fillstyle": _FILLINGS[measure]}
            axes.plot(*zip(*points, strict=True), color=color, label=label, **style)
            drawn, label = True, "_"
    return drawn


def _scale(ax: Any, right: Any, places: Sequence[float]) -> None:
    ax.set_ylim(bottom=min(0.0, ax.dataLim.y0))
    right.set_ylim(0, 1)
    width = max(places[-1] - places[0], 1) if places else 1
    ax.set_xlim(right=ax.get_xlim()[1] + _ROOM * width)


def _label_axes(ax: Any, right: Any) -> None:
    """Write the labels above the axes' ends, and the ticks of the right one within it."""
    ax.set_xlabel("epoch")
    ax.set_title("\N{BLACK CIRCLE} loss (nats)", loc="left", color=_LOSS, fontsize="medium")
    right.set_title("\N{WHITE CIRCLE} accuracy", loc="right", color=_ACCURACY, fontsize="medium")
    ax.tick_params("y", colors=_LOSS)
    right.tick_params("y", colors=_ACCURACY, direction="in", pad=-6)
    right.set_yticks(_TICKS, ["", *(f"{tick:g}" for tick in _TICKS[1:-1]), ""], ha="right")


def _name_states(ax: Any, phases: Sequence[str], places: Sequence[float], is_refit: bool) -> None:
    ticker = import_extra("matplotlib.ticker", "plots need matplotlib", "plot")
    first = 1 - len(phases)
    last = max(places, default=0)

    def tick(x: float, _: int) -> str:
        state = round(x) - first
        if 0 <= state < len(phases):
            return phases[state]
        if is_refit and x == last:
            return "refit"
        return f"{x:g}" if x <= last else ""

    ax.xaxis.set_major_locator(ticker.MaxNLocator(integer=True))
    ax.xaxis.set_major_formatter(ticker.FuncFormatter(tick))
    inches = ax.get_window_extent().width / ax.figure.dpi
    if phases and inches < _INCHES_OF_A_STATE * len(places):
        ax.tick_params("x", rotation=45)


def _add_legend(
    ax: Any, right: Any, names: Mapping[str, str], marks: Sequence[Any], own: bool
) -> None:
    """Name splits and marks, below a plot of our own and where the user's axes have room."""
    lines = import_extra("matplotlib.lines", "plots need matplotlib", "plot")
    handles = [lines.Line2D([], [], color="black", **_style(split)) for split in names]
    place: dict[str, Any] = {"loc": "upper center", "bbox_to_anchor": (0.5, -0.16), "ncols": 4}
    if not own:
        place = {"loc": "best"}
        patches = import_extra("matplotlib.patches", "plots need matplotlib", "plot")
        for line in [
            line for line in ax.lines if line not in marks
        ]:  # "best" sees what is on its own axes alone
            path = line.get_path()
            right.add_artist(patches.PathPatch(path, transform=ax.transData, visible=False))
    labels = [*names.values(), *(mark.get_label() for mark in marks)]
    right.legend([*handles, *marks], labels, fontsize=SMALL, **place)
