"""Rows and curves of a figure of losses: which of two methods ends with the smaller one."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pmt.research.reproduce.drawing import draw_curves
from pmt.research.reproduce.run_rows import Found, find
from pmt.research.reproduce.study import LOSS, Row, beside, claim, not_run

__all__ = ["loss_rows", "plot_losses"]

Data = Mapping[str, Any]


def loss_rows(data: Data, grid: str, shown: Mapping[str, tuple[str, str]]) -> list[Row]:
    """Return the last held-out loss of each method, and differences that the figure shows.

    Parameters
    ----------
    data : dict
        Of the study.
    grid : str
        Its grid.
    shown : dict of str to (str, str)
        For a method the one that the figure shows below it, and that in words.
    """
    found = {name: find(data, grid, method=name) for name in _methods(data, grid, shown)}
    rows = []
    for name, one in found.items():
        loss = _last(one)
        if loss is None:
            rows.append(not_run(f"{name}: loss", None, LOSS.unit, one.state or "not finite"))
        else:
            rows.append(beside(f"{name}: loss", loss, LOSS.unit, why=one.rate or one.state))
    for name, (better, words) in shown.items():
        rows.append(_difference(found[name], found[better], f"{name} less {better}", words))
    return rows


def plot_losses(data: Data, grid: str, *, ax: Any = None) -> Any:
    """Draw the held-out loss of each method over its multiply-accumulates."""
    found = {name: find(data, grid, method=name) for name in _methods(data, grid, {})}
    return draw_curves({name: one.runs[0] for name, one in found.items() if one.runs}, ax=ax)


def _methods(data: Data, grid: str, shown: Mapping[str, tuple[str, str]]) -> list[str]:
    """Return the methods of the grid, and those of the figure that it has not."""
    known = data.get("grids", {}).get(grid, {"runs": [], "missing": []})
    names = [run["axes"]["method"] for run in known["runs"]]
    names += [run["method"] for run in known["missing"]]
    pairs = [name for method, (better, _) in shown.items() for name in (better, method)]
    return list(dict.fromkeys([*names, *pairs]))


def _difference(high: Found, low: Found, what: str, words: str) -> Row:
    above, below = _last(high), _last(low)
    if high.small or above is None or below is None:
        state = "small scale" if high.small else high.state or low.state
        return not_run(what, None if high.small else words, LOSS.unit, state or "not finite")
    holds = above > below
    return claim(
        what, above - below, words, LOSS.unit, holds=holds, why="" if holds else _why(high, low)
    )


def _why(high: Found, low: Found) -> str:
    """Say what a comparison that comes out the other way may be due to."""
    one, other = high.runs[0], low.runs[0]
    if one["curve"] == other["curve"]:
        return "the same run: the estimators of all layers are the same here"
    edges = [run["axes"]["method"] for run in (one, other) if run.get("tuning", {}).get("at_edge")]
    return f"at the edge of the rates tried: {', '.join(edges)}" if edges else ""


def _last(found: Found) -> float | None:
    """Return the loss after the last step, for which runs are drawn; None without one."""
    curve = found.runs[0]["curve"] if found.runs else []
    loss: float | None = curve[-1][1] if curve else None
    return loss
