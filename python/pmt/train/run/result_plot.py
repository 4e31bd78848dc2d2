"""Loss and accuracy of a run over its epochs, in one plot."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from pmt._util.extras import import_extra
from pmt._util.plot_style import COLORS, FAINT, SMALL, one_axes

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["plot_records"]

Record = dict[str, Any]

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


def plot_records(
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
    ax: Any,
    right: Any,
    connected: Sequence[Sequence[tuple[float, Record]]],
    split: str,
    name: str,
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
