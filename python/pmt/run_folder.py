"""A training run on disk: everything needed to read, repeat or resume it.

``config.toml`` (trainer, model, data, options), ``env.json`` (machine and versions),
``metrics.jsonl`` (append-only, one line a step and one an epoch), ``checkpoint.pmt`` (the model so
far; its metadata says after which step), ``checkpoint-STEP.npz`` (what else that step left, if
anything), ``best.pmt`` (the model that was best on held-out data, if one is kept), ``DONE``
(written last).
"""

from __future__ import annotations

import dataclasses
import importlib
import io
import json
import os
import platform
import zipfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any, ClassVar, Protocol

import numpy as np
import numpy.typing as npt

from pmt import _core, atomic_file
from pmt.model import Model
from pmt.schedule import ScheduleOptions

__all__ = ["RunFolder", "RunOptions"]

# The options of each kind of trainer: module and class.
_OPTIONS = {
    "zeroth_order": ("pmt.options", "TrainingOptions"),
    "backprop": ("pmt.backprop.options", "BackpropOptions"),
    "mcutrain": ("pmt.sparse_update.options", "MCUTrainOptions"),
    "tinytrain": ("pmt.sparse_update.options", "TinyTrainOptions"),
    "no_adaptation": ("pmt.methods.no_adaptation", "NoAdaptationOptions"),
}


class RunOptions(ScheduleOptions, Protocol):
    """Options of a run: a frozen dataclass of str, int, float and bool."""

    __dataclass_fields__: ClassVar[dict[str, Any]]


class RunFolder:
    """Reads and writes one run folder.

    Parameters
    ----------
    path : str or pathlib.Path
        The folder.
    """

    def __init__(self, path: str | Path) -> None:
        self.path = Path(path)

    @property
    def checkpoint(self) -> Path:
        """The model as last saved."""
        return self.path / "checkpoint.pmt"

    @property
    def best(self) -> Path:
        """The model that was best on held-out data."""
        return self.path / "best.pmt"

    @property
    def metrics(self) -> Path:
        """One JSON object a line."""
        return self.path / "metrics.jsonl"

    @property
    def done(self) -> bool:
        """Whether the run has finished."""
        return (self.path / "DONE").is_file()

    def exists(self) -> bool:
        """Whether the folder holds a run."""
        return self.checkpoint.is_file() and self._config.is_file()

    def create(
        self,
        model: Model,
        options: RunOptions,
        source: dict[str, Any],
        *,
        trainer: str = "zeroth_order",
        keep_best: bool = False,
    ) -> None:
        """Start a run.

        Parameters
        ----------
        model : Model
            The untrained model; it becomes the checkpoint of step 0.
        options : TrainingOptions, or another frozen dataclass of str, int, float and bool
            Options of the run.
        source : dict
            Where model and data come from: strings and integers, kept in ``config.toml``.
        trainer : str
            Kind of trainer that the options are of.
        keep_best : bool
            Whether the run keeps the model that is best on held-out data.

        Raises
        ------
        FileExistsError
            If the folder holds anything.
        OSError
            If it cannot be written.
        """
        if self.path.exists() and not self._is_restartable():
            raise FileExistsError(
                f"out={str(self.path)!r} already exists and is not empty; resume it "
                "(pmt train --resume), or choose another folder"
            )
        self.path.mkdir(parents=True, exist_ok=True)
        environment = json.dumps(_environment(), indent=2, sort_keys=True)
        atomic_file.write_text(self.path / "env.json", environment + "\n")
        self.save_checkpoint(model, step=0)
        run = {"trainer": trainer, "keep_best": keep_best}
        # Last: a folder with a config.toml is a run that can be resumed.
        atomic_file.write_text(self._config, _toml(run, options, source))

    def _is_restartable(self) -> bool:
        """Whether the folder is empty, or all that a run killed while it was created left."""
        if not self.path.is_dir():
            return False
        names = [p.name for p in self.path.iterdir() if p.suffix != ".part"]
        return set(names) <= {"env.json", "checkpoint.pmt"}

    def save_checkpoint(
        self,
        model: Model,
        *,
        step: int,
        state: Mapping[str, npt.NDArray[Any]] | None = None,
    ) -> None:
        """Write the model as it is after ``step`` steps; a crash leaves the last checkpoint.

        Parameters
        ----------
        model : Model
            The model.
        step : int
            Steps that it has seen.
        state : dict of ndarray, optional
            What the trainer needs besides to take the next step.

        Raises
        ------
        OSError
            If it cannot be written.
        """
        for left_by_a_crash in self.path.glob(".checkpoint*.part"):
            left_by_a_crash.unlink(missing_ok=True)
        training: dict[str, Any] = {"step": step}
        if state:
            # First, under its step's name: the model, written last, says which one is valid.
            atomic_file.write_bytes(self._state_file(step), _npz(state))
            training["state"] = True
        self._save_model(model, self.checkpoint, training)
        for old in self.path.glob("checkpoint-*.npz"):
            if not state or old != self._state_file(step):
                old.unlink(missing_ok=True)

    def save_best(self, model: Model, *, step: int) -> None:
        """Write the model, the best so far on held-out data, as it is after ``step`` steps."""
        atomic_file.remove_leftovers(self.best)
        self._save_model(model, self.best, {"step": step})

    def _save_model(self, model: Model, path: Path, training: dict[str, Any]) -> None:
        graph = model.to_graph()
        graph.metadata = {**graph.metadata, "training": training}
        Model.from_graph(graph).save(path)

    def _state_file(self, step: int) -> Path:
        return self.path / f"checkpoint-{step}.npz"

    def load_state(self, checkpoint: Model) -> dict[str, npt.NDArray[Any]]:
        """Return the state that was saved with a checkpoint of :meth:`load_checkpoint`.

        Raises
        ------
        ValueError
            If it is missing or damaged.
        """
        training = checkpoint.metadata["training"]
        if not training.get("state"):
            return {}
        path = self._state_file(training["step"])
        if not path.is_file():
            raise ValueError(f"{path} is missing; the run cannot be resumed")
        try:
            with np.load(io.BytesIO(path.read_bytes()), allow_pickle=False) as arrays:
                return {name: arrays[name] for name in arrays.files}
        except (OSError, ValueError, EOFError, zipfile.BadZipFile) as error:
            raise ValueError(f"{path}: {error}; the run cannot be resumed") from error

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
            raise FileNotFoundError(f"{str(self.path)!r} holds no run: no checkpoint.pmt")
        try:
            model = Model(self.checkpoint.read_bytes())
            step = int(model.metadata["training"]["step"])
        except (ValueError, KeyError, TypeError) as error:
            raise ValueError(f"{self.checkpoint}: {error}; the run cannot be resumed") from error
        return model, step

    def read_config(self) -> tuple[Any, dict[str, Any]]:
        """Return the options and the source that the run was created with.

        Returns
        -------
        options : TrainingOptions, or those of another trainer
            As :meth:`trainer` says.
        source : dict
            Where model and data come from.

        Raises
        ------
        ValueError
            If ``config.toml`` is damaged, or from a trainer that is unknown here.
        """
        tables = self._read_tables()
        try:
            return _options_class(self.trainer())(**tables["options"]), tables["source"]
        except (ValueError, KeyError, TypeError) as error:
            raise ValueError(f"{self._config}: {error}; the run cannot be resumed") from error

    def trainer(self) -> str:
        """Return the kind of trainer, ``"zeroth_order"`` for a run that does not say."""
        return str(self._read_tables().get("run", {}).get("trainer", "zeroth_order"))

    def keeps_best(self) -> bool:
        """Whether the run keeps the model that is best on held-out data."""
        return bool(self._read_tables().get("run", {}).get("keep_best", False))

    @property
    def _config(self) -> Path:
        return self.path / "config.toml"

    def _read_tables(self) -> dict[str, dict[str, Any]]:
        try:
            return _parse_toml(self._config.read_text())
        except (ValueError, TypeError) as error:
            raise ValueError(f"{self._config}: {error}; the run cannot be resumed") from error

    def append(self, record: dict[str, Any]) -> None:
        """Append one record to the metrics."""
        with self.metrics.open("a") as file:
            file.write(json.dumps(record, sort_keys=True) + "\n")

    def read_metrics(self) -> list[dict[str, Any]]:
        """Return the records; a last line that a crash cut short is left out."""
        if not self.metrics.is_file():
            return []
        records = []
        for line in self.metrics.read_text().splitlines():
            try:
                records.append(json.loads(line))
            except json.JSONDecodeError:
                break
        return records

    def keep_metrics_before(self, step: int) -> list[dict[str, Any]]:
        """Drop records of steps from ``step`` on (a crash lost their weights); return the rest."""
        kept = [r for r in self.read_metrics() if r["step"] < step]
        lines = "".join(json.dumps(r, sort_keys=True) + "\n" for r in kept)
        atomic_file.write_text(self.metrics, lines)
        return kept

    def finish(self) -> None:
        """Mark the run as finished."""
        atomic_file.write_text(self.path / "DONE", "")


