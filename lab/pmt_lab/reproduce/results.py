"""The measurements of a study, as one JSON file that is versioned with the code."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from pmt._util import atomic_file
from pmt._util.origin import origin
from pmt._util.parsing import parse_json
from pmt._util.spread_json import spread_json
from pmt_lab.benchmark.timing import processor

__all__ = [
    "checkout_folder",
    "load",
    "path_of",
    "record",
    "refuse_loss",
    "same_runs",
    "save",
    "settings_of",
    "with_sources",
]

_REMEDY = "remove the file, and `pmt-lab reproduce` makes it again"
_KEYS: dict[str, tuple[type, ...]] = {
    "study": (str,),
    "scale": (str,),
    "pmt": (str,),
    "commit": (str, type(None)),
    "date": (str,),
    "machine": (str,),
    "seconds": (int, float),
    "data": (dict,),
}
_RUN_KEYS: dict[str, type | tuple[type, ...]] = {
    "axes": dict,
    "base": str,
    "options": dict,
    "train_seconds": (int, float),
    "before": dict,
    "after": dict,
    "curve": list,
}
_AXES = ("method", "layers", "preparation", "seed")
_TUNING_KEYS = ("at_edge", "learning_rate", "trials")
_SETTINGS = ("model", "protocol", "macs")
_SOURCE = ("commit", "date", "machine")
# Levels of the JSON that are spread over lines: down to one line per run.
_SPREAD = 5


def record(study: str, scale: str, data: Mapping[str, Any], seconds: float) -> dict[str, Any]:
    """Return a study's result: what was measured, by which version, when, where and how long.

    Parameters
    ----------
    study : str
        Name of the study.
    scale : {"small", "full"}
        Its budget.
    data : dict
        What its ``measure`` returned. ``seconds`` in it, the time of its runs, goes before the
        argument of that name.
    seconds : float
        How long it took.
    """
    return {
        "study": study,
        "scale": scale,
        **origin(),
        "machine": processor(),
        "seconds": round(data.get("seconds", seconds), 1),
        "data": {name: value for name, value in data.items() if name != "seconds"},
    }


def save(result: Mapping[str, Any], folder: str | Path) -> Path:
    """Write a result into a folder, which is made if it is missing; the file is whole or absent."""
    path = path_of(result["study"], folder)
    path.parent.mkdir(parents=True, exist_ok=True)
    atomic_file.write_text(path, spread_json(result, _SPREAD) + "\n")
    return path


def load(study: str, folder: str | Path | None = None) -> dict[str, Any]:
    """Read a study's result.

    Parameters
    ----------
    study : str
        Name of the study, such as ``"cifar10c-accuracy"``.
    folder : str or pathlib.Path, optional
        Folder of results; by default ``lab/results`` of the checkout.

    Returns
    -------
    dict
        As :func:`record` makes it; the study's own figures are in ``data``.

    Raises
    ------
    FileNotFoundError
        If there is none.
    ValueError
        If the file is damaged, or another study's.
    """
    path = path_of(study, checkout_folder() if folder is None else folder)
    try:
        text = path.read_bytes()
    except FileNotFoundError:
        raise FileNotFoundError(
            f"{path}: no result of {study}; `pmt-lab reproduce {study}` makes it"
        ) from None
    result = parse_json(text, path, _REMEDY)
    if not isinstance(result, dict) or not all(key in result for key in _KEYS):
        raise ValueError(f"{path}: is not a result of a study; {_REMEDY}")
    for key, types in _KEYS.items():
        if not isinstance(result[key], types) or isinstance(result[key], bool):
            raise ValueError(f"{path}: {key} {result[key]!r} is damaged; {_REMEDY}")
    if result["scale"] not in ("small", "full"):
        raise ValueError(f"{path}: scale {result['scale']!r} is damaged; {_REMEDY}")
    if result["study"] != study:
        raise ValueError(f"{path}: is a result of {result['study']}; {_REMEDY}")
    if not result["data"]:
        raise ValueError(f"{path}: data is empty; {_REMEDY}")
    wrong = _damage(result["data"].get("grids", {}))
    if wrong:
        raise ValueError(f"{path}: {wrong} is damaged; {_REMEDY}")
    return result


def _damage(grids: Any) -> str:
    """Return which part of the grids lacks what every reader takes for granted."""
    if not isinstance(grids, dict):
        return "grids"
    for name, grid in grids.items():
        lists = ("runs", "missing")
        if not isinstance(grid, dict) or not all(key in grid for key in _SETTINGS):
            return f"grid {name}"
        if not all(isinstance(grid.get(key), list) for key in lists):
            return f"grid {name}"
        if not isinstance(grid.get("failed"), dict):
            return f"grid {name}"
        for place, run in enumerate(grid["runs"]):
            if not _is_run(run):
                return f"run {place} of grid {name}"
    return ""


def _is_run(run: Any) -> bool:
    if not isinstance(run, dict):
        return False
    tuning = run.get("tuning", dict.fromkeys(_TUNING_KEYS))
    return (
        all(isinstance(run.get(key), kind) for key, kind in _RUN_KEYS.items())
        and all(key in run["axes"] for key in _AXES)
        and isinstance(tuning, dict)
        and all(key in tuning for key in _TUNING_KEYS)
        and all(
            _is_share(one) for part in ("before", "after") for one in run.get(part, {}).values()
        )
    )


def _is_share(measured: Any) -> bool:
    """Whether a measurement has an accuracy from 0 to 1."""
    accuracy = measured.get("accuracy") if isinstance(measured, dict) else None
    return isinstance(accuracy, int | float) and 0 <= accuracy <= 1


def refuse_loss(path: Path, scale: str, new: Mapping[str, Any] | None = None) -> None:
    """Raise a ValueError if a result would be lost.

    That is one of another scale or grid, with more runs, or with a measurement that the new one
    lacks.

    Parameters
    ----------
    path : pathlib.Path
        File that is about to be replaced; without it nothing is lost.
    scale : {"small", "full"}
        Scale of the new result.
    new : dict, optional
        The new result; by default only scales are compared.
    """
    if not path.exists():
        return
    found = load(path.stem, path.parent)
    remedy = "give --results another folder, or --force to replace the file"
    if found["scale"] != scale:
        raise ValueError(f"{path}: is of {found['scale']} scale, the new one {scale}; {remedy}")
    if new is None:
        return
    left = _runs_of_grids(new)
    for grid, runs in _runs_of_grids(found).items():
        if runs > left.get(grid, 0):
            raise ValueError(
                f"{path}: holds {runs} runs of {grid}, the new one {left.get(grid, 0)}; {remedy}"
            )
    lost = sorted(_measured(found) - _measured(new))
    if lost:
        raise ValueError(
            f"{path}: holds {', '.join(lost)}, which could not be measured here; {remedy}"
        )
    for grid, one in new["data"].get("grids", {}).items():
        old = found["data"].get("grids", {}).get(grid)
        if old and old["runs"] and settings_of(old) != settings_of(one):
            raise ValueError(
                f"{path}: its runs of {grid} have another model, protocol or budget; {remedy}"
            )


def _runs_of_grids(result: Mapping[str, Any]) -> dict[str, int]:
    return {name: len(grid["runs"]) for name, grid in result["data"].get("grids", {}).items()}


def same_runs(one: Mapping[str, Any], other: Mapping[str, Any]) -> bool:
    """Return whether two results of sweeps have the same runs, and measured the same beside them.

    Runs are the same by their place in the grid, method and options.
    """
    grids, others = one["data"].get("grids"), other["data"].get("grids")
    if grids is None or others is None or _measured(one) != _measured(other):
        return False
    return _known_runs(grids) == _known_runs(others)


def _known_runs(grids: Mapping[str, Any]) -> dict[str, Any]:
    keys = ("axes", "base", "options")
    return {
        name: (
            settings_of(grid),
            sorted(json.dumps([run[key] for key in keys], sort_keys=True) for run in grid["runs"]),
        )
        for name, grid in grids.items()
    }


def _measured(result: Mapping[str, Any]) -> set[str]:
    """Return the names of what a study measured beside its runs."""
    return {name for name, value in result["data"].items() if name != "grids" and value is not None}


def with_sources(result: Mapping[str, Any]) -> dict[str, dict[str, Any]]:
    """Return the grids of a result, whose runs say the commit, date and machine they are from."""
    source = {name: result[name] for name in _SOURCE}
    return {
        name: {**grid, "runs": [{**source, **run} for run in grid["runs"]]}
        for name, grid in result["data"].get("grids", {}).items()
    }


def settings_of(grid: Mapping[str, Any]) -> dict[str, Any]:
    """Return model, protocol and budget of a result's grid; grids alike in them compare."""
    return {name: grid[name] for name in _SETTINGS}


def path_of(study: str, folder: str | Path) -> Path:
    """Return the file of a study's result."""
    return Path(folder) / f"{study}.json"


def checkout_folder() -> Path:
    """Return ``lab/results`` of the checkout that holds the package or the working directory.

    Raises
    ------
    FileNotFoundError
        If neither is in a checkout.
    """
    for start in (Path(__file__), Path.cwd() / "file"):
        for parent in start.absolute().parents:
            if (parent / "lab" / "results").is_dir():
                return parent / "lab" / "results"
    raise FileNotFoundError(
        "lab/results is not found; run in a checkout of pmt, or give the folder of results"
    )
