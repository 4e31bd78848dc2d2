"""Bars of training memory by method, stacked by what lies in it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from pmt._util.plots import add_legend, mark_sizes, one_axes
from pmt.plots.memory import draw_parts

__all__ = ["draw_memory"]


def draw_memory(
    costs: Mapping[str, Any],
    *,
    printed: Mapping[str, float],
    boards: Sequence[float],
    ax: Any = None,
) -> Any:
    """Draw every method of the costs as a bar.

    Parameters
    ----------
    costs : mapping
        See :func:`pmt_lab.reproduce.training_costs.training_costs`.
    printed : mapping of str to float
        The paper's KB by method, drawn as diamonds.
    boards : sequence of float
        KB of boards, each a dotted line with its size.
    ax : matplotlib.axes.Axes, optional
        Axes to draw on; new ones by default.
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
