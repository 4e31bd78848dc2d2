"""A grid as it stands in its TOML file: which tables there are, of which types."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from pmt import corruptions
from pmt._util.checks import FileProblems
from pmt._util.parsing import parse_toml
from pmt._util.text import did_you_mean
from pmt.corruptions import CONSTANTS
from pmt.protocol import PROTOCOLS
from pmt.train.prepare.preparation import PREPARATIONS

__all__ = [
    "CLEAN",
    "TYPE_NAMES",
    "Grid",
    "GridError",
    "MethodTable",
    "Problems",
    "Tuning",
    "read_grid",
]


# The corruption of a run on clean images.
CLEAN = "none"
_TABLES: dict[str, dict[str, type]] = {
    "model": {"path": str, "classes": int, "resolution": int},
    "data": {"path": str, "coarse_labels": bool, "constants": str, "corruption_seed": int},
    "protocol": {"name": str, "images": int, "held_out": int, "test_images": int, "seed": int},
    "budget": {"macs": float},
    "axes": {
        "methods": list,
        "corruptions": list,
        "severities": list,
        "layers": list,
        "preparations": list,
        "seeds": list,
    },
    "tuning": {"factors": list, "corruption": str, "severity": int, "seed": int},
    "options": {},
    "method": {},
}
_FACTORS = [0.1, 0.3, 1.0, 3.0]
# Not among the seeds of the tables: the order of the images, too, is then another one.
_TUNING_SEED = 101
_SEEDS = 2**32
TYPE_NAMES = {
    str: "text",
    int: "a whole number",
    float: "a number",
    bool: "true or false",
    list: "a list",
}

_PLURALS = {str: "names", int: "whole numbers"}


class GridError(FileProblems):
    """A grid that cannot be run.

    Attributes
    ----------
    path : str
        The grid file.
    problems : tuple of str
        Each names the place, the value, the rule and the remedy.
    """


class Problems:
    """Collects problems, so that a user can fix them all at once.

    Parameters
    ----------
    path : str
        The grid file, for the error.
    """

    def __init__(self, path: str) -> None:
        self.path = path
        self.found: list[str] = []

    def add(self, problem: str) -> None:
        """Note a problem; the same one only once."""
        text = " ".join(problem.split())
        if text not in self.found:
            self.found.append(text)

    def stop(self) -> None:
        """Raise GridError if anything was found."""
        if self.found:
            raise GridError(self.path, self.found)


@dataclass(frozen=True)
class MethodTable:
    """A method of the grid: its name there, the method it is based on, and its own options."""

    name: str
    base: str
    options: Mapping[str, Any]


@dataclass(frozen=True)
class Tuning:
    """Trials of learning rates, the same for every method.

    Attributes
    ----------
    factors : tuple of float
        Factors of a method's own rate, ascending.
    corruption, severity : str, int
        Images of the trials.
    seed : int
        Seed of the trials.
    """

    factors: tuple[float, ...]
    corruption: str
    severity: int
    seed: int


@dataclass(frozen=True)
class Grid:
    """Contents of a grid file, with its defaults filled in; not yet compared with the model.

    Attributes
    ----------
    path : str
        The file, for errors.
    model : dict
        ``path``; ``classes`` and ``resolution`` where given.
    data : dict
        ``path``, ``coarse_labels``, ``constants``, ``corruption_seed``.
    protocol : dict
        ``name``, ``images``, ``held_out``, ``test_images``, ``seed``, see
        :func:`pmt.protocol.split`.
    macs : int
        Budget of every run; 0 leaves each method its own ``epochs``.
    methods : tuple of MethodTable
    corruptions : tuple of str
        ``"none"`` is the clean images.
    severities, seeds : tuple of int
    layers : tuple of str
    options : dict
        Options of all methods.
    preparations : tuple of str
        Preparations that every method runs with; without any, each keeps its own.
    tuning : Tuning or None
        Trials that choose the learning rates; without them, each method keeps its own.
    """

    path: str
    model: Mapping[str, Any]
    data: Mapping[str, Any]
    protocol: Mapping[str, Any]
    macs: int
    methods: tuple[MethodTable, ...]
    corruptions: tuple[str, ...]
    severities: tuple[int, ...]
    layers: tuple[str, ...]
    seeds: tuple[int, ...]
    options: Mapping[str, Any] = field(default_factory=dict)
    preparations: tuple[str, ...] = ()
    tuning: Tuning | None = None


def read_grid(path: str | Path, problems: Problems | None = None) -> Grid:
    """Read a grid file.

    Parameters
    ----------
    path : str or pathlib.Path
        A TOML file; lab/pages/sweeps.md describes its tables.
    problems : Problems, optional
        Collects what is wrong, which is then not raised: the grid lacks it.

    Returns
    -------
    Grid
        The grid.

    Raises
    ------
    GridError
        If it is not TOML, or an entry is unknown, missing, of another type or out of range; it
        lists all that is wrong.
    FileNotFoundError
        If there is no such file.
    """
    alone = problems is None
    problems = problems if problems is not None else Problems(str(path))
    tables = _parsed(Path(path), problems)
    for name in tables:
        if name not in _TABLES:
            problems.add(f"[{name}] is not a table of a grid{did_you_mean(name, _TABLES)}")
        elif not isinstance(tables[name], dict):
            problems.add(f"{name} = {tables[name]!r} must be a table: [{name}]")
    found = {
        name: table if isinstance(table := tables.get(name, {}), dict) else {} for name in _TABLES
    }
    for name, known in _TABLES.items():
        if known:
            _check_entries(name, found[name], known, problems)
    grid = _grid(str(path), found, problems, tuned="tuning" in tables)
    if alone:
        problems.stop()
    return grid


def _parsed(path: Path, problems: Problems) -> dict[str, Any]:
    try:
        return parse_toml(path.read_bytes(), path)
    except ValueError as error:
        problems.add(str(error).removeprefix(f"{path}: "))
        problems.stop()
        raise


def _check_entries(
    name: str, table: dict[str, Any], known: Mapping[str, type], problems: Problems
) -> None:
    """Note entries that are unknown or of another type, and leave them out of the table."""
    for key in list(table):
        value = table[key]
        if key not in known:
            problems.add(f"[{name}] {key} is unknown{did_you_mean(key, known)}")
        elif not _is_a(value, known[key]):
            problems.add(f"[{name}] {key} = {value!r} must be {TYPE_NAMES[known[key]]}")
        else:
            continue
        del table[key]


def _is_a(value: Any, kind: type) -> bool:
    if kind is float:
        return isinstance(value, int | float) and not isinstance(value, bool)
    return isinstance(value, kind) and not (kind is int and isinstance(value, bool))


def _grid(path: str, tables: dict[str, dict[str, Any]], problems: Problems, *, tuned: bool) -> Grid:
    for name in ("model", "data"):
        if not tables[name].get("path"):
            problems.add(f"[{name}] path is missing: give the {name}'s file, folder or name")
    axes = {
        "corruptions": _axis(tables, "corruptions", str, (CLEAN,), problems),
        "severities": _axis(tables, "severities", int, (5,), problems),
        "layers": _axis(tables, "layers", str, ("all",), problems),
        "preparations": _preparations(tables, problems),
        "seeds": _axis(tables, "seeds", int, (1, 2, 3), problems),
    }
    for name in axes["corruptions"]:
        _check_corruption("[axes] corruptions:", name, problems)
    for severity in axes["severities"]:
        _check_severity("[axes] severities:", severity, problems)
    for seed in axes["seeds"]:
        _check_seed("[axes] seeds:", seed, problems)
    return Grid(
        path,
        tables["model"],
        _data(tables["data"], problems),
        _protocol(tables["protocol"], problems),
        _macs(tables["budget"], problems),
        _methods(tables, problems),
        options=tables["options"],
        tuning=_tuning(tables["tuning"], axes, problems) if tuned else None,
        **axes,
    )


def _check_corruption(place: str, name: str, problems: Problems) -> None:
    known = [CLEAN, *corruptions.names()]
    if name not in known:
        problems.add(f"{place} {name!r} is unknown{did_you_mean(name, known)}")


def _check_severity(place: str, severity: int, problems: Problems) -> None:
    if severity not in corruptions.SEVERITIES:
        problems.add(f"{place} {severity} must be 1..5")


def _check_seed(place: str, seed: int, problems: Problems) -> None:
    if not 0 <= seed < _SEEDS:
        problems.add(f"{place} {seed} must be 0..2^32-1")


def _preparations(tables: dict[str, dict[str, Any]], problems: Problems) -> tuple[str, ...]:
    if "preparations" not in tables["axes"]:
        return ()
    names: tuple[str, ...] = _axis(tables, "preparations", str, (), problems)
    for name in names:
        if name not in PREPARATIONS:
            near = did_you_mean(name, PREPARATIONS)
            problems.add(f"[axes] preparations: {name!r} is unknown{near}")
    return tuple(name for name in names if name in PREPARATIONS)


def _tuning(table: dict[str, Any], axes: Mapping[str, Any], problems: Problems) -> Tuning:
    corruption = table.get("corruption", next(iter(axes["corruptions"]), CLEAN))
    severity = table.get("severity", next(iter(axes["severities"]), 5))
    seed = table.get("seed", _TUNING_SEED)
    if "corruption" in table:
        _check_corruption("[tuning] corruption =", corruption, problems)
    if "severity" in table:
        _check_severity("[tuning] severity =", severity, problems)
        if corruption == CLEAN:
            problems.add(f"[tuning] severity = {severity}: clean images have none; leave it out")
    _check_seed("[tuning] seed =", seed, problems)
    factors = table.get("factors", _FACTORS)
    good = {float(f) for f in factors if _is_a(f, float) and math.isfinite(f) and f > 0}
    if len(good) < len(factors) or len(good) < 2:
        problems.add(
            f"[tuning] factors = {factors!r} must be a list of two or more distinct numbers > 0, "
            f"for example {_FACTORS}"
        )
    return Tuning(tuple(sorted(good)), corruption, 0 if corruption == CLEAN else severity, seed)


def _macs(table: dict[str, Any], problems: Problems) -> int:
    """Return the budget, 0 without one; 2e13 is a float in TOML, and wanted as a whole number."""
    macs = table.get("macs", 0)
    if "macs" in table and not (1 <= macs <= 10**18 and int(macs) == macs):
        problems.add(f"[budget] macs = {macs} must be 1..1e18 multiply-accumulates per run, whole")
        return 0
    return int(macs)


def _axis(
    tables: dict[str, dict[str, Any]], name: str, kind: type, default: Any, problems: Problems
) -> Any:
    """Return the values of an axis, as a tuple without those that are wrong."""
    values = tables["axes"].get(name, default)
    good = tuple(dict.fromkeys(value for value in values if _is_a(value, kind)))
    if len(good) < len(values) or not good:
        problems.add(
            f"[axes] {name} = {values!r} must be a list of distinct {_PLURALS[kind]}"
            f"{'' if values else ', at least one'}"
        )
    return good


def _data(table: dict[str, Any], problems: Problems) -> dict[str, Any]:
    data = {"coarse_labels": False, "constants": "cifar10", "corruption_seed": 0, **table}
    if data["constants"] not in CONSTANTS:
        near = did_you_mean(data["constants"], CONSTANTS)
        problems.add(f"[data] constants = {data['constants']!r} is unknown{near}")
    if data["corruption_seed"] < 0:
        problems.add(f"[data] corruption_seed = {data['corruption_seed']} must be 0 or more")
    return data


def _protocol(table: dict[str, Any], problems: Problems) -> dict[str, Any]:
    protocol = {"name": "default", "seed": 0, **table}
    if protocol["name"] not in PROTOCOLS:
        near = did_you_mean(protocol["name"], PROTOCOLS)
        problems.add(f"[protocol] name = {protocol['name']!r} is unknown{near}")
    own = [key for key in ("images", "held_out") if key in table]
    if protocol["name"] == "paper" and own:
        problems.add(f"[protocol] {own[0]}: the paper's protocol has its own number; leave it out")
    if protocol["name"] == "default":
        protocol = {"images": 1100, "held_out": 100, **protocol}
        if protocol["held_out"] < 1:
            problems.add(
                f"[protocol] held_out = {protocol['held_out']} must be 1 or more: the checkpoint "
                "that is tested is chosen on these images"
            )
    return {"test_images": 0, **protocol}


def _methods(tables: dict[str, dict[str, Any]], problems: Problems) -> tuple[MethodTable, ...]:
    names = _axis(tables, "methods", str, ("default",), problems)
    for name in tables["method"]:
        if name not in names:
            problems.add(f"[method.{name}] is not among [axes] methods{did_you_mean(name, names)}")
    methods = []
    for name in names:
        table = tables["method"].get(name, {})
        if not isinstance(table, dict):
            problems.add(f"method.{name} = {table!r} must be a table: [method.{name}]")
            table = {}
        base = table.get("base", name)
        if not isinstance(base, str):
            problems.add(f"[method.{name}] base = {base!r} must be text")
            base = name
        options = {key: value for key, value in table.items() if key != "base"}
        methods.append(MethodTable(name, base, options))
    return tuple(methods)
