"""The output of a command: standard streams, text, tables, progress and JSON."""

from __future__ import annotations

import argparse
import io
import json
import os
import sys
from collections.abc import Callable, Collection, Iterator
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any, TextIO

from pmt._util import atomic_file
from pmt._util.extras import load_pyplot
from pmt._util.places import check_length, check_writable
from pmt._util.plots import plot_suffix
from pmt._util.progress import ProgressLine
from pmt._util.text import printable
from pmt.callbacks import Event
from pmt.cli.typed_names import typed_name
from pmt.errors import ExistingFileError
from pmt.train.run.folder import RunFolder, is_of_run
from pmt.train.run.metrics import Metrics
from pmt.train.run.result import Column, columns
from pmt.train.schedule import Schedule

EXIT_FAILED = 1  # the command itself worked: a run failed, or a board's results differ
EXIT_BAD_INPUT = 2
EXIT_INTERRUPTED = 130  # after Ctrl-C, SIGTERM or SIGHUP
EXIT_OUTPUT_CLOSED = 141  # as after SIGPIPE

_STREAMS = {"stdin": "r", "stdout": "w", "stderr": "w"}
_NAMES = {"<stdout>": "standard output", "<stderr>": "standard error"}


def prepare_streams() -> tuple[str, ...]:
    """Open closed streams as the null device, and let no character be one that cannot be written.

    A file would otherwise get the number of a closed stream, and what is meant for a terminal would
    be written into it. Returns those of ``stdin``, ``stdout``, ``stderr`` that were closed.
    """
    closed = tuple(name for name in _STREAMS if getattr(sys, name) is None)
    for name in closed:
        number = os.open(os.devnull, os.O_RDWR)  # the lowest that is free: the stream's own
        os.set_inheritable(number, True)
        setattr(sys, name, os.fdopen(number, _STREAMS[name], encoding="utf-8", closefd=False))
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")
    return closed


def put(text: str, stream: TextIO) -> None:
    """Write text at once; BrokenPipeError if the reader went away, OSError names the stream."""
    try:
        stream.write(text)
        stream.flush()
    except OSError as error:
        _discard(stream)
        name = _NAMES.get(stream.name, stream.name)
        raise type(error)(error.errno, error.strerror, name) from None


def complain(message: str) -> None:
    """Print one line on standard error; that nobody can read it changes no exit code."""
    with suppress(OSError):
        put(printable(f"pmt: {message}") + "\n", sys.stderr)


def _discard(stream: TextIO) -> None:
    """Discard the rest of the stream's buffer, which Python would write once more at exit."""
    with suppress(OSError):
        null = os.open(os.devnull, os.O_WRONLY)
        os.dup2(null, stream.fileno())
        os.close(null)


def check_folder(argument: str, path: str) -> Path:
    """Find out before the work, not after it, whether a file's folder is there."""
    folder = Path(path).absolute().parent
    if folder.exists() and not folder.is_dir():
        raise NotADirectoryError(f"{argument} {path}: {folder} is a file; choose a folder")
    if not folder.is_dir():
        raise FileNotFoundError(f"{argument} {path}: its folder does not exist; create it")
    return Path(path)


def check_file(argument: str, path: str) -> Path:
    """Find out before the work whether a file, and no folder, can be at this path."""
    if Path(path).is_dir():
        raise IsADirectoryError(f"{argument} {path}: must be a file, and is a folder")
    return check_folder(argument, path)


def checked_model_out(out: str, model: str, *, replace: bool) -> Path:
    """Find out before the work whether ``--out`` can be a model's file, or may be replaced."""
    if Path(out).suffix != ".pmt":
        raise ValueError(f"--out {out}: a model is written as .pmt; change the suffix")
    path = check_file("--out", out)
    in_place = Path(model).exists() and path.exists() and path.samefile(model)
    if path.exists() and not (in_place or replace):
        raise ExistingFileError(f"--out {out} exists; choose another name, or add --force")
    return path


def check_plot(path: str | None, argument: str = "--plot") -> None:
    """Find out before the work whether a plot, if any, can be drawn and written."""
    if path is not None:
        plot_suffix(path, argument)
        load_pyplot()
        check_file(argument, path)


def stage(name: str) -> Callable[[int, int], None]:
    """Return a ``progress(done, in_all)`` that shows a stage's name in a line until all is done."""
    line: ProgressLine | None = None

    def progress(done: int, total: int) -> None:
        nonlocal line
        if line is None or line.total != total:
            line = ProgressLine(total)
        line.update(done, name)
        if done == total:
            line.clear()

    return progress


