"""Adaptation from files: a model, a data set and a method become a run folder."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pmt import _core
from pmt._util.checks import check_type
from pmt.callbacks import CallbackLike
from pmt.datasets import Dataset
from pmt.datasets.dataset import checksum
from pmt.methods.registry import resumed_trainer
from pmt.model import Model
from pmt.model.loading import load
from pmt.protocol.data_source import DataSource, check_source, data_path, model_path
from pmt.train.run.folder import RunFolder
from pmt.train.run.keep_best import note_on_rare_classes, note_without_choice
from pmt.train.run.metrics import StateRecord
from pmt.train.run.observers import Progress
from pmt.train.run.result import RunResult
from pmt.train.schedule import Schedule
from pmt.train.trainer import Trainer
from pmt.train.training_data import is_measured, note_on_classes

# Options that say which images are held out.
_HELD_OUT = ("keep_best", "held_out_share", "seed")
# Entries of a run's source without which it cannot be resumed from its folder alone.
_SOURCE = {"model": str, "data": str, "corruption": str} | dict.fromkeys(
    ("severity", "limit", "valid_limit"), int
)


@dataclass(frozen=True)
class Adaptation:
    """A run that is ready to train, or to continue.

    Attributes
    ----------
    folder : RunFolder
        Folder that the run is kept in.
    model : Model
        The model; training changes it in place.
    trainer : Trainer
        The method with its options.
    source : dict
        Origin of model and data, as ``config.toml`` keeps it.
    data : Dataset
        The images to train on.
    valid : Dataset or None
        The images that are watched; None where the data set has only one part, or no classes.
    """

    folder: RunFolder
    model: Model
    trainer: Trainer
    source: dict[str, Any]
    data: Dataset
    valid: Dataset | None

    @property
    def schedule(self) -> Schedule:
        """Steps and epochs of the run."""
        return self.trainer.schedule_on(self.model, self.data)

    @property
    def held_out(self) -> int:
        """Training images that are held out to choose the best state."""
        return self.trainer.held_out_images(self.data)

    @property
    def data_source(self) -> DataSource:
        """The data set, by its name and corruption."""
        return DataSource.from_config(self.source)

    @property
    def layers(self) -> list[str]:
        """Names of the layers that are trained."""
        chosen = self.model.select_layers(self.trainer.options.layers)
        return [layer.name for layer in self.model.layers if layer.index in chosen]

    @property
    def unmeasured(self) -> tuple[str, ...]:
        """Entries that no record of the run has, as the training images have no classes."""
        if self.data.has_class_labels:
            return ()
        chosen_on = () if self.held_out else ("held_out_loss",)
        watched = () if self.valid else ("valid_loss", "valid_accuracy")
        return ("train_accuracy", *chosen_on, *watched)

    @property
    def notes(self) -> list[str]:
        """Hints before training, a line each: phases left out, held-out images seen before."""
        notes = self.trainer.preparation.notes(self.model, self.data)
        notes += note_on_classes(self.model, self.data, self.trainer.options)
        if not self.held_out:
            return notes + note_without_choice(self.data, self.trainer.options)
        notes += note_on_rare_classes(self.data, self.trainer.options)
        earlier = self._same_images_before()
        if earlier is not None:
            notes.append(
                f"{earlier} was trained on the same images, the held-out ones among them, so the "
                "start looks better than it is; give other images, or --no-keep-best"
            )
        return notes

    def _same_images_before(self) -> Path | None:
        """Return the run folder that the model is from, if its run trained on the held-out images.

        A run with the same choice of held-out images trained on them only in the refit of its head.
        """
        model = Path(self.source["model"])
        folder = RunFolder(model if model.is_dir() else model.parent)
        if not folder.exists():
            return None
        with suppress(ValueError):
            earlier, source = folder.read_config()
            if source.get("data_crc32") != self.source["data_crc32"]:
                return None
            own = self.trainer.options
            held = all(getattr(earlier, n, None) == getattr(own, n, None) for n in _HELD_OUT)
            return None if held and not folder.best_is_refit() else folder.path
        return None

    def fit(
        self, progress: Progress = True, callbacks: Sequence[CallbackLike] = ()
    ) -> AdaptationResult:
        """Train to the end; errors as in :func:`adapt`."""
        result = self.trainer.fit(
            self.model,
            self.data,
            valid=self.valid,
            out=self.folder,
            source=self.source,
            progress=progress,
            callbacks=callbacks,
        )
        return AdaptationResult(self, result)


@dataclass(frozen=True)
class AdaptationResult:
    """Outcome of a run: its settings, and its figures by epoch in ``result``."""

    run: Adaptation
    result: RunResult

    @property
    def before(self) -> dict[str, float] | None:
        """Accuracy (0..1) and loss (nats) on the test images before training, if measured."""
        return _measured(self.result.before)

    @property
    def after(self) -> dict[str, float] | None:
        """Accuracy and loss of the model as it was kept, on the same images."""
        return _measured(self.result.after)

    @property
    def last(self) -> StateRecord:
        """The record of the last epoch, with the totals of the run."""
        return self.result.refit or self.result.epochs[-1]

    def to_json(self) -> dict[str, Any]:
        """Return the figures for JSON."""
        return {
            "before": self.before,
            "after": self.after,
            "phases": self.result.phases,
            "epochs": self.result.epochs,
            "kept": self.result.kept,
            "refit": self.result.refit,
            "held_out": self.result.held_out,
            "notes": self.result.notes,
            "forwards": self.last["forwards"],
            "macs": self.last["macs"],
            "seconds": self.last["seconds"],
            "model": str(self.run.folder.trained),
            "layers": self.run.layers,
            "options": dataclasses.asdict(self.run.trainer.options),
            "source": self.run.source,
        }


def _measured(record: Mapping[str, Any]) -> dict[str, float] | None:
    if "valid_accuracy" not in record:
        return None
    return {"accuracy": record["valid_accuracy"], "loss": record["valid_loss"]}


def adapt(
    model: str,
    data: DataSource,
    trainer: Trainer,
    out: str | Path,
    *,
    limit: int = 0,
    valid_limit: int = 0,
    importer: Mapping[str, Any] | None = None,
    progress: Progress = True,
) -> AdaptationResult:
    """Train a model of a file on a data set, in a run folder.

    Parameters
    ----------
    model : str
        Model file, run folder or name of a bundled model, see :func:`pmt.load`.
    data : DataSource
        The images. The train split is trained on; the test split, corrupted with another seed, is
        only watched.
    trainer : Trainer
        The method with its options, for example ``pmt.methods.trainer("mezo", layers="B2")``.
    out : str or pathlib.Path
        Run folder. An unfinished run of the same arguments continues, bit for bit.
    limit, valid_limit : int
        At most this many training and test images, always the same ones; 0 takes all.
    importer : dict, optional
        Options of :func:`pmt.load`.
    progress : bool or callable
        Show a progress line on a terminal, or a callable ``progress(step, record)``.

    Returns
    -------
    AdaptationResult
        The figures; the model is in the run folder, and in ``run.model``.

    Raises
    ------
    FileNotFoundError, ValueError, TypeError, ImportError
        If the model, the data or the layers cannot be read, or the folder holds another run.
    FileExistsError
        If the folder holds something else.
    KeyboardInterrupt
        On Ctrl-C, with a checkpoint left: the same call continues from there.
    """
    run = open_run(
        model, data, trainer, out, limit=limit, valid_limit=valid_limit, importer=importer
    )
    return run.fit(progress)


def open_run(
    model: str,
    data: DataSource,
    trainer: Trainer,
    out: str | Path,
    *,
    limit: int = 0,
    valid_limit: int = 0,
    importer: Mapping[str, Any] | None = None,
) -> Adaptation:
    """Read and check the inputs of a run; parameters and errors as in :func:`adapt`."""
    check_source(data)
    check_type("trainer", trainer, Trainer, "a trainer, as pmt.methods.trainer(name) returns one")
    check_type("importer", importer, (Mapping, type(None)), "a dict of options of pmt.load")
    folder = RunFolder.of(out, "out")
    if not folder.exists():
        folder.check_free()  # before the work of loading; fit() does it as well
    network = load(model, **importer or {})
    network.select_layers(trainer.options.layers)
    source = {
        "model": model_path(model),
        "model_crc32": _core.crc32(network.image()),
        **dataclasses.replace(data, data=data_path(data.data)).to_config(),
        "limit": limit,
        "valid_limit": valid_limit,
    }
    return _with_data(folder, network, trainer, source)


def resume_run(out: str | Path, *, threads: int = 0) -> Adaptation:
    """Read a run that was interrupted, from its folder alone.

    Parameters
    ----------
    out : str or pathlib.Path
        Its folder.
    threads : int
        Threads to use, 0 for all.

    Returns
    -------
    Adaptation
        Whose ``fit`` continues from the last checkpoint, bit for bit.

    Raises
    ------
    FileNotFoundError
        If there is no run, or its data is gone.
    ValueError
        If the run is damaged, or its training images have changed.
    """
    folder = RunFolder.of(out, "out")
    model, _ = folder.load_checkpoint()
    _, source = folder.read_config()
    if "data" not in source:
        raise ValueError(
            f"{folder.path}: config.toml names no data; resume the run with the program that "
            "started it"
        )
    folder.check_complete(_SOURCE)
    return _with_data(folder, model, resumed_trainer(folder, threads=threads), source)


def _with_data(
    folder: RunFolder, model: Model, trainer: Trainer, source: dict[str, Any]
) -> Adaptation:
    where = DataSource.from_config(source)
    if "input" in trainer.preparation.name:
        trainer.preparation.admit(model, where.own_size("train"))
    data, valid = where.load_splits(model, limit=source["limit"], valid_limit=source["valid_limit"])
    crc = checksum(data)
    if source.get("data_crc32", crc) != crc:
        raise ValueError(
            f"{where.data}: the training images are no longer those that the run in "
            f"{folder.path} began with; restore them or start another run"
        )
    if valid is not None and not is_measured(model, valid):
        valid = None
    data = trainer.training_data(model, data)
    if data.is_labeled:  # of other images the caller may still change the preparation
        trainer.check_data(model, model.match_classes(data))
    trainer = trainer.fitted_to(data)
    return Adaptation(folder, model, trainer, {**source, "data_crc32": crc}, data, valid)
