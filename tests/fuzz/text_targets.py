"""Fuzzed files of text: JSON, TOML, and the parts of pmt that read them."""

from __future__ import annotations

import json
import tempfile
from pathlib import Path
from typing import Any

from made_layouts import write_wake_words
from networks import smooth_network

from fuzz.target import Target
from pmt import datasets
from pmt._util.native_files import firmware_folder
from pmt._util.parsing import parse_json, parse_plain_toml, parse_toml
from pmt.baselines.backprop.scheme import LayerUpdate, UpdateScheme
from pmt.baselines.sparse_update.contribution import _Table
from pmt.datasets.corrupted_arrays import read_manifest
from pmt.firmware.export.folder import read_lock
from pmt.firmware.export.target import find_target

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


def _read_coco(path: Path) -> object:
    root = path.parent.parent
    if not (root / "train2014").is_dir():
        content = path.read_bytes()
        path.unlink()
        path.parent.rmdir()
        write_wake_words(root)
        path.write_bytes(content)
    return datasets.load(root, split="train", size=4)


def _coco() -> bytes:
    with tempfile.TemporaryDirectory() as folder:
        write_wake_words(Path(folder) / "coco")
        path = Path(folder) / "coco" / "annotations" / "instances_train2014.json"
        return path.read_bytes()


TEXT_TARGETS = {
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
    "coco": Target("annotations/instances_train2014.json", _read_coco, lambda: [_coco()]),
}
