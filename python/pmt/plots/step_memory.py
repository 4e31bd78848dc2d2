"""Memory over a training step, as a picture of the arena."""

from __future__ import annotations

from typing import Any

from pmt._util.checks import check_type
from pmt._util.extras import import_extra
from pmt._util.optional_types import Axes
from pmt._util.plots import SMALL, add_legend, one_axes
from pmt.plots.memory import part_style
from pmt.profiling.step_memory import KINDS, StepMemory

# Titles of more stretches are written aslant.
_LEVEL_TITLES = 3
# Narrower ones, as a share of the step, have none.
_NARROWEST = 0.02


def plot_step_memory(step: StepMemory, *, ax: Axes | None = None) -> Axes:
    """Draw the contents of memory over a training step, as rectangles of operations by bytes.

    Parameters
    ----------
    step : StepMemory
        See :func:`pmt.profiling.step_memory.step_memory`.
    ax : matplotlib.axes.Axes, optional
        Axes to draw on; new ones by default.

    Returns
    -------
    matplotlib.axes.Axes
        The axes; a dotted line is at all the bytes that the step takes.

    Raises
    ------
    ImportError
        If matplotlib is missing.
    """
    check_type(
        "step",
        step,
        StepMemory,
        "what pmt.profiling.step_memory.step_memory(model, method) returns",
    )
    own = ax is None
    ax = one_axes(ax, 9, 4.5)
    collections = import_extra("matplotlib.collections", "plots need matplotlib", "plot")
    for kind, title in KINDS.items():
        corners = [_corners(b) for b in step.buffers if b.kind == kind]
        if corners:
            style = {**part_style(kind), "linewidth": 0.3, "label": title}
            ax.add_collection(collections.PolyCollection(corners, **style))
    ax.set_xlim(0, step.operations)
    ax.set_ylim(0, 1.03 * step.bytes / 1024)
    ax.axhline(step.bytes / 1024, color="black", linewidth=0.8, linestyle="dotted")
    ax.set_ylabel("memory (KB)")
    ax.set_xlabel("operations of a step, in order of time")
    _name_stretches(ax, step)
    what = "the arena" if step.planned else "most alive at once"
    ax.set_title(
        f"{step.method}, {what}: {step.bytes / 1024:,.1f} KB", fontsize="medium", loc="left"
    )
    add_legend(ax, beside=own)
    return ax


def _corners(buffer: Any) -> list[tuple[float, float]]:
    low, high = buffer.offset / 1024, (buffer.offset + buffer.bytes) / 1024
    return [(buffer.begin, low), (buffer.end, low), (buffer.end, high), (buffer.begin, high)]


def _name_stretches(ax: Any, step: StepMemory) -> None:
    for stretch in step.stretches[1:]:
        ax.axvline(stretch.begin, color="black", linewidth=0.8)
    shown = [s for s in step.stretches if s.end - s.begin >= _NARROWEST * step.operations]
    aslant = {"rotation": 35, "ha": "right", "rotation_mode": "anchor"}
    how = aslant if len(shown) > _LEVEL_TITLES else {}
    titles = [stretch.title for stretch in shown]
    ax.set_xticks([(s.begin + s.end) / 2 for s in shown], titles, fontsize=SMALL, **how)
    ax.tick_params("x", length=0)
