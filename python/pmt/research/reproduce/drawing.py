"""What the plots of the studies share: groups of points, and curves over MACs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from pmt._util.extras import load_pyplot

__all__ = ["axes_of", "draw_curves", "draw_groups"]

_MARKERS = "os^vDP*Xh<>pd8"
_COLORS = 10


def axes_of(ax: Any, size: tuple[float, float] = (8, 4)) -> Any:
    """Return the Axes that were given, or new ones."""
    if ax is not None:
        return ax
    _, made = load_pyplot().subplots(figsize=size, layout="constrained")
    return made


def draw_groups(
    groups: Mapping[str, Sequence[float | None]],
    names: Sequence[str],
    unit: str,
    *,
    ax: Any = None,
) -> Any:
    """Draw points above names, a color and a marker for each group that has any."""
    ax = axes_of(ax, (9, 4.5))
    shown = {title: v for title, v in groups.items() if any(one is not None for one in v)}
    for place, (title, values) in enumerate(shown.items()):
        points = [(x, y) for x, y in enumerate(values) if y is not None]
        shift = (place - (len(shown) - 1) / 2) * 0.6 / max(1, len(shown))
        ax.plot(
            [x + shift for x, _ in points],
            [y for _, y in points],
            _MARKERS[place % len(_MARKERS)],
            color=f"C{place % _COLORS}",
            markersize=5,
            label=title,
        )
    ax.set_xticks(range(len(names)), names, rotation=35, ha="right")
    ax.set_ylabel(unit)
    ax.grid(axis="y", linewidth=0.4)
    ax.legend(fontsize="small", loc="center left", bbox_to_anchor=(1.0, 0.5))
    return ax


def draw_curves(runs: Mapping[str, Mapping[str, Any]], *, ax: Any = None) -> Any:
    """Draw the held-out loss of runs over 10^9 multiply-accumulates, those behind the start."""
    ax = axes_of(ax)
    for place, (title, run) in enumerate(runs.items()):
        curve = [(macs / 1e9, loss) for macs, loss in run["curve"] if macs and loss is not None]
        ax.plot(
            [macs for macs, _ in curve],
            [loss for _, loss in curve],
            marker=_MARKERS[place % len(_MARKERS)],
            markersize=4,
            color=f"C{place % _COLORS}",
            label=title,
        )
    starts = [run["curve"][0][1] for run in runs.values() if run["curve"]]
    if starts and starts[0] is not None:
        ax.axhline(starts[0], color="0.6", linestyle=":", linewidth=1)
        ax.set_ylim(0, 1.25 * starts[0])
    ax.set_xlabel("GMAC")
    ax.set_ylabel("held-out loss (nats)")
    ax.legend(fontsize="small")
    return ax
