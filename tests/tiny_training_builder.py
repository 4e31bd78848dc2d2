"""Writes small tiny-training archives for the tests of the importer."""

from __future__ import annotations

import pickle
import zipfile
from pathlib import Path
from typing import Any

import numpy as np


def convolution(inputs: int, outputs: int, *, kernel: int = 1, groups: int = 1) -> dict[str, Any]:
    weights = np.arange(outputs * inputs // groups * kernel * kernel) % 200 - 100
    return {
        "in_channel": inputs,
        "out_channel": outputs,
        "kernel_size": (kernel, kernel),
        "stride": 1,
        "groups": groups,
        "act": None,
        "params": {
            "weight": weights.astype(np.int8).reshape(outputs, inputs // groups, kernel, kernel),
            "bias": np.arange(outputs, dtype=np.int32),
            "x_scale": 2 / 255,
            "x_zero": 0,
            "y_scale": 2 / 255,
            "y_zero": 0,
            "w_scales": np.full(outputs, 0.01, np.float32),
        },
    }


def small_network() -> dict[str, Any]:
    block = {
        "pointwise1": convolution(4, 8),
        "depthwise": convolution(8, 8, kernel=3, groups=8),
        "pointwise2": convolution(8, 4),
        "residual": {"params": {"x_scale": 2 / 255, "x_zero": 0, "y_scale": 2 / 255, "y_zero": 0}},
        "se": None,
    }
    return {
        "first_conv": convolution(3, 4, kernel=3),
        "blocks": [block],
        "feature_mix": None,
        "classifier": convolution(4, 5),
    }


def archive(path: Path, content: bytes, *, method: int = zipfile.ZIP_STORED) -> Path:
    with zipfile.ZipFile(path, "w", method) as file:
        file.writestr("archive/data.pkl", content)
        file.writestr("archive/version", b"3\n")
    return path


def saved(path: Path, network: object, protocol: int = 2) -> Path:
    return archive(path, pickle.dumps(network, protocol=protocol))
