"""Rows and curves of a figure of losses: which of two methods ends with the smaller one."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from pmt.research.reproduce.drawing import draw_curves
from pmt.research.reproduce.run_rows import Found, find
from pmt.research.reproduce.study import LOSS, Row, beside, claim, not_run

__all__ = ["FIGURE_7", "loss_rows", "plot_losses"]

Data = Mapping[str, Any]

FIGURE_7 = (
    "Four pointwise convolutions, those of B2: of the blocks it alone has the dimensions that the "
    "paper's text gives for its block 1. 10 queries instead of 100, a sixtieth of the paper's "
    "multiply-accumulates, one seed, and the loss on held-out images where the figure has that of "
    "training."
)


def loss_rows(data: Data, grids: Sequence[str], shown: Mapping[str, tuple[str, str]]) -> list[Row]:
    """Return the lowest held-out loss of each method, and differences that the figure shows.

    It is the loss by which trials choose a rate, and a difference counts beyond the tolerance of a
    loss.

    Parameters
    ----------
    data : dict
        Measurements of the study.
    grids : sequence of str
        Its grids.
    shown : dict of str to (str, str)
        For a method the one that the figure shows below it, and that in words.
    """
    found = {name: find(data, grids, method=name) for name in _methods(data, grids, shown)}
    rows = []
    for name, one in found.items():
        loss = _lowest(one)
        what = f"{name}: lowest loss"
        if loss is None:
            rows.append(not_run(what, None, LOSS.unit, one.state or "not finite"))
        else:
            why = "; ".join(filter(None, (one.rate, _end(one), one.state)))
            rows.append(beside(what, loss, LOSS.unit, why=why))
    for name, (better, words) in shown.items():
        rows.append(_difference(found[name], found[better], f"{name} less {better}", words))
    return rows


def plot_losses(data: Data, grids: Sequence[str], *, ax: Any = None) -> Any:
    """Draw the held-out loss of each method over its multiply-accumulates."""
    found = {name: find(data, grids, method=name) for name in _methods(data, grids, {})}
    return draw_curves({name: one.runs[0] for name, one in found.items() if one.runs}, ax=ax)


def _methods(data: Data, grids: Sequence[str], shown: Mapping[str, tuple[str, str]]) -> list[str]:
    """Return the methods of the grids, and those of the figure that they lack."""
    known = [data["grids"][grid] for grid in grids if grid in data.get("grids", {})]
    names = [run["axes"]["method"] for grid in known for run in grid["runs"]]
    names += [run["method"] for grid in known for run in grid["missing"]]
    pairs = [name for method, (better, _) in shown.items() for name in (better, method)]
    return list(dict.fromkeys([*names, *pairs]))


def _difference(high: Found, low: Found, what: str, words: str) -> Row:
    above, below = _lowest(high), _lowest(low)
    if high.small or above is None or below is None:
        state = "small scale" if high.small else high.state or low.state
        return not_run(what, None if high.small else words, LOSS.unit, state or "not finite")
    holds = above - below > LOSS.tolerance
    return claim(
        what, above - below, words, LOSS.unit, holds=holds, why="" if holds else _why(high, low)
    )


def _why(high: Found, low: Found) -> str:
    """Say what a comparison that does not come out as published may be due to."""
    one, other = high.runs[0], low.runs[0]
    if one["curve"] == other["curve"]:
        return "the same run: the estimators of all layers are the same here"
    above, below = _lowest(high), _lowest(low)
    near = above is not None and below is not None and abs(above - below) <= LOSS.tolerance
    edges = [run["axes"]["method"] for run in (one, other) if run.get("tuning", {}).get("at_edge")]
    said = (
        f"within {LOSS.tolerance:g} nats, which one seed does not tell apart" if near else "",
        f"at the edge of the rates tried: {', '.join(edges)}" if edges else "",
    )
    return "; ".join(filter(None, said))


def _lowest(found: Found) -> float | None:
    """Return the least held-out loss of a run's steps; None without one."""
    losses = [loss for macs, loss in _points(found) if macs and loss is not None]
    return min(losses, default=None)


def _end(found: Found) -> str:
    """Say that a run ended above its start, where it did."""
    points = _points(found)
    start = points[0][1] if points and not points[0][0] else None
    end = points[-1][1] if points else None
    if start is None or (end is not None and end <= start):
        return ""
    return f"ended at {end:.3f}, above its start" if end is not None else "ended not finite"


def _points(found: Found) -> list[tuple[int, float | None]]:
    return [(macs, loss) for macs, loss in found.runs[0]["curve"]] if found.runs else []
