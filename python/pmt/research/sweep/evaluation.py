"""How good a model is on images of any size, and which of them it gets right."""

from __future__ import annotations

import base64
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from pmt import _core
from pmt.datasets import Dataset
from pmt.datasets.checksum import checksum
from pmt.model import Evaluation, Model
from pmt.research.sweep.run_data import at_size

__all__ = ["Measured", "measure", "measure_with", "pack", "unpack"]

# Images that are resized and run at once: bounds the memory, not the result.
_CHUNK = 256


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
    """Run a model on images, which are resized to its input a few at a time.

    Parameters
    ----------
    model : Model
        The network.
    data : Dataset
        The images, of any size.
    threads : int
        As :meth:`pmt.Model.logits`; the result does not depend on it.

    Returns
    -------
    Measured
        Accuracy and loss are those of :meth:`pmt.Model.evaluate`.
    """
    loss, right = 0, []
    for part in _parts(model, data):
        outputs = model.logits(part.images, threads=threads)
        labels = np.ascontiguousarray(part.labels)
        losses, _ = _core.cross_entropy(outputs, labels)
        loss += int(losses.sum(dtype=np.int64))
        right.append(outputs.argmax(axis=1) == labels)
    found, n = np.concatenate(right), len(data)
    mean = loss / _core.LOSS_ONE / n
    return Measured(int(found.sum()) / n, mean, n, checksum(data), found)


def measure_with(
    evaluate: Callable[[Dataset], Evaluation], model: Model, data: Dataset
) -> Measured:
    """As :func:`measure`, with what evaluates a network that is not the int8 model."""
    correct, loss = 0, 0.0
    for part in _parts(model, data):
        found = evaluate(part)
        correct += round(found.accuracy * found.n)
        loss += found.loss * found.n
    return Measured(correct / len(data), loss / len(data), len(data), checksum(data))


def _parts(model: Model, data: Dataset) -> Iterator[Dataset]:
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
