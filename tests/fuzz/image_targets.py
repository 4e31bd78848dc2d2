"""Fuzzed ``.pmt`` images, their names and metadata, and cards, all under right checksums."""

from __future__ import annotations

import struct
import tempfile
import zlib
from functools import cache
from pathlib import Path

from firmware_tools import TARGET, random_dataset
from image_sections import with_section
from networks import residual_network, smooth_network

import pmt
from fuzz.target import Target
from pmt.firmware.export import export, read_card
from pmt.model.card_format import BLOCK, PAYLOAD, pack_blocks


def _with_crc(data: bytes) -> bytes:
    if len(data) < 16:
        return data
    return data[:8] + struct.pack("<2I", len(data), zlib.crc32(data[16:])) + data[16:]


def _read_image(path: Path) -> object:
    model = pmt.load(path)
    return repr(model), model.layers, model.blocks, model.metadata


def _names() -> bytes:
    names = ("image", "nodes", "logits", "conv", "head", "B1", "all", "caf\u00e9")
    return b"".join(name.encode() + b"\0" for name in names)


@cache
def _card() -> bytes:
    with tempfile.TemporaryDirectory() as folder:
        model = residual_network()
        options = pmt.preset("default", layers="head", batch=1, queries=2, preparation="align")
        out = Path(folder) / "fw"
        export(
            model, target=TARGET, out=out, dataset=random_dataset(model, 1), options=options,
            steps=1, inferences=1,
        )  # fmt: skip
        return (out / "card.img").read_bytes()


def _payloads() -> bytes:
    card = _card()
    return b"".join(card[i : i + PAYLOAD] for i in range(0, len(card), BLOCK))


def _sealed(payloads: bytes) -> bytes:
    """A card of these payloads, each block with the checksum that belongs there."""
    return pack_blocks(payloads, 0)


IMAGE_TARGETS = {
    "image_sealed": Target("net.pmt", _read_image, lambda: [smooth_network().image()], _with_crc),
    "image_metadata": Target(
        "net.pmt",
        _read_image,
        lambda: [b'{"class_names":["a","caf\xc3\xa9"],"accuracy":0.5,"made":{"by":[1,null]}}', b""],
        lambda data: with_section(smooth_network(), "metadata", data),
    ),
    "image_names": Target(
        "net.pmt",
        _read_image,
        lambda: [_names()],
        lambda data: with_section(smooth_network(), "names", data),
    ),
    "card": Target("card.img", read_card, lambda: [_card()]),
    "card_sealed": Target("card.img", read_card, lambda: [_payloads()], _sealed),
}
