"""The identity of a run: trainer, options, source and contents, as ``config.toml`` keeps them."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from pmt import _core
from pmt._util.parsing import parse_toml, toml_line
from pmt.datasets import Dataset
from pmt.datasets.dataset import checksums
from pmt.errors import FileError
from pmt.model import Model
from pmt.train.schedule import RunOptions

# The class of the options of each kind of trainer, imported when a run of it is read.
_OPTIONS: dict[str, Callable[[], type[Any]]] = {}
_REMEDY = "the run cannot be resumed"
_EDITED = " (its parameters or its code differ)"
_CONTENTS = {
    "model_crc32": "model",
    "train_images_crc32": "training images",
    "train_labels_crc32": "training labels",
    "valid_images_crc32": "validation images",
    "valid_labels_crc32": "validation labels",
    "held_out_images_crc32": "held-out images",
    "held_out_labels_crc32": "held-out labels",
}


@dataclass(frozen=True)
class RunConfig:
    """The facts that tell a run from others."""

    options: RunOptions  # options of the run
    # Origin of model and data: strings and integers.
    source: Mapping[str, Any] = field(default_factory=dict)
    # CRC-32 of the model before training and of the data, see `contents_of`.
    contents: Mapping[str, int] = field(default_factory=dict)
    trainer: str = "zeroth_order"  # kind of trainer that the options are of
    # Options that its `config.toml` does not hold: another version of pmt wrote it.
    absent: tuple[str, ...] = ()
    # Names of the user's own loss, estimator and optimizer, see `pmt.ZOTrainer.extensions`.
    extensions: Mapping[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        plain = {
            key: value.item() if isinstance(value, np.generic) else value
            for key, value in self.source.items()
        }
        object.__setattr__(self, "source", plain)

    @property
    def extends_steps(self) -> bool:
        """Whether an estimator or optimizer of the user's own took the steps."""
        return not {"estimator", "optimizer"}.isdisjoint(self.extensions)

    def differences(self, here: RunConfig) -> list[str]:
        """Return the differences from another run of the same trainer, each as a few words."""
        there = {**_flat(self), **_contents(self)}
        other = {**_flat(here), **_contents(here)}
        return [
            f"{name}: there {there.get(name, 'none')}, here {other.get(name, 'none')}"
            + (_EDITED if name in self.extensions and name in here.extensions else "")
            for name in dict.fromkeys([*there, *other])
            if there.get(name) != other.get(name)
        ]

    def to_toml(self) -> str:
        """Return the text of ``config.toml``; a ValueError names a value that TOML cannot hold."""
        lines = ["# Written by pmt; `pmt train --resume` reads it."]
        tables = {
            "run": {"trainer": self.trainer},
            "source": self.source,
            "contents": self.contents,
            "options": dataclasses.asdict(self.options),
            **({"extensions": self.extensions} if self.extensions else {}),
        }
        for title, table in tables.items():
            lines.append(f"[{title}]")
            lines += [toml_line(key, value) for key, value in table.items()]
            lines.append("")
        return "\n".join(lines[:-1]) + "\n"

    @classmethod
    def read(cls, path: Path, options: type[Any] | None = None) -> RunConfig:
        """Read a ``config.toml``; the class of its options is by default that of its trainer.

        A ValueError says that it is damaged, or its trainer unknown.
        """
        tables = _read_tables(path)
        trainer = str(tables["run"]["trainer"])
        kind = options or _options_class(trainer, path)
        known = [option.name for option in dataclasses.fields(kind)]
        unknown = [name for name in tables["options"] if name not in known]
        if unknown:
            problem = f"[options] {unknown[0]} is not an option of this version of pmt"
            raise _other_version(path, problem)
        try:
            made = kind(**tables["options"])
        except (ValueError, TypeError) as error:
            raise _damaged(path, str(error)) from error
        absent = tuple(name for name in known if name not in tables["options"])
        extensions = {k: str(v) for k, v in tables.get("extensions", {}).items()}
        contents = tables.get("contents", {})
        return cls(made, tables["source"], contents, trainer, absent, extensions)

    def check_complete(self, path: Path, source: Mapping[str, type]) -> None:
        """Raise ValueError if the file at ``path`` lacks an option, or a string or integer."""
        lacking = [f"[source] {name}" for name in source if name not in self.source]
        lacking += [f"[options] {name}" for name in self.absent]
        if lacking:
            raise _other_version(path, f"{lacking[0]} is missing")
        for name, kind in source.items():
            if type(self.source[name]) is not kind:
                rule = "text" if kind is str else "a whole number"
                raise _damaged(path, f"[source] {name} = {self.source[name]!r} must be {rule}")

    @staticmethod
    def read_trainer(path: Path) -> str:
        """Return only the kind of trainer; errors as in :meth:`read`."""
        return str(_read_tables(path)["run"].get("trainer"))


