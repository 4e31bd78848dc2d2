"""Speed of a network's layers: bars under the peak, and over the memory that a layer moves."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from pmt.model import Model
from pmt_lab.files import counted
from pmt_lab.plots.style import axes_of, line_style, pyplot

if TYPE_CHECKING:
    from matplotlib.axes import Axes

Layer = tuple[int, Mapping[str, Any]]

# Upper end of the axis of speeds, as a multiple of the peak, for its name above the line.
_ABOVE_PEAK = 1.15


def plot_speed(
    model: Model, figures: Mapping[str, Any], *, ax: Sequence[Axes] | None = None
) -> npt.NDArray[np.object_]:
    """Draw the layers' GMAC/s on one thread.

    Left: one bar per layer for every number of images, with the peak. Right: the same over the
    layer's MACs per byte of weights, inputs and outputs, which says how much memory it moves.

    Parameters
    ----------
    model : Model
        The network.
    figures : dict
        Figures of it, see :func:`pmt_lab.benchmark.bench_job.run_benchmark`.
    ax : sequence of matplotlib.axes.Axes, optional
        Two axes to draw on; those of a new figure by default.

    Returns
    -------
    ndarray of matplotlib.axes.Axes, shape (2,)
        The axes.
    """
    machine = figures["machine"]
    layers = [(i, op) for i, op in enumerate(figures["layers"]) if op["macs"]]
    counts = list(layers[0][1]["gmacs"])
    peak = machine["one_thread_gmacs"]
    axes = axes_of(ax, 2, 6.5, max(3.5, 0.22 * len(layers)), width_ratios=(3, 2))
    bars, roof = axes
    _draw_bars(bars, layers, counts)
    _draw_roofline(roof, _intensities(model), layers, counts[-1])
    _mark_peak(bars, roof, peak, f"peak of {machine['peak_instruction']}: {peak:.0f} GMAC/s")
    if ax is None:
        title = f"{machine['processor']}, kernels {machine['kernels']}, 1 thread"
        bars.figure.suptitle(title)
    return axes


def _mark_peak(bars: Any, roof: Any, peak: float, title: str) -> None:
    bars.axvline(peak, color="black", linewidth=1)
    roof.axhline(peak, color="black", linewidth=1)
    style = {"textcoords": "offset points", "fontsize": "small"}
    across, up = bars.get_xaxis_transform(), roof.get_yaxis_transform()
    bars.annotate(title, (peak, 1.0), (0, 2), xycoords=across, ha="right", va="bottom", **style)
    roof.annotate(title, (0.02, peak), (0, 3), xycoords=up, va="bottom", **style)
    roof.set_ylim(top=_ABOVE_PEAK * peak)


def _draw_bars(ax: Any, layers: Sequence[Layer], counts: list[int]) -> None:
    height = 0.8 / len(counts)
    rows = list(range(len(layers)))
    for k, count in enumerate(counts):
        places = [row + (k - (len(counts) - 1) / 2) * height for row in rows]
        speeds = [op["gmacs"][count] for _, op in layers]
        ax.barh(places, speeds, height, label=counted(count, "image"), color=line_style(k)["color"])
    ax.set_yticks(rows, [f"{op['name']} {op['window']}".strip() for _, op in layers], fontsize=7)
    ax.invert_yaxis()
    ax.set_xlabel("GMAC/s")
    ax.legend(fontsize="small")


def _draw_roofline(
    ax: Any, intensities: dict[int, float], layers: Sequence[Layer], count: int
) -> None:
    for k, group in enumerate(dict.fromkeys(op["group"] for _, op in layers)):
        members = [(i, op) for i, op in layers if op["group"] == group]
        x = [intensities[i] for i, _ in members]
        style = {**line_style(k), "linestyle": "none"}
        ax.plot(x, [op["gmacs"][count] for _, op in members], label=group, **style)
    ax.set_xscale("log")
    ax.set_yscale("log")
    ticker = pyplot().matplotlib.ticker
    for axis in (ax.xaxis, ax.yaxis):
        axis.set_major_locator(ticker.LogLocator(subs=(1.0, 2.0, 5.0)))
        axis.set_major_formatter(ticker.StrMethodFormatter("{x:g}"))
        axis.set_minor_formatter(ticker.NullFormatter())
    ax.set_xlabel("MACs per byte of weights, input and output")
    ax.set_ylabel(f"GMAC/s, {counted(count, 'image')}")
    ax.legend(fontsize="small")


def _intensities(model: Model) -> dict[int, float]:
    tensors = model.core.tensors()
    sizes = [t["height"] * t["width"] * t["channels"] for t in tensors]
    return {
        op["index"]: op["macs"] / (op["weights"] + sizes[op["inputs"][0]] + sizes[op["output"]])
        for op in model.core.ops()
        if op["macs"]
    }
