"""``result.json``, what a finished run of a sweep came to, and the measurements in it."""

from __future__ import annotations

import base64
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from pmt._util.parsing import parse_json
from pmt.datasets import Dataset
from pmt.datasets.dataset import checksum
from pmt.model import ImageScores, Model
from pmt_lab.sweep.run_data import at_size

__all__ = [
    "RESULT",
    "Measured",
    "is_result",
    "measure",
    "measure_with",
    "pack",
    "read_result",
    "unpack",
]

RESULT = "result.json"
_REMEDY = "remove the file, and the sweep makes it again"
_TABLES = ("axes", "options", "contents", "protocol", "before", "after")
_NUMBERS = ("accuracy", "loss", "n", "crc32")
# Images that are resized and run at once: bounds the memory, not the result.
_CHUNK = 256


def read_result(folder: Path) -> dict[str, Any] | None:
    """Return a run's result; None if it has none yet.

    Raises
    ------
    ValueError
        If the file is damaged.
    """
    path = folder / RESULT
    try:
        text = path.read_bytes()
    except FileNotFoundError:
        return None
    result = parse_json(text, path, _REMEDY, finite=False)  # a loss may have become infinite
    if not is_result(result):
        raise ValueError(f"{path}: is not a result of a run; {_REMEDY}")
    assert isinstance(result, dict)
    return result


def is_result(result: Any) -> bool:
    """Whether it holds what reports and forecasts read of a run."""
    if not isinstance(result, dict):
        return False
    if not all(isinstance(result.get(name), dict) for name in _TABLES):
        return False
    measured = [*result["before"].values(), *result["after"].values()]
    return (
        "seed" in result["axes"]
        and all(isinstance(result.get(name), str) for name in ("base", "trainer"))
        and all(isinstance(one, dict) for one in measured)
        and all(isinstance(one.get(name), int | float) for one in measured for name in _NUMBERS)
        and all(0 <= one["accuracy"] <= 1 for one in measured)
        and ("tuning" not in result or _is_tuning(result["tuning"]))
    )


def _is_tuning(tuning: Any) -> bool:
    """Whether it tells of a choice among trials, see :class:`pmt_lab.sweep.tuning.Choice`."""
    if not isinstance(tuning, dict) or not isinstance(tuning.get("trials"), list):
        return False
    return (
        isinstance(tuning.get("at_edge"), bool)
        and all(isinstance(tuning.get(name), float) for name in ("factor", "learning_rate"))
        and all(
            isinstance(trial, dict)
            and isinstance(trial.get("factor"), float)
            and isinstance(trial.get("held_out_loss"), float | None)
            for trial in tuning["trials"]
        )
    )


@dataclass(frozen=True)
class Measured:
    """Accuracy (0..1) and mean loss (nats) on ``n`` images with a CRC-32.

    ``right``, bool (n,), says which ones; None where only their number is known.
    """

    accuracy: float
    loss: float
    n: int
    crc32: int
    right: npt.NDArray[np.bool_] | None = None

    def to_record(self) -> dict[str, Any]:
        """Return it as JSON, ``right`` packed, so that runs can be paired by image."""
        record: dict[str, Any] = {
            "accuracy": self.accuracy,
            "loss": self.loss,
            "n": self.n,
            "correct": round(self.accuracy * self.n),
            "crc32": self.crc32,
        }
        return record if self.right is None else {**record, "right": pack(self.right)}


def measure(model: Model, data: Dataset, *, threads: int = 0) -> Measured:
    """Run a model on images of any size, which are resized to its input a few at a time.

    Accuracy and loss are those of :meth:`pmt.Model.evaluate`, with any number of threads.
    """
    return measure_with(lambda part: model.score_images(part, threads=threads), model, data)


def measure_with(score: Callable[[Dataset], ImageScores], model: Model, data: Dataset) -> Measured:
    """As :func:`measure`, with what scores a network that is not the int8 model."""
    scores = [score(part) for part in _chunks(model, data)]
    losses = np.concatenate([one.losses for one in scores])
    correct = np.concatenate([one.correct for one in scores])
    mean = ImageScores(losses, correct).evaluation
    return Measured(mean.accuracy, mean.loss, mean.n, checksum(data), correct)


def _chunks(model: Model, data: Dataset) -> Iterator[Dataset]:
    for start in range(0, len(data), _CHUNK):
        indices = np.arange(start, min(start + _CHUNK, len(data)))
        yield at_size(data.subset(indices), model)


def pack(right: npt.NDArray[np.bool_]) -> str:
    """Return booleans as base64 of their bits, the first one the highest bit of the first byte."""
    return base64.b64encode(np.packbits(right).tobytes()).decode("ascii")


def unpack(text: str, n: int) -> npt.NDArray[np.bool_]:
    """Return the ``n`` booleans that :func:`pack` packed.

    Raises
    ------
    ValueError
        If the text holds another number of them.
    """
    packed = np.frombuffer(base64.b64decode(text, validate=True), np.uint8)
    if len(packed) != (n + 7) // 8:
        raise ValueError(f"{len(packed)} bytes do not hold {n} bits")
    return np.unpackbits(packed, count=n).astype(np.bool_)
