"""A training run on disk: everything needed to read, repeat or resume it.

``config.toml`` (model, data, options), ``env.json`` (machine and versions), ``metrics.jsonl``
(append-only, one line a step and one an epoch), ``checkpoint.pmt`` (the model so far; its metadata
says after which step), ``DONE`` (written last).
"""

from __future__ import annotations

import dataclasses
import json
import os
import platform
from pathlib import Path
from typing import Any

import numpy as np

from pmt import _core, atomic_file
from pmt.model import Model
from pmt.options import TrainingOptions

__all__ = ["RunFolder"]


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
    def metrics(self) -> Path:
        """One JSON object a line."""
        return self.path / "metrics.jsonl"

    @property
    def done(self) -> bool:
        """Whether the run has finished."""
        return (self.path / "DONE").is_file()

    def exists(self) -> bool:
        """Whether the folder holds a run."""
        return self.checkpoint.is_file() and (self.path / "config.toml").is_file()

    def create(self, model: Model, options: TrainingOptions, source: dict[str, Any]) -> None:
        """Start a run.

        Parameters
        ----------
        model : Model
            The untrained model; it becomes the checkpoint of step 0.
        options : TrainingOptions
            Options of the run.
        source : dict
            Where model and data come from: strings and integers, kept in ``config.toml``.

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
        # Last: a folder with a config.toml is a run that can be resumed.
        atomic_file.write_text(self.path / "config.toml", _toml(options, source))

    def _is_restartable(self) -> bool:
        """Whether the folder is empty, or all that a run killed while it was created left."""
        if not self.path.is_dir():
            return False
        names = [p.name for p in self.path.iterdir() if p.suffix != ".part"]
        return set(names) <= {"env.json", "checkpoint.pmt"}

    def save_checkpoint(self, model: Model, *, step: int) -> None:
        """Write the model as it is after ``step`` steps; a crash leaves the last one."""
        for left_by_a_crash in self.path.glob(".checkpoint.pmt.*.part"):
            left_by_a_crash.unlink(missing_ok=True)
        graph = model.to_graph()
        graph.metadata = {**graph.metadata, "training": {"step": step}}
        Model.from_graph(graph).save(self.checkpoint)

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

    def read_config(self) -> tuple[TrainingOptions, dict[str, Any]]:
        """Return the options and the source that the run was created with.

        Raises
        ------
        ValueError
            If ``config.toml`` is damaged.
        """
        path = self.path / "config.toml"
        try:
            tables = _parse_toml(path.read_text())
            return TrainingOptions(**tables["options"]), tables["source"]
        except (ValueError, KeyError, TypeError) as error:
            raise ValueError(f"{path}: {error}; the run cannot be resumed") from error

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


def _environment() -> dict[str, Any]:
    return {
        "pmt": _core.__version__,
        "python": platform.python_version(),
        "numpy": np.__version__,
        "machine": platform.machine(),
        "system": platform.platform(),
        "cpus": os.cpu_count(),
    }


def _toml(options: TrainingOptions, source: dict[str, Any]) -> str:
    lines = ["# Written by pmt; `pmt train --resume` reads it.", "[source]"]
    lines += [f"{key} = {json.dumps(value)}" for key, value in source.items()]
    lines += ["", "[options]"]
    for key, value in dataclasses.asdict(options).items():
        lines.append(f"{key} = {json.dumps(value)}")
    return "\n".join(lines) + "\n"


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
