"""Finished runs of sweeps, from their folders and from files without weights."""

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

import pmt
from pmt_lab.files import origin, read_json, spread_json, write_text
from pmt_lab.sweep import changed_options
from pmt_lab.sweep.result import is_result, read_failures, read_result, unpack

Record = Mapping[str, Any]
# Runs by hash, hashes of those that were begun, and the failed ones by hash.
Files = tuple[dict[str, "FinishedRun"], list[str], dict[str, Record]]

_PARTS = ("test", "clean", "held_out")
# Measured with the chosen checkpoint; with before_ in front, with the untrained model.
METRICS = (
    *(f"{part}_{what}" for part in _PARTS for what in ("accuracy", "loss")),
    *(f"before_{part}_{what}" for part in _PARTS for what in ("accuracy", "loss")),
    "macs",
    "forwards",
    "train_seconds",
)
_REMEDY = "give the --out of a `pmt-lab sweep`, or a file that `pmt-lab report --keep` wrote"
# Fields of a result that only the machine decides.
_LOCAL = ("data", "images", "model", "phases", "seconds")
_COST = ("macs", "forwards", "steps", "epochs", "train_seconds", "threads")
_STATE = ("chosen_state", "chosen_epoch")
# Points of a curve: enough for a study's figure, and for the shape in a report's plot.
_POINTS, _FEW_POINTS = 40, 12


@dataclass(frozen=True)
class FinishedRun:
    """A run folder with its ``result.json``, or a record that was kept of one.

    A record has the curve of the loss in it, and its folder is only the name of the run.
    """

    folder: Path
    result: Record

    @cached_property
    def fields(self) -> dict[str, Any]:
        """Axes, method, options, protocol and checksums, in which runs may differ; not the seed."""
        result = self.result
        fields = {
            "preparation": "none",
            **result["options"],
            **result.get("contents", {}),
            **{f"protocol_{key}": one for key, one in result.get("protocol", {}).items()},
            "base": result["base"],
            "trainer": result["trainer"],
            **result["axes"],
        }
        del fields["seed"]
        return fields

    @property
    def seed(self) -> int | None:
        """The seed; None for a method that has none."""
        seed: int | None = self.result["axes"]["seed"]
        return seed

    def value(self, metric: str) -> float | None:
        """Return a metric; None where the run has none, such as clean images without corruption."""
        if metric in self.result:
            return float(self.result[metric])
        found, what = self._measured(metric)
        return None if found is None else float(found[what])

    def right(self, metric: str) -> tuple[int, npt.NDArray[np.bool_]] | None:
        """Return which images an accuracy counts as right, and the images' CRC-32."""
        found, what = self._measured(metric)
        if found is None or what != "accuracy" or "right" not in found:
            return None
        return int(found["crc32"]), unpack(found["right"], int(found["n"]))

    def images(self, metric: str) -> int:
        """Return on how many images an accuracy was measured; 0 for other metrics."""
        found, what = self._measured(metric)
        return int(found["n"]) if found is not None and what == "accuracy" else 0

    def curve(self) -> list[tuple[int, float]]:
        """Return MACs and loss on the held-out images after every epoch, 0 first."""
        if "curve" in self.result:
            kept = self.result["curve"]
            return [(int(macs), math.nan if loss is None else float(loss)) for macs, loss in kept]
        key = "held_out_loss"
        return [
            (int(record.get("macs", 0)), float(record[key]))
            for record in pmt.RunFolder(self.folder).read_metrics()
            if record["kind"] in ("start", "phase", "epoch") and key in record
        ]

    def _measured(self, metric: str) -> tuple[Record | None, str]:
        when = "before" if metric.startswith("before_") else "after"
        part, _, what = metric.removeprefix("before_").rpartition("_")
        return self.result[when].get(part), what


def shown(run: FinishedRun, name: str) -> str:
    """Return the value of a field as tables and conditions write it."""
    value = run.seed if name == "seed" else run.fields.get(name, "")
    return str(value).lower() if isinstance(value, bool) else str(value)


def chosen(runs: Sequence[FinishedRun], where: Mapping[str, Sequence[str]]) -> list[FinishedRun]:
    """Return the runs whose fields have one of the given values, compared as text.

    A ValueError says that a field is unknown, or no run is left.
    """
    left = list(runs)
    known = {"seed"}.union(*(run.fields for run in runs))
    for name, wanted in where.items():
        if name not in known:
            raise ValueError(
                f"{name!r} is not a field of these runs; there are {', '.join(sorted(known))}"
            )
        have = {shown(run, name) for run in left}
        left = [run for run in left if shown(run, name) in wanted]
        if not left:
            raise ValueError(
                f"--where {name}={'|'.join(wanted)} leaves no run; there are "
                f"{', '.join(sorted(have))}"
            )
    return left


@dataclass(frozen=True)
class Found:
    """Contents of folders and files of sweeps.

    ``runs`` are the finished ones, in the order of their hashes, without trials of learning rates;
    ``unfinished`` the hashes of those that were begun; ``failed`` the errors of others, by what the
    run is.
    """

    runs: list[FinishedRun]
    unfinished: list[str]
    failed: dict[str, str]


