"""The readers that are fuzzed, small sound files to start from, and the rule that they keep.

A reader may return, or raise a ValueError that names the file. Anything else is a finding.
"""

import gzip
import io
import json
import pickle
import struct
import tempfile
import zipfile
import zlib
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
from firmware_tools import TARGET, random_dataset
from image_sections import with_section
from networks import every_op, residual_network, smooth_network
from tiny_training_builder import small_network

import pmt
from pmt import datasets
from pmt._util.native_files import firmware_folder
from pmt._util.parsing import parse_json, parse_plain_toml, parse_toml
from pmt.baselines.backprop.scheme import LayerUpdate, UpdateScheme
from pmt.baselines.sparse_update.contribution import _Table
from pmt.datasets.array_files import map_npy
from pmt.datasets.corrupted_arrays import read_manifest
from pmt.errors import FileError
from pmt.firmware.export import export, read_card
from pmt.firmware.export.folder import read_lock
from pmt.firmware.export.target import find_target
from pmt.formats import tiny_training
from pmt.formats.onnx import float_importer as onnx_float
from pmt.formats.onnx import importer as onnx_qdq
from pmt.formats.onnx.exporter import onnx_model
from pmt.formats.tflite import importer as tflite
from pmt.formats.tflite.exporter import tflite_model
from pmt.model.card import BLOCK, PAYLOAD, pack_blocks
from pmt.net.image import build_image

_BOARD = firmware_folder() / "boards" / "stm32f746g-disco" / "target.toml"
_MANIFEST = {
    "data": "x", "split": "test", "seed": 0, "constants": "cifar10", "images": 3,
    "shape": [32, 32, 3], "data_crc32": 0, "class_names": ["a", "b"],
}  # fmt: skip
_LOCK = {
    "version": 1, "pmt": "0.1.0", "arguments": {"steps": 3}, "inputs": {"model": "00"},
    "files": {"Makefile": "00"},
}  # fmt: skip
_IDENTITY = {"format": "pmt contributions 1", "model": 1}
_IMAGES = np.arange(2 * 4 * 4 * 3, dtype=np.uint8).reshape(2, 4, 4, 3)


@dataclass(frozen=True)
class Target:
    """One reader. ``wrap`` makes the file of the fuzzed bytes, where a checksum would stop them."""

    file_name: str
    read: Callable[[Path], object]
    seeds: Callable[[], list[bytes]]
    wrap: Callable[[bytes], bytes] = bytes


def check(target: Target, folder: Path, data: bytes) -> bool:
    """Read `data`; return whether it was accepted. Anything but a clear refusal is raised."""
    path = folder / target.file_name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(target.wrap(data))
    try:
        target.read(path)
    except ValueError as error:
        known, message = type(error) in (ValueError, FileError), str(error)
        if not known or path.name not in message or len(message) > 20_000 + len(data):
            raise AssertionError(
                f"an error that does not say which file is damaged, or says too much: {error!r}"
            ) from error
        return False
    return True


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


def _dumped(value: Any) -> bytes:
    return json.dumps(value).encode()


def _plain_toml(path: Path) -> object:
    try:
        return parse_plain_toml(path.read_bytes().decode())
    except (ValueError, RecursionError) as error:  # as pmt._util.parsing hands them on
        raise ValueError(f"{path}: {error}") from None


def _scheme() -> bytes:
    model = smooth_network()
    return UpdateScheme((LayerUpdate(0, 2, True, (0, 2)),)).text(model).encode()


def _read_tiny_training(path: Path) -> object:
    return build_image(tiny_training.read(path, resolution=32))


def _tflite_networks() -> list[bytes]:
    from tflite_networks import GENERATED, generated

    written = [tflite_model(net().to_graph()) for net in (every_op, residual_network)]
    return [*written, *map(generated, GENERATED)]


def _onnx_networks() -> list[bytes]:
    from onnx_networks import Network

    n = Network()
    x = n.batch_norm(n.conv("x", 3, 4, pads=[1, 1, 1, 1]), 4)
    y = n.conv(n.add("Relu", [x]), 4, 4, group=4, pads=[1, 1, 1, 1])
    pooled = n.add("GlobalAveragePool", [n.add("Add", [x, y])])
    convolutional = n.model(n.head(pooled, 4)).SerializeToString()
    n = Network()
    pooled = n.add("MaxPool", ["x"], kernel_shape=[2, 2], strides=[2, 2])
    return [convolutional, n.model(n.head(pooled, 48)).SerializeToString()]


def _qdq_networks() -> list[bytes]:
    graph = residual_network().to_graph()
    return [onnx_model(graph, unsigned=unsigned) for unsigned in (False, True)]


def _zip_of(member: str) -> Callable[[bytes], bytes]:
    def wrap(data: bytes) -> bytes:
        file = io.BytesIO()
        with zipfile.ZipFile(file, "w") as archive:
            archive.writestr(member, data)
        return file.getvalue()

    return wrap


