"""Data of studies that were never run: figures chosen, so that rows can be checked by hand."""

from typing import Any

import numpy as np

from pmt_lab.sweep import pack

IMAGES = 40


def run_record(method: str, right: int, *, loss: float = 1.0, **changes: Any) -> dict[str, Any]:
    """Record of a run that gets the first `right` of 40 test images right."""
    axes = {"corruption": "gaussian_noise", "severity": 5, "layers": "B2,head"}
    axes |= {"preparation": "none", "seed": 1}
    axes |= {name: changes.pop(name) for name in list(changes) if name in axes}
    bits = pack(np.arange(IMAGES) < right)
    test = {"accuracy": right / IMAGES, "loss": loss, "n": IMAGES, "crc32": 7, "right": bits}
    return {
        "axes": {"method": method, **axes},
        "base": method,
        "trainer": "zeroth_order",
        "options": {},
        "macs": 10**9,
        "forwards": 2000,
        "steps": 10,
        "epochs": 1.0,
        "train_seconds": 2.0,
        "threads": 1,
        "before": {},
        "after": {"test": test, "held_out": {"accuracy": 0.5, "loss": loss, "n": 8, "crc32": 8}},
        "curve": [[0, 3.0], [10**9, loss]],
        **changes,
    }


def missing_run(method: str, **axes: Any) -> dict[str, Any]:
    """Axes of a run that is not there."""
    place = {"method": method, "corruption": "gaussian_noise", "severity": 5, "layers": "B2,head"}
    return {**place, "preparation": "none", "seed": 1, **axes}


def grid_data(
    runs: list[dict[str, Any]], missing: list[dict[str, Any]] | None = None
) -> dict[str, Any]:
    """A grid as studies keep it: 1,000 training images and 500 held out."""
    protocol = {"name": "default", "images": 1500, "held_out": 500, "test_images": IMAGES}
    return {
        "model": "cifar10_mcunet",
        "protocol": {**protocol, "seed": 0},
        "macs": 0,
        "runs": runs,
        "missing": missing or [],
        "failed": {},
    }
