"""Live images for a learner on a board; its replies compared with those of a learner here.

A request is a start byte, a letter, an option, a number and, where it brings one, a frame, with a
CRC-32 behind it; a reply is a line: ``docs/guides/learner.md``.
"""

import json
import os
import re
import socket
import struct
import subprocess
import tempfile
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import IO, Any, Protocol

from pmt import _core
from pmt._util.arrays import Array
from pmt._util.checks import checked_path, checked_range
from pmt._util.extras import import_extra
from pmt._util.text import counted, table
from pmt.datasets import Dataset
from pmt.errors import MissingFileError
from pmt.firmware.board.memory import need_programs, run_make
from pmt.firmware.export.folder import LEARNER_FILE
from pmt.model import Model
from pmt.train.learner import LearnedPredictions, Learner, LearnerScore
from pmt.train.learner_setup import read_clean
from pmt.train.options import TrainingOptions
from pmt.train.prepare.clean_statistics import with_statistics

__all__ = [
    "INSTRUCTION_NS",
    "Board",
    "StreamReport",
    "emulated_board",
    "prediction_reply",
    "read_model",
    "serial_board",
    "stream",
]

_START = 0xA5
_ANSWER_SECONDS = 600.0  # without a line from the board; longer phases need slices
_REPLIES = ("ok", "error", "predicted", "ran", "scores", "in force", "time", "stack", "arena")
# QEMU's -icount shift=8: every instruction takes so long on the emulated clock.
INSTRUCTION_NS = 256


class _Line(Protocol):
    """Two ends of a line to a board."""

    def write(self, data: bytes) -> None: ...
    def readline(self) -> str: ...


class Board:
    """A learner on a board, by its serial line.

    Parameters
    ----------
    line : object
        ``write(bytes)`` and ``readline() -> str``, which returns "" at the end.
    frame : callable
        Returns the frame of an index, for a board whose frames wait here.
    """

    def __init__(self, line: _Line, frame: Callable[[int], Array]) -> None:
        self._line = line
        self._frame = frame
        self.log: list[str] = []

    def ask(
        self, command: str, option: int = 0, number: int = 0, frame: Array | None = None
    ) -> str:
        """Send a request; return the reply, a line."""
        request = struct.pack("<BcBBi", _START, command.encode(), option, 0, number)
        if frame is not None:
            request += frame.tobytes()
        self._line.write(request + struct.pack("<I", _core.crc32(request)))
        return self.reply()

    def reply(self) -> str:
        """Return the next line that is a reply; frames that are asked for are sent meanwhile."""
        while True:
            text = self._line.readline()
            if not text:
                raise OSError("the board ended before it answered; " + " / ".join(self.log[-3:]))
            text = text.strip()
            asked = re.fullmatch(r"frame (\d+)", text)
            if asked:
                sent = self._frame(int(asked[1])).tobytes()
                self._line.write(sent + struct.pack("<I", _core.crc32(sent)))
                continue
            self.log.append(text)
            if text.startswith(_REPLIES):
                return text


