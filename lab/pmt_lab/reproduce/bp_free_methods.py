"""Tables 5 and 6: MeZO and DeepZero beside the paper's method, on all and on the same layers."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping
from typing import Any

from pmt_lab.reproduce.drawing import draw_curves
from pmt_lab.reproduce.grid_study import grid_study
from pmt_lab.reproduce.run_rows import Found, accuracy_row, find
from pmt_lab.reproduce.study import (
    FORWARDS,
    Context,
    Quantity,
    Row,
    Scale,
    Study,
    compared,
    not_run,
)
from pmt_lab.reproduce.study_grids import cifar10_grid
from pmt_lab.sweep import Grid

__all__ = ["ALL_LAYERS", "SAME_LAYERS"]

Data = Mapping[str, Any]

# Fewer coordinates are not better.
_OF_A_STEP = Quantity(FORWARDS.unit, FORWARDS.tolerance, relative=True)
# The paper's own method on all corruptions, of which one is needed.
_PAPER = "cifar10c_paper"
_CORRUPTION = "gaussian_noise"
_TITLES = {
    "mezo": "MeZO",
    "deepzero": "DeepZero, all coordinates",
    "deepzero_sparse": "DeepZero, a tenth of the coordinates",
    "paper": "paper's method",
}


def _grids(grid: str) -> Callable[[Scale, Context], dict[str, Grid]]:
    """Return what makes the grids of a table: its own, and the runs of the paper's method."""

    def made(scale: Scale, context: Context) -> dict[str, Grid]:
        paper = cifar10_grid(_PAPER, scale, context)
        return {
            grid: cifar10_grid(grid, scale, context),
            _PAPER: dataclasses.replace(paper, corruptions=(_CORRUPTION,)),
        }

    return made


def _rows(data: Data, paper: Data, grid: str) -> list[Row]:
    """Return forwards per step and image, all forwards, and accuracy of every method."""
    rows = []
    for place, method in enumerate(paper["methods"]):
        found = _found(data, grid, method)
        title = _TITLES[method]
        each, every = paper["forwards_of_a_step"][place], paper["forwards"][place]
        share = ""
        if found.runs and not found.small:
            ours = found.runs[0]["forwards"]
            rows.append(_forwards_row(title, _of_a_step(data, found), each))
            share = _share(ours, every)
        elif not found.small:
            rows.append(not_run(f"{title}: forwards per step", each, FORWARDS.unit, found.state))
        theirs = paper["accuracy"][place]
        rows.append(accuracy_row(f"{title}: accuracy", found, theirs, why=share))
    return rows


def _plot(data: Data, grid: str, *, ax: Any = None) -> Any:
    """Draw the held-out loss of every method over its multiply-accumulates."""
    found = {title: _found(data, grid, method) for method, title in _TITLES.items()}
    return draw_curves({name: one.runs[0] for name, one in found.items() if one.runs}, ax=ax)


def _found(data: Data, grid: str, method: str) -> Found:
    """Return the run of a method, at its best learning rate."""
    grids = _PAPER if method == "paper" else grid
    return find(data, grids, corruption=_CORRUPTION, method=method)


def _forwards_row(title: str, ours: float, theirs: float) -> Row:
    fits = _OF_A_STEP.near(ours, theirs)
    why = "" if fits else "the published count fits no number of parameters of the network"
    return compared(f"{title}: forwards per step", ours, theirs, _OF_A_STEP, why=why)


def _of_a_step(data: Data, found: Found) -> float:
    """Return the forwards of an image in a step: those of the run over the images it saw."""
    run = found.runs[0]
    protocols = (grid["protocol"] for grid in data["grids"].values() if run in grid["runs"])
    protocol = next(protocols)
    images = run["epochs"] * (protocol["images"] - protocol["held_out"])
    return float(run["forwards"] / images)


def _share(ours: int, every: float) -> str:
    share = ours / every
    if abs(share - 1) < FORWARDS.tolerance:
        return f"all {ours:.3g} forwards"
    return f"{ours:.3g} forwards, {100 * share:.2g} % of the published {every:.3g}"


def _study(name: str, number: str, layers: str, conditions: str = "") -> Study:
    grid = name.replace("-", "_")
    return grid_study(
        name,
        number,
        f"Other methods without back-propagation, {layers}",
        _grids(grid),
        lambda data, paper: _rows(data, paper, grid),
        lambda data, ax=None: _plot(data, grid, ax=ax),
        conditions=conditions,
    )


ALL_LAYERS = _study("bp-free-methods", "Table 5", "all layers")
SAME_LAYERS = _study(
    "bp-free-methods-same-layers",
    "Table 6",
    "the same layers",
    conditions="MeZO and DeepZero train only block 2, as the published forward counts show; the "
    "run of the paper's method, which is the first seed of table 7, trains the head, too.",
)
