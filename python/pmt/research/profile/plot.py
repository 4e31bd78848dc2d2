"""Memory by part, all methods side by side."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from pmt.research.benchmark.plot import load_pyplot
from pmt.research.profile.profile import Profile
from pmt.train.costs.memory import PARTS

__all__ = ["plot_memory"]

_KILOBYTE = 1024


def plot_memory(
    profiles: Sequence[Profile], path: str | Path, *, limits: Sequence[int] = (256, 1024)
) -> None:
    """Draw the peak memory of every method as one bar, stacked by part.

    Parameters
    ----------
    profiles : sequence of Profile
        The methods, drawn from top to bottom.
    path : str or pathlib.Path
        File to write; its suffix is the format.
    limits : sequence of int
        Sizes of SRAM in KB to mark with a line.

    Raises
    ------
    ImportError
        If matplotlib is missing.
    """
    pyplot = load_pyplot()
    figure, axes = pyplot.subplots(figsize=(9, 0.4 * len(profiles) + 1.6), layout="constrained")
    names = [profile.method for profile in profiles]
    start = [0.0] * len(profiles)
    colours = pyplot.get_cmap("tab20")
    for i, (part, title) in enumerate(PARTS.items()):
        sizes = [getattr(profile.memory, part) / _KILOBYTE for profile in profiles]
        if any(sizes):
            axes.barh(names, sizes, left=start, label=title, color=colours(i / 20))
            start = [a + b for a, b in zip(start, sizes, strict=True)]
    for limit in limits:
        axes.axvline(limit, color="black", linewidth=0.8, linestyle="dotted")
    axes.invert_yaxis()
    axes.set_xlabel("peak memory (KB)")
    axes.legend(fontsize="small", frameon=False)
    figure.savefig(path)
    pyplot.close(figure)
