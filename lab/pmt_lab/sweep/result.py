"""``result.json``, the result of a finished run of a sweep, and ``HASH.failed`` of a failed one."""

import base64
import json
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from pmt.datasets import Dataset
from pmt.model import ImageScores, Model
from pmt_lab.files import read_json, write_text
from pmt_lab.sweep.images import at_size, checksum

_RESULT = "result.json"
_FAILED = ".failed"
_REMEDY = "remove the file, and the sweep makes it again"
_TABLES = ("axes", "options", "contents", "protocol", "before", "after")
# Images that are resized and run at once: bounds the memory, not the result.
_CHUNK = 256


def read_result(folder: Path) -> dict[str, Any] | None:
    """Return a run's result; None if it has none yet, a ValueError if the file is damaged."""
    path = folder / _RESULT
    if not path.is_file():
        return None
    result = read_json(path, _REMEDY)
    if not isinstance(result, dict) or not is_result(result):
        raise ValueError(f"{path}: is not a result of a run; {_REMEDY}")
    return result


def is_result(result: Mapping[str, Any]) -> bool:
    """Whether it holds the parts of a run's result."""
    tables = all(isinstance(result.get(name), dict) for name in _TABLES)
    return tables and "seed" in result["axes"] and {"base", "trainer"} <= result.keys()


def write_result(folder: Path, result: Mapping[str, Any]) -> None:
    """Write a run's result, which ends the run; an error from before is forgotten."""
    write_text(folder / _RESULT, json.dumps(result, indent=1, sort_keys=True) + "\n")


def finished_results(hashes: Iterable[str], out: str | Path) -> dict[str, dict[str, Any]]:
    """Return the results that are there, by hash; ValueError if one is damaged."""
    found = ((name, read_result(Path(out) / name)) for name in hashes)
    return {name: result for name, result in found if result is not None}


def failure_file(out: Path, name: str) -> Path:
    """Return the file beside a run's folder that says why it failed."""
    return out / f"{name}{_FAILED}"


def read_failures(out: Path) -> dict[str, dict[str, Any]]:
    """Return ``title`` and ``error`` of the runs of a folder that failed, by hash; no trials."""
    found = {path.stem: read_json(path, "remove it") for path in sorted(out.glob(f"*{_FAILED}"))}
    return {name: one for name, one in found.items() if not one.get("trial")}


def measure(score: Callable[[Dataset], ImageScores], model: Model, data: Dataset) -> dict[str, Any]:
    """Return a network's accuracy and loss on images, which are resized a few at a time.

    ``right`` says which images are right, so that runs can be paired by image.
    """
    scores = []
    for start in range(0, len(data), _CHUNK):
        indices = np.arange(start, min(start + _CHUNK, len(data)))
        scores.append(score(at_size(data.subset(indices), model)))
    right = np.concatenate([one.correct for one in scores])
    mean = ImageScores(np.concatenate([one.losses for one in scores]), right).evaluation
    return {
        "accuracy": mean.accuracy,
        "loss": mean.loss,
        "n": mean.n,
        "correct": round(mean.accuracy * mean.n),
        "crc32": checksum(data),
        "right": pack(right),
    }


def pack(right: npt.NDArray[np.bool_]) -> str:
    """Return booleans as base64 of their bits, the first one the highest bit of the first byte."""
    return base64.b64encode(np.packbits(right).tobytes()).decode("ascii")


def unpack(text: str, n: int) -> npt.NDArray[np.bool_]:
    """Return the ``n`` booleans that :func:`pack` packed; a ValueError tells of another number."""
    packed = np.frombuffer(base64.b64decode(text, validate=True), np.uint8)
    if len(packed) != (n + 7) // 8:
        raise ValueError(f"{len(packed)} bytes do not hold {n} bits")
    return np.unpackbits(packed, count=n).astype(np.bool_)
