"""How good a model is on images of any size, and which of them it gets right."""

from __future__ import annotations

import base64
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from pmt import _core
from pmt.datasets import Dataset
from pmt.datasets.checksum import checksum
from pmt.model import Model
from pmt.sweep.run_data import at_size

__all__ = ["Measured", "measure", "pack", "unpack"]

# Images that are resized and run at once: bounds the memory, not the result.
_CHUNK = 256

Logits = Callable[[Dataset], npt.NDArray[np.float32]]


@dataclass(frozen=True)
class Measured:
    """Accuracy (0..1) and mean loss (nats) on ``n`` images, and ``right``, bool (n,)."""

    accuracy: float
    loss: float
    n: int
    right: npt.NDArray[np.bool_]
    crc32: int

    def to_record(self) -> dict[str, Any]:
        """Return it as JSON, ``right`` packed, so that runs can be paired by image."""
        return {
            "accuracy": self.accuracy,
            "loss": self.loss,
            "n": self.n,
            "correct": int(self.right.sum()),
            "crc32": self.crc32,
            "right": pack(self.right),
        }


def measure(
    model: Model, data: Dataset, *, threads: int = 0, logits: Logits | None = None
) -> Measured:
    """Run a model on images, which are resized to its input a few at a time.

    Parameters
    ----------
    model : Model
        The network.
    data : Dataset
        The images, of any size.
    threads : int
        As :meth:`pmt.Model.logits`; the result does not depend on it.
    logits : callable, optional
        What computes the logits instead of the model itself.

    Returns
    -------
    Measured
        Accuracy and loss are those of :meth:`pmt.Model.evaluate`.
    """
    compute = logits or (lambda part: model.logits(part.images, threads=threads))
    loss, right = 0, np.zeros(len(data), np.bool_)
    for start in range(0, len(data), _CHUNK):
        indices = np.arange(start, min(start + _CHUNK, len(data)))
        part = at_size(data.subset(indices), model)
        outputs = compute(part)
        labels = np.ascontiguousarray(part.labels)
        losses, _ = _core.cross_entropy(outputs, labels)
        loss += int(losses.sum(dtype=np.int64))
        right[indices] = outputs.argmax(axis=1) == labels
    n = len(data)
    return Measured(int(right.sum()) / n, loss / _core.LOSS_ONE / n, n, right, checksum(data))


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
