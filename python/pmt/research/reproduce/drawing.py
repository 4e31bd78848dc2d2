"""Common parts of the plots of studies: groups of points, and curves over MACs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from pmt._util.plot_style import SMALL, line_style, one_axes
from pmt.research.plots import plot_curves
from pmt.research.report.curves import Curve

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["draw_curves", "draw_groups"]

# Share of the room between two names that the points of all groups take.
_WIDTH = 0.6
# Number of line colors.
_COLORS = 7


def draw_groups(
    groups: Mapping[str, Sequence[float | None]],
    names: Sequence[str],
    *,
    ax: Axes | None = None,
) -> Axes:
    """Draw test accuracies in % above names, a color and a marker for each group that has any."""
    ax = one_axes(ax, 9, 4.5)
    shown = {title: v for title, v in groups.items() if any(one is not None for one in v)}
    for place, (title, values) in enumerate(shown.items()):
        points = [(x, y) for x, y in enumerate(values) if y is not None]
        shift = (place - (len(shown) - 1) / 2) * _WIDTH / len(shown)
        # Lines of one color differ in their dashes, which points do not have.
        marker = line_style(place + place // _COLORS)["marker"]
        style = {**line_style(place), "linestyle": "none", "markersize": 5, "marker": marker}
        ax.plot([x + shift for x, _ in points], [y for _, y in points], label=title, **style)
    ax.set_xticks(range(len(names)), names, rotation=35, ha="right")
    ax.set_ylabel("test accuracy (%)")
    ax.grid(axis="y", linewidth=0.4)
    if shown:
        ax.legend(fontsize=SMALL, loc="center left", bbox_to_anchor=(1.0, 0.5))
    return ax


def draw_curves(runs: Mapping[str, Mapping[str, Any]], *, ax: Axes | None = None) -> Axes:
    """Draw the held-out loss of runs over 10^9 multiply-accumulates, those behind the start."""
    return plot_curves({title: _curve(run["curve"]) for title, run in runs.items()}, ax=ax)


def _curve(points: Sequence[tuple[int, float | None]]) -> Curve:
    """Return a curve of one seed; a loss that is not finite leaves a gap."""
    trained = [(macs / 1e9, np.nan if loss is None else loss) for macs, loss in points if macs]
    gmacs, losses = np.array(trained, np.float64).reshape(-1, 2).T
    before = points[0][1] if points and not points[0][0] else None
    return Curve(gmacs, losses[np.newaxis], before)