@dataclass(frozen=True)
class StreamReport:
    """The result of a stream of images: a board's figures, and whether its replies are the host's.

    Attributes
    ----------
    samples, test : int
        Images that it took in, and that it predicted before and after.
    before, after : float
        Accuracy on the test images, 0..1.
    candidate : str
        The state that it chose.
    scores : dict of str to (float, float)
        Mean loss in nats and accuracy of each state on the samples held out.
    replies : int
        Replies that were compared.
    milliseconds : int
        Time of learning, by the board's clock.
    instructions : int or None
        Instructions of learning, of an emulated board that counts them.
    different : list of (str, str)
        Those that differ: the board's and the host's.
    memory : dict of str to str
        The board's own figures of ``stack`` and ``arena``.
    trials : dict of str to (float, float)
        The same scores of each block that it has chosen among, after an epoch of it.
    """

    samples: int
    test: int
    before: float
    after: float
    candidate: str
    scores: dict[str, tuple[float, float]]
    replies: int
    milliseconds: int
    instructions: int | None = None
    different: list[tuple[str, str]] = field(default_factory=list)
    memory: dict[str, str] = field(default_factory=dict)
    trials: dict[str, tuple[float, float]] = field(default_factory=dict)

    @property
    def selected(self) -> str | None:
        """The block that was trained: the one of the least loss."""
        return _least(self.trials)

    @property
    def equal(self) -> bool:
        """Whether every reply was the host's."""
        return not self.different

    def __str__(self) -> str:
        memory = "".join(f"{name}: {text}\n" for name, text in self.memory.items())
        ending = f"{memory}verify: {self._verdict()}"
        if self.samples == 0:
            return f"test images: {self.before:.1%} of {self.test}\n{ending}"
        rows = [
            (name, f"{loss:.3f}", f"{accuracy:.1%}")
            for name, (loss, accuracy) in self.scores.items()
        ]
        scores = table(["state", "loss", "held out"], rows, left=["state"])
        return (
            f"{scores if rows else 'no sample with a label is held out'}\n"
            f"{self._blocks()}\n"
            f"chosen: {self.candidate}{self._rule()}\n"
            f"learning: {self._work()}\n"
            f"test images: {self.before:.1%} -> {self.after:.1%} of {self.test}\n"
            f"{ending}"
        )

    def _blocks(self) -> str:
        """Return the line of the blocks, if the board has chosen among some."""
        found = [f"{name} {loss:.3f} {right:.1%}" for name, (loss, right) in self.trials.items()]
        return f"block {self.selected}: after an epoch {', '.join(found)}\n" if found else ""

    def _rule(self) -> str:
        """Return why a state is chosen whose loss is not the least."""
        least = _least(self.scores)
        if least in (None, self.candidate):
            return ""
        if least in ("original", "aligned"):
            rule = "alignment is judged on all labeled samples"
        else:
            rule = (
                f"it must beat the original by {_core.STATE_ERRORS} standard errors or more"
                f"{', and others by one' if least == 'head_alone' else ''}, and be no less accurate"
            )
        return f"\n{least} has the least loss, but {rule}: docs/guides/learner.md#what-it-does"

    def _verdict(self) -> str:
        if self.equal:
            return f"all {self.replies} replies equal the host's, byte for byte"
        board, host = self.different[0]
        return f"{len(self.different)} of {self.replies} replies differ: {board!r}, {host!r}"

    def _work(self) -> str:
        if self.instructions is not None:
            return f"{self.instructions / 1e9:,.1f} billion instructions"
        return f"{self.milliseconds / 1000:,.1f} s by the board's clock"

    def to_json(self) -> dict[str, Any]:
        """Return the same for programs."""
        return {**asdict(self), "equal": self.equal, "selected": self.selected}


def _least(scores: dict[str, tuple[float, float]]) -> str | None:
    return min(scores, key=lambda name: scores[name][0], default=None)


