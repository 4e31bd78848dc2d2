"""Cosines and dimensions by layer, drawn."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from pmt._util.plot_style import add_legend, line_style, panels
from pmt.research.reproduce.cosines import series

__all__ = ["draw_both", "draw_cosines"]


def draw_both(data: Mapping[str, Any], names: Mapping[str, str]) -> Any:
    """Draw dimensions above cosines in a figure of its own; return the axes of the cosines."""
    above, below = panels(None, 2, 1, (8, 4.6), sharex=True, height_ratios=(1, 2)).ravel()
    places = np.arange(len(data["layers"]))
    for place, name in ((5, "weights"), (6, "nodes")):
        above.semilogy(places, data[name], label=name, **line_style(place))
    above.set_ylabel("dimension")
    add_legend(above, beside=False)
    return draw_cosines(data, names, below)


def draw_cosines(data: Mapping[str, Any], names: Mapping[str, str], ax: Any) -> Any:
    """Draw the cosines of estimators by layer, with one standard error; names are the legend's."""
    places = np.arange(len(data["layers"]))
    for number, (estimator, label) in enumerate(names.items()):
        cosines, errors = series(data, estimator)
        ax.errorbar(places, cosines, errors, label=label, capsize=2, **line_style(number))
    ax.axhline(0, color="black", linewidth=0.5)
    ax.set_xticks(places, data["layers"], rotation=90, fontsize="x-small")
    ax.set_ylabel("cosine with the exact gradient")
    place: dict[str, Any] = {"loc": "lower center", "bbox_to_anchor": (0.5, 1.0), "ncols": 3}
    add_legend(ax, beside=False, **place)
    return ax
