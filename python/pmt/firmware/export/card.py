"""``card.img``: options, steps and samples for the board, and the host's results from them.

``cpp/core/card/card_format.hpp`` defines the layout, ``docs/guides/card.md`` tells it.
"""

import zlib
from dataclasses import dataclass

import numpy as np

from pmt import _core
from pmt._util.arrays import Array, Int8Array
from pmt.firmware.export.task import Step, Task, checked_steps
from pmt.model.card import (
    BLOCK,
    CARD_MAGIC,
    CARD_VERSION,
    IMAGE_CRC,
    PAYLOAD,
    SECTIONS,
    CardHeader,
    Section,
    block_count,
    pack_blocks,
    pack_records,
)

SAVE_INTERVAL = 10  # steps
_MOST_BLOCKS = 2**32 // BLOCK  # section sizes, and offsets of QEMU's file, have 32 bits


@dataclass(frozen=True)
class Expected:
    """The host's results."""

    # CRC-32 of each op's int8 output, for each sample of the clean inference.
    activations: list[list[int]]
    results: list[dict[str, float]]  # `loss`, `loss_sum`, `correct`, `changed` of each step
    # CRC-32 of each layer's weights and biases after each step.
    parameters: list[list[tuple[int, int]]]
    image: bytes


def compute_expected(task: Task) -> Expected:
    """Compute the board's results on the host; the task's model stays as it is."""
    model = _core.Model(task.model.image())
    outputs = [op["output"] for op in model.ops()]
    activations = []
    for sample in task.images[: task.inferences]:
        tensors = model.activations(np.ascontiguousarray(sample))
        activations.append([zlib.crc32(tensors[output].tobytes()) for output in outputs])
    trainer = _core.Trainer(model, task.options, task.layers, task.batch)
    if task.surprisal is not None:
        trainer.restore_surprisal(task.surprisal)
    results, parameters = [], []
    for step in task.steps:
        chosen = np.asarray(step.samples)
        images, labels = task.images[chosen], task.labels[chosen]
        results.append(trainer.step(images, labels, step.step, step.learning_rate))
        parameters.append(
            [
                (zlib.crc32(model.weights(op).tobytes()), zlib.crc32(model.bias(op).tobytes()))
                for op in task.layers
            ]
        )
    return Expected(activations, results, parameters, model.image())


def build_card(task: Task, expected: Expected, save_interval: int = SAVE_INTERVAL) -> bytes:
    """Return the card's bytes, as `dd` writes them to an SD card.

    A ValueError says that ``save_interval``, the steps from one checkpoint to the next, is out of
    range, or that the samples do not fit a card of 4 GB.
    """
    save_interval = checked_steps("save_interval", save_interval)
    model, image = task.model.core, task.model.image()
    contents = {
        **_trained(task),
        "step_list": b"".join(_pack_step(step, task.batch) for step in task.steps),
        "sample_list": _pack_samples(task.images, task.labels),
        **_compared(expected),
        "model": image,
    }
    sections, end = _lay_out(contents)
    state = _core.Trainer(model, task.options, task.layers, 1, 1).surprisal().size
    checkpoint = _parameter_bytes(task) + 4 * state
    slot_blocks = 1 + block_count(checkpoint + -checkpoint % _core.STATE_WRITE_BYTES)
    header = CardHeader(
        magic=CARD_MAGIC,
        version=CARD_VERSION,
        blocks=end + 2 * slot_blocks,
        model_crc32=IMAGE_CRC.unpack_from(image)[0],
        image_bytes=int(task.images[0].size),
        samples=len(task.images),
        batch=task.batch,
        steps=len(task.steps),
        layers=len(task.layers),
        ops=model.op_count,
        inferences=len(expected.activations),
        save_interval=save_interval,
        surprisal_values=state,
        targets=task.labels.shape[1] if task.labels.ndim == 2 else 0,
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


def _trained(task: Task) -> dict[str, bytes]:
    """Return the sections of the trained layers and the options."""
    return {
        **task.packed(),
        "layer_list": np.asarray(task.layers, "<i4").tobytes(),
        "streams": pack_records("streams", task.device().segments()),
    }


def _compared(expected: Expected) -> dict[str, bytes]:
    """Return the sections that the board compares its own results with."""
    results = [(r["loss_sum"], r["correct"], r["changed"]) for r in expected.results]
    parameters = [crcs for step in expected.parameters for crcs in step]
    return {
        "activations": np.asarray(expected.activations, "<u4").tobytes(),
        "results": pack_records("result", results),
        "parameters": pack_records("parameters", parameters),
    }


def _lay_out(contents: dict[str, bytes]) -> tuple[dict[str, Section], int]:
    """Return where the sections are, from block 1 on, and the first block after them."""
    sections, end = {}, 1
    for name in SECTIONS:
        sections[name] = Section(end, len(contents[name]))
        end += block_count(len(contents[name]))
    return sections, end


def _parameter_bytes(task: Task) -> int:
    """Return the bytes of a checkpoint but for the mean prediction."""
    model = task.model.core
    values = [
        task.options.train_weights * model.weights(op).size + 4 * model.bias(op).size
        for op in task.layers
    ]
    return sum(values)


def _blank_slot(first: int, blocks: int) -> bytes:
    return pack_blocks(bytes(PAYLOAD), first) + bytes((blocks - 1) * BLOCK)


def _pack_step(step: Step, batch: int) -> bytes:
    indices = np.zeros(batch, "<i4")
    indices[: len(step.samples)] = step.samples
    record = (step.step, step.learning_rate, len(step.samples))
    return pack_records("step", [record]) + indices.tobytes()


def _pack_samples(images: Int8Array, labels: Array) -> bytes:
    """Return each sample's label or targets, and its pixels."""
    flat = images.reshape(len(images), -1)
    padding = bytes(-flat.shape[1] % 4)
    of_samples = labels.astype("<f4" if labels.ndim == 2 else "<i4")
    return b"".join(
        label.tobytes() + pixels.tobytes() + padding
        for label, pixels in zip(of_samples, flat, strict=True)
    )
