"""Peak memory of methods as stacked bars."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from pmt._util.checks import checked_range, kind_of
from pmt._util.optional_types import Axes
from pmt._util.plots import add_legend, bar_style, mark_sizes, one_axes, plain_text
from pmt.profiling.profile import Profile
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