def gather_runs(folders: Iterable[str | Path]) -> Found:
    """Read the runs of folders of sweeps, and of files of :func:`keep_runs`; each counts once.

    A FileNotFoundError says that a folder or file does not exist, a ValueError that a result or a
    file is damaged, or there is none.
    """
    paths = [Path(folder) for folder in folders]
    runs: dict[str, FinishedRun] = {}
    failed: dict[str, Record] = {}
    unfinished: set[str] = set()
    for path in paths:
        if not path.exists():
            raise FileNotFoundError(f"{path}: no such folder or file; {_REMEDY}")
        if path.is_file():
            here, begun, errors = _read_kept(path)
        else:
            here, begun, errors = _read_folder(path)
        runs = {**here, **runs}
        unfinished.update(begun)
        failed.update(errors)
    if not any("trial" not in run.result for run in runs.values()):
        what = "only trials of learning rates" if runs else "no finished run of a sweep"
        raise ValueError(f"{', '.join(map(str, paths))}: holds {what}; run `pmt-lab sweep`")
    return Found(
        [runs[name] for name in sorted(runs) if "trial" not in runs[name].result],
        sorted(unfinished - runs.keys() - failed.keys()),
        {one["title"]: one["error"] for name, one in sorted(failed.items()) if name not in runs},
    )


def _read_folder(path: Path) -> Files:
    runs, begun = {}, []
    for folder in path.iterdir():
        result = read_result(folder)
        if result is not None:
            runs[folder.name] = FinishedRun(folder, result)
        elif (folder / "config.toml").is_file():
            begun.append(folder.name)
    return runs, begun, {**read_failures(path)}


def keep_runs(found: Found, path: str | Path) -> None:
    """Write runs without weights into a JSON file, which is whole or as it was.

    The tables from it are the same to the last digit; of curves it has 12 points.
    """
    runs = [
        {"hash": run.folder.name, **{n: one for n, one in run.result.items() if n not in _LOCAL}}
        | _common(run, _FEW_POINTS)
        for run in in_order(found.runs)
    ]
    kept = {**origin(), "unfinished": found.unfinished, "failed": found.failed, "runs": runs}
    write_text(path, spread_json(kept, 2) + "\n")


def _read_kept(path: Path) -> Files:
    kept = read_json(path, _REMEDY)
    try:
        runs = [FinishedRun(path / run["hash"], run) for run in kept["runs"]]
        if not all(run.fields and is_result(run.result) for run in runs):
            raise ValueError("a run is damaged")
        failed: dict[str, Record] = {
            title: {"title": title, "error": error} for title, error in kept["failed"].items()
        }
        return {run.folder.name: run for run in runs}, kept["unfinished"], failed
    except (LookupError, TypeError, AttributeError, ValueError) as error:
        raise ValueError(f"{path}: holds no runs of a sweep ({error!r}); {_REMEDY}") from None


def in_order(runs: Iterable[FinishedRun]) -> list[FinishedRun]:
    """Return runs in the order of the grid, by seed."""

    def place(run: FinishedRun) -> tuple[Any, ...]:
        seed = -1 if run.seed is None else run.seed
        return sorted(run.result.get("order", {}).items()), seed, run.folder.name

    return sorted(runs, key=place)


def run_record(run: FinishedRun) -> dict[str, Any]:
    """Return the figures of a run that a study keeps.

    They are those of ``result.json``, with ``options`` that differ from the method's defaults, the
    test images that are right only after training, and a ``curve``, at most 40 pairs of MACs and
    held-out loss. Numbers that are not finite are None.
    """
    result = run.result
    return {
        **_common(run, _POINTS),
        "options": changed_options(result["base"], result["options"]),
        "before": {name: _measured(one) for name, one in result["before"].items()},
        "after": {
            name: _measured(one, right=name != "held_out") for name, one in result["after"].items()
        },
    }


def _common(run: FinishedRun, points: int) -> dict[str, Any]:
    result = run.result
    names = ("axes", "base", "trainer", "extensions", *_COST, *_STATE)
    curve = thinned([(macs, _rounded(loss)) for macs, loss in run.curve()], points)
    kept = {**{name: result[name] for name in names if name in result}, "curve": curve}
    if "tuning" in result:
        tried = ("factor", "learning_rate", "held_out_loss")
        trials = [{name: one[name] for name in tried} for one in result["tuning"]["trials"]]
        kept["tuning"] = {**result["tuning"], "trials": trials}
    return kept


def thinned(curve: Sequence[Any], points: int = _POINTS) -> list[Any]:
    """Return ``count`` points of a curve, the first and the last among them, evenly."""
    if len(curve) <= points:
        return [list(point) for point in curve]
    last = len(curve) - 1
    return [list(curve[round(i * last / (points - 1))]) for i in range(points)]


def _measured(one: Record, *, right: bool = False) -> dict[str, Any]:
    kept = {"accuracy": _rounded(one["accuracy"]), "loss": _rounded(one["loss"])}
    kept |= {name: one[name] for name in ("n", "crc32")}
    return {**kept, "right": one["right"]} if right and "right" in one else kept


def _rounded(value: float | None) -> float | None:
    """Return six digits; None for values that are no number in JSON."""
    return float(f"{value:.6g}") if value is not None and math.isfinite(value) else None
