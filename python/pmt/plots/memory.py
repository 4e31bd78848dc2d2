"""Memory as pictures: peaks of methods as stacked bars, and the arena over a training step."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from pmt._util.checks import check_type, checked_range, kind_of
from pmt._util.extras import import_extra
from pmt._util.optional_types import Axes
from pmt._util.plots import SMALL, add_legend, bar_style, mark_sizes, one_axes, plain_text
from pmt.profiling.profile import Profile
from pmt.profiling.step_memory import KINDS, StepMemory
from pmt.train.costs.memory import PARTS

# A plan tells some of the activations apart.
_PLACES = (*PARTS, "kept", "query", "perturbed", "scratch")


def part_style(part: str) -> dict[str, Any]:
    """Return the color and hatch of a part of memory, the same in every plot."""
    return bar_style(_PLACES.index(part))


def plot_memory(
    profiles: Sequence[Profile], *, limits: Sequence[int] = (256, 1024), ax: Axes | None = None
) -> Axes:
    """Draw the peak memory of methods: a bar each, stacked by part, the first on top.

    Parameters
    ----------
    profiles : sequence of Profile
        The methods, see :func:`pmt.profiling.profile.profile_method`.
    limits : sequence of int
        Sizes of SRAM in KB (1,024 bytes), each marked by a dotted line.
    ax : matplotlib.axes.Axes, optional
        Axes to draw on; new ones by default.

    Returns
    -------
    matplotlib.axes.Axes
        The axes.

    Raises
    ------
    ImportError
        If matplotlib is missing.
    """
    of_profiles = isinstance(profiles, Sequence) and all(isinstance(p, Profile) for p in profiles)
    if not of_profiles:
        raise TypeError(
            f"profiles is {kind_of(profiles)}: must be a list of what "
            "pmt.profiling.profile.profile_method(model, method) returns"
        )
    if not isinstance(limits, Sequence) or isinstance(limits, str):
        raise TypeError(f"limits={limits!r} must be a sequence of sizes in KB")
    for limit in limits:
        checked_range("limits", limit, 1, 2**31 - 1)
    own = ax is None
    ax = one_axes(ax, 9, 0.4 * len(profiles) + 1.6)
    draw_parts(
        ax,
        [
            (profile.method, {part: getattr(profile.memory, part) for part in PARTS})
            for profile in profiles
        ],
    )
    mark_sizes(ax, limits)
    ax.invert_yaxis()
    ax.set_xlabel("peak memory (KB)")
    add_legend(ax, beside=own)
    return ax


def draw_parts(ax: Axes, methods: Sequence[tuple[str, Mapping[str, int]]]) -> None:
    """Draw a horizontal bar of bytes by part for each method, at 0, 1, ...; the axis has KB."""
    places, start = range(len(methods)), [0.0] * len(methods)
    for part, title in PARTS.items():
        sizes = [parts.get(part, 0) / 1024 for _, parts in methods]
        if any(sizes):
            ax.barh(places, sizes, left=start, label=title, **part_style(part))
            start = [a + b for a, b in zip(start, sizes, strict=True)]
    ax.set_yticks(places, [plain_text(name) for name, _ in methods])


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
