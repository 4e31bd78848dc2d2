"""The card of a board: its blocks with their checksums, and its contents when it comes back."""

from __future__ import annotations

import struct
import zlib
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from pmt import _core
from pmt.errors import FileError
from pmt.model.model import Model

CARD_MAGIC = _core.CARD_MAGIC
SLOT_MAGIC = _core.SLOT_MAGIC
CARD_VERSION = _core.CARD_VERSION
IMAGE_CRC = struct.Struct("<12xI")  # where a .pmt image has its checksum

_CARD = _core.CARD_TYPES["header"]
_SLOT = _core.CARD_TYPES["slot"]
_STEPS = 2**31 - 1  # bits of a slot's tag
SECTIONS = tuple(name for name in _CARD.names or () if _CARD[name].names)


def pack_records(kind: str, records: Sequence[tuple[Any, ...]]) -> bytes:
    """Return structs as the firmware has them; ``kind`` is one of ``_core.CARD_TYPES``."""
    return np.array(records, _core.CARD_TYPES[kind]).tobytes()


class Section(NamedTuple):
    """First block, and bytes of payload."""

    first: int
    size: int


class CardHeader(NamedTuple):
    """The payload of block 0."""

    magic: bytes
    version: int
    blocks: int
    model_crc32: int
    image_bytes: int
    samples: int
    batch: int
    steps: int
    layers: int
    ops: int
    inferences: int
    save_interval: int
    surprisal_values: int
    targets: int
    slot_blocks: int
    first_slot: int
    sections: dict[str, Section]

    def pack(self) -> bytes:
        """Return the bytes."""
        counts = self[1:-1]
        sections = (self.sections[name] for name in SECTIONS)
        return pack_records("header", [(tuple(self.magic), *counts, *sections)])

    @classmethod
    def unpack(cls, payload: bytes) -> CardHeader:
        """Read the bytes; nothing is checked."""
        magic, *values = np.frombuffer(payload, _CARD, 1)[0].item()
        counts = len(values) - len(SECTIONS)
        table = map(Section._make, values[counts:])
        sections = dict(zip(SECTIONS, table, strict=True))
        return cls._make([bytes(magic), *values[:counts], sections])


BLOCK = 512  # bytes, an SD card's own
PAYLOAD = 508

_WORD = struct.Struct("<I")


