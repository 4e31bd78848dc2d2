"""Blocks of a card: 508 bytes of payload and a checksum that knows the block's place."""

from __future__ import annotations

import struct
import zlib

__all__ = ["BLOCK", "PAYLOAD", "block_count", "pack_blocks", "read_payload"]

BLOCK = 512  # bytes, an SD card's own
PAYLOAD = 508

_PLACE = struct.Struct("<2I")
_CRC = struct.Struct("<I")


def block_count(size: int) -> int:
    """Return how many blocks a payload of ``size`` bytes takes."""
    return -(-size // PAYLOAD)


def pack_blocks(payload: bytes, first: int, generation: int = 0) -> bytes:
    """Return the blocks that hold ``payload``, the first of them block number ``first``.

    Parameters
    ----------
    payload : bytes
        Padded with zeros to whole blocks.
    first : int
        Block number, part of the checksums.
    generation : int
        A checkpoint's sequence number; 0 for data. Part of the checksums.
    """
    blocks = bytearray()
    for i in range(block_count(len(payload))):
        piece = payload[i * PAYLOAD : (i + 1) * PAYLOAD].ljust(PAYLOAD, b"\0")
        blocks += piece + _CRC.pack(_checksum(piece, first + i, generation))
    return bytes(blocks)


def read_payload(card: bytes, first: int, size: int, generation: int = 0) -> bytes:
    """Return ``size`` bytes of payload from block ``first`` on.

    Raises
    ------
    ValueError
        If a block lies outside the card or is damaged; the message names the block.
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
