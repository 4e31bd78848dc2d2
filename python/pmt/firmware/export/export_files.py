"""Export from files: a run, or a model with a data set, becomes a firmware project."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from pmt._util.checks import OptionError
from pmt.datasets import Dataset
from pmt.firmware.export.project import export
from pmt.firmware.export.report import ExportReport
from pmt.model import Model
from pmt.model.loading import BUNDLED_MODELS, load
from pmt.protocol import DataSource
from pmt.protocol.data_source import BUNDLED
from pmt.train.option_effects import warn_without_effect
from pmt.train.options import TrainingOptions
from pmt.train.options import preset as preset_options
from pmt.train.run.folder import RunFolder

__all__ = ["BOARD_SIZES", "export_files"]

_HELD_OUT = 100
# A board has memory and time for small batches only, whatever the run or the preset has.
BOARD_SIZES = {"batch": 4, "queries": 8}


def export_files(
    model: str,
    *,
    target: str,
    out: str | Path,
    data: DataSource | None = None,
    limit: int = 0,
    preset: str | None = None,
    options: Mapping[str, Any] | None = None,
    select: tuple[str, ...] | None = None,
    held_out: int | None = None,
    importer: Mapping[str, Any] | None = None,
    **project: Any,
) -> ExportReport:
    """Write a firmware project that trains a model of a file on a board.

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
    options : dict, optional
        Options that differ from these. ``batch`` and ``queries`` are 4 and 8 unless they are given,
        whatever the run or the preset has.
    select : tuple of str, optional
        Blocks or layers, several joined by ``+``, of which the board chooses the one to train.
    held_out : int, optional
        Training images that ``select`` chooses on; by default 100.
    importer : dict, optional
        Options of :func:`pmt.load`.
    **project
        ``like``, ``format``, ``steps``, ``save_interval``, ``ram``, ``flash``, ``stack``,
        ``force``, ``arguments`` and ``lock`` of :func:`pmt.firmware.export.export`.

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
    folder = RunFolder(model)
    run = folder if Path(model).is_dir() and folder.exists() else None
    network = load(model, **importer or {}) if run is None else run.load_checkpoint()[0]
    training = _training(run, preset, options or {})
    network.select_layers(training.layers)
    if data is not None:
        images = data.load("train", network, limit=limit)
    else:
        images = _own_images(model, run, network, limit)
    dataset, chosen_on = _parted(images, select, held_out)
    return export(
        network if run is None else run,
        target=target,
        out=out,
        dataset=dataset,
        candidates=select,
        held_out=chosen_on,
        options=training,
        **project,
    )


def _training(
    run: RunFolder | None, name: str | None, options: Mapping[str, Any]
) -> TrainingOptions:
    base: Any = None
    if run is not None and name is None:
        config = run.config()
        base = None if config.extensions else config.options
    if not isinstance(base, TrainingOptions):
        base = preset_options(name or "default")
    chosen: TrainingOptions = base.replace(**{**BOARD_SIZES, **options})
    warn_without_effect(chosen, options, base)
    return chosen


def _own_images(name: str, run: RunFolder | None, model: Model, limit: int) -> Dataset:
    """Return the training images of a run, or those of the bundled model."""
    source = {} if run is None else run.read_config()[1]
    if not source and name == BUNDLED_MODELS[0]:  # what the bundled images are of
        source = {"data": BUNDLED, "limit": 0}
    if "data" not in source:
        raise OptionError("data", " is missing: the firmware needs images; see `pmt export --help`")
    return DataSource.from_config(source).load("train", model, limit=limit or source["limit"])


def _parted(
    images: Dataset, select: tuple[str, ...] | None, held_out: int | None
) -> tuple[Dataset, Dataset | None]:
    """Part held-out images from the others, where the board is to choose on some."""
    if select is None:
        if held_out is not None:
            raise OptionError("held_out", " needs ", "select", ": held-out images are for a choice")
        return images, None
    count = held_out or _HELD_OUT
    if count >= len(images):
        raise OptionError(
            "held_out", f" {count} leaves nothing of {len(images)} images to train on"
        )
    chosen_on, rest = images.split(count / len(images), seed=0)
    return rest, chosen_on
