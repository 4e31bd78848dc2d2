"""The measurements of a study, as one JSON file that is versioned with the code."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from pmt_lab.benchmark.timing import processor
from pmt_lab.files import origin, read_json, spread_json, write_text

_REMEDY = "remove the file, and `pmt-lab reproduce` makes it again"
_KEYS = {"study", "scale", "pmt", "commit", "date", "machine", "seconds", "data"}
_SETTINGS = ("model", "protocol", "macs")
_SOURCE = ("commit", "date", "machine")
# Levels of the JSON that are spread over lines: down to one line per run.
_SPREAD = 5

Result = Mapping[str, Any]


def record(study: str, scale: str, data: Mapping[str, Any], seconds: float) -> dict[str, Any]:
    """Return a study's result: the figures, the version, the date, the machine and the time.

    ``seconds`` in the data, the time of its runs, goes before the argument of that name.
    """
    return {
        "study": study,
        "scale": scale,
        **origin(),
        "machine": processor(),
        "seconds": round(data.get("seconds", seconds), 1),
        "data": {name: value for name, value in data.items() if name != "seconds"},
    }


def save(result: Result, folder: str | Path) -> Path:
    """Write a result into a folder, which is made if it is missing; the file is whole or absent."""
    path = path_of(result["study"], folder)
    path.parent.mkdir(parents=True, exist_ok=True)
    write_text(path, spread_json(result, _SPREAD) + "\n")
    return path


def load(study: str, folder: str | Path | None = None) -> dict[str, Any]:
    """Read a study's result, as :func:`record` makes it: its own figures are in ``data``.

    The folder is by default :func:`results_folder`. A FileNotFoundError says that there is none, a
    ValueError that the file is damaged, or another study's.
    """
    path = path_of(study, results_folder() if folder is None else folder)
    try:
        result = read_json(path, _REMEDY)
    except FileNotFoundError:
        raise FileNotFoundError(
            f"{path}: no result of {study}; `pmt-lab reproduce {study}` makes it"
        ) from None
    if not isinstance(result, dict) or not _KEYS.issubset(result):
        raise ValueError(f"{path}: is not a result of a study; {_REMEDY}")
    if result["study"] != study:
        raise ValueError(f"{path}: is a result of {result['study']}; {_REMEDY}")
    return result


def joined(result: dict[str, Any], earlier: dict[str, Any], path: Path) -> dict[str, Any]:
    """Return a result with the runs of an earlier one that it lacks.

    Runs say the commit, date and machine that they are from where these are not the result's. With
    nothing new it is the earlier one. A ValueError says what would be lost: grids with another
    model, protocol or budget, or a measurement that could not be made.
    """
    remedy = "give --results another folder, or --force to replace the file"
    lost = sorted(_measured(earlier).keys() - _measured(result).keys())
    if lost:
        raise ValueError(
            f"{path}: holds {', '.join(lost)}, which could not be measured here; {remedy}"
        )
    grids = dict(result["data"].get("grids", {}))
    for name, old in with_sources(earlier).items():
        new = grids.get(name)
        if new is None or not new["runs"]:
            grids[name] = old
            continue
        if settings_of(old) != settings_of(new):
            raise ValueError(
                f"{path}: its runs of {name} have another model, protocol or budget; {remedy}"
            )
        have = [run["axes"] for run in new["runs"]]
        more = [run for run in old["runs"] if run["axes"] not in have]
        places = [run["axes"] for run in more]
        missing = [m for m in new["missing"] if not any(p.items() <= m.items() for p in places)]
        grids[name] = {**new, "runs": [*new["runs"], *more], "missing": missing}
    both = {**result, "data": {**result["data"], **({"grids": grids} if grids else {})}}
    return earlier if same_figures(both, earlier) else both


def same_figures(one: Result, other: Result) -> bool:
    """Whether two results say the same; runs are the same by their axes, method and options."""
    return bool(_figures(one) == _figures(other))


def _figures(result: Result) -> Any:
    grids = result["data"].get("grids", {})
    keys = ("axes", "base", "options")
    runs = {
        name: sorted(json.dumps([run[key] for key in keys], sort_keys=True) for run in grid["runs"])
        for name, grid in grids.items()
    }
    return json.loads(json.dumps([_measured(result), runs]))


def _measured(result: Result) -> dict[str, Any]:
    """Return a study's measurements beside its runs."""
    data = result["data"]
    return {name: one for name, one in data.items() if name != "grids" and one is not None}


def with_sources(result: Result) -> dict[str, dict[str, Any]]:
    """Return the grids of a result, whose runs say the commit, date and machine they are from."""
    source = {name: result[name] for name in _SOURCE}
    return {
        name: {**grid, "runs": [{**source, **run} for run in grid["runs"]]}
        for name, grid in result["data"].get("grids", {}).items()
    }


def settings_of(grid: Result) -> dict[str, Any]:
    """Return model, protocol and budget of a result's grid; grids alike in them compare."""
    return {name: grid[name] for name in _SETTINGS}


def path_of(study: str, folder: str | Path) -> Path:
    """Return the file of a study's result."""
    return Path(folder) / f"{study}.json"


def results_folder() -> Path:
    """Return ``lab/results`` of the checkout that holds the package or the working directory.

    Outside a checkout, it is the copy of them that is installed with the package; else a
    FileNotFoundError is raised.
    """
    for start in (Path(__file__), Path.cwd() / "file"):
        for parent in start.absolute().parents:
            if (parent / "lab" / "results").is_dir():
                return parent / "lab" / "results"
    installed = Path(__file__).parents[1] / "results"
    if installed.is_dir():
        return installed
    raise FileNotFoundError(
        "lab/results is not found; run in a checkout of pmt, or give the folder of results"
    )
