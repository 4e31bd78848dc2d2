"""``card.img``: options, steps and samples for the board, and what the host computed from them.

``firmware_export/common/card_format.hpp`` defines the layout, ``docs/guides/card.md`` tells it.
"""

from __future__ import annotations

import struct
import zlib
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from pmt import _core
from pmt.model.card_format import (
    BLOCK,
    CARD_MAGIC,
    CARD_VERSION,
    IMAGE_CRC,
    PARAMETERS,
    RESULT,
    SECTIONS,
    SLOT_MAGIC,
    STEP,
    STREAM,
    CardHeader,
    Section,
    SlotHeader,
    block_count,
    pack_blocks,
)

__all__ = [
    "MOST_STEPS", "SAVE_INTERVAL", "Expected", "Step", "build_card", "check_steps",
    "compute_expected",
]  # fmt: skip

SAVE_INTERVAL = 10  # steps
# The card lists every step and what the host, which trains them all, has computed.
MOST_STEPS = 100_000
_MOST_BLOCKS = 2**32 // BLOCK  # section sizes, and offsets of QEMU's file, have 32 bits


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


def check_steps(name: str, value: int) -> None:
    """Refuse a number of steps that a card cannot have.

    Raises
    ------
    ValueError
        If it is no whole number within 1..:data:`MOST_STEPS`.
    """
    if not isinstance(value, int) or not 1 <= value <= MOST_STEPS:
        raise ValueError(
            f"{name}={value!r} must be a whole number of steps, 1..{MOST_STEPS}; a longer training "
            "is exported again from where the board has come"
        )


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
        trainer.restore_optimizer_state(memories)
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
    save_interval: int = SAVE_INTERVAL,
) -> bytes:
    """Write the card; the parameters are those of :func:`compute_expected`.

    Parameters
    ----------
    save_interval : int
        Steps from one checkpoint to the next, 1..:data:`MOST_STEPS`.

    Returns
    -------
    bytes
        The file: what `dd` writes to an SD card.

    Raises
    ------
    ValueError
        If ``save_interval`` is out of range, or the samples do not fit a card of 4 GB.
    """
    check_steps("save_interval", save_interval)
    model = _core.Model(image)
    contents = {
        **_trained(model, options, layers, settings, batch),
        "step_list": b"".join(_pack_step(step, batch) for step in steps),
        "sample_list": _pack_samples(images, labels),
        **_compared(expected),
        "optimizer_state": b"" if memories is None else memories.astype("<f4").tobytes(),
        "model": image,
    }
    sections, end = _lay_out(contents)
    remembered = _core.Trainer(model, options, list(layers), 1, 1).optimizer_state().size
    slot_blocks = 1 + block_count(_checkpoint_bytes(model, options, layers, remembered))
    header = CardHeader(
        magic=CARD_MAGIC,
        version=CARD_VERSION,
        blocks=end + 2 * slot_blocks,
        model_crc32=IMAGE_CRC.unpack_from(image)[0],
        result_crc32=IMAGE_CRC.unpack_from(expected.image)[0],
        image_bytes=int(images[0].size),
        samples=len(images),
        batch=batch,
        steps=len(steps),
        layers=len(layers),
        ops=model.op_count,
        inferences=len(expected.activations),
        save_interval=save_interval,
        optimizer_values=remembered,
        slot_blocks=slot_blocks,
        first_slot=end,
        sections=sections,
    )
    if header.blocks > _MOST_BLOCKS:
        raise ValueError(
            f"the card would have {header.blocks * BLOCK:,} bytes, more than 4 GB; take fewer "
            "steps or fewer images (--limit)"
        )
    blocks = [pack_blocks(header.pack(), 0)]
    blocks += [pack_blocks(contents[name], sections[name].first) for name in SECTIONS]
    blocks += [_blank_slot(end + slot * slot_blocks, slot_blocks) for slot in range(2)]
    return b"".join(blocks)


def _trained(
    model: _core.Model,
    options: _core.Options,
    layers: Sequence[int],
    settings: Sequence[_core.LayerSettings],
    batch: int,
) -> dict[str, bytes]:
    """Sections that say what is trained, and how."""
    device = _core.DeviceMemory(model, options, list(layers), batch, list(settings))
    return {
        "options": options.pack(),
        "layer_list": np.asarray(layers, "<i4").tobytes(),
        "settings": b"".join(one.pack() for one in settings),
        "streams": b"".join(STREAM.pack(*ops) for ops in device.segments()),
    }


def _compared(expected: Expected) -> dict[str, bytes]:
    """Sections that the board compares its own with."""
    results = [(r["loss_sum"], r["correct"], r["changed"]) for r in expected.results]
    return {
        "activations": np.asarray(expected.activations, "<u4").tobytes(),
        "results": b"".join(RESULT.pack(*result) for result in results),
        "parameters": b"".join(PARAMETERS.pack(*crcs) for at in expected.parameters for crcs in at),
    }


def _lay_out(contents: dict[str, bytes]) -> tuple[dict[str, Section], int]:
    """Return where the sections are, from block 1 on, and the first block behind them."""
    sections, end = {}, 1
    for name in SECTIONS:
        sections[name] = Section(end, len(contents[name]))
        end += block_count(len(contents[name]))
    return sections, end


def _checkpoint_bytes(
    model: _core.Model, options: _core.Options, layers: Sequence[int], remembered: int
) -> int:
    weights = sum(model.weights(op).size for op in layers) if options.train_weights else 0
    return weights + 4 * sum(model.bias(op).size for op in layers) + 4 * remembered


def _blank_slot(first: int, blocks: int) -> bytes:
    header = SlotHeader(SLOT_MAGIC, 0, 0, 0, 0, 0)
    return pack_blocks(header.pack(), first) + bytes((blocks - 1) * BLOCK)


def _pack_step(step: Step, batch: int) -> bytes:
    indices = np.zeros(batch, "<i4")
    indices[: len(step.samples)] = step.samples
    return STEP.pack(step.step, step.learning_rate, len(step.samples)) + indices.tobytes()


def _pack_samples(images: npt.NDArray[np.int8], labels: npt.NDArray[np.int64]) -> bytes:
    flat = images.reshape(len(images), -1)
    padding = bytes(-flat.shape[1] % 4)
    return b"".join(
        struct.pack("<i", label) + pixels.tobytes() + padding
        for label, pixels in zip(labels.tolist(), flat, strict=True)
    )
