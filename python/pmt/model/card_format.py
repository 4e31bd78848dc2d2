"""Blocks of a card: 508 bytes of payload and a checksum that knows the block's place."""

from __future__ import annotations

import struct
import zlib
from typing import Any, NamedTuple

import numpy as np

from pmt import _core

__all__ = [
    "BLOCK",
    "CARD_HEADER_BYTES",
    "CARD_MAGIC",
    "CARD_VERSION",
    "IMAGE_CRC",
    "PARAMETERS",
    "PAYLOAD",
    "RESULT",
    "SECTIONS",
    "SLOT_HEADER_BYTES",
    "SLOT_MAGIC",
    "STEP",
    "STREAM",
    "CardHeader",
    "Section",
    "SlotHeader",
    "block_count",
    "pack_blocks",
    "read_payload",
]


CARD_MAGIC = _core.CARD_MAGIC
SLOT_MAGIC = _core.SLOT_MAGIC
CARD_VERSION = _core.CARD_VERSION


class Record:
    """A struct of the card: its fields and their places, as the firmware has them."""

    def __init__(self, dtype: np.dtype[np.void]) -> None:
        self.dtype = dtype
        self.size = dtype.itemsize

    def pack(self, *values: Any) -> bytes:
        """Return the bytes of the fields' values."""
        return np.array(values, self.dtype).tobytes()

    def unpack_from(self, data: bytes) -> tuple[Any, ...]:
        """Return the fields' values from the first bytes."""
        values: tuple[Any, ...] = np.frombuffer(data, self.dtype, 1)[0].item()
        return values


STEP = Record(_core.CARD_TYPES["step"])
RESULT = Record(_core.CARD_TYPES["result"])
PARAMETERS = Record(_core.CARD_TYPES["parameters"])
STREAM = Record(_core.CARD_TYPES["streams"])
IMAGE_CRC = struct.Struct("<12xI")  # where a .pmt image has its checksum

_CARD = Record(_core.CARD_TYPES["header"])
_SLOT = Record(_core.CARD_TYPES["slot"])
CARD_HEADER_BYTES = _CARD.size
SLOT_HEADER_BYTES = _SLOT.size
_FIELDS = _CARD.dtype.names or ()
SECTIONS = tuple(name for name in _FIELDS if _CARD.dtype[name].names)


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
    result_crc32: int
    image_bytes: int
    samples: int
    batch: int
    steps: int
    layers: int
    ops: int
    inferences: int
    save_interval: int
    surprisal_values: int
    slot_blocks: int
    first_slot: int
    sections: dict[str, Section]

    def pack(self) -> bytes:
        """Return the bytes."""
        counts = self[1:-1]
        return _CARD.pack(tuple(self.magic), *counts, *(self.sections[name] for name in SECTIONS))

    @classmethod
    def unpack(cls, payload: bytes) -> CardHeader:
        """Read the bytes; nothing is checked."""
        magic, *values = _CARD.unpack_from(payload)
        counts = len(values) - len(SECTIONS)
        table = map(Section._make, values[counts:])
        sections = dict(zip(SECTIONS, table, strict=True))
        return cls._make([bytes(magic), *values[:counts], sections])


class SlotHeader(NamedTuple):
    """The payload of a slot's first block."""

    magic: bytes
    sequence: int
    steps: int
    size: int
    model_crc32: int
    image_crc32: int

    def pack(self) -> bytes:
        """Return the bytes."""
        return _SLOT.pack(tuple(self.magic), *self[1:])

    @classmethod
    def unpack(cls, payload: bytes) -> SlotHeader:
        """Read the bytes; nothing is checked."""
        magic, *values = _SLOT.unpack_from(payload)
        return cls(bytes(magic), *values)


BLOCK = 512  # bytes, an SD card's own
PAYLOAD = 508

_PLACE = struct.Struct("<2I")
_CRC = struct.Struct("<I")


def block_count(size: int) -> int:
    """Return how many blocks a payload of ``size`` bytes takes."""
    return -(-size // PAYLOAD)


def pack_blocks(payload: bytes, first: int, generation: int = 0) -> bytes:
    """Return the blocks that hold ``payload``, the first of them block number ``first``.

    The payload is padded with zeros to whole blocks. Block numbers are part of the checksums, as is
    ``generation``: a checkpoint's sequence number; 0 for data.
    """
    blocks = bytearray()
    for i in range(block_count(len(payload))):
        piece = payload[i * PAYLOAD : (i + 1) * PAYLOAD].ljust(PAYLOAD, b"\0")
        blocks += piece + _CRC.pack(_checksum(piece, first + i, generation))
    return bytes(blocks)


def read_payload(card: bytes, first: int, size: int, generation: int = 0) -> bytes:
    """Return ``size`` bytes of payload from block ``first`` on.

    ValueError is raised, and names the block, if one lies outside the card or is damaged.
    """
    payload = bytearray()
    for number in range(first, first + block_count(size)):
        block = card[number * BLOCK : (number + 1) * BLOCK]
        if len(block) < BLOCK:
            raise ValueError(
                f"block {number} lies outside the card, which has {len(card) // BLOCK} blocks; "
                "copy all of it"
            )
        piece = block[:PAYLOAD]
        if _CRC.unpack_from(block, PAYLOAD)[0] != _checksum(piece, number, generation):
            raise ValueError(f"block {number} is damaged: its checksum differs")
        payload += piece
    return bytes(payload[:size])


def _checksum(piece: bytes, number: int, generation: int) -> int:
    return zlib.crc32(piece, zlib.crc32(_PLACE.pack(generation, number)))
