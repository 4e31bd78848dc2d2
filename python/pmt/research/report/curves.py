"""Held-out loss over multiply-accumulates, every method in one plot."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from pmt._util.extras import import_extra
from pmt.research.report.formats import name
from pmt.research.report.pivot import Cell, Pivot

__all__ = ["mean_curve", "plot_curves"]

Array = npt.NDArray[np.float64]

# Rows of a legend beside the panels, and colors of matplotlib's cycle.
_LEGEND_ROWS = 12
_COLORS = 10
_STYLES = ("-", "--", "-.", ":")
# Times the untrained loss: what rises further leaves the picture, for the others to be told apart.
_HIGHEST = 1.25


class Curve:
    """Mean, least and largest loss over seeds, at ``gmacs``; ``before`` is that of 0 MACs."""

    def __init__(self, gmacs: Array, losses: Array, before: float | None) -> None:
        self.gmacs = gmacs
        self.mean = losses.mean(axis=0)
        self.low = losses.min(axis=0)
        self.high = losses.max(axis=0)
        self.before = before


def mean_curve(cell: Cell) -> Curve | None:
    """Return the curve of a cell's runs; None where they have none.

    Runs of other lengths are cut to the MACs that all have reached, and joined by straight lines in
    between where their epochs end at different ones.
    """
    curves = [points for run in cell.runs if len(points := run.curve()) > 1]
    if not curves:
        return None
    before = [points[0][1] for points in curves if points[0][0] == 0]
    trained = [[point for point in points if point[0] > 0] for points in curves]
    end = min(points[-1][0] for points in trained)
    macs = sorted({x for points in trained for x, _ in points if x <= end})
    losses = [np.interp(macs, *np.array(points, np.float64).T) for points in trained]
    gmacs = np.array(macs, np.float64) / 1e9
    return Curve(gmacs, np.array(losses), float(np.mean(before)) if before else None)


def plot_curves(table: Pivot, path: str | Path) -> None:
    """Draw a panel for each column: mean over seeds, and a band from the least to the largest.

    A panel ends a quarter above the untrained loss, the dotted line: what diverges leaves it.

    Parameters
    ----------
    table : Pivot
        Its rows are the lines, its columns the panels.
    path : str or pathlib.Path
        Image to write, ``.png``, ``.svg`` or ``.pdf``.

    Raises
    ------
    ImportError
        If matplotlib is missing.
    ValueError
        If no run has a curve, or the suffix is unknown.
    OSError
        If the file cannot be written.
    """
    matplotlib = import_extra("matplotlib", "--plot needs matplotlib", "plot")
    figure_module = import_extra("matplotlib.figure", "--plot needs matplotlib", "plot")
    curves = {key: mean_curve(cell) for key, cell in table.cells.items()}
    columns = [c for c in table.columns if any(curves[row, c] for row in table.rows)]
    if not columns:
        raise ValueError(f"--plot {path}: no run here was trained, so there is no curve to draw")
    rows = [r for r in table.rows if any(curves[r, column] for column in columns)]
    across = min(4, len(columns))
    down = -(-len(columns) // across)
    # Not pyplot: no window, and no state that a caller's notebook would share.
    width, height = (5.6, 4.2) if len(columns) == 1 else (3.2 * across, 2.6 * down)
    legend_columns = -(-len(rows) // _LEGEND_ROWS)
    figure = figure_module.Figure(
        figsize=(width + 2.2 * legend_columns, max(height, 3.2)), layout="constrained"
    )
    axes = figure.subplots(down, across, squeeze=False).ravel()
    for ax, column in zip(axes, columns, strict=False):
        for place, row in enumerate(rows):
            _draw(ax, curves[row, column], place, name(row))
        before = [c.before for row in rows if (c := curves[row, column]) and c.before]
        highest = min([ax.get_ylim()[1], *(_HIGHEST * loss for loss in before)])
        ax.set(xscale="log", title=name(column), ylim=(0, highest))
        ax.set_xlabel("GMAC")
    for ax in axes[len(columns) :]:
        ax.remove()
    axes[0].set_ylabel("held-out loss (nats)")
    handles = {h.get_label(): h for ax in axes[: len(columns)] for h in ax.get_lines()}
    shown = {label: h for label, h in handles.items() if not label.startswith("_")}
    figure.legend(shown.values(), shown.keys(), loc="outside right upper", ncols=legend_columns)
    # No date and no random names in the file: the same runs give the same bytes.
    kind = Path(path).suffix.lower()
    metadata = {".svg": {"Date": None}, ".pdf": {"CreationDate": None}}.get(kind, {})
    with matplotlib.rc_context({"svg.hashsalt": "pmt"}):
        figure.savefig(path, dpi=120, metadata=metadata)


def _draw(ax: Any, curve: Curve | None, place: int, label: str) -> None:
    if curve is None:
        return
    color, style = f"C{place % _COLORS}", _STYLES[place // _COLORS % len(_STYLES)]
    ax.plot(curve.gmacs, curve.mean, style, color=color, marker=".", markersize=4, label=label)
    ax.fill_between(curve.gmacs, curve.low, curve.high, color=color, alpha=0.2, linewidth=0)
    if curve.before is not None:
        ax.axhline(curve.before, color="0.6", linestyle=":", linewidth=1)
