"""A training run on disk: everything needed to read, repeat or resume it.

``config.toml`` (trainer, model, data, options), ``env.json`` (machine and versions),
``metrics.jsonl`` (append-only, one line per step, phase and epoch), ``checkpoint.pmt`` (the model
so far; its metadata says after which step), ``checkpoint-STEP.npz`` (other state of that step, if
any), ``best.pmt`` (the model that was best on held-out data, if one is kept), ``DONE`` (written
last, with the name of the model that the run keeps).
"""

from __future__ import annotations

import errno
import io
import json
import os
import platform
from collections.abc import Mapping
from contextlib import suppress
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from pmt import _core
from pmt._util import atomic_file
from pmt._util.arrays import Array
from pmt._util.checks import checked_integer, checked_names, checked_path
from pmt._util.folder_lock import FolderLock
from pmt._util.places import check_folder_place
from pmt._util.text import html_table
from pmt.datasets.array_files import npz_bytes
from pmt.errors import ExistingFileError, FileError, FolderBusyError, MissingFileError
from pmt.model import Model
from pmt.model.loading import BEST, CHECKPOINT, DONE, run_model
from pmt.model.model import check_model
from pmt.train.run.config import RunConfig
from pmt.train.run.metrics import Metrics
from pmt.train.training_data import with_classes

# Files that a run killed in its creation leaves: the first, and some of the others.
_FIRST = "env.json"
_BEGUN = {_FIRST, CHECKPOINT, "metrics.jsonl"}


def is_of_run(path: Path) -> bool:
    """Whether a path is a file that a run has written into its folder."""
    own = {*_BEGUN, "config.toml", BEST, DONE}
    is_own = path.name in own or path.match("checkpoint-*.npz")
    return is_own and path.is_file() and RunFolder(path.parent).exists()


