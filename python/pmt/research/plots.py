"""Plots of a profile, a selection and a benchmark; they need matplotlib."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from pmt._util.extras import load_pyplot
from pmt.model import Model
from pmt.research.benchmark.forward import OpTimes
from pmt.research.benchmark.timing import Machine
from pmt.research.profile import Profile
from pmt.train.costs.memory import PARTS
from pmt.train.selection import Candidate, Selection

__all__ = ["plot_memory", "plot_selection", "plot_speed"]

_BEST, _RIVAL, _WORSE = "C0", "C9", "0.7"


def plot_memory(
    profiles: Sequence[Profile], path: str | Path, *, limits: Sequence[int] = (256, 1024)
) -> None:
    """Draw the peak memory of every method as one bar, stacked by part, from top to bottom.

    ``limits`` are sizes of SRAM in KB, each marked with a line.
    """
    pyplot = load_pyplot()
    figure, axes = pyplot.subplots(figsize=(9, 0.4 * len(profiles) + 1.6), layout="constrained")
    names = [profile.method for profile in profiles]
    start = [0.0] * len(profiles)
    colors = pyplot.get_cmap("tab20")
    for i, (part, title) in enumerate(PARTS.items()):
        sizes = [getattr(profile.memory, part) / 1024 for profile in profiles]
        if any(sizes):
            axes.barh(names, sizes, left=start, label=title, color=colors(i / 20))
            start = [a + b for a, b in zip(start, sizes, strict=True)]
    for limit in limits:
        axes.axvline(limit, color="black", linewidth=0.8, linestyle="dotted")
    axes.invert_yaxis()
    axes.set_xlabel("peak memory (KB)")
    axes.legend(fontsize="small", frameon=False)
    figure.savefig(path)
    pyplot.close(figure)


def plot_selection(selection: Selection, path: str | Path) -> None:
    """Draw bars of loss and accuracy after the test training, and lines at what was before it.

    Error bars are 95 % intervals of the difference to the chosen candidate, in the panel of the
    criterion: a bar whose end does not reach the chosen one's is worse for certain.
    """
    plt = load_pyplot()
    figure, axes = plt.subplots(1, 2, figsize=(9, 3.5), layout="constrained")
    for ax, key in zip(axes, ("loss", "accuracy"), strict=True):
        _draw_candidates(ax, selection, key)
    images = f"{selection.held_out} held-out images"
    seeds = f", {selection.seeds} seeds" if selection.seeds > 1 else ""
    figure.suptitle(f"after the test training, {images}{seeds}; chosen: {selection.best.name}")
    figure.savefig(path, dpi=120)
    plt.close(figure)


def _draw_candidates(ax: Any, selection: Selection, key: str) -> None:
    candidates = selection.candidates
    heights = [getattr(candidate, key) for candidate in candidates]
    colors = [_color(selection, candidate) for candidate in candidates]
    ax.bar([candidate.name for candidate in candidates], heights, color=colors)
    if key == selection.criterion:
        spread = [c.margin.interval[1] - c.margin.mean for c in candidates]
        ax.errorbar(range(len(candidates)), heights, spread, fmt="none", ecolor="black", capsize=3)
    ax.axhline(getattr(selection, key), color="black", linestyle="--", linewidth=1, label="before")
    ax.set_ylabel("held-out loss (nats)" if key == "loss" else "held-out accuracy")
    ax.legend(loc="lower right", framealpha=1)


def _color(selection: Selection, candidate: Candidate) -> str:
    if candidate is selection.best:
        return _BEST
    return _WORSE if candidate.margin.significant else _RIVAL


def plot_speed(model: Model, machine: Machine, ops: Sequence[OpTimes], path: str | Path) -> None:
    """Draw the layers' GMAC/s on one thread.

    Left: one bar a layer for every number of images, with the peak. Right: the same over the
    layer's MACs a byte of weights, inputs and outputs, which says how much memory it moves.
    """
    plt = load_pyplot()
    layers = [(i, op) for i, op in enumerate(ops) if op.macs]
    counts = list(ops[0].microseconds)
    peak = machine.one_thread_gmacs
    figure, (bars, roof) = plt.subplots(
        1, 2, figsize=(13, max(3.5, 0.22 * len(layers))), layout="constrained", width_ratios=(3, 2)
    )
    _draw_bars(bars, layers, counts)
    _draw_roofline(roof, _intensities(model), layers, counts[-1])
    bars.axvline(peak, color="black", linewidth=1)
    roof.axhline(peak, color="black", linewidth=1)
    title = f" peak of {machine.peak_instruction}: {peak:.0f} GMAC/s"
    roof.annotate(title, (0.02, peak), xycoords=("axes fraction", "data"), va="top")
    figure.suptitle(f"{machine.processor}, kernels {machine.kernels}, 1 thread")
    figure.savefig(path, dpi=120)
    plt.close(figure)


def _draw_bars(ax: Any, layers: list[tuple[int, OpTimes]], counts: list[int]) -> None:
    height = 0.8 / len(counts)
    rows = list(range(len(layers)))
    for k, count in enumerate(counts):
        places = [row + (k - (len(counts) - 1) / 2) * height for row in rows]
        label = "1 image" if count == 1 else f"{count} images"
        ax.barh(places, [op.gmacs(count) for _, op in layers], height, label=label)
    ax.set_yticks(rows, [f"{op.name} {op.window}".strip() for _, op in layers], fontsize=7)
    ax.invert_yaxis()
    ax.set_xlabel("GMAC/s")
    ax.legend()


def _draw_roofline(
    ax: Any, intensities: dict[int, float], layers: list[tuple[int, OpTimes]], count: int
) -> None:
    for group in dict.fromkeys(op.group for _, op in layers):
        members = [(i, op) for i, op in layers if op.group == group]
        x = [intensities[i] for i, _ in members]
        ax.scatter(x, [op.gmacs(count) for _, op in members], s=16, label=group)
    ax.set_xscale("log")
    ax.set_yscale("log")
    ax.set_xlabel("MACs a byte of weights, input and output")
    ax.set_ylabel(f"GMAC/s, {count} images" if count != 1 else "GMAC/s, 1 image")
    ax.legend(fontsize=7)


def _intensities(model: Model) -> dict[int, float]:
    tensors = model.core.tensors()
    sizes = [t["height"] * t["width"] * t["channels"] for t in tensors]
    return {
        op["index"]: op["macs"] / (op["weights"] + sizes[op["inputs"][0]] + sizes[op["output"]])
        for op in model.core.ops()
    }