class EpochLines:
    """Prints the epochs of a run from its metrics, also those from before it was resumed.

    The progress line goes to standard error, if that is a terminal. Entries of records that the run
    never has, ``unmeasured``, get no column.
    """

    def __init__(
        self,
        folder: RunFolder,
        schedule: Schedule,
        output: Output,
        unmeasured: Collection[str] = (),
    ) -> None:
        self.unmeasured = unmeasured
        self.metrics = Metrics(folder.metrics)
        self.schedule = schedule
        self.output = output
        self.progress: ProgressLine | None = None
        self.columns: list[Column] = []

    def plan(self, event: Event) -> None:
        """Take over how many steps there are, fewer where heads are solved between them."""
        self.schedule.steps = event.steps

    def after_step(self, step: int, record: dict[str, Any]) -> None:
        """Show that ``step`` steps are done and that the last one gave ``record``."""
        if self.progress is None:
            self.progress = ProgressLine(self.schedule.steps, done=step - 1)
            self._print_new()
        if self.schedule.ends_epoch(step):
            self._print_new()
        self.progress.update(step, f"loss {record['loss']:.4f}")

    def finish(self) -> None:
        """Remove the progress line and print the remaining lines."""
        self.stop()
        self._print_new()

    def stop(self) -> None:
        """Remove the progress line."""
        if self.progress is not None:
            self.progress.clear()

    def _print_new(self) -> None:
        for record in self.metrics.new():
            if record["kind"] not in ("start", "phase", "epoch", "refit"):
                continue
            self.stop()
            if not self.columns:
                found = columns([record], watched="test")
                self.columns = [one for one in found if one.key not in self.unmeasured]
                self._print_line([column.title for column in self.columns])
            self._print_line([column.cell(record, "") for column in self.columns])

    def _print_line(self, cells: list[str]) -> None:
        pairs = zip(cells, self.columns, strict=True)
        self.output.text("  ".join(text.rjust(column.width) for text, column in pairs).rstrip())


class Output:
    """Text for people and JSON for programs.

    The JSON goes to a file, or with ``"-"`` to standard output, and the text then to standard
    error. That the file is a folder, or its own folder is not there, is found out before the work.
    """

    def __init__(self, json_path: str | None) -> None:
        self.json_path = json_path
        self.stream = sys.stderr if json_path == "-" else sys.stdout
        if json_path is not None and json_path != "-":
            check_file("--json", json_path)

    def text(self, text: str) -> None:
        """Print text at once, so that a log can be followed; control characters are escaped."""
        put(printable(text, keep="\n\t") + "\n", self.stream)

    def figures(self, figures: dict[str, Any]) -> None:
        """Write the figures as JSON, if they were asked for."""
        if self.json_path is None:
            return
        text = json.dumps(figures, indent=2) + "\n"
        if self.json_path == "-":
            put(text, sys.stdout)
            return
        try:
            atomic_file.write_text(self.json_path, text)
        except OSError as error:
            raise type(error)(error.errno, error.strerror, f"--json {self.json_path}") from error


# Arguments that name a file to write; `--out` may be a folder, or the model that is read.
_WRITTEN = ("json", "plot", "plot_step", "keep")
_MAY_BE_READ = ("out", "write", "cache", "root")
_READ = (
    *("model", "against", "grid", "folders", "into", "calibrate", "eval", "data", "page", "from"),
    *("files", "folder", "file", "resume", "names_of"),
)


def check_output_files(arguments: argparse.Namespace) -> None:
    """Raise an error before any work where a file or folder cannot be written.

    ValueError where a name is empty or too long, one file would be written twice, or over a file
    that is read or a run's; PermissionError where the folder is read-only.
    """
    written: dict[str, str] = {}
    typed = partial(typed_name, vars(arguments))
    for name in (*_WRITTEN, *_MAY_BE_READ):
        if getattr(arguments, name, None) == "":
            raise ValueError(f"{typed(name)} '': the name is empty; name a file or folder")
        for value in _paths(arguments, name):
            check_length(value, typed(name), written=True)
            check_writable(Path(value), f"{typed(name)} {value}")
            if is_of_run(Path(os.path.realpath(value))):
                raise ValueError(
                    f"{typed(name)} {value}: would replace a file of a run's folder; give another "
                    "name"
                )
            other = written.setdefault(os.path.realpath(value), name)
            if other != name:
                raise ValueError(
                    f"{typed(name)} {value}: is the file of {typed(other)} too; give another name"
                )
    for name in _READ:
        for value in _paths(arguments, name):
            check_length(value, typed(name))
            where = written.get(os.path.realpath(value))
            if where in _WRITTEN and os.path.isfile(value):
                raise ValueError(
                    f"{typed(str(where))} {value}: would replace a file that the command reads; "
                    "give another name"
                )


def _paths(arguments: argparse.Namespace, name: str) -> Iterator[str]:
    given: Any = getattr(arguments, name, None)
    for value in given if isinstance(given, list) else [given]:
        if isinstance(value, str) and value not in ("", "-") and not _is_device(value):
            yield value


def _is_device(path: str) -> bool:
    """Whether a path is a device or pipe, which can be written more than once."""
    return os.path.exists(path) and not os.path.isfile(path) and not os.path.isdir(path)
