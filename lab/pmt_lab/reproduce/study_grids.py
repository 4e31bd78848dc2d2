"""Grids of the studies' sweeps: at full scale as their files say, at small scale made from them."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from pmt import methods
from pmt.protocol.data_source import BUNDLED
from pmt_lab.reproduce.study import Context, Scale
from pmt_lab.sweep import Grid, read_grid
from pmt_lab.sweep.run_spec import NO_ADAPTATION

__all__ = ["GRIDS", "SMALL_MODEL", "cifar10_grid", "read_study_grid", "small"]

GRIDS = Path(__file__).parent / "grids"

_SMALL_MACS = 5 * 10**8
SMALL_MODEL = "fashion_mnist_dscnn"
_SMALL_PROTOCOL = {"images": 30, "held_out": 10, "test_images": 20}
# Options of every method that has them; deepzero's step is a query for each of its weights.
_SMALL_OPTIONS: dict[str, Any] = {"batch": 10, "queries": 4, "align_images": 20, "head_epochs": 2}
# Steps with a query for each weight, and a scheme that only MCUNet has.
_NOT_SMALL = ("deepzero", "deepzero_sparse", "mcutrain")


def read_study_grid(name: str) -> Grid:
    """Read a grid of this package; `name` is that of its file."""
    return read_grid(GRIDS / f"{name}.toml")


def cifar10_grid(name: str, scale: Scale, context: Context) -> Grid:
    """Return a grid on CIFAR-10-C, at full scale with the user's copy of CIFAR-10."""
    grid = read_study_grid(name)
    if scale == "small":
        return small(grid)
    data = {**grid.data, "path": str(context.need_cifar10())}
    return dataclasses.replace(grid, data=data)


def small(grid: Grid) -> Grid:
    """Return a grid of seconds that takes the same way, on what comes with pmt.

    The bundled Fashion-MNIST network and images stand for MCUNet and CIFAR-10; the first corruption
    and the first seed for all; 20 training, 10 held-out and 20 test images; batches of 10 images, 4
    queries; 1 epoch, or 0.5 GMAC; learning rates are not tuned. Left out are DeepZero, whose
    step alone takes longer, and MCUTrain, whose scheme is for MCUNet only.
    """
    tables = tuple(
        dataclasses.replace(table, options=_without(table.options, _SMALL_OPTIONS))
        for table in grid.methods
        if table.base not in _NOT_SMALL
    )
    known = {field for table in tables for field in _options(table.base)}
    length = {} if grid.macs else {"epochs": 1}
    options = {**grid.options, **_SMALL_OPTIONS, **length}
    return dataclasses.replace(
        grid,
        model={"path": SMALL_MODEL},
        data={**grid.data, "path": BUNDLED},
        protocol={**grid.protocol, **_SMALL_PROTOCOL},
        macs=_SMALL_MACS if grid.macs else 0,
        methods=tables,
        corruptions=grid.corruptions[:1],
        seeds=grid.seeds[:1],
        options={name: value for name, value in options.items() if name in known},
        tuning=None,
    )


def _options(method: str) -> dict[str, Any]:
    """Return a method's options; none for the one that trains nothing."""
    if method == NO_ADAPTATION:
        return {}
    return dataclasses.asdict(methods.trainer(method, threads=1).options)


def _without(options: Mapping[str, Any], names: Iterable[str]) -> dict[str, Any]:
    return {name: value for name, value in options.items() if name not in (*names, "epochs")}
