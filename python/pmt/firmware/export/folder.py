"""The folder that an export writes, whole or over nothing but its own, and its ``pmt.lock``."""

import hashlib
import json
import os
import re
import shutil
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from pmt import _core
from pmt._util import atomic_file, processes
from pmt._util.checks import checked_path
from pmt._util.parsing import parse_json
from pmt._util.places import check_place
from pmt._util.text import listed
from pmt.errors import ExistingFileError, FileError
from pmt.firmware.export.layout import templates
from pmt.firmware.export.task import Task

LOCK_NAME = "pmt.lock"
LEARNER_FILE = "learner.json"  # the arguments of a learner, for who talks to the board
_VERSION = 1
APPLICATION = "app"  # the user's own folder

_REMEDIES = {
    "model": "give the model that it was exported from, as MODEL",
    "optimizer_state": "give the run that it was exported from, at its step, as MODEL",
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
        ``training`` (options, layers, steps), of the ``optimizer_state`` (the mean
        prediction).
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
        """Compare a folder made again; a ValueError names differing files and versions of pmt."""
        here = _hashes(files)
        names = sorted(here.keys() | self.files.keys())
        different = [name for name in names if here.get(name) != self.files.get(name)]
        if different:
            raise ValueError(
                f"{LOCK_NAME}: {listed(different)} would differ: the folder was "
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
        raise FileError(str(path), [f"this is not a {LOCK_NAME} of `pmt export`"]) from error
    if version != _VERSION:
        problem = (
            f"the lock has version {version}, this pmt reads {_VERSION}; it was written by pmt "
            f"{lock.pmt}"
        )
        raise FileError(str(path), [problem])
    return lock


def inputs_of(task: Task) -> dict[str, str]:
    """Return the SHA-256 of each input of a task."""
    packed = task.packed()
    training = repr((task.layers, task.batch, task.inferences, task.steps)).encode()
    labels = task.dataset.labels.astype("<f4" if task.dataset.has_targets else "<i8")
    data = task.dataset.images.tobytes() + labels.tobytes()
    return {
        "model": _sha256(task.source),
        "optimizer_state": _sha256(packed["surprisal"]),
        "data": _sha256(data),
        "training": _sha256(training + packed["options"]),
    }


def check_inputs(lock: Lock, inputs: Mapping[str, str]) -> None:
    """Raise ValueError if an input differs from that of an earlier export."""
    for name, remedy in _REMEDIES.items():
        if inputs[name] != lock.inputs.get(name):
            raise ValueError(
                f"{LOCK_NAME}: the {name.replace('_', ' ')} differs: SHA-256 "
                f"{inputs[name][:12]}..., locked is {str(lock.inputs.get(name))[:12]}...; {remedy}"
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
    names = (name for name in sorted(files) if not _is_of_application(name))
    return {name: _sha256(files[name]) for name in names}


def _sha256(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


_BUILD = "build"  # made by the exported Makefile, and removed by its `make clean`
_MAIN = f"{APPLICATION}/main.cpp"
_SELECTION = b"model/selection.hpp"  # included by the main.cpp of an export that selects
_ZEPHYR = b"<zephyr/kernel.h>"  # by that of a learner, which is a thread


def checked_out(out: str | Path, *, force: bool, learner: bool) -> Path:
    """Return the folder to write, see :func:`check_folder`; no export of another kind is there."""
    place = checked_path("out", out)
    check_folder(place, force)
    if _is_export(place) and (place / LEARNER_FILE).is_file() != learner:
        kind = "the export of a training" if learner else "the export of a learner or of inference"
        raise ExistingFileError(f"out={str(place)!r} is {kind}: choose another")
    return place


def write_project(
    out: Path,
    files: Mapping[str, bytes],
    arguments: Mapping[str, Any] | None,
    inputs: Mapping[str, str],
) -> None:
    """Write a project and its lock, with the user's application where an export is replaced."""
    files = {**files, LOCK_NAME: make_lock(files, arguments, inputs).to_bytes()}
    write_folder(out, _with_kept_application(out, files) if _is_export(out) else files)


def _is_export(out: Path) -> bool:
    """Whether a folder lists the files that an export wrote into it."""
    return (out / LOCK_NAME).is_file()


def check_folder(out: Path, force: bool) -> None:
    """Refuse to replace files of others; restore the folder that a killed export had moved.

    ``force`` replaces files of an earlier export that were changed since. A FileExistsError tells
    of a folder that is neither new nor empty nor an earlier export, and of a place of more than a
    project.
    """
    check_place(out, f"out={str(out)!r}")
    real = out.resolve()
    _recover(real)
    _refuse_places(out, real)
    if not real.exists() or (real.is_dir() and not any(real.iterdir())):
        return
    try:
        written = read_lock(real / LOCK_NAME).files
    except (OSError, ValueError):
        raise ExistingFileError(
            f"out={str(out)!r} exists and is not an earlier export: it has no {LOCK_NAME} that "
            "says what may be replaced; choose another folder, or empty this one"
        ) from None
    changed = [name for name in written if _differs(real / name, written[name])]
    if changed and not force:
        raise ExistingFileError(
            f"out={str(out)!r} has files that were changed since they were exported: "
            f"{listed(changed)}; choose another folder, or replace them with --force (force=True)"
        )


def _with_kept_application(out: Path, files: Mapping[str, bytes]) -> dict[str, bytes]:
    """Give a new project the files in ``app/`` of the export that it replaces.

    A ``main.cpp`` that nobody changed gives way. A changed one raises ValueError where one export
    selects a block and the other does not, or where the new one needs a thread of Zephyr.
    """
    if _MAIN not in files:
        return dict(files)
    kept = {
        path.relative_to(out).as_posix(): path.read_bytes()
        for path in (out / APPLICATION).rglob("*")
        if path.is_file()
    }
    main = kept.get(_MAIN)
    if main in _as_exported():
        kept[_MAIN] = files[_MAIN]
    elif main is not None:
        _check_application(out, main, files[_MAIN])
    others = {name: content for name, content in files.items() if not _is_of_application(name)}
    return {**others, **kept}


def _check_application(out: Path, main: bytes, new: bytes) -> None:
    selects = _SELECTION in new
    kind = f"{'without' if selects else 'with'} --select (select=...)"
    if selects == (_SELECTION in main):
        if _ZEPHYR in main or _ZEPHYR not in new:
            return
        kind = "of another --format (format=...)"
    raise ValueError(
        f"out={str(out)!r} keeps a changed {_MAIN}, which is for an export {kind}; move it away, "
        "or choose another folder"
    )


def write_folder(out: Path, files: Mapping[str, bytes]) -> None:
    """Write a project, path to content, aside and rename it into place.

    The folder may be a link to it. Files of an earlier export are replaced; those not in its
    ``pmt.lock`` are kept. Where that fails (OSError; FileExistsError at a file that no export
    wrote), the folder is unchanged.
    """
    real = out.resolve()
    kept = {name for name in files if _is_of_application(name)}
    foreign = [name for name in _foreign_files(real) if name not in kept]
    taken = [name for name in foreign if _is_taken(name, files)]
    if taken:
        raise ExistingFileError(
            f"out={str(out)!r} has files that no export wrote, in place of the project's: "
            f"{listed(taken)}; move them away, or choose another folder"
        )
    aside, old = atomic_file.aside_of(real), atomic_file.aside_of(real, "old")
    try:
        for name, content in files.items():
            path = aside / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(content)
        for name in foreign:
            _carry(real / name, aside / name)
        for name in _empty_folders(real):
            (aside / name).mkdir(parents=True, exist_ok=True)
        if real.exists():
            shutil.copymode(real, aside)
        _sync_tree(aside)
        if real.exists():
            real.rename(old)
        aside.rename(real)
        atomic_file.sync(real.parent)
    except OSError as error:
        raise OSError(
            error.errno,
            f"the project could not be written ({error.strerror}); what was there is unchanged; "
            f"{atomic_file.write_remedy(error)}",
            str(out),
        ) from error
    finally:  # Ctrl-C between the renames, too
        if old.exists() and not real.exists():
            old.rename(real)
        shutil.rmtree(aside, ignore_errors=True)
    shutil.rmtree(old, ignore_errors=True)


def _is_of_application(name: str) -> bool:
    return name.startswith(f"{APPLICATION}/")


def _as_exported() -> tuple[bytes, ...]:
    parts = ("project", "select", "learner", "zephyr_learner")
    return tuple(templates(part)[_MAIN].read_bytes() for part in parts)


def _refuse_places(out: Path, real: Path) -> None:
    home = Path(os.path.expanduser("~")).resolve()
    for place, what in ((Path.cwd(), "the working folder"), (home, "the home folder")):
        if real == place or real in place.parents:
            above = "" if real == place else ", or above it"
            raise ExistingFileError(
                f"out={str(out)!r} is {what}{above}; name a folder of its own for the project"
            )


def _differs(path: Path, sha256: str) -> bool:
    """Whether a file is there with another content; one that was removed is not a loss."""
    return path.is_file() and _sha256(path.read_bytes()) != sha256


def _foreign_files(real: Path) -> list[str]:
    """Names of files and links that neither an export nor its Makefile wrote."""
    written = read_lock(real / LOCK_NAME).files if _is_export(real) else {}
    found = []
    for here, folders, names in _walk(real):
        links = [name for name in folders if (real / here / name).is_symlink()]
        found += [(here / name).as_posix() for name in (*names, *links)]
    return sorted(name for name in found if name not in written and name != LOCK_NAME)


def _empty_folders(real: Path) -> list[str]:
    """Names of folders that hold nothing, which mean something to a repository, for example."""
    walked = [here.as_posix() for here, *contents in _walk(real) if not any(contents)]
    return [name for name in walked if name != "."]


def _walk(real: Path) -> Iterator[tuple[Path, list[str], list[str]]]:
    """Walk through all files but those that the project's Makefile makes."""
    for folder, folders, names in os.walk(real):
        here = Path(folder).relative_to(real)
        if here == Path("."):
            folders[:] = [name for name in folders if name != _BUILD]
        yield here, folders, names


def _is_taken(name: str, files: Mapping[str, bytes]) -> bool:
    """Whether a project has a file of this name, or below it, or one in place of its folder."""
    return any(
        file == name or file.startswith(f"{name}/") or name.startswith(f"{file}/") for file in files
    )


def _carry(source: Path, to: Path) -> None:
    to.parent.mkdir(parents=True, exist_ok=True)
    try:
        os.link(source, to, follow_symlinks=False)
    except OSError:  # a file system without hard links
        shutil.copy2(source, to, follow_symlinks=False)


def _recover(real: Path) -> None:
    """Bring back the folder that a killed export had renamed; remove its temporary files."""
    pattern = re.compile(rf"\.{re.escape(real.name)}\.[0-9]+\.[0-9a-f]{{8}}\.[0-9]+\.(part|old)")
    siblings = real.parent.iterdir() if real.parent.is_dir() else ()
    left = [(path, pattern.fullmatch(path.name)) for path in siblings]
    for path, match in sorted((path, match) for path, match in left if match is not None):
        if match[1] == "old" and not real.exists() and not _is_being_replaced(path):
            path.rename(real)
        elif atomic_file.is_left(path):
            shutil.rmtree(path, ignore_errors=True)


def _is_being_replaced(old: Path) -> bool:
    """Whether a living process of this machine stands between its two renames."""
    *_, tag, pid, _ = old.name.split(".")
    return tag == processes.machine_tag() and processes.is_running(int(pid))


def _sync_tree(folder: Path) -> None:
    for path, _, names in os.walk(folder):
        for name in names:
            if not (Path(path) / name).is_symlink():
                atomic_file.sync(Path(path) / name)
        atomic_file.sync(Path(path))