class RunFolder:
    """Reads and writes one run folder.

    Parameters
    ----------
    path : str or pathlib.Path
        The folder.
    """

    def __init__(self, path: str | Path) -> None:
        self.path = checked_path("path", path)

    def __fspath__(self) -> str:
        return str(self.path)

    def __repr__(self) -> str:
        return f"RunFolder({str(self.path)!r})"

    def _repr_html_(self) -> str:
        return html_table(str(self.path), ["", ""], summary_rows(self))

    @classmethod
    def of(cls, folder: RunFolder | str | Path, argument: str = "path") -> RunFolder:
        """Return a folder as it is, or that of a path, which is `argument` in errors."""
        return folder if isinstance(folder, RunFolder) else cls(checked_path(argument, folder))

    @cached_property
    def lock(self) -> FolderLock:
        """The lock of the process that trains in the folder."""
        return FolderLock.of_folder(self.path)

    @property
    def checkpoint(self) -> Path:
        """The model as last saved."""
        return self.path / CHECKPOINT

    @property
    def best(self) -> Path:
        """The model that was best on held-out data."""
        return self.path / BEST

    @property
    def trained(self) -> Path:
        """The model that a user takes: the best state of a finished run, if it was kept."""
        return run_model(self.path)

    @property
    def metrics(self) -> Path:
        """One JSON object per line."""
        return self.path / "metrics.jsonl"

    @property
    def done(self) -> bool:
        """Whether the run has finished."""
        return (self.path / DONE).is_file()

    def exists(self) -> bool:
        """Whether the folder holds a run."""
        return self.checkpoint.is_file() and self._config.is_file()

    def check_free(self) -> None:
        """Raise FileExistsError unless the folder is empty or left by a run killed at its start."""
        what = f"out={str(self.path)!r}"
        check_folder_place(self.path, what)
        if not self.path.exists():
            return
        names = set()
        if self.path.is_dir():
            names = {p.name for p in self.path.iterdir() if p.suffix != ".part"}
        recorded = self.metrics.is_file() and self.metrics.stat().st_size > 0
        begun = not names or (_FIRST in names and names <= _BEGUN)
        if not self.path.is_dir() or recorded or not begun:
            raise ExistingFileError(
                f"{what} already exists and holds no run; choose another folder or empty it"
            )

    def create(self, model: Model, config: RunConfig) -> None:
        """Start a run; one that was killed while it was created is started again.

        The untrained model becomes the checkpoint of step 0. FileExistsError says that the folder
        holds anything else.
        """
        self.check_free()
        identity = config.to_toml()
        with atomic_file.explaining("the folder could not be made", self.path):
            self.path.mkdir(parents=True, exist_ok=True)
        atomic_file.sync(self.path.parent)
        environment = json.dumps(_environment(), indent=2, sort_keys=True)
        atomic_file.write_text(self.path / _FIRST, environment + "\n")
        self._save_model(model, self.checkpoint, {"step": 0})
        self._metrics.replace([])
        # Last: a folder with a config.toml is a run that can be resumed.
        atomic_file.write_text(self._config, identity)

    def check_there(self) -> None:
        """Raise FileNotFoundError if the run that trains here is gone.

        BlockingIOError says that its lock is.
        """
        if not self.exists():
            raise MissingFileError(
                errno.ENOENT,
                "the run folder was removed or emptied while the run trained in it; start the run "
                "again",
                str(self.path),
            )
        self._check_lock()

    def _check_lock(self) -> None:
        if self.lock.is_lost:
            raise FolderBusyError(
                f"{self.lock.path} was removed while the run trained, and another process may "
                "train in the folder; start the run again, and it goes on from its last checkpoint"
            )

    def remove_strays(self) -> None:
        """Remove temporary files of killed processes; for the holder of the lock."""
        for stray in self.path.glob(".*.part"):
            with suppress(OSError):
                stray.unlink()

    def save_checkpoint(
        self, model: Model, *, step: int, state: Mapping[str, Array] | None = None
    ) -> None:
        """Write the model as it is after ``step`` steps; a crash leaves the last checkpoint.

        The trainer also needs ``state`` to take the next step. At step 0 it is the prepared model.
        """
        self.check_there()
        self._metrics.sync()  # before the checkpoint that counts on the records
        training: dict[str, Any] = {"step": step}
        if step == 0:
            training["prepared"] = True
        if state:
            # First, under its step's name: the model, written last, says which one is valid.
            atomic_file.write_bytes(self._state_file(step), npz_bytes(state, mode=0o600))
            training["state"] = True
        self._save_model(model, self.checkpoint, training)
        for old in self.path.glob("checkpoint-*.npz"):
            if not state or old != self._state_file(step):
                old.unlink(missing_ok=True)

    def save_best(self, model: Model, *, step: int, refit: bool = False) -> None:
        """Write the model, the best so far on held-out data, as it is after ``step`` steps.

        ``refit`` says that its head was trained on all images since.
        """
        self.check_there()
        self._save_model(model, self.best, {"step": step, **({"refit": True} if refit else {})})

    def name_classes(self, names: tuple[str, ...]) -> None:
        """Give the model that the folder's name stands for the names of the classes it learned."""
        self.check_there()
        names = checked_names("names", names)
        path = self.best if self.best.is_file() else self.checkpoint
        with_classes(_model_of(path), names).save(path)

    def best_is_refit(self) -> bool:
        """Whether there is a best model, whose head was trained on all images."""
        if not self.best.is_file():
            return False
        training = _model_of(self.best).metadata["training"]
        return bool(training.get("refit", False))

    @staticmethod
    def is_prepared(checkpoint: Model) -> bool:
        """Whether a run continues from the checkpoint without its preparation."""
        training = _training(checkpoint)
        return bool(training["step"] > 0 or training.get("prepared"))

    def is_checkpoint(self, model: Model) -> bool:
        """Whether a model is the checkpoint or the best, whatever its metadata says of steps."""
        saved = [self.load_checkpoint()[0]]
        if self.best.is_file():
            saved.append(_model_of(self.best))
        return any(_at_step(model, s.metadata["training"]).image() == s.image() for s in saved)

    def _save_model(self, model: Model, path: Path, training: dict[str, Any]) -> None:
        _at_step(model, training).save(path)

    def _state_file(self, step: int) -> Path:
        return self.path / f"checkpoint-{step}.npz"

    def load_state(self, checkpoint: Model) -> dict[str, Array]:
        """Return the state that was saved with a checkpoint; a ValueError says it is damaged."""
        training = _training(checkpoint)
        if not training.get("state"):
            return {}
        path = self._state_file(training["step"])
        if not path.is_file():
            problem = "is missing; the run cannot be resumed"
            raise FileError(str(path), [problem], f"{path} {problem}")
        try:
            with np.load(io.BytesIO(path.read_bytes()), allow_pickle=False) as arrays:
                return {name: arrays[name] for name in arrays.files}
        # A damaged archive makes zipfile and numpy raise nearly anything: it all means the same.
        except Exception as error:
            raise FileError(str(path), [f"{error}; the run cannot be resumed"]) from error

    def load_checkpoint(self) -> tuple[Model, int]:
        """Return the last checkpoint and the number of steps it has seen.

        Raises
        ------
        FileNotFoundError
            If the folder holds no run.
        ValueError
            If the checkpoint is damaged.
        """
        if not self.exists():
            raise MissingFileError(f"{str(self.path)!r} holds no run: {self._lacking()}")
        try:
            model = Model(self.checkpoint.read_bytes())
            training = model.metadata["training"]
            step = training["step"]
            if type(step) is not int or step < 0:
                raise ValueError(f"step = {step!r} must be a whole number >= 0")
        except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
            reason = "its metadata holds no step" if isinstance(error, KeyError) else str(error)
            problem = f"{reason}; the run cannot be resumed"
            raise FileError(str(self.checkpoint), [problem]) from error
        return model, step

    def _lacking(self) -> str:
        if not self.checkpoint.is_file():
            return f"no {CHECKPOINT}"
        return (
            f"no {self._config.name}, which holds model, data and options; restore it, or begin "
            "the run again with its whole command"
        )

    def read_config(self, options: type[Any] | None = None) -> tuple[Any, dict[str, Any]]:
        """Return the options and the source that the run was created with.

        Parameters
        ----------
        options : type, optional
            Class of the options; only needed where the trainer is not one of pmt's own.

        Returns
        -------
        options : TrainingOptions, or those of another trainer
            As :meth:`trainer` says.
        source : dict
            Origin of model and data.

        Raises
        ------
        ValueError
            If ``config.toml`` is damaged, or from a trainer that is unknown here.
        """
        config = self.config(options)
        return config.options, dict(config.source)

    def config(self, options: type[Any] | None = None) -> RunConfig:
        """Return all that ``config.toml`` holds; arguments and errors as :meth:`read_config`."""
        return RunConfig.read(self._config, options)

    def check_complete(self, source: Mapping[str, type]) -> None:
        """Raise ValueError if ``config.toml`` lacks an option, or an entry of a type."""
        self.config().check_complete(self._config, source)

    def trainer(self) -> str:
        """Return the kind of trainer."""
        return RunConfig.read_trainer(self._config)

    @property
    def _config(self) -> Path:
        return self.path / "config.toml"

    @property
    def _metrics(self) -> Metrics:
        return Metrics(self.metrics)

    def append(self, record: dict[str, Any]) -> None:
        """Append one record to the metrics; errors as in :meth:`check_there`."""
        self._check_lock()
        try:
            self._metrics.append(record)
        except FileNotFoundError:
            self.check_there()
            raise

    def read_metrics(self) -> list[dict[str, Any]]:
        """Return the records; a last line that a crash cut short is left out.

        Raises
        ------
        ValueError
            If another line is damaged.
        """
        return self._metrics.new()

    def keep_metrics_before(self, step: int) -> list[dict[str, Any]]:
        """Drop records of steps from ``step`` on (a crash lost their weights); return the rest.

        A ValueError says that a line is damaged, or a step before has no record.
        """
        step = checked_integer("step", step)
        kept = [r for r in self._metrics.new() if r["step"] < step]
        recorded = [r["step"] for r in kept if r["kind"] == "step"]
        if len(recorded) != max(step, 0) or recorded != list(range(step)):
            raise ValueError(
                f"{self.metrics}: holds records of {len(recorded)} steps, the checkpoint is of "
                f"step {step}; the run cannot be resumed"
            )
        self._metrics.replace(kept)
        return kept

    def finish(self) -> None:
        """Mark the run as finished, and name the model that it keeps."""
        self.check_there()
        kept = BEST if self.best.is_file() else CHECKPOINT
        atomic_file.write_text(self.path / DONE, f"{kept}\n")


