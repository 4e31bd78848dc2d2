"""Building and running exported projects in tests."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest
from networks import labels, pixels

from pmt.datasets import Dataset
from pmt.model import Model

COMPILER = "arm-none-eabi-g++"
EMULATOR = "qemu-system-arm"
TARGET = "qemu-mps2-an500"


def need(*tools: str) -> None:
    """Skip without the tools; on CI, where they must be, fail."""
    missing = [tool for tool in tools if shutil.which(tool) is None]
    if not missing:
        return
    message = (
        f"{', '.join(missing)} not found; apt-get install g++-arm-none-eabi qemu-system-arm make"
    )
    if os.environ.get("CI") == "true":
        pytest.fail(message)
    pytest.skip(message)


def make(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Run make in a project; standard error is merged into the output."""
    return subprocess.run(
        ["make", "-j2", "-C", str(folder), "--no-print-directory", *arguments],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=300,
        check=False,
    )


def emulate(folder: Path, *arguments: str) -> tuple[bool, list[str]]:
    """Run a project under QEMU; return whether it succeeded, and its log."""
    built = make(folder, *arguments)
    assert built.returncode == 0, built.stdout
    run = make(folder, "qemu", "TIMEOUT=120", *arguments)
    log = [line for line in run.stdout.splitlines() if not line.startswith("make:")]
    return run.returncode == 0, log


def random_dataset(model: Model, count: int) -> Dataset:
    """Random images and labels that fit a model."""
    names = tuple(f"class {i}" for i in range(model.classes))
    return Dataset(pixels(model, count), labels(model, count), names, "random")
