"""Common parts of the plots of studies: sheets, curves over MACs, bars, cosines."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from pmt._util.plots import (
    COLORS,
    SMALL,
    add_legend,
    mark_sizes,
    one_axes,
    panels,
)
from pmt.plots.memory import draw_parts
from pmt_lab.files import did_you_mean
from pmt_lab.plots import plot_curves
from pmt_lab.plots.cosines import draw_cosines, draw_dimensions
from pmt_lab.report import Curve

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from pmt_lab.reproduce.runs import Found
    from pmt_lab.reproduce.study import Data

# Cell of a sheet without a figure.
_NOT_RUN = "\N{EN DASH}"


def draw_sheet(
    lines: Mapping[str, Sequence[float | None]],
    names: Sequence[str],
    published: Collection[str],
    *,
    whole: Collection[str] = (),
    ax: Axes | None = None,
) -> Axes:
    """Draw accuracies in % as a table, colored from low to high, a line for each entry with any.

    A line has one for each name, which are the columns; those of ``whole`` show no decimal place.
    Names of the lines of ``published`` figures stand in blue italics.
    """
    shown = {title: v for title, v in lines.items() if any(one is not None for one in v)}
    ax = one_axes(ax, 0.5 * len(names) + 3.0, 0.24 * len(shown) + 1.1)
    if not shown:
        return ax
    cells = np.array([[np.nan if v is None else v for v in row] for row in shown.values()], float)
    # Light enough for black figures, and from dark to light in gray, too.
    ax.imshow(cells, cmap="YlGnBu_r", vmin=-100, vmax=100, aspect="auto")
    for (y, x), value in np.ndenumerate(cells):
        places = 0 if names[x] in whole else 1
        text = f"{value:.{places}f}" if np.isfinite(value) else _NOT_RUN
        ax.text(x, y, text, ha="center", va="center", fontsize=SMALL)
    ax.set_xlabel(f"test accuracy (%); {_NOT_RUN}: not run", fontsize=SMALL)
    ax.set_xticks(range(len(names)), names, rotation=35, ha="left")
    ax.xaxis.tick_top()
    ax.set_yticks(range(len(shown)), list(shown))
    for label, title in zip(ax.get_yticklabels(), shown, strict=True):
        if title in published:
            label.set(color=COLORS["blue"], style="italic")
    ax.tick_params(length=0, labelsize=SMALL)
    ax.spines[:].set_visible(False)
    return ax


def draw_curves(runs: Mapping[str, Mapping[str, Any]], *, ax: Axes | None = None) -> Axes:
    """Draw the held-out loss of runs over 10^9 multiply-accumulates, those after the start."""
    titles: dict[str, list[str]] = {}
    for title, run in runs.items():
        trained = any(macs for macs, _ in run["curve"])
        titles.setdefault(repr(run["curve"]) if trained else title, []).append(title)
    # Lines with the same points would hide each other.
    curves = {" = ".join(same): _curve(runs[same[0]]["curve"]) for same in titles.values()}
    return plot_curves(curves, ax=ax)


def plot_losses_of_lines(
    data: Data, found: Mapping[str, Found], corruption: str, *, ax: Axes | None = None
) -> Axes:
    """Draw the held-out losses of the first seed of each line of a table that takes steps.

    ``found`` has the runs of the corruption by the line's title; a ValueError if there is none.
    """
    firsts = {title: one.runs[0] for title, one in found.items() if one.runs}
    if not firsts:
        runs = (run for grid in data["grids"].values() for run in grid["runs"])
        known = dict.fromkeys(run["axes"]["corruption"] for run in runs)
        raise ValueError(
            f"corruption={corruption!r}: no run of it{did_you_mean(corruption, known)}"
        )
    return draw_curves({title: run for title, run in firsts.items() if run["steps"]}, ax=ax)


def _curve(points: Sequence[tuple[int, float | None]]) -> Curve:
    """Return a curve of one seed; a loss that is not finite leaves a gap."""
    trained = [(macs / 1e9, np.nan if loss is None else loss) for macs, loss in points if macs]
    gmacs, losses = np.array(trained, np.float64).reshape(-1, 2).T
    before = points[0][1] if points and not points[0][0] else None
    return Curve(gmacs, losses[np.newaxis], before)


def draw_memory(
    costs: Mapping[str, Any],
    *,
    printed: Mapping[str, float],
    boards: Sequence[float],
    ax: Any = None,
) -> Any:
    """Draw training memory of methods as bars, stacked by part.

    ``costs`` is what :func:`pmt_lab.reproduce.costs.training_costs` returned; the paper's KB by
    method are diamonds, and KB of boards dotted lines with their size.
    """
    methods = costs["methods"]
    axes = one_axes(ax, 8, 0.5 * len(methods) + 1.5)
    draw_parts(axes, [(name, cost["parts"]) for name, cost in methods.items()])
    places = [list(methods).index(name) for name in printed]
    axes.plot(list(printed.values()), places, "kD", markersize=6, label="the paper's")
    mark_sizes(axes, boards)
    axes.invert_yaxis()
    axes.set_xlabel("peak memory of a step of one image (KB)")
    add_legend(axes, beside=ax is None)
    return axes


def draw_study(data: Mapping[str, Any], names: Mapping[str, str]) -> Any:
    """Draw dimensions above cosines in a figure of its own; return the axes of the cosines."""
    above, below = panels(None, 2, 1, (8, 4.6), sharex=True, height_ratios=(1, 2)).ravel()
    draw_dimensions(above, data["weights"], data["nodes"])
    add_legend(above, beside=False)
    return draw_study_cosines(data, names, below)


def draw_study_cosines(data: Mapping[str, Any], names: Mapping[str, str], ax: Any) -> Any:
    """Draw the cosines of estimators by layer; names are the legend's."""
    pairs = {}
    for one, label in names.items():
        found = data["estimators"][one]
        pairs[label] = list(zip(found["cosine"], found["error"], strict=True))
    draw_cosines(ax, data["layers"], pairs)
    ax.tick_params("x", rotation=90, labelsize="x-small")
    add_legend(ax, beside=False, loc="lower center", bbox_to_anchor=(0.5, 1.0), ncols=3)
    return ax