def _npz(arrays: Mapping[str, npt.NDArray[Any]]) -> bytes:
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w") as archive:
        for name, array in arrays.items():
            content = io.BytesIO()
            np.lib.format.write_array(content, np.asanyarray(array), allow_pickle=False)
            # Under a fixed date: the same state makes the same bytes.
            archive.writestr(zipfile.ZipInfo(f"{name}.npy"), content.getvalue())
    return packed.getvalue()


def _environment() -> dict[str, Any]:
    return {
        "pmt": _core.__version__,
        "python": platform.python_version(),
        "numpy": np.__version__,
        "machine": platform.machine(),
        "system": platform.platform(),
        "cpus": os.cpu_count(),
    }


def _options_class(trainer: str) -> type:
    if trainer not in _OPTIONS:
        raise ValueError(f"trainer {trainer!r} is unknown; it may need a newer version of pmt")
    module, name = _OPTIONS[trainer]
    found: type = getattr(importlib.import_module(module), name)
    return found


def _toml(run: dict[str, Any], options: RunOptions, source: dict[str, Any]) -> str:
    lines = ["# Written by pmt; `pmt train --resume` reads it."]
    tables = {"run": run, "source": source, "options": dataclasses.asdict(options)}
    for title, table in tables.items():
        lines.append(f"[{title}]")
        lines += [f"{key} = {json.dumps(value)}" for key, value in table.items()]
        lines.append("")
    return "\n".join(lines[:-1]) + "\n"


def _parse_toml(text: str) -> dict[str, dict[str, Any]]:
    """Read what `_toml` writes: tables of JSON scalars, which are TOML scalars as well."""
    tables: dict[str, dict[str, Any]] = {}
    table: dict[str, Any] = {}
    for number, line in enumerate(text.splitlines(), 1):
        if not line or line.startswith("#"):
            continue
        if line.startswith("[") and line.endswith("]"):
            table = tables.setdefault(line[1:-1], {})
            continue
        key, separator, value = line.partition(" = ")
        if not separator:
            raise ValueError(f"line {number} is not `key = value`")
        table[key] = json.loads(value)
    return tables
