"""The methods that a grid may name, and their options checked against each method's own."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any

from pmt import methods
from pmt._util.text import did_you_mean
from pmt_lab.sweep.grid_file import TYPE_NAMES, Grid, MethodTable, Problems
from pmt_lab.sweep.run_spec import NO_ADAPTATION

__all__ = ["changed_options", "check_methods", "preparations_of", "takes_steps"]

# Options that the grid has elsewhere, for every method alike.
_ELSEWHERE = {"seed": "[axes] seeds", "macs": "[budget] macs"}
_AXES = ("layers", "preparation", "seed")


def check_methods(grid: Grid, problems: Problems) -> dict[str, dict[str, Any]]:
    """Return every method's options without those of the axes and the budget.

    Methods with problems are left out. An entry of ``[options]`` goes to the methods that have such
    an option; one that no method has is a problem.
    """
    methods.load_plugins()
    defaults = {table.name: _defaults(table, problems) for table in grid.methods}
    every = sorted({key for known in defaults.values() if known for key in known})
    for name in grid.options if every else ():  # without a known method all would be wrong
        if name not in every:
            near = did_you_mean(name, every)
            problems.add(f"[options] {name} is not an option of any method{near}")
    checked = {}
    for table in grid.methods:
        known = defaults[table.name]
        if known is None:
            continue
        shared = {k: v for k, v in grid.options.items() if k in known}
        own = _checked(f"[method.{table.name}]", table.options, known, grid, problems)
        checked[table.name] = {**_checked("[options]", shared, known, grid, problems), **own}
        fixed = _own_layers(table.base) if known else None
        if fixed is not None:
            checked[table.name].setdefault("layers", fixed)
    return checked


def changed_options(base: str, options: Mapping[str, Any]) -> dict[str, Any]:
    """Return the options that differ from the method's own, but those of the axes."""
    if base == NO_ADAPTATION:
        return {}
    own = dataclasses.asdict(methods.trainer(base, threads=1).options)
    return {
        name: value
        for name, value in options.items()
        if name not in _AXES and (name not in own or own[name] != value)
    }


def takes_steps(base: str) -> bool:
    """Whether a method trains after its preparation, so that its learning rate matters."""
    return methods.method(base).kind.name != NO_ADAPTATION


def preparations_of(
    table: MethodTable, own: Mapping[str, Any], grid: Grid, problems: Problems
) -> list[dict[str, Any]]:
    """Return the option of each preparation that a method runs with.

    That of its own table goes before the axis; without either it keeps its default. A method that
    is a preparation alone leaves out none.
    """
    if "preparation" in own or not grid.preparations:
        return [{}]
    names = [name for name in grid.preparations if name != "none" or takes_steps(table.base)]
    if not names:
        problems.add(
            f"[axes] preparations: {table.name!r} needs one other than none; add one, or leave out "
            "the method"
        )
    return [{"preparation": name} for name in names]


def _own_layers(base: str) -> str | None:
    """Return the layers of a method that are part of what it is; None where the axis says them."""
    layers = getattr(methods.trainer(base, threads=1).options, "layers", "all")
    return str(layers) if methods.method(base).own_layers or layers != "all" else None


def _defaults(table: MethodTable, problems: Problems) -> dict[str, Any] | None:
    if table.base == NO_ADAPTATION:
        return {}
    place = "[axes] methods" if table.base == table.name else f"[method.{table.name}] base"
    if table.base not in methods.METHODS:
        near = did_you_mean(table.base, methods.METHODS)
        problems.add(f"{place}: {table.base!r} is not a method{near}")
        return None
    try:
        return dataclasses.asdict(methods.trainer(table.base, threads=1).options)
    except ImportError as error:
        problems.add(f"{place}: {table.base!r}: {error}")
        return None


def _checked(
    place: str,
    options: Mapping[str, Any],
    known: Mapping[str, Any],
    grid: Grid,
    problems: Problems,
) -> dict[str, Any]:
    """Return the options with whole numbers as floats where floats are meant: one hash for both."""
    checked = {}
    for name, value in options.items():
        if name not in known:
            remedy = did_you_mean(name, known) if known else "; this method has no options"
            problems.add(f"{place} {name} is unknown{remedy}")
        elif name in _elsewhere(place, grid):
            problems.add(f"{place} {name}: give {_elsewhere(place, grid)[name]} instead")
        elif name == "epochs" and grid.macs:
            problems.add(
                f"{place} epochs: [budget] macs says how long all methods train; leave one"
            )
        elif isinstance(known[name], float) and type(value) is int:
            checked[name] = float(value)
        elif type(value) is not type(known[name]):
            problems.add(f"{place} {name} = {value!r} must be {TYPE_NAMES[type(known[name])]}")
        else:
            checked[name] = value
    return checked


def _elsewhere(place: str, grid: Grid) -> dict[str, str]:
    """Return the options that are given elsewhere, and where."""
    if place != "[options]":
        return _ELSEWHERE
    preparation = {"preparation": "[axes] preparations"} if grid.preparations else {}
    return {**_ELSEWHERE, "layers": "[axes] layers", **preparation}
