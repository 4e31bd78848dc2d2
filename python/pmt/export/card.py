"""``card.bin``: options, steps and samples for the board, and what the host computed from them.

The layout is defined by ``firmware_export/common/card_format.hpp``.
"""

from __future__ import annotations

import struct
import zlib
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from pmt import _core

__all__ = ["Expected", "Step", "build_card", "compute_expected"]

_MAGIC = b"PMTD"
_VERSION = 2
_ALIGNMENT = 16
_CRC_FROM = 16
_HEADER = struct.Struct("<4s3I2I7i27I")
_STEP = struct.Struct("<Ifi")
_RESULT = struct.Struct("<q2i")
_PARAMETERS = struct.Struct("<2I")
_IMAGE_CRC = struct.Struct("<12xI")


@dataclass(frozen=True)
class Step:
    """One step: its counter, its learning rate, and its samples (indices into the card's)."""

    step: int
    learning_rate: float
    samples: tuple[int, ...]


@dataclass(frozen=True)
class Expected:
    """What the host computed.

    Attributes
    ----------
    activations : list of list of int
        CRC-32 of each op's int8 output, for each sample of the clean inference.
    results : list of dict
        ``loss``, ``loss_sum``, ``correct``, ``changed`` of each step.
    parameters : list of list of (int, int)
        CRC-32 of each layer's weights and biases after each step.
    image : bytes
        The trained model.
    """

    activations: list[list[int]]
    results: list[dict[str, float]]
    parameters: list[list[tuple[int, int]]]
    image: bytes


def compute_expected(
    image: bytes,
    options: _core.Options,
    layers: Sequence[int],
    settings: Sequence[_core.LayerSettings],
    batch: int,
    steps: Sequence[Step],
    images: npt.NDArray[np.int8],
    labels: npt.NDArray[np.int64],
    inferences: int,
    memories: npt.NDArray[np.float32] | None = None,
) -> Expected:
    """Do on the host what the board will do.

    Parameters
    ----------
    image : bytes
        The model before training; it stays as it is.
    options : _core.Options
        Options of the trainer.
    layers : sequence of int
        Op indices, ascending.
    settings : sequence of _core.LayerSettings
        One for each layer.
    batch : int
        Largest number of samples in a step.
    steps : sequence of Step
        The steps.
    images : ndarray of int8, shape (N, height, width, channels)
        Prepared samples.
    labels : ndarray of int64, shape (N,)
        Their labels.
    inferences : int
        Number of samples, from the first, whose activations are wanted.
    memories : ndarray of float32, optional
        What the updates remember of earlier steps, if they do and there were any.

    Returns
    -------
    Expected
        The host's results.
    """
    model = _core.Model(image)
    outputs = [op["output"] for op in model.ops()]
    activations = []
    for sample in images[:inferences]:
        tensors = model.activations(np.ascontiguousarray(sample))
        activations.append([zlib.crc32(tensors[output].tobytes()) for output in outputs])
    trainer = _core.Trainer(model, options, list(layers), batch, settings=list(settings))
    if memories is not None:
        trainer.restore_memories(memories)
    results, parameters = [], []
    for step in steps:
        chosen = np.asarray(step.samples)
        results.append(trainer.step(images[chosen], labels[chosen], step.step, step.learning_rate))
        parameters.append(
            [
                (zlib.crc32(model.weights(op).tobytes()), zlib.crc32(model.bias(op).tobytes()))
                for op in layers
            ]
        )
    return Expected(activations, results, parameters, model.image())


def build_card(
    image: bytes,
    options: _core.Options,
    layers: Sequence[int],
    settings: Sequence[_core.LayerSettings],
    batch: int,
    steps: Sequence[Step],
    images: npt.NDArray[np.int8],
    labels: npt.NDArray[np.int64],
    expected: Expected,
    memories: npt.NDArray[np.float32] | None = None,
) -> bytes:
    """Write the card; the parameters are those of :func:`compute_expected`.

    Returns
    -------
    bytes
        The file.
    """
    sections = (
        options.pack(),
        np.asarray(layers, "<i4").tobytes(),
        b"".join(one.pack() for one in settings),
        b"".join(_pack_step(step, batch) for step in steps),
        _pack_samples(images, labels),
        np.asarray(expected.activations, "<u4").tobytes(),
        b"".join(_RESULT.pack(r["loss_sum"], r["correct"], r["changed"]) for r in expected.results),
        b"".join(_PARAMETERS.pack(*crcs) for step in expected.parameters for crcs in step),
        b"" if memories is None else memories.astype("<f4").tobytes(),
    )
    table, body = [], bytearray()
    for section in sections:
        offset = _aligned(_HEADER.size) + len(body)
        table += [offset, len(section), zlib.crc32(section)]
        body += section + bytes(_aligned(len(section)) - len(section))
    counts = (
        int(images[0].size),
        len(images),
        batch,
        len(steps),
        len(layers),
        _core.Model(image).op_count,
        len(expected.activations),
    )
    total = _aligned(_HEADER.size) + len(body)
    models = (_IMAGE_CRC.unpack_from(image)[0], _IMAGE_CRC.unpack_from(expected.image)[0])

    def header(crc: int) -> bytes:
        return _HEADER.pack(_MAGIC, _VERSION, total, crc, *models, *counts, *table)

    head = header(zlib.crc32(header(0)[_CRC_FROM:]))
    return head + bytes(_aligned(len(head)) - len(head)) + bytes(body)


def _aligned(size: int) -> int:
    return (size + _ALIGNMENT - 1) // _ALIGNMENT * _ALIGNMENT


def _pack_step(step: Step, batch: int) -> bytes:
    indices = np.zeros(batch, "<i4")
    indices[: len(step.samples)] = step.samples
    return _STEP.pack(step.step, step.learning_rate, len(step.samples)) + indices.tobytes()


def _pack_samples(images: npt.NDArray[np.int8], labels: npt.NDArray[np.int64]) -> bytes:
    flat = images.reshape(len(images), -1)
    padding = bytes(-flat.shape[1] % 4)
    return b"".join(
        struct.pack("<i", label) + pixels.tobytes() + padding
        for label, pixels in zip(labels.tolist(), flat, strict=True)
    )
