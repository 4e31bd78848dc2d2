"""The finished runs of sweeps as one JSON file without weights, from which reports are made again.

What runs share is written once: for each base method the most frequent value of every option, and
the measurements before training, whose images are those after it.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from pmt._util import atomic_file
from pmt._util.parsing import parse_json
from pmt_lab.kept_files import origin, spread_json
from pmt_lab.report.finished_runs import FinishedRun
from pmt_lab.report.run_record import finished_run, whole_record
from pmt_lab.sweep.failure import is_failure
from pmt_lab.sweep.result import is_result

__all__ = ["keep_runs", "read_kept"]

Record = Mapping[str, Any]

_REMEDY = "give the --out of a `pmt-lab sweep`, or a file that `pmt-lab report --keep` wrote"
_SHARED = ("options", "contents", "protocol")
_IMAGES = ("n", "crc32")
_KEYS = {"unfinished": list, "shared": dict, "starts": list, "runs": list}
# Levels of the JSON that are spread over lines: down to one line per run.
_SPREAD = 2


def keep_runs(
    runs: Sequence[FinishedRun],
    path: str | Path,
    unfinished: Iterable[str] = (),
    failed: Iterable[FinishedRun] = (),
) -> None:
    """Write runs into a JSON file, which is whole or as it was.

    Parameters
    ----------
    runs : sequence of FinishedRun
        The runs, see :func:`pmt_lab.report.read_runs`.
    path : str or pathlib.Path
        The file. Its tables are those of the runs; of their curves 12 points are kept.
    unfinished : iterable of str
        Hashes of runs that were begun and have no result.
    failed : iterable of FinishedRun
        Runs that ended with an error.
    """
    records = {run.folder.name: whole_record(run) for run in sorted(runs, key=_place)}
    by_base: dict[str, list[Record]] = {}
    for record in records.values():
        by_base.setdefault(record["base"], []).append(record)
    shared = {
        base: {part: _most_frequent([one[part] for one in group]) for part in _SHARED}
        for base, group in sorted(by_base.items())
    }
    starts = {_text(record["before"]): record["before"] for record in records.values()}
    places = {text: place for place, text in enumerate(starts)}
    kept = {
        **origin(),
        "unfinished": sorted(unfinished),
        **({"failed": errors} if (errors := [dict(run.result) for run in failed]) else {}),
        "shared": shared,
        "starts": list(starts.values()),
        "runs": [
            {"hash": name, **_short(record, shared), "before": places[_text(record["before"])]}
            for name, record in records.items()
        ],
    }
    # A loss may have become infinite, as in result.json.
    atomic_file.write_text(path, spread_json(kept, _SPREAD, allow_nan=True) + "\n")


def read_kept(path: Path) -> tuple[list[FinishedRun], list[str], list[FinishedRun]]:
    """Return the runs of a file, the hashes of unfinished ones, and the failed ones.

    Raises
    ------
    ValueError
        If the file is damaged, or another one.
    """
    kept = parse_json(path.read_bytes(), path, _REMEDY, finite=False)
    if not isinstance(kept, dict) or not all(
        isinstance(kept.get(key), kind) for key, kind in _KEYS.items()
    ):
        raise ValueError(f"{path}: holds no runs of a sweep; {_REMEDY}")
    if not all(isinstance(name, str) for name in kept["unfinished"]):
        raise ValueError(f"{path}: unfinished is damaged; {_REMEDY}")
    runs = [_restored(path, place, kept) for place in range(len(kept["runs"]))]
    return runs, kept["unfinished"], _failed(path, kept.get("failed", []))


def _failed(path: Path, records: Any) -> list[FinishedRun]:
    if not isinstance(records, list) or not all(
        is_failure(one) and isinstance(one.get("hash"), str) for one in records
    ):
        raise ValueError(f"{path}: failed is damaged; {_REMEDY}")
    return [FinishedRun(path / one["hash"], one) for one in records]


def _short(record: Record, shared: Mapping[str, Any]) -> dict[str, Any]:
    """Return a record without what it shares."""
    short = {name: value for name, value in record.items() if name not in _SHARED}
    for part in _SHARED:
        rest = _rest(record[part], shared[record["base"]][part])
        short |= {part: rest} if rest else {}
    images = {part: _images(record["before"], part) for part in record["after"]}
    after = {part: _rest(one, images[part]) for part, one in record["after"].items()}
    return {**short, "after": after}


def _restored(path: Path, place: int, kept: Record) -> FinishedRun:
    """Return a run with what it shares with others."""
    try:
        record = kept["runs"][place]
        shared, start = kept["shared"][record["base"]], record["before"]
        before = kept["starts"][start]
        after = {part: {**_images(before, part), **one} for part, one in record["after"].items()}
        whole = {
            **record,
            **{part: {**shared[part], **record.get(part, {})} for part in _SHARED},
            "before": before,
            "after": after,
        }
        sound = (
            isinstance(record["hash"], str)
            and start >= 0
            and is_result(whole)
            and all(isinstance(one, int) for one in record["order"].values())
            and all(_is_point(*point) for point in record["curve"])
        )
    except (LookupError, TypeError, AttributeError):
        sound = False
    if not sound:
        raise ValueError(f"{path}: run {place} is damaged; {_REMEDY}")
    return finished_run(whole, path / record["hash"])


def _images(before: Record, part: str) -> dict[str, Any]:
    """Return on which images a part was measured before training."""
    return {name: before[part][name] for name in _IMAGES if part in before}


def _is_point(macs: object, loss: object) -> bool:
    return isinstance(macs, int) and isinstance(loss, int | float | None)


def _place(run: FinishedRun) -> tuple[Any, ...]:
    """Return what runs are sorted by: the order of the grid, the seed, the hash."""
    order = run.result.get("order", {})
    seed = -1 if run.seed is None else run.seed
    return sorted(order.items()), seed, run.folder.name


def _most_frequent(parts: Sequence[Record]) -> dict[str, Any]:
    """Return the most frequent value of each name that all have."""
    frequent = {}
    for name in parts[0]:
        if all(name in part for part in parts):
            counts = Counter(_text(part[name]) for part in parts)
            text = max(sorted(counts), key=lambda value: counts[value])
            frequent[name] = json.loads(text)
    return frequent


def _rest(part: Record, shared: Record) -> dict[str, Any]:
    """Return what a run does not share; 1, 1.0 and true are three values."""
    return {
        name: value
        for name, value in part.items()
        if name not in shared or _text(value) != _text(shared[name])
    }


def _text(value: Any) -> str:
    return json.dumps(value, sort_keys=True)
