"""Block selection as bars with intervals."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from pmt._util.checks import check_type
from pmt._util.optional_types import Axes
from pmt._util.plots import COLORS, SMALL, panels, plain_text
from pmt._util.text import counted
from pmt.train.choose import Candidate, Selection

_LABELS = {
    "loss": "loss on the held-out images (nats)",
    "accuracy": "accuracy on the held-out images",
}
# The outcome of a candidate: its legend, color and hatch.
_VERDICTS = {
    "best": ("chosen", COLORS["blue"], ""),
    "rival": ("cannot be told apart", COLORS["sky"], "///"),
    "worse": ("worse (95 %)", "0.8", ""),
}


def plot_selection(
    selection: Selection, *, ax: Sequence[Axes] | None = None
) -> npt.NDArray[np.object_]:
    """Draw loss and accuracy after the trial run as bars, and lines at the values before it.

    Error bars are 95 % intervals of the difference to the chosen candidate, in the panel of the
    criterion: a bar whose end does not reach the chosen one's is worse at the 95 % level.

    Parameters
    ----------
    selection : Selection
        See :func:`pmt.select`.
    ax : sequence of matplotlib.axes.Axes, optional
        Two axes to draw on; those of a new figure by default.

    Returns
    -------
    ndarray of matplotlib.axes.Axes, shape (2,)
        The axes of loss and accuracy.

    Raises
    ------
    ImportError
        If matplotlib is missing.
    ValueError
        If ``ax`` is not two.
    """
    check_type("selection", selection, Selection, "what pmt.select() returns")
    axes = panels(ax, 1, 2, (9, 3.5)).ravel()
    for each, key in zip(axes, ("loss", "accuracy"), strict=True):
        _draw_candidates(each, selection, key)
    _add_legend(axes, beside=ax is None)
    if ax is None:
        images = counted(selection.held_out, "held-out image")
        seeds = f", {selection.seeds} seeds" if selection.seeds > 1 else ""
        axes[0].figure.suptitle(
            f"after the trial run, {images}{seeds}; chosen: {selection.best.name}"
        )
    return axes


def _draw_candidates(ax: Any, selection: Selection, key: str) -> None:
    candidates = selection.candidates
    heights = [getattr(candidate, key) for candidate in candidates]
    verdicts = [_verdict(selection, candidate) for candidate in candidates]
    for verdict, (label, color, hatch) in _VERDICTS.items():
        places = [i for i, found in enumerate(verdicts) if found == verdict]
        if places:
            tall = [heights[i] for i in places]
            ax.bar(places, tall, color=color, hatch=hatch, edgecolor="black", label=label)
    if key == selection.criterion:
        spread = [c.margin.interval[1] - c.margin.mean for c in candidates]
        ax.errorbar(range(len(candidates)), heights, spread, fmt="none", ecolor="black", capsize=3)
    ax.set_xticks(range(len(candidates)), [plain_text(c.name) for c in candidates])
    before = getattr(selection, key)
    ax.axhline(before, color=COLORS["vermilion"], linestyle="--", linewidth=1.4, label="before")
    ax.set_ylabel(_LABELS[key])


def _add_legend(axes: npt.NDArray[np.object_], *, beside: bool) -> None:
    """Add the legend of the bars: below a plot of our own, or on the first of the user's axes."""
    if not beside:
        axes[0].legend(loc="best", fontsize=SMALL)
        return
    handles, names = axes[0].get_legend_handles_labels()
    figure = axes[0].figure
    figure.legend(handles, names, loc="outside lower center", ncols=len(names), fontsize=SMALL)


def _verdict(selection: Selection, candidate: Candidate) -> str:
    if candidate is selection.best:
        return "best"
    return "worse" if candidate.margin.significant else "rival"
