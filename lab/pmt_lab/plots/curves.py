"""Loss or accuracy over multiply-accumulates: a line per method, with a band over its seeds."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from pmt_lab.plots.style import axes_of, line_style, plain_text, pyplot
from pmt_lab.report import Curve, Report, mean_curve

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_MEASURES = {"loss": "loss on the {} (nats)", "accuracy": "accuracy on the {}"}
# Axes that end at fewer times their first value may hold no label of 1, 2 or 5 times a power.
_FEW_TIMES = 6
_BEFORE = "before training"
# Times the untrained loss: what rises further leaves the picture, for the others to be told apart.
_HIGHEST = 1.25
# Tells the triangles at the upper edge from lines.
_LEAVES = "above the plot"
_FAINT = "0.6"


def plot_curves(
    curves: Mapping[str, Curve],
    *,
    measure: str = "loss",
    images: str = "held-out images",
    band: str = "interval",
    ax: Axes | None = None,
) -> Axes:
    """Draw the mean over seeds of each curve, and a band over them.

    Losses end a quarter above the untrained one, the dotted line: what diverges leaves the plot,
    and triangles at its upper edge say where. A loss that is not finite leaves a gap.

    Parameters
    ----------
    curves : mapping of str to Curve
        The curves by the name of their line.
    measure : {"loss", "accuracy"}
        Measure that they hold: nats, or shares 0..1.
    images : str
        Images that it was measured on: ``"held-out images"``, ``"test images"``, ...
    band : {"interval", "range"}
        The mean's 95 % interval (Student's t), or the least and the largest seed.
    ax : matplotlib.axes.Axes, optional
        Axes to draw on; new ones by default.

    Returns
    -------
    matplotlib.axes.Axes
        The axes.
    """
    if not curves:
        raise ValueError("curves is empty: there is nothing to draw")
    (axes,) = axes_of(ax, 1, 7.6, 4.0)
    for place, (label, curve) in enumerate(curves.items()):
        _draw(axes, curve, place, label, band)
    _frame(axes, list(curves.values()), measure)
    axes.set_ylabel(_MEASURES[measure].format(images))
    beside = {"loc": "upper left", "bbox_to_anchor": (1.0, 1.0), "frameon": False}
    axes.legend(fontsize="small", **(beside if ax is None else {}))
    drawn: Axes = axes
    return drawn


def plot_report(report: Report, *, ax: Sequence[Axes] | None = None) -> npt.NDArray[np.object_]:
    """Draw the held-out curves of a report: a panel for each column, a line for each row.

    Parameters
    ----------
    report : Report
        See :func:`pmt_lab.report.make_report`.
    ax : sequence of matplotlib.axes.Axes, optional
        As many axes as columns with a run that was trained; those of a new figure by default.

    Returns
    -------
    ndarray of matplotlib.axes.Axes, shape (columns,)
        The axes of the columns.
    """
    found = {key: mean_curve(runs) for key, runs in report.cells["runs"].items()}
    curves = {key: curve for key, curve in found.items() if curve is not None}
    columns = [c for c in report.columns if any((row, c) in curves for row in report.rows)]
    rows = [row for row in report.rows if any((row, c) in curves for c in columns)]
    if not columns:
        raise ValueError("no run here was trained, so there is no curve to draw")
    size = (7.8, 4.2) if len(columns) == 1 else (3.8, 3.0)
    axes = axes_of(ax, len(columns), *size)
    for each, column in zip(axes, columns, strict=True):
        there = [(place, row) for place, row in enumerate(rows) if (row, column) in curves]
        for place, row in there:
            _draw(each, curves[row, column], place, row, "range")
        _frame(each, [curves[row, column] for _, row in there], "loss")
        each.set_title(plain_text(column), fontsize="small")
    axes[0].set_ylabel(_MEASURES["loss"].format("held-out images"))
    lines = [line for each in axes for line in each.get_lines()]
    handles = {line.get_label(): line for line in lines if line.get_label()[0] != "_"}
    if ax is None:
        where = {"loc": "outside right upper", "fontsize": "small"}
        axes[0].figure.legend(handles.values(), handles.keys(), **where)
    else:
        axes[0].legend(handles.values(), handles.keys(), fontsize="small")
    return axes


def _draw(ax: Any, curve: Curve, place: int, label: str, band: str) -> None:
    style = line_style(place)
    ax.plot(curve.gmacs, curve.mean, label=plain_text(label), **style)
    ends = {"range": (curve.low, curve.high), "interval": curve.interval()}[band]
    if ends is not None:
        ax.fill_between(curve.gmacs, *ends, color=style["color"], alpha=0.2, linewidth=0)


def _frame(ax: Any, curves: Sequence[Curve], measure: str) -> None:
    ax.set(xscale="log", xlabel="GMAC")
    _label_powers(ax)
    before = sorted({curve.before for curve in curves if curve.before is not None})
    known = {line.get_label() for line in ax.get_lines()}
    for place, loss in enumerate(before):
        label = "_" if place or _BEFORE in known else _BEFORE
        ax.axhline(loss, label=label, color=_FAINT, linestyle=":", linewidth=1)
    if measure == "loss":
        top = max([ax.get_ylim()[1], *(1.04 * loss for loss in before)])  # above its own line
        ax.set_ylim(0, min([top, *(_HIGHEST * loss for loss in before)]))
        _mark_what_leaves(ax)


def _label_powers(ax: Any) -> None:
    """Label powers of ten; 2 and 5 times these, too, or any numbers, where there are not two."""
    ticker = pyplot().matplotlib.ticker
    low, high = ax.get_xlim()
    if high > _FEW_TIMES * low:
        powers = np.floor(np.log10(high)) - np.ceil(np.log10(low)) + 1
        subs = (1.0,) if powers > 1 else (1.0, 2.0, 5.0)
        ax.xaxis.set_major_locator(ticker.LogLocator(subs=subs))
    else:
        ax.xaxis.set_major_locator(ticker.MaxNLocator(4))
    ax.xaxis.set_major_formatter(ticker.StrMethodFormatter("{x:,g}"))
    ax.xaxis.set_minor_formatter(ticker.NullFormatter())


def _mark_what_leaves(ax: Any) -> None:
    """Put a triangle at the upper edge for each point of a line that is above it."""
    top = ax.get_ylim()[1]
    # The edge may have moved since other curves were drawn on these axes.
    for earlier in [line for line in ax.get_lines() if line.get_gid() == _LEAVES]:
        earlier.remove()
    style = {"marker": 6, "markersize": 6, "linestyle": "none", "gid": _LEAVES, "fillstyle": "full"}
    lines = [line for line in ax.get_lines() if line.get_marker() != "None"]
    if any(np.any(np.asarray(line.get_ydata()) > top) for line in lines):
        ax.plot([], [], label=_LEAVES, color=_FAINT, **style)
    for line in lines:
        across, values = line.get_data()
        above = np.asarray(across)[np.asarray(values) > top]
        if len(above):
            edge = np.full(len(above), top)
            ax.plot(above, edge, clip_on=False, color=line.get_color(), **style)
