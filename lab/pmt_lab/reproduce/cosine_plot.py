"""Cosines and dimensions by layer, drawn from the figures of a study."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pmt._util.plots import add_legend, panels
from pmt_lab.plots.cosines import draw_cosines, draw_dimensions
from pmt_lab.reproduce.cosines import series

__all__ = ["draw_study", "draw_study_cosines"]


def draw_study(data: Mapping[str, Any], names: Mapping[str, str]) -> Any:
    """Draw dimensions above cosines in a figure of its own; return the axes of the cosines."""
    above, below = panels(None, 2, 1, (8, 4.6), sharex=True, height_ratios=(1, 2)).ravel()
    draw_dimensions(above, data["weights"], data["nodes"])
    add_legend(above, beside=False)
    return draw_study_cosines(data, names, below)


def draw_study_cosines(data: Mapping[str, Any], names: Mapping[str, str], ax: Any) -> Any:
    """Draw the cosines of estimators by layer; names are the legend's."""
    pairs = {label: list(zip(*series(data, one), strict=True)) for one, label in names.items()}
    draw_cosines(ax, data["layers"], pairs)
    ax.tick_params("x", rotation=90, labelsize="x-small")
    add_legend(ax, beside=False, loc="lower center", bbox_to_anchor=(0.5, 1.0), ncols=3)
    return ax
