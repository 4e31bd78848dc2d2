"""The TOML file of a grid: read, checked and completed with its defaults."""

import importlib
import math
import sys
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from pmt import corruptions
from pmt.protocol import PROTOCOLS
from pmt.train.prepare import PREPARATIONS
from pmt_lab.files import did_you_mean

tomllib = importlib.import_module("tomllib" if sys.version_info >= (3, 11) else "tomli")

# The corruption of a run on clean images.
CLEAN = "none"
TABLES: dict[str, dict[str, type]] = {
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
_TYPES = {
    str: "text",
    int: "a whole number",
    float: "a number",
    bool: "true or false",
    list: "a list",
}
_CONSTANTS = ("cifar10", "imagenet")
_FACTORS = [0.1, 0.3, 1.0, 3.0]
# Not among the seeds of the tables: the order of the images, too, is then another one.
_TUNING_SEED = 101
_SEEDS = 2**32
FEWEST_HELD_OUT = 4  # images that the checkpoint which is tested is chosen on


class GridError(ValueError):
    """A grid that cannot be run; each problem names the place, the value, the rule, the remedy."""

    def __init__(self, path: str, problems: Iterable[str]) -> None:
        self.problems = tuple(dict.fromkeys(" ".join(one.split()) for one in problems))
        super().__init__("\n".join(f"{path}: {problem}" for problem in self.problems))


@dataclass(frozen=True)
class MethodTable:
    """A method of the grid: its name there, the method it is based on, and its own options."""

    name: str
    base: str
    options: Mapping[str, Any]


@dataclass(frozen=True)
class Tuning:
    """Trials of learning rates, the same for every method.

    ``factors`` of a method's own rate are ascending; the others are images and seed of the trials.
    """

    factors: tuple[float, ...]
    corruption: str
    severity: int
    seed: int


@dataclass(frozen=True)
class Grid:
    """Contents of a grid file, with its defaults filled in; not yet compared with the model.

    ``path`` is the file, for errors; ``model``, ``data``, ``protocol`` and ``options`` are its
    tables. ``macs`` is the budget of every run; 0 leaves each method its own ``epochs``. Without
    ``preparations`` each method keeps its own, and without ``tuning`` its learning rate.
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

    @property
    def shifts(self) -> list[tuple[str, int]]:
        """Corruptions with their severities; clean images have severity 0."""
        return [
            (corruption, severity)
            for corruption in self.corruptions
            for severity in ((0,) if corruption == CLEAN else self.severities)
        ]


def read_grid(path: str | Path, problems: list[str] | None = None) -> Grid:
    """Read a grid file, whose tables lab/pages/sweeps.md describes.

    A GridError says that it is not TOML, and lists each entry that is unknown, missing, of another
    type or out of range; ``problems`` gets these instead, and the grid lacks them.
    """
    try:
        tables = _tables(Path(path))
    except ValueError as error:
        raise GridError(str(path), [f"is not valid TOML: {error}"]) from None
    wrong: list[str] = []
    grid = _grid(str(path), _checked(tables, wrong), wrong)
    if problems is None and wrong:
        raise GridError(str(path), wrong)
    if problems is not None:
        problems += wrong
    return grid


def _tables(path: Path) -> dict[str, Any]:
    """Return the tables of a file, with the entries of the one that it is ``like``."""
    tables: dict[str, Any] = tomllib.loads(path.read_bytes().decode())
    if "like" not in tables:
        return tables
    whole = _tables(path.parent / str(tables.pop("like")))
    for name, table in tables.items():
        both = isinstance(table, dict) and isinstance(whole.get(name), dict)
        whole[name] = {**whole[name], **table} if both else table
    return whole


def _checked(tables: dict[str, Any], wrong: list[str]) -> dict[str, dict[str, Any]]:
    """Return all tables, without entries that are unknown or of another type."""
    for name, table in tables.items():
        if name not in TABLES:
            wrong.append(f"[{name}] is not a table of a grid{did_you_mean(name, TABLES)}")
        elif not isinstance(table, dict):
            wrong.append(f"{name} = {table!r} must be a table: [{name}]")
    found = {}
    for name, known in TABLES.items():
        if name == "tuning" and name not in tables:  # without the table, no rate is tuned
            continue
        table = tables.get(name, {})
        found[name] = dict(table) if isinstance(table, dict) else {}
        for key in list(found[name]) if known else ():
            value = found[name][key]
            if key not in known:
                wrong.append(f"[{name}] {key} is unknown{did_you_mean(key, known)}")
            elif not _is_a(value, known[key]):
                wrong.append(f"[{name}] {key} = {value!r} must be {_TYPES[known[key]]}")
            else:
                continue
            del found[name][key]
    return found


def _is_a(value: Any, kind: type) -> bool:
    """Whether a value is of a type; whole numbers are floats too, and bools are no numbers."""
    numbers = int | float if kind is float else kind
    return isinstance(value, numbers) and (kind is bool or not isinstance(value, bool))


def _grid(path: str, tables: dict[str, dict[str, Any]], wrong: list[str]) -> Grid:
    for name in ("model", "data"):
        if not tables[name].get("path"):
            wrong.append(f"[{name}] path is missing: give the {name}'s file, folder or name")

    def axis(name: str, kind: type, default: tuple[Any, ...]) -> tuple[Any, ...]:
        values = tables["axes"].get(name, list(default))
        good = tuple(dict.fromkeys(value for value in values if _is_a(value, kind)))
        if len(good) < len(values) or (not good and name in tables["axes"]):
            what = {str: "names", int: "whole numbers"}[kind]
            least = "" if values else ", at least one"
            wrong.append(f"[axes] {name} = {values!r} must be a list of distinct {what}{least}")
        return good

    def known(place: str, name: str, names: Iterable[str]) -> None:
        if name not in (names := list(names)):
            wrong.append(f"{place} {name!r} is unknown{did_you_mean(name, names)}")

    def within(place: str, value: int, rule: str, good: bool) -> None:
        if not good:
            wrong.append(f"{place} {value} must be {rule}")

    axes = {
        "corruptions": axis("corruptions", str, (CLEAN,)),
        "severities": axis("severities", int, (5,)),
        "layers": axis("layers", str, ("all",)),
        "preparations": axis("preparations", str, ()),
        "seeds": axis("seeds", int, (1, 2, 3)),
    }
    names = (CLEAN, *corruptions.names())
    for corruption in axes["corruptions"]:
        known("[axes] corruptions:", corruption, names)
    for severity in axes["severities"]:
        within("[axes] severities:", severity, "1..5", severity in corruptions.SEVERITIES)
    for preparation in axes["preparations"]:
        known("[axes] preparations:", preparation, PREPARATIONS)
    for seed in axes["seeds"]:
        within("[axes] seeds:", seed, "0..2^32-1", 0 <= seed < _SEEDS)

    data = {"coarse_labels": False, "constants": "cifar10", "corruption_seed": 0, **tables["data"]}
    known("[data] constants =", data["constants"], _CONSTANTS)
    seed = data["corruption_seed"]
    within("[data] corruption_seed =", seed, "0 or more", seed >= 0)

    budget = tables["budget"].get("macs", 0)  # 2e13 is a float in TOML
    sound = budget == 0 if "macs" not in tables["budget"] else 1 <= budget <= 10**18
    sound = sound and int(budget) == budget
    within("[budget] macs =", budget, "1..1e18 multiply-accumulates per run, whole", sound)

    tuning = None
    if "tuning" in tables:
        tuning = _tuning(tables["tuning"], axes, wrong)
        known("[tuning] corruption =", tuning.corruption, names)
        good = tuning.severity in (corruptions.SEVERITIES if tuning.severity else (0,))
        within("[tuning] severity =", tuning.severity, "1..5", good)
        within("[tuning] seed =", tuning.seed, "0..2^32-1", 0 <= tuning.seed < _SEEDS)
    methods = _methods(axis("methods", str, ("default",)), tables["method"], wrong)
    protocol = _protocol(tables["protocol"], wrong)
    macs = int(budget) if sound else 0
    options = tables["options"]
    return Grid(
        path, tables["model"], data, protocol, macs, methods, options=options, tuning=tuning, **axes
    )


def _tuning(table: dict[str, Any], axes: Mapping[str, Any], wrong: list[str]) -> Tuning:
    corruption = table.get("corruption", next(iter(axes["corruptions"]), CLEAN))
    severity = table.get("severity", next(iter(axes["severities"]), 5))
    if corruption == CLEAN:
        severity = 0
    factors = table.get("factors", _FACTORS)
    good = {float(f) for f in factors if _is_a(f, float) and math.isfinite(f) and f > 0}
    if len(good) < len(factors) or len(good) < 2:
        wrong.append(
            f"[tuning] factors = {factors!r} must be a list of two or more distinct numbers > 0, "
            f"for example {_FACTORS}"
        )
    return Tuning(tuple(sorted(good)), corruption, severity, table.get("seed", _TUNING_SEED))


def _protocol(table: dict[str, Any], wrong: list[str]) -> dict[str, Any]:
    protocol = {"name": "default", "seed": 0, **table}
    if protocol["name"] not in PROTOCOLS:
        near = did_you_mean(protocol["name"], PROTOCOLS)
        wrong.append(f"[protocol] name = {protocol['name']!r} is unknown{near}")
    own = [key for key in ("images", "held_out") if key in table]
    if protocol["name"] == "paper" and own:
        wrong.append(f"[protocol] {own[0]}: the paper's protocol has its own number; leave it out")
    if protocol["name"] == "default":
        protocol = {"images": 1100, "held_out": 100, **protocol}
        if protocol["held_out"] < FEWEST_HELD_OUT:
            wrong.append(
                f"[protocol] held_out = {protocol['held_out']} must be {FEWEST_HELD_OUT} or more: "
                "the checkpoint that is tested is chosen on these images"
            )
    return {"test_images": 0, **protocol}


def _methods(
    names: tuple[str, ...], tables: Mapping[str, Any], wrong: list[str]
) -> tuple[MethodTable, ...]:
    for name in tables:
        if name not in names:
            wrong.append(f"[method.{name}] is not among [axes] methods{did_you_mean(name, names)}")
    methods = []
    for name in names:
        table = tables.get(name, {})
        if not isinstance(table, dict):
            wrong.append(f"method.{name} = {table!r} must be a table: [method.{name}]")
            table = {}
        base = table.get("base", name)
        if not isinstance(base, str):
            wrong.append(f"[method.{name}] base = {base!r} must be text")
            base = name
        options = {key: value for key, value in table.items() if key != "base"}
        methods.append(MethodTable(name, base, options))
    return tuple(methods)
