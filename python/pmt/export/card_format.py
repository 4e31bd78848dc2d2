"""The card's structs, as ``firmware_export/common/card_format.hpp`` defines them."""

from __future__ import annotations

import struct
from typing import NamedTuple

__all__ = [
    "CARD_HEADER_BYTES",
    "CARD_MAGIC",
    "CARD_VERSION",
    "IMAGE_CRC",
    "PARAMETERS",
    "RESULT",
    "SECTIONS",
    "SLOT_HEADER_BYTES",
    "SLOT_MAGIC",
    "STEP",
    "STREAM",
    "CardHeader",
    "Section",
    "SlotHeader",
]

CARD_MAGIC = b"PMTD"
SLOT_MAGIC = b"PMTC"
CARD_VERSION = 4

SECTIONS = (
    "options", "layer_list", "settings", "streams", "step_list", "sample_list", "activations",
    "results", "parameters", "memories", "model",
)  # fmt: skip

STEP = struct.Struct("<Ifi")
RESULT = struct.Struct("<q2i")
PARAMETERS = struct.Struct("<2I")
STREAM = struct.Struct("<3i")
IMAGE_CRC = struct.Struct("<12xI")  # where a .pmt image has its checksum

_CARD = struct.Struct("<4s4I9i2I22I")
_SLOT = struct.Struct("<4s5I")
CARD_HEADER_BYTES = _CARD.size
SLOT_HEADER_BYTES = _SLOT.size


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
    memory_values: int
    slot_blocks: int
    first_slot: int
    sections: dict[str, Section]

    def pack(self) -> bytes:
        """Return the bytes."""
        table = (value for name in SECTIONS for value in self.sections[name])
        return _CARD.pack(*self[:-1], *table)

    @classmethod
    def unpack(cls, payload: bytes) -> CardHeader:
        """Read the bytes; nothing is checked."""
        values = _CARD.unpack_from(payload)
        table = iter(values[16:])
        sections = {name: Section(next(table), next(table)) for name in SECTIONS}
        return cls._make([*values[:16], sections])


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
        return _SLOT.pack(*self)

    @classmethod
    def unpack(cls, payload: bytes) -> SlotHeader:
        """Read the bytes; nothing is checked."""
        return cls(*_SLOT.unpack_from(payload))
