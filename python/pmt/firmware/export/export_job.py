"""Export from files: a run, or a model with a data set, becomes a firmware project."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from pmt._util.checks import OptionError
from pmt.datasets import Dataset
from pmt.firmware.export.card import SAVE_INTERVAL
from pmt.firmware.export.lock import Lock
from pmt.firmware.export.project import export
from pmt.firmware.export.report import ExportReport
from pmt.model import Model
from pmt.model.loading import BUNDLED_MODELS, load
from pmt.protocol import DataSource
from pmt.protocol.data_source import BUNDLED
from pmt.train.option_effects import warn_without_effect
from pmt.train.options import TrainingOptions, preset
from pmt.train.run.folder import RunFolder

__all__ = ["BOARD_SIZES", "ExportJob", "export_files"]

_HELD_OUT = 100
# A board has memory and time for small batches only, whatever the run or the preset has.
BOARD_SIZES = {"batch": 4, "queries": 8}


@dataclass(frozen=True)
class ExportJob:
    """An export from files, see :func:`export_files`.

    Parameters
    ----------
    model : str
        Run folder, model file or name of a bundled model. A run continues from its last step.
    target : str
        Board, or the path of a TOML file that describes one.
    out : str or pathlib.Path
        Folder to write: new, empty, or an earlier export.
    data : DataSource, optional
        The training images; by default the run's, or those of the bundled model.
    limit : int
        Choose from at most this many training images; 0 takes as many as the run, or all.
    preset : {"default", "paper"}, optional
        Options to start from; by default the run's, or ``"default"``.
    options : dict
        Options that differ from these. ``batch`` and ``queries`` are 4 and 8 unless they are given,
        whatever the run or the preset has.
    select : tuple of str, optional
        Blocks or layers, several joined by ``+``, of which the board chooses the one to train.
    held_out : int, optional
        Training images that ``select`` chooses on; by default 100.
    importer : dict
        Options of :func:`pmt.load`.
    like, format, steps, save_interval, ram, flash, stack, force, arguments, lock
        As in :func:`pmt.firmware.export.export`.
    """

    model: str
    target: str
    out: str | Path
    data: DataSource | None = None
    limit: int = 0
    preset: str | None = None
    options: Mapping[str, Any] = field(default_factory=dict)
    select: tuple[str, ...] | None = None
    held_out: int | None = None
    importer: Mapping[str, Any] = field(default_factory=dict)
    like: str | None = None
    format: str = "make"
    steps: int = 5
    save_interval: int = SAVE_INTERVAL
    ram: str | int | None = None
    flash: str | int | None = None
    stack: str | int | None = None
    force: bool = False
    arguments: Mapping[str, Any] | None = None
    lock: Lock | None = None


def export_files(job: ExportJob) -> ExportReport:
    """Write a firmware project that trains a model of a file on a board.

    Parameters
    ----------
    job : ExportJob
        The model, the images, the board and the options.

    Returns
    -------
    ExportReport
        Sizes and the command to run; prints as a table.

    Raises
    ------
    FileNotFoundError, ValueError, TypeError, ImportError
        If the model or the data cannot be read, or do not go with the options.
    ValueError, FileExistsError, OSError
        As :func:`pmt.firmware.export.export`.
    """
    folder = RunFolder(job.model)
    run = folder if Path(job.model).is_dir() and folder.exists() else None
    model = load(job.model, **job.importer) if run is None else run.load_checkpoint()[0]
    options = _options(job, run)
    model.select_layers(options.layers)
    dataset, held_out = _parted(job, _images(job, run, model))
    return export(
        model if run is None else run,
        target=job.target,
        like=job.like,
        format=job.format,
        out=job.out,
        dataset=dataset,
        candidates=job.select,
        held_out=held_out,
        options=options,
        steps=job.steps,
        save_interval=job.save_interval,
        ram=job.ram,
        flash=job.flash,
        stack=job.stack,
        force=job.force,
        arguments=job.arguments,
        lock=job.lock,
    )


def _options(job: ExportJob, run: RunFolder | None) -> TrainingOptions:
    given = {**BOARD_SIZES, **job.options}
    if run is not None and job.preset is None:
        config = run.config()
        if isinstance(config.options, TrainingOptions) and not config.extensions:
            return _warned(config.options.replace(**given), job, config.options)
    name = job.preset or "default"
    return _warned(preset(name, **given), job, preset(name))


def _warned(options: TrainingOptions, job: ExportJob, base: TrainingOptions) -> TrainingOptions:
    warn_without_effect(options, job.options, base)
    return options


def _images(job: ExportJob, run: RunFolder | None, model: Model) -> Dataset:
    if job.data is not None:
        return job.data.load("train", model, limit=job.limit)
    source = {} if run is None else run.read_config()[1]
    if not source and job.model == BUNDLED_MODELS[0]:  # what the bundled images are of
        source = {"data": BUNDLED, "limit": 0}
    if "data" not in source:
        raise OptionError("data", " is missing: the firmware needs images; see `pmt export --help`")
    where = DataSource.from_config(source)
    return where.load("train", model, limit=job.limit or source["limit"])


def _parted(job: ExportJob, images: Dataset) -> tuple[Dataset, Dataset | None]:
    """Part held-out images from the others, where the board is to choose on some."""
    if job.select is None:
        if job.held_out is not None:
            raise OptionError("held_out", " needs ", "select", ": held-out images are for a choice")
        return images, None
    count = job.held_out or _HELD_OUT
    if count >= len(images):
        raise OptionError(
            "held_out", f" {count} leaves nothing of {len(images)} images to train on"
        )
    held_out, rest = images.split(count / len(images), seed=0)
    return rest, held_out