def register_options(trainer: str, options: Callable[[], type[Any]]) -> None:
    """Tell how to import the options' class of a kind of trainer, to read its run folders."""
    _OPTIONS[trainer] = options


def contents_of(
    model: Model, data: Dataset, valid: Dataset | None, held_out: Dataset | None = None
) -> dict[str, int]:
    """Return the CRC-32 of a model's image, and of all images and labels that a run is given."""
    contents = {"model_crc32": _core.crc32(model.image())}
    for name, images in (("train", data), ("valid", valid), ("held_out", held_out)):
        if images is not None:
            pixels, labels = checksums(images)
            contents.update({f"{name}_images_crc32": pixels, f"{name}_labels_crc32": labels})
    return contents


def _flat(config: RunConfig) -> dict[str, Any]:
    shown = dict(config.extensions)
    for key, value in dataclasses.asdict(config.options).items():
        if key not in config.absent:
            shown[f"option {key}"] = repr(value)
    return {**shown, **{f"source {key}": repr(value) for key, value in config.source.items()}}


def _contents(config: RunConfig) -> dict[str, str]:
    return {
        title: f"CRC-32 {config.contents[key]:08x}"
        for key, title in _CONTENTS.items()
        if key in config.contents
    }


def _options_class(trainer: str, path: Path) -> type[Any]:
    if trainer not in _OPTIONS:
        raise _damaged(
            path,
            f"trainer {trainer!r} is unknown; it may need a newer version of pmt, the module that "
            "registers it as a method (--plugin MODULE), or the class of its options: "
            "read_config(options=...)",
        )
    return _OPTIONS[trainer]()


def _other_version(path: Path, problem: str) -> FileError:
    """Make the error for a ``config.toml`` with other entries than this version writes."""
    remedy = (
        "use the version of pmt that began the run, which env.json names, or start the run again "
        "in another folder"
    )
    return FileError(str(path), [f"{problem}; {remedy}"])


def _damaged(path: Path, reason: str) -> FileError:
    return FileError(str(path), [f"{reason}; {_REMEDY}"])


def _read_tables(path: Path) -> dict[str, dict[str, Any]]:
    tables = parse_toml(path.read_bytes(), path, _REMEDY, finite=False)
    try:
        for name in ("source", "options"):
            if name not in tables:
                raise ValueError(f"holds no [{name}]")
        for title, table in tables.items():
            if not isinstance(table, dict):
                raise ValueError(f"{title} is not in a table")
            for name, value in table.items():
                if not isinstance(value, str | int | float):
                    raise ValueError(f"[{title}] {name} is not text, a number, true or false")
        for name, number in tables.get("contents", {}).items():
            if type(number) is not int:
                raise ValueError(f"[contents] {name} = {number!r} must be a whole number")
        if "trainer" not in tables.get("run", {}):
            raise ValueError("[run] holds no trainer")
    except ValueError as error:
        raise _damaged(path, str(error)) from error
    return tables