def _model_of(path: Path) -> Model:
    try:
        return Model(path.read_bytes())
    except ValueError as error:
        raise FileError(str(path), [f"{error}; the run cannot be resumed"]) from error


def _environment() -> dict[str, Any]:
    return {
        "pmt": _core.__version__,
        "python": platform.python_version(),
        "numpy": np.__version__,
        "machine": platform.machine(),
        "system": platform.platform(),
        "cpus": os.cpu_count(),
    }


def _training(checkpoint: Model) -> dict[str, Any]:
    """Return the entry of a checkpoint that names its step; a ValueError says there is none."""
    check_model(checkpoint, "checkpoint")
    if "training" not in checkpoint.metadata:
        raise ValueError(
            "checkpoint is a model without a step: must be what load_checkpoint() returns first"
        )
    training: dict[str, Any] = checkpoint.metadata["training"]
    return training


def _at_step(model: Model, training: dict[str, Any]) -> Model:
    check_model(model)
    graph = model.to_graph()
    graph.metadata = {**graph.metadata, "training": training}
    return Model.from_graph(graph)


def summary_rows(folder: RunFolder) -> list[list[str]]:
    """Return names and values; of a folder that cannot be read, only the reason."""
    if not folder.exists():
        return [["state", "holds no run"]]
    try:
        options, source = folder.read_config()
        records = folder.read_metrics()
        trainer = folder.trainer()
    except (ValueError, OSError) as error:
        return [["state", f"cannot be read: {error}"]]
    rows = {"trainer": trainer, **{name: value for name, value in source.items() if value}}
    # These tell most runs apart; config.toml has all options. A budget of MACs replaces the epochs.
    for name in ("layers", "macs" if options.macs else "epochs", "seed"):
        rows[name] = getattr(options, name, "")
    steps = sum(record["kind"] == "step" for record in records)
    rows["state"] = f"{'finished' if folder.done else 'not finished'}, {steps:,} steps"
    for when, record in _evaluations(records):
        rows[when] = f"loss {record['valid_loss']:.4f}, accuracy {record['valid_accuracy']:.4f}"
    return [[name, str(value)] for name, value in rows.items() if value != ""]


def _evaluations(records: list[dict[str, Any]]) -> list[tuple[str, dict[str, Any]]]:
    """Return the first evaluation of the validation images, and that of the folder's model."""
    found = [record for record in records if "valid_loss" in record]
    starts = [("before training", record) for record in found if record["kind"] == "start"]
    states = [record for record in found if record["kind"] in ("start", "phase", "epoch")]
    kept = [record for record in states if record.get("best")][-1:]
    ends = [record for record in found if record["kind"] == "refit"] or kept or states[-1:]
    names = [
        f"epoch {end['epoch']}" if "epoch" in end else end.get("phase", "start") for end in ends
    ]
    return [*starts[:1], *zip(names, ends, strict=True)]