def block_count(size: int) -> int:
    """Return how many blocks a payload of ``size`` bytes takes."""
    return -(-size // PAYLOAD)


def pack_blocks(payload: bytes, first: int) -> bytes:
    """Return the blocks of a payload, padded by zeros; checksums hold their numbers, from first."""
    blocks = bytearray()
    for i in range(block_count(len(payload))):
        piece = payload[i * PAYLOAD : (i + 1) * PAYLOAD].ljust(PAYLOAD, b"\0")
        blocks += piece + _WORD.pack(_checksum(piece, first + i))
    return bytes(blocks)


def read_payload(card: bytes, first: int, size: int) -> bytes:
    """Return ``size`` bytes from block ``first`` on; a ValueError names a block that is damaged."""
    payload = bytearray()
    for number in range(first, first + block_count(size)):
        block = card[number * BLOCK : (number + 1) * BLOCK]
        if len(block) < BLOCK:
            raise ValueError(
                f"block {number} lies outside the card, which has {len(card) // BLOCK} blocks; "
                "copy all of it"
            )
        piece = block[:PAYLOAD]
        if _WORD.unpack_from(block, PAYLOAD)[0] != _checksum(piece, number):
            raise ValueError(f"block {number} is damaged: its checksum differs")
        payload += piece
    return bytes(payload[:size])


def _checksum(piece: bytes, number: int) -> int:
    return zlib.crc32(piece, zlib.crc32(_WORD.pack(number)))


@dataclass(frozen=True)
class Checkpoint:
    """A slot's whole checkpoint."""

    slot: int  # 0 or 1
    sequence: int  # its number, from 1
    steps: int  # steps of the card's list that are done
    model: Model


@dataclass(frozen=True)
class CardContents:
    """The contents of a card.

    Attributes
    ----------
    steps, samples : int
        Steps and samples that the card holds.
    start : Model
        The model before the first step.
    checkpoints : tuple of Checkpoint
        The whole ones, the newest first; none before the board's first.
    damage : tuple of str
        Why a slot holds no whole checkpoint: a cut in power leaves such a slot, and the board
        continues with the other.
    """

    steps: int
    samples: int
    start: Model
    checkpoints: tuple[Checkpoint, ...]
    damage: tuple[str, ...]

    @property
    def steps_done(self) -> int:
        """Steps taken up to the newest checkpoint."""
        return self.checkpoints[0].steps if self.checkpoints else 0

    @property
    def model(self) -> Model:
        """The model of the newest checkpoint, or the one before training."""
        return self.checkpoints[0].model if self.checkpoints else self.start


def read_card(path: str | Path) -> CardContents:
    """Read a card.

    Parameters
    ----------
    path : str or pathlib.Path
        ``card.img``: as exported, as QEMU left it, or as copied from an SD card with `dd`. What
        stands after the card's blocks does not matter.

    Returns
    -------
    CardContents
        Steps and models.

    Raises
    ------
    FileNotFoundError
        If there is no such file.
    ValueError
        If it is not a card, or a block that is needed is damaged; the message names it.
    """
    card = Path(path).read_bytes()
    try:
        header = _read_header(card)
        start = _read_model(card, header)
        layers = np.frombuffer(read_payload(card, *header.sections["layer_list"]), "<i4").tolist()
        checkpoints, damage = [], []
        for slot in range(2):
            try:
                checkpoint = _read_slot(card, header, slot, start, layers)
            except ValueError as error:
                damage.append(f"slot {slot}: {error}")
            else:
                checkpoints += [] if checkpoint is None else [checkpoint]
        if len(damage) == 2:
            raise ValueError(f"both checkpoints are damaged ({'; '.join(damage)})")
    except ValueError as error:
        raise FileError(str(path), [str(error)]) from error
    checkpoints.sort(key=lambda one: -one.sequence)
    return CardContents(header.steps, header.samples, start, tuple(checkpoints), tuple(damage))


def _read_header(card: bytes) -> CardHeader:
    if len(card) < BLOCK or card[: len(CARD_MAGIC)] != CARD_MAGIC:
        raise ValueError("this is not a card of `pmt export`: it does not begin with PMTD")
    version = int.from_bytes(card[4:8], "little")
    # Earlier versions had other checksums.
    if 0 < version < CARD_VERSION:
        raise ValueError(
            f"the card has version {version}, this pmt reads {CARD_VERSION}; export again"
        )
    header = CardHeader.unpack(read_payload(card, 0, _CARD.itemsize))
    if header.version != CARD_VERSION:
        raise ValueError(
            f"the card has version {header.version}, this pmt reads {CARD_VERSION}; export again"
        )
    if header.blocks * BLOCK > len(card):
        raise ValueError(
            f"the file has {len(card) // BLOCK} blocks, the card {header.blocks}; copy all of it"
        )
    return header


def _read_model(card: bytes, header: CardHeader) -> Model:
    image = read_payload(card, *header.sections["model"])
    if len(image) < IMAGE_CRC.size:
        raise ValueError(
            f"the card's model has {len(image)} bytes, which is not an image; export again"
        )
    if IMAGE_CRC.unpack_from(image)[0] != header.model_crc32:
        raise ValueError("the model on the card is another than its header says")
    return Model(image)


def _read_slot(
    card: bytes, header: CardHeader, slot: int, start: Model, layers: list[int]
) -> Checkpoint | None:
    """Return the slot's checkpoint, None where there never was one."""
    first = header.first_slot + slot * header.slot_blocks
    here = np.frombuffer(read_payload(card, first, _SLOT.itemsize), _SLOT)[0]
    if here["magic"] == 0:
        return None
    if here["magic"] != SLOT_MAGIC:
        raise ValueError(f"block {first} is not a header of a checkpoint")
    if here["identity"] != header.model_crc32:
        raise ValueError("the checkpoint is of another model")
    payload = read_payload(card, first + 1, int(here["bytes"]))
    if zlib.crc32(payload) != here["payload_crc32"]:
        raise ValueError("the checkpoint is not the one that its header tells")
    model = start.copy()
    _set_parameters(model, layers, payload[: len(payload) - 4 * header.surprisal_values])
    return Checkpoint(slot, int(here["generation"]), int(here["tag"]) & _STEPS, model)


def _set_parameters(model: Model, layers: list[int], payload: bytes) -> None:
    core = model.core
    biases = 4 * sum(core.bias(op).size for op in layers)
    trained = len(payload) != biases  # else the checkpoint holds only biases
    sizes = biases + trained * sum(core.weights(op).size for op in layers)
    if sizes != len(payload):
        raise ValueError(f"the checkpoint has {len(payload)} bytes, its layers take {sizes}")
    done = 0
    for op in layers:
        weights, bias = core.weights(op), core.bias(op)
        if trained:
            new = np.frombuffer(payload, np.int8, weights.size, done)
            weights = np.ascontiguousarray(new.reshape(weights.shape))
            done += weights.size
        new_bias = np.frombuffer(payload, "<i4", bias.size, done).astype(np.int32)
        done += 4 * bias.size
        core.set_parameters(op, weights, new_bias)


def newest_model(path: str | Path) -> Model:
    """Return the model of a card's newest checkpoint; ValueError is raised if there is none."""
    contents = read_card(path)
    if contents.damage and not contents.checkpoints:
        found = "; ".join(contents.damage)
        remedy = "write card.img to it again, and train"
        raise FileError(str(path), [f"the card holds no whole checkpoint ({found}); {remedy}"])
    if not contents.checkpoints:
        problem = "the card holds no checkpoint; the board writes them while it trains"
        raise FileError(str(path), [problem])
    return contents.model
