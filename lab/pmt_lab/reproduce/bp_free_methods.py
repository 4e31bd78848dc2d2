"""Tables 5 and 6: MeZO and DeepZero beside the paper's method, on all and on the same layers."""

import dataclasses
from collections.abc import Mapping
from typing import Any

from pmt_lab.reproduce.drawing import draw_curves
from pmt_lab.reproduce.runs import (
    Found,
    accuracy_row,
    cifar10_grid,
    find,
    grid_study,
    of_method,
)
from pmt_lab.reproduce.study import (
    FORWARDS,
    Context,
    Data,
    Quantity,
    Row,
    Scale,
    Study,
    compared,
    not_run,
)
from pmt_lab.sweep import Grid

# Fewer coordinates are not better.
_OF_A_STEP = Quantity(FORWARDS.unit, FORWARDS.tolerance, relative=True)
# The paper's own method on all corruptions, as printed and as released, of which one is needed.
_PAPER, _RELEASED = "cifar10c_paper", "cifar10c_released"
_CORRUPTION = "gaussian_noise"
_TITLES = {
    "mezo": "MeZO",
    "deepzero": "DeepZero, all coordinates",
    "deepzero_sparse": "DeepZero, a tenth of the coordinates",
    "paper": "paper's method",
}
_AS_RELEASED = {
    "released": "paper's method, released settings",
    "released, nodes alone": "paper's method, released, nodes alone, stochastic rounding",
}
_DEFAULT, _BACKPROP = "cifar10c_filters", "bp_fp32"
_PREPARED = {"preparation_only": "preparation alone", "default": "default, 2.4e12 MACs"}
_PREPARATIONS = {"none": "unprepared", "input+align+head": "after the preparation"}


def _rows(data: Data, paper: Data, grid: str, backprop: Mapping[str, str]) -> list[Row]:
    """Return forwards per step and image, all forwards, and accuracy of every method.

    The paper's method is the last one of the published.
    """
    rows = []
    for place, method in enumerate(paper["methods"]):
        found, title, why = _found(data, grid, method), _TITLES[method], ""
        each, what = paper["forwards_of_a_step"][place], f"{_TITLES[method]}: forwards per step"
        if found.runs and not found.small:
            ours = _of_a_step(data, found.runs[0])
            reason = "the published count fits no number of parameters of the network"
            fits = _OF_A_STEP.near(ours, each)
            rows.append(compared(what, ours, each, _OF_A_STEP, why="" if fits else reason))
            why = _share(found.runs[0]["forwards"], paper["forwards"][place])
        elif not found.small:
            rows.append(not_run(what, each, FORWARDS.unit, found.state))
        theirs = paper["accuracy"][place]
        rows.append(accuracy_row(f"{title}: accuracy", found, theirs, why=why))
    for method, title in _AS_RELEASED.items():
        found = find(data, _RELEASED, corruption=_CORRUPTION, method=method)
        known = found.runs and not found.small
        why = _share(found.runs[0]["forwards"], paper["forwards"][-1]) if known else ""
        rows.append(accuracy_row(f"{title}: accuracy", found, paper["accuracy"][-1], why=why))
    for method, title in _PREPARED.items():
        found = find(data, _DEFAULT, corruption=_CORRUPTION, method=method)
        theirs = paper["accuracy"][-1] if method == "default" else None
        rows.append(accuracy_row(f"{title}: accuracy", found, theirs))
    for preparation, name in backprop.items():
        axes = {"corruption": _CORRUPTION, "method": _BACKPROP, "preparation": preparation}
        title = f"back-propagation in float32, {_PREPARATIONS[preparation]}: accuracy"
        rows.append(accuracy_row(title, find(data, name, **axes), None))
    return rows


def _found(data: Data, grid: str, method: str) -> Found:
    """Return the run of a method, at its best learning rate."""
    grids = _PAPER if method == "paper" else grid
    return find(data, grids, corruption=_CORRUPTION, method=method)


def _of_a_step(data: Data, run: Data) -> float:
    """Return the forwards of an image in a step: those of the run over the images it saw."""
    protocol = next(g["protocol"] for g in data["grids"].values() if run in g["runs"])
    images = run["epochs"] * (protocol["images"] - protocol["held_out"])
    return float(run["forwards"] / images)


def _share(ours: int, every: float) -> str:
    share = ours / every
    if abs(share - 1) < FORWARDS.tolerance:
        return f"all {ours:.3g} forwards"
    return f"{ours:.3g} forwards, {100 * share:.2g} % of the published {every:.3g}"


def _study(
    name: str, number: str, layers: str, backprop: Mapping[str, str], conditions: str
) -> Study:
    """Return the study of a table, with the grids of back-propagation by preparation."""
    grid = name.replace("-", "_")

    def grids(scale: Scale, context: Context) -> dict[str, Grid]:
        names = (grid, _PAPER, _RELEASED, _DEFAULT, *backprop.values())
        whole = {name: cifar10_grid(name, scale, context) for name in names}
        for name in backprop.values():
            whole[name] = of_method(whole[name], _BACKPROP)
        return {n: dataclasses.replace(g, corruptions=(_CORRUPTION,)) for n, g in whole.items()}

    def plot(data: Data, *, ax: Any = None) -> Any:
        """Draw the held-out loss of every method over its multiply-accumulates."""
        found = {title: _found(data, grid, method) for method, title in _TITLES.items()}
        return draw_curves({name: one.runs[0] for name, one in found.items() if one.runs}, ax=ax)

    title = f"Other methods without back-propagation, {layers}"
    return grid_study(
        name,
        number,
        title,
        grids,
        lambda data, paper: _rows(data, paper, grid, backprop),
        plot,
        None,
        conditions,
    )


ALL_LAYERS = _study(
    "bp-free-methods",
    "Table 5",
    "all layers",
    {"none": "cifar10c_backprop", "input+align+head": "cifar10c_filters_backprop"},
    "Runs of the paper's method and the default, which train block 2 and the head, and of "
    "back-propagation, of all layers, are table 7's.",
)
SAME_LAYERS = _study(
    "bp-free-methods-same-layers",
    "Table 6",
    "the same layers",
    {
        "none": "bp_free_methods_backprop_unprepared",
        "input+align+head": "bp_free_methods_backprop",
    },
    "MeZO, DeepZero and back-propagation without the preparation train only block 2, as the "
    "published forward counts show; the others train the head, too. Runs of the paper's method "
    "and the default are table 7's.",
)