def stream(
    folder: str | Path,
    data: Dataset | None,
    test: Dataset,
    *,
    port: str | None = None,
    baud: int = 115200,
    labels: int | None = None,
    steps: int = 0,
    pipe: bool = False,
    counts: bool = False,
    progress: Callable[[str], None] | None = None,
) -> StreamReport:
    """Let a board learn from images, and compare each of its replies with the host's.

    Parameters
    ----------
    folder : str or pathlib.Path
        A project of :func:`pmt.firmware.export.export_learner`.
    data : Dataset or None
        Images that the board takes in, at most as many as it has room for; None where it only
        predicts.
    test : Dataset
        Images that it predicts before and after.
    port : str, optional
        Serial port of a board that runs the program; by default it is built and emulated.
    baud : int
        Speed of the port.
    labels : int, optional
        Number of images, the first ones, whose labels the board is told; by default all. With 0 it
        is aligned alone.
    steps : int
        Steps of a slice, 0 for whole phases.
    pipe : bool
        Send through a pipe in place of the emulated UART, which takes 7 s for a frame of 48 KB.
    counts : bool
        Let the emulator count instructions, which makes it slower.
    progress : callable, optional
        Called with a line for each part of the work.

    Returns
    -------
    StreamReport
        Accuracy, the states, and whether everything was equal.

    Raises
    ------
    FileNotFoundError, ValueError, OSError
        If the folder is no learner, a label is none of the model's classes, a program is missing,
        or the board does not answer.
    """
    place = checked_path("folder", folder)
    model, export = read_model(place)
    session = _Session(model, export, host_learner(place), progress or (lambda text: None))
    test = _labeled(model, test, "test")
    if labels is not None:
        checked_range("labels", labels, 0)
    if data is not None and labels != 0:
        data = _labeled(model, data, "data")
    for argument, images in (("data", data), ("test", test)):
        if model.input_stage is not None and images is not None and not images.has_pixels:
            raise TypeError(
                f"{argument} holds {images.images.dtype} inputs, and the board's input stage takes "
                "uint8 pixels: give those, or export a model without the stage"
            )
    if port is None:
        link = emulated_board(place, pipe=pipe, counts=counts)
    else:
        link = serial_board(port, baud)
    with link as line:
        report = session.run(Board(line, session.frame), data, test, labels, steps)
    if port is not None or not counts:
        return report
    return replace(report, instructions=report.milliseconds * 10**6 // INSTRUCTION_NS)


def _labeled(model: Model, data: Dataset, argument: str) -> Dataset:
    """Return images whose labels are the model's classes, before any of them is sent."""
    images = model.match_classes(Dataset.of(data, argument))
    model.check_scored(images)
    return images


def prediction_reply(host: LearnedPredictions, index: int) -> str:
    """Return the reply of a board that predicts as the host does."""
    margin = struct.unpack("<I", host.margins[index].tobytes())[0]
    crc = _core.crc32(host.logits[index].tobytes())
    return f"predicted {host.labels[index]}, margin {margin:08x}, logits {crc:08x}"


# The status of a board, where the host's error counts the samples that a phase needs and there are.
_TOO_FEW = "error: too few samples or classes for this phase"


class _Session:
    """A board and a host that do the same."""

    def __init__(
        self,
        model: Model,
        export: dict[str, Any],
        host: Learner,
        progress: Callable[[str], None],
    ) -> None:
        self._model = model
        self._samples = int(export["samples"])
        self._host = host
        self._progress = progress
        self._keeps_frames = bool(export["chooses_input"])
        self._frames: list[Array] = []
        self._replies = 0
        self._different: list[tuple[str, str]] = []

    def frame(self, index: int) -> Array:
        """Return a frame that the board has taken in."""
        return self._frames[index]

    def run(
        self, board: Board, data: Dataset | None, test: Dataset, labels: int | None, steps: int
    ) -> StreamReport:
        """Take images in, learn, choose, and predict before and after; or only predict."""
        before = after = self._predict(board, test)
        count = 0 if data is None else min(self._samples, len(data))
        scores, milliseconds = {}, 0
        candidate = self._host.candidate
        if data is not None and count:
            taken = data.take(count)
            self._progress(f"before: {before:.1%} of {counted(len(test), 'test image')}")
            self._observe(board, taken, count if labels is None else labels)
            self._progress(f"observed {counted(count, 'image')}")
            milliseconds = self._learn(board, steps)
            candidate = self._host.candidate
            self._progress(f"chosen: {candidate}")
            scores = _figures(self._host.scores)
            self._put_in_force(board)
            after = self._predict(board, test)
            self._progress(f"after: {after:.1%}")
        memory = self._memory(board)
        return StreamReport(
            count,
            len(test),
            before,
            after,
            candidate,
            scores,
            self._replies,
            milliseconds,
            different=self._different,
            memory=memory,
            trials=_figures(self._host.trials),
        )

    def _learn(self, board: Board, steps: int) -> int:
        """Run all phases; return the milliseconds that they took."""
        started = _milliseconds(board)
        has_phase = self._same(board.ask("B", _phase("all")), partial(self._host.begin, "all"))
        while has_phase:
            reply = board.ask("R", number=steps)
            done = self._host.run(steps)
            text = f"ran {self._host.steps} steps" + (", done" if done else "")
            if not self._compare(reply, text) or done:
                break
        milliseconds = _milliseconds(board) - started
        self._compare(board.ask("S"), self._scores_text())
        return milliseconds

    def _put_in_force(self, board: Board) -> None:
        """Commit and confirm the candidate, where there is one."""
        if self._host.candidate != "original":
            self._same(board.ask("C"), self._host.commit)
            self._compare(board.ask("F"), self._force_text())
            self._same(board.ask("K"), self._host.confirm)

    def _memory(self, board: Board) -> dict[str, str]:
        replies = [board.ask("Q"), board.reply()]
        return dict(reply.split(": ", 1) for reply in replies if ": " in reply)

    def _predict(self, board: Board, test: Dataset) -> float:
        host = self._host.predict(test.images)
        sent = self._sent(test)
        correct = 0
        for i in range(len(test)):
            reply = board.ask("P", frame=sent[i])
            self._compare(reply, prediction_reply(host, i))
            correct += reply.startswith(f"predicted {test.labels[i]},")
        return correct / max(1, len(test))

    def _sent(self, data: Dataset) -> Array:
        """Return the frames that are sent to the board: pixels where it has an input stage."""
        return data.images if self._model.input_stage else self._model.prepare(data.images)

    def _observe(self, board: Board, data: Dataset, labels: int) -> None:
        sent = self._sent(data)
        kept = sent if self._keeps_frames else self._model.prepare(data.images)
        role = _core.LEARNER_ROLES.index("automatic")
        for i in range(len(data)):
            label = int(data.labels[i]) if i < labels else -1
            self._frames.append(kept[i])
            reply = board.ask("O", role, label, sent[i])
            self._same(reply, partial(self._host.observe, data.images[i : i + 1], [label]))

    def _same(self, reply: str, call: Callable[[], None]) -> bool:
        """Repeat the board's call on the host; return whether it succeeded there."""
        try:
            call()
        except ValueError as error:
            text = f"error: {error}"
            self._compare(reply, _TOO_FEW if text.startswith("error: too few samples") else text)
            return False
        return self._compare(reply, "ok")

    def _compare(self, reply: str, text: str) -> bool:
        self._replies += 1
        if reply != text:
            self._different.append((reply, text))
        return reply == text

    def _scores_text(self) -> str:
        scores = ", ".join(
            f"{state} {' '.join(map(str, self._host.fixed_score(state)))}"
            for state in _core.LEARNER_STATES
        )
        return f"scores {scores}, candidate {self._host.candidate}"

    def _force_text(self) -> str:
        trial = ", on trial" if self._host.on_trial else ""
        return f"in force: {self._host.in_force}{trial}, parameters {self._host.checksum:08x}"


def _figures(scores: Mapping[str, LearnerScore]) -> dict[str, tuple[float, float]]:
    return {name: (score.loss, score.accuracy) for name, score in scores.items()}


def _milliseconds(board: Board) -> int:
    return int(board.ask("T").removeprefix("time "))


def _phase(name: str) -> int:
    return _core.LEARNER_PHASES.index(name)


def _read_export(place: Path) -> dict[str, Any]:
    try:
        export: dict[str, Any] = json.loads((place / LEARNER_FILE).read_text(encoding="utf-8"))
    except (OSError, ValueError):
        raise MissingFileError(
            f"{place} is no learner's project: it has no readable {LEARNER_FILE}; write one with "
            "`pmt export MODEL --learner --target NAME --out DIR`"
        ) from None
    return export


def read_model(folder: str | Path) -> tuple[Model, dict[str, Any]]:
    """Return the model of a learner's project, with its statistics, and its learner.json."""
    place = checked_path("folder", folder)
    export = _read_export(place)
    model = Model((place / "model" / "model.pmt").read_bytes())
    for name in ("windows", "reliability"):  # an earlier export had no such choice
        export.setdefault(name, False)
    clean = (place / "model" / "clean.bin").read_bytes()
    if clean:
        model = with_statistics(model, read_clean(model, clean, bool(export["windows"])))
    return model, export


def host_learner(folder: str | Path) -> Learner:
    """Return the learner of a board's project, on this machine.

    Parameters
    ----------
    folder : str or pathlib.Path
        The board's project, of :func:`pmt.firmware.export.export_learner`.

    Returns
    -------
    Learner
        With the options of the export, whose defaults are those of a board: it does not keep the
        confirmed state beside another one. It has no storage.

    Raises
    ------
    FileNotFoundError, ValueError
        If the folder is no learner's project.
    """
    model, export = read_model(folder)
    chosen = export["options"]
    return Learner(
        model,
        windows=bool(export["windows"]),
        reliability=bool(export["reliability"]),
        choose_input=bool(export["chooses_input"]),
        samples=int(export["samples"]),
        held_out=int(export["held_out"]),
        keeps_confirmed=bool(export["keeps_confirmed"]),
        keeps_activations=bool(export["keeps_activations"]),
        options=None if chosen is None else TrainingOptions(**chosen),
        select=export.get("select"),
    )


@contextmanager
def emulated_board(
    folder: str | Path,
    *,
    pipe: bool = False,
    counts: bool = False,
    new_card: bool = True,
) -> Iterator[_Line]:
    """Build a project, run it under QEMU, and connect to its UART, or to a pipe in its place."""
    folder = checked_path("folder", folder)
    export = _read_export(folder)
    machine = str(export.get("machine", ""))
    if not machine:
        raise ValueError(
            f"{export.get('target')} is not emulated: flash the program, and give its port by "
            "port= (--port)"
        )
    need_programs("a board is emulated", "qemu-system-arm")
    built = run_make(folder, "unfused", "the firmware was not built in time")
    if built.returncode != 0:
        raise OSError(
            f"{folder}: the firmware was not built: {(built.stderr or built.stdout).strip()}"
        )
    card = folder / "build" / "card.img"
    if new_card or not card.is_file():
        card.write_bytes((folder / "card.img").read_bytes())
    with (
        _requests(folder / "build" / "requests", pipe) as requests,
        tempfile.TemporaryDirectory() as place,
        socket.socket(socket.AF_UNIX) as server,
    ):
        path = f"{place}/uart"
        server.bind(path)
        server.listen(1)
        server.settimeout(_ANSWER_SECONDS)
        process = subprocess.Popen(
            [
                *("qemu-system-arm", "-M", machine, "-display", "none", "-monitor", "none"),
                *("-serial", f"unix:{path}", "-chardev", "stdio,id=console"),
                "-semihosting-config",
                "enable=on,target=native,chardev=console,arg=fw",
                *("-kernel", "fw.elf"),
                *(("-icount", "shift=8,align=off,sleep=off") if counts else ()),
            ],
            cwd=folder / "build",
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            text=True,
            errors="replace",
        )
        try:
            connection, _ = server.accept()
            assert process.stdout is not None
            with connection:
                write = connection.sendall if requests is None else requests.write
                yield _Emulated(write, process.stdout, process.kill)
        finally:
            process.kill()
            process.wait()
            if process.stdout is not None:
                process.stdout.close()


@contextmanager
def _requests(path: Path, wanted: bool) -> Iterator[IO[bytes] | None]:
    path.unlink(missing_ok=True)
    if not wanted:
        yield None
        return
    os.mkfifo(path)
    try:  # to read, too: nobody waits for the other end
        with open(os.open(path, os.O_RDWR), "wb", buffering=0) as requests:
            yield requests
    finally:
        path.unlink()


class _Emulated:
    def __init__(
        self, write: Callable[[bytes], Any], output: IO[str], end: Callable[[], None]
    ) -> None:
        self.write = write
        self._output = output
        self._end = end

    def readline(self) -> str:
        late = threading.Timer(_ANSWER_SECONDS, self._end)
        late.daemon = True
        late.start()
        try:
            return self._output.readline()
        finally:
            late.cancel()


@contextmanager
def serial_board(port: str, baud: int) -> Iterator[_Line]:
    """Connect to a board that runs the program."""
    serial = import_extra("serial", "port= needs pyserial", "monitor")
    with serial.Serial(port, baud, timeout=_ANSWER_SECONDS) as opened:
        yield _Port(opened)


class _Port:
    def __init__(self, opened: Any) -> None:
        self._opened = opened

    def write(self, data: bytes) -> None:
        self._opened.write(data)

    def readline(self) -> str:
        text: str = self._opened.readline().decode("ascii", errors="replace")
        return text
