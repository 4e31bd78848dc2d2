"""``pmt.lock``: all that an exported folder was made from, so that it can be made again."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from pmt import _core
from pmt._util.parsing import parse_json
from pmt.firmware.export.task import Task

__all__ = [
    "APPLICATION",
    "LOCK_NAME",
    "Lock",
    "check_inputs",
    "inputs_of",
    "make_lock",
    "read_lock",
]

LOCK_NAME = "pmt.lock"
_VERSION = 1
APPLICATION = "app"  # the user's own folder

_REMEDIES = {
    "model": "give the model that it was exported from, as MODEL",
    "memories": "give the run that it was exported from, at its step, as MODEL",
    "data": "give the images that it was exported with, by --data DIR",
    "training": "the options or the steps that follow from them are others in this version of pmt",
}


@dataclass(frozen=True)
class Lock:
    """An export's inputs and files.

    Attributes
    ----------
    pmt : str
        Version of the package.
    arguments : dict or None
        Arguments of the command line; None where Python called :func:`pmt.firmware.export.export`.
    inputs : dict of str to str
        SHA-256 of the ``model`` as it was given, of the ``data`` (images and labels), of the
        ``training`` (options, layers, steps), of the ``memories`` (the optimizer state).
    files : dict of str to str
        SHA-256 of every file but those of ``app/``, which are the user's.
    """

    pmt: str
    arguments: dict[str, Any] | None
    inputs: dict[str, str]
    files: dict[str, str]

    def to_bytes(self) -> bytes:
        """Return the file."""
        return (json.dumps({"version": _VERSION, **asdict(self)}, indent=2) + "\n").encode()

    def check_types(self) -> None:
        """Raise TypeError where a field is of another type; a file may say anything."""
        tables = (self.arguments or {}, self.inputs, self.files)
        if not isinstance(self.pmt, str) or not all(isinstance(t, dict) for t in tables):
            raise TypeError("a field is of another type")

    def check_files(self, files: Mapping[str, bytes]) -> None:
        """Compare a folder that was made again.

        Raises
        ------
        ValueError
            If a file differs; the message names the files and both versions of pmt.
        """
        here = _hashes(files)
        names = sorted(here.keys() | self.files.keys())
        different = [name for name in names if here.get(name) != self.files.get(name)]
        if different:
            more = f" and {len(different) - 3} more" if len(different) > 3 else ""
            raise ValueError(
                f"{LOCK_NAME}: {', '.join(different[:3])}{more} would differ: the folder was "
                f"exported by pmt {self.pmt}, this is pmt {_core.__version__}; install that "
                "version, or export without --from"
            )


def read_lock(path: str | Path) -> Lock:
    """Read a lock file.

    Raises
    ------
    FileNotFoundError
        If there is no such file.
    ValueError
        If it is not a lock file, or one of another version.
    """
    remedy = f"give a {LOCK_NAME} of `pmt export`"
    content = parse_json(Path(path).read_bytes(), path, remedy)
    try:
        version = content.pop("version")
        lock = Lock(**content)
        lock.check_types()
    except (TypeError, KeyError, AttributeError) as error:
        raise ValueError(f"{path}: this is not a {LOCK_NAME} of `pmt export`") from error
    if version != _VERSION:
        raise ValueError(
            f"{path}: the lock has version {version}, this pmt reads {_VERSION}; it was written "
            f"by pmt {lock.pmt}"
        )
    return lock


def inputs_of(task: Task) -> dict[str, str]:
    """Return the SHA-256 of each input of a task."""
    packed = task.packed()
    training = repr((task.layers, task.batch, task.inferences, task.steps)).encode()
    data = task.dataset.images.tobytes() + task.dataset.labels.astype("<i8").tobytes()
    return {
        "model": _sha256(task.source),
        "memories": _sha256(packed["optimizer_state"]),
        "data": _sha256(data),
        "training": _sha256(training + packed["options"] + packed["settings"]),
    }


def check_inputs(lock: Lock, inputs: Mapping[str, str]) -> None:
    """Raise ValueError if an input differs from that of an earlier export."""
    for name, remedy in _REMEDIES.items():
        if inputs[name] != lock.inputs.get(name):
            raise ValueError(
                f"{LOCK_NAME}: the {name} differs: SHA-256 {inputs[name][:12]}..., locked is "
                f"{str(lock.inputs.get(name))[:12]}...; {remedy}"
            )


def make_lock(
    files: Mapping[str, bytes], arguments: Mapping[str, Any] | None, inputs: Mapping[str, str]
) -> Lock:
    """Return the lock of a folder's files, which are complete but for it."""
    return Lock(
        pmt=_core.__version__,
        arguments=None if arguments is None else dict(arguments),
        inputs=dict(inputs),
        files=_hashes(files),
    )


def _hashes(files: Mapping[str, bytes]) -> dict[str, str]:
    names = (name for name in sorted(files) if not name.startswith(f"{APPLICATION}/"))
    return {name: _sha256(files[name]) for name in names}


def _sha256(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()
