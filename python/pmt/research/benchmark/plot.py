"""The layers' speed as a picture: bars under the machine's peak, and the roofline."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from pmt.model import Model
from pmt.research.benchmark.forward import OpTimes
from pmt.research.benchmark.timing import Machine

__all__ = ["load_pyplot", "plot"]


def load_pyplot() -> Any:
    """Return matplotlib's pyplot.

    Raises
    ------
    ImportError
        If matplotlib is missing.
    """
    try:
        import matplotlib.pyplot as plt
    except ImportError as error:
        raise ImportError(
            'plots need matplotlib: pip install "poor-mans-training[plot]"'
        ) from error
    return plt


def plot(model: Model, machine: Machine, ops: Sequence[OpTimes], path: str | Path) -> None:
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
