"""The readers that are fuzzed, and small sound files to start from."""

from __future__ import annotations

import gzip
import io
import pickle
import zipfile
from collections.abc import Callable
from pathlib import Path

import numpy as np
import tflite_seeds
from networks import residual_network
from tiny_training_builder import small_network

from fuzz.image_targets import IMAGE_TARGETS
from fuzz.target import Target
from fuzz.text_targets import TEXT_TARGETS
from pmt import datasets
from pmt.datasets.array_files import map_npy
from pmt.formats import tiny_training
from pmt.formats.onnx import float_importer as onnx_float
from pmt.formats.onnx import importer as onnx_qdq
from pmt.formats.onnx.exporter import onnx_model
from pmt.formats.tflite import importer as tflite
from pmt.net.image import build_image


def _read_tflite(path: Path) -> object:
    return build_image(tflite.read(path))


def _read_tiny_training(path: Path) -> object:
    return build_image(tiny_training.read(path, resolution=32))


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


def _read_qdq(path: Path) -> object:
    return build_image(onnx_qdq.read(path))


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


_IMAGES = np.arange(2 * 4 * 4 * 3, dtype=np.uint8).reshape(2, 4, 4, 3)


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


def _read_picture(path: Path) -> object:
    return datasets.load(path.parent.parent, size=4)


TARGETS = {
    **TEXT_TARGETS,
    **IMAGE_TARGETS,
    "tflite": Target("net.tflite", _read_tflite, tflite_seeds.files),
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
    "onnx_qdq": Target("net.onnx", _read_qdq, _qdq_networks),
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
    "picture": Target("class/picture.png", _read_picture, _pictures),
}