def _npz(**arrays: np.ndarray) -> bytes:
    file = io.BytesIO()
    np.savez(file, **arrays)
    return file.getvalue()


def _npy(array: np.ndarray) -> bytes:
    file = io.BytesIO()
    np.save(file, array)
    return file.getvalue()


def _npz_with_images(images_npy: bytes) -> bytes:
    """An .npz whose member ``images.npy`` is the fuzzed bytes, under a right checksum."""
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w") as archive:
        archive.writestr("images.npy", images_npy)
        archive.writestr("labels.npy", _npy(np.array([0, 1])))
    return file.getvalue()


def _read_beside_labels(path: Path) -> object:
    """An idx file of images; its labels are sound."""
    labels = b"\0\0\x08\x01" + (2).to_bytes(4, "big") + bytes([0, 1])
    (path.parent / "train-labels-idx1-ubyte").write_bytes(labels)
    return datasets.load(path.parent, split="train")


def _idx() -> bytes:
    sizes = b"".join(size.to_bytes(4, "big") for size in (2, 4, 4))
    return b"\0\0\x08\x03" + sizes + bytes(range(32))


def _cifar_batch() -> list[bytes]:
    batch = {
        b"data": np.zeros((2, 3072), np.uint8),
        b"labels": [0, 1],
        b"batch_label": b"testing batch 1 of 1",
        b"filenames": [b"a.png", b"b.png"],
    }
    return [pickle.dumps(batch, protocol=protocol) for protocol in (2, 4)]


def _pictures() -> list[bytes]:
    from PIL import Image

    result = []
    for kind in ("PNG", "JPEG", "WEBP", "GIF", "BMP", "TIFF"):
        for mode in ("RGB", "L", "RGBA", "P"):
            if kind == "JPEG" and mode in ("RGBA", "P"):
                continue
            file = io.BytesIO()
            Image.new(mode, (5, 4), 3).save(file, kind)
            result.append(file.getvalue())
    return result


TARGETS = {
    "json": Target(
        "a.json", lambda path: parse_json(path.read_bytes(), path), lambda: [_dumped(_LOCK)]
    ),
    "toml": Target(
        "a.toml", lambda path: parse_toml(path.read_bytes(), path), lambda: [_BOARD.read_bytes()]
    ),
    "plain_toml": Target("a.toml", _plain_toml, lambda: [_BOARD.read_bytes()]),
    "board": Target(
        "mine.toml", lambda path: find_target(str(path)), lambda: [_BOARD.read_bytes()]
    ),
    "lock": Target("pmt.lock", read_lock, lambda: [_dumped(_LOCK)]),
    "scheme": Target(
        "scheme.json", lambda path: UpdateScheme.load(path, smooth_network()), lambda: [_scheme()]
    ),
    "manifest": Target(
        "manifest.json", lambda path: read_manifest(path.parent), lambda: [_dumped(_MANIFEST)]
    ),
    "contributions": Target(
        "cache.json",
        lambda path: _Table(path, _IDENTITY),
        lambda: [_dumped({**_IDENTITY, "accuracies": {"before": 0.5}})],
    ),
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
    "card_sealed": Target(
        "card.img", read_card, lambda: [_payloads()], lambda p: pack_blocks(p, 0)
    ),
    "tflite": Target("net.tflite", lambda path: build_image(tflite.read(path)), _tflite_networks),
    "tiny_training_archive": Target(
        "net.pkl",
        _read_tiny_training,
        lambda: [_zip_of("archive/data.pkl")(pickle.dumps(small_network(), protocol=2))],
    ),
    "tiny_training_pickle": Target(
        "net.pkl",
        _read_tiny_training,
        lambda: [pickle.dumps(small_network(), protocol=p) for p in (2, 4)],
        _zip_of("archive/data.pkl"),
    ),
    "onnx_float": Target("net.onnx", onnx_float.read, _onnx_networks),
    "onnx_qdq": Target("net.onnx", lambda path: build_image(onnx_qdq.read(path)), _qdq_networks),
    "npy": Target(
        "data.npy", lambda path: map_npy(path, "write it again"), lambda: [_npy(_IMAGES)]
    ),
    "npz": Target(
        "data.npz",
        datasets.load,
        lambda: [_npz(images=_IMAGES, labels=np.array([0, 1]), class_names=np.array(["a", "b"]))],
    ),
    "npy_in_npz": Target(
        "data.npz", datasets.load, lambda: [_npy(_IMAGES), _npy(_IMAGES[..., 0])], _npz_with_images
    ),
    "idx": Target("train-images-idx3-ubyte", _read_beside_labels, lambda: [_idx()]),
    "idx_gzip": Target(
        "train-images-idx3-ubyte.gz", _read_beside_labels, lambda: [gzip.compress(_idx(), mtime=0)]
    ),
    "cifar_pickle": Target(
        "test_batch", lambda path: datasets.load(path.parent, split="test"), _cifar_batch
    ),
    "picture": Target(
        "class/picture.png", lambda path: datasets.load(path.parent.parent, size=4), _pictures
    ),
}
