"""A selection as a picture: held-out loss and accuracy of every candidate."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from pmt.research.benchmark.plot import load_pyplot
from pmt.train.selection import Candidate, Selection

__all__ = ["plot_selection"]

_BEST, _RIVAL, _WORSE = "C0", "C9", "0.7"


def plot_selection(selection: Selection, path: str | Path) -> None:
    """Draw bars of loss and accuracy after the test training, and lines at what was before it.

    Error bars are 95 % intervals of the difference to the chosen candidate, in the panel of the
    criterion: a bar whose end does not reach the chosen one's is worse for certain.

    Raises
    ------
    ImportError
        If matplotlib is missing.
    """
    plt = load_pyplot()
    figure, axes = plt.subplots(1, 2, figsize=(9, 3.5), layout="constrained")
    for ax, key in zip(axes, ("loss", "accuracy"), strict=True):
        _draw(ax, selection, key)
    images = f"{selection.held_out} held-out images"
    seeds = f", {selection.seeds} seeds" if selection.seeds > 1 else ""
    figure.suptitle(f"after the test training, {images}{seeds}; chosen: {selection.best.name}")
    figure.savefig(path, dpi=120)
    plt.close(figure)


def _draw(ax: Any, selection: Selection, key: str) -> None:
    candidates = selection.candidates
    heights = [getattr(candidate, key) for candidate in candidates]
    colours = [_colour(selection, candidate) for candidate in candidates]
    ax.bar([candidate.name for candidate in candidates], heights, color=colours)
    if key == selection.criterion:
        spread = [c.margin.interval[1] - c.margin.mean for c in candidates]
        ax.errorbar(range(len(candidates)), heights, spread, fmt="none", ecolor="black", capsize=3)
    ax.axhline(getattr(selection, key), color="black", linestyle="--", linewidth=1, label="before")
    ax.set_ylabel("held-out loss (nats)" if key == "loss" else "held-out accuracy")
    ax.legend(loc="lower right", framealpha=1)


def _colour(selection: Selection, candidate: Candidate) -> str:
    if candidate is selection.best:
        return _BEST
    return _WORSE if candidate.margin.significant else _RIVAL
