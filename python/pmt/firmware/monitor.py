"""A board's training log: the lines of ``docs/guides/card.md``, read as they come."""

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any

from pmt._util.checks import check_type, is_iterable, kind_of

__all__ = ["TrainingLog", "follow"]

_RECENT = 10  # steps that the expected time is judged by

_LINES = {
    "model": re.compile(r"model: (?P<ops>\d+) ops, (?P<bytes>\d+) bytes in flash"),
    "train": re.compile(
        r"train: (?P<layers>\d+) layers, (?P<steps>\d+) steps of up to (?P<batch>\d+) samples, "
        r"(?P<queries>\d+) queries, a checkpoint every (?P<interval>\d+) steps?"
    ),
    "resume": re.compile(
        r"resume: (?P<done>\d+) of (?P<steps>\d+) steps done, checkpoint (?P<sequence>\d+)"
    ),
    "step": re.compile(
        r"step (?P<step>\d+): loss (?P<loss>\d+\.\d{4}), "
        r"(?:accuracy (?P<accuracy>[01]\.\d{3}), )?(?P<changed>\d+) weights changed, "
        r"(?P<milliseconds>\d+) ms, (?P<left>\d+) to go"
    ),
    "checkpoint": re.compile(
        r"checkpoint (?P<sequence>\d+): (?P<steps>\d+) steps done, (?P<milliseconds>\d+) ms"
    ),
    "arena": re.compile(r"arena: (?P<used>\d+) of (?P<bytes>\d+) bytes used(?: at most)?"),
    "stack": re.compile(r"stack: (?P<used>\d+) of (?P<bytes>\d+) bytes used at most"),
    "card": re.compile(r"card: (?P<retries>\d+) retr(?:y|ies)"),
    "error": re.compile(r"error: (?P<text>.+)"),
    "compared": re.compile(
        r"verify: (?:outputs of ops|losses, hits, changes|weights, biases): "
        r"\d+ (?:equal|compared, \d+ differs?)"
    ),
    "verdict": re.compile(r"verify: (?P<text>.+)"),
}
_KNOWN_START = re.compile(r"(?:model|train|resume|step \d+|checkpoint \d+|arena|stack|card): ")


@dataclass
class TrainingLog:
    """A log so far; ``read`` takes its next line.

    Attributes
    ----------
    steps : dict of int to dict
        Steps by index, the newest where a step was repeated after a reset: ``loss`` (nats, before
        the step), ``accuracy`` (0..1; not where the samples have targets), ``changed`` weights,
        ``milliseconds``.
    total : int or None
        Steps of the whole training; None until a line says so.
    checkpoints : int
        Checkpoints written.
    resumed : list of int
        Steps that were done at each start from a checkpoint.
    memory : dict of str to (int, int)
        ``"arena"`` and ``"stack"``: bytes used at most, and bytes there are.
    retries : int
        Transfers of the card that had to be tried again.
    errors : list of str
        Errors that the board reported.
    unreadable : int
        Lines that begin like one of the log and are not: the connection loses characters.
    verdict : str or None
        The board's last word about the comparison with the host; None until it comes.
    """

    steps: dict[int, dict[str, Any]] = field(default_factory=dict)
    total: int | None = None
    checkpoints: int = 0
    resumed: list[int] = field(default_factory=list)
    memory: dict[str, tuple[int, int]] = field(default_factory=dict)
    retries: int = 0
    errors: list[str] = field(default_factory=list)
    unreadable: int = 0
    verdict: str | None = None

    @property
    def equal(self) -> bool:
        """Whether the board found all its results equal to the host's."""
        return self.verdict is not None and self.verdict.startswith("ok ")

    @property
    def loss(self) -> float | None:
        """Mean loss of the last ten steps, in nats."""
        return self._mean("loss")

    @property
    def accuracy(self) -> float | None:
        """Mean accuracy of the last ten steps, 0..1; None without classes."""
        return self._mean("accuracy")

    @property
    def seconds_left(self) -> float | None:
        """Expected time to the last step, by that of the last ten."""
        mean = self._mean("milliseconds")
        return None if mean is None else int(self.steps[max(self.steps)]["left"]) * mean / 1000

    def read(self, line: str) -> str:
        """Take a line; return the text to show for it.

        Parameters
        ----------
        line : str
            With or without its end. A line of another kind, such as a compiler's, comes back as
            it is.
        """
        line = line.rstrip("\r\n")
        for kind, pattern in _LINES.items():
            match = pattern.fullmatch(line)
            if match is not None:
                return self._take(kind, match.groupdict(), line)
        if _KNOWN_START.match(line):
            self.unreadable += 1
            return f"{line}  [unreadable]"
        return line

    def summary(self) -> str:
        """Return the whole log in a few lines."""
        rows = [("steps", self._steps_text()), ("loss", self._span("loss", 4))]
        if not self.steps or self.accuracy is not None:
            rows += [("accuracy", self._span("accuracy", 3))]
        rows += [("memory", self._memory_text())]
        checkpoints = f"{self.checkpoints} written"
        if self.resumed:
            after = ", ".join(map(str, self.resumed))
            checkpoints += f"; training continued from one after {after} steps"
        rows += [("checkpoints", checkpoints), ("card", f"{self.retries} retries")]
        errors = [*self.errors]
        if self.unreadable:
            errors.append(f"{self.unreadable} lines unreadable: the connection loses characters")
        rows += [("errors", "; ".join(errors) or "none")]
        rows += [("verify", self.verdict or "no verdict: the log ends before it")]
        return "\n".join(f"{name:<12} {text}" for name, text in rows)

    def to_json(self) -> dict[str, Any]:
        """Return the same for programs."""
        return {
            **vars(self),
            "steps": [{"step": step, **values} for step, values in sorted(self.steps.items())],
            "memory": {
                name: {"used": used, "bytes": size} for name, (used, size) in self.memory.items()
            },
            "equal": self.equal,
        }

    def _mean(self, quantity: str) -> float | None:
        last = sorted(self.steps)[-_RECENT:]
        recent = [self.steps[step][quantity] for step in last if quantity in self.steps[step]]
        return sum(recent) / len(recent) if recent else None

    def _take(self, kind: str, found: dict[str, str], line: str) -> str:
        match kind:
            case "model":
                self.verdict = None  # a new start of the board
            case "train":
                self.total = int(found["steps"])
            case "resume":
                self.total = int(found["steps"])
                self.resumed.append(int(found["done"]))
            case "step":
                return self._step(found)
            case "checkpoint":
                self.checkpoints += 1
            case "arena" | "stack":
                self.memory[kind] = int(found["used"]), int(found["bytes"])
            case "card":
                self.retries += int(found["retries"])
            case "error":
                self.errors.append(found["text"])
            case "verdict":
                self.verdict = found["text"]
        return line

    def _step(self, found: dict[str, str]) -> str:
        step, *counts = (int(found[name]) for name in ("step", "changed", "milliseconds", "left"))
        changed, milliseconds, left = counts
        self.steps[step] = {
            "loss": float(found["loss"]),
            "changed": changed,
            "milliseconds": milliseconds,
            "left": left,
        }
        accuracy = ""
        if found["accuracy"] is not None:
            self.steps[step]["accuracy"] = float(found["accuracy"])
            accuracy = f"accuracy {found['accuracy']} (mean {self.accuracy:.3f})  "
        self.total = step + 1 + left
        return (
            f"{f'{step + 1}/{self.total}':>11}  loss {found['loss']} (mean {self.loss:.4f})  "
            f"{accuracy}{changed:>7,} changed  "
            f"{milliseconds / 1000:.2f} s  {_time(self.seconds_left or 0.0)} left"
        )

    def _steps_text(self) -> str:
        if self.total is None:
            return "none"
        done = max(self.steps, default=-1) + 1
        return f"{max([done, *self.resumed])} of {self.total}"

    def _span(self, quantity: str, digits: int) -> str:
        if not self.steps:
            return "none"
        first, last = (self.steps[step][quantity] for step in (min(self.steps), max(self.steps)))
        return (
            f"{first:.{digits}f} first, {last:.{digits}f} last, {self._mean(quantity):.{digits}f} "
            f"mean of the last {min(len(self.steps), _RECENT)}"
        )

    def _memory_text(self) -> str:
        texts = [f"{name} {used:,} of {size:,} bytes" for name, (used, size) in self.memory.items()]
        return ", ".join(texts) or "unknown"


def follow(lines: Iterable[str], log: TrainingLog, *, to_verdict: bool = False) -> Iterator[str]:
    """Yield the text to show for each line.

    Parameters
    ----------
    lines : iterable of str
        A file, a pipe or a port.
    log : TrainingLog
        Log that the lines are added to.
    to_verdict : bool
        Stop at the verdict, which ends a run: for a port, which never ends.
    """
    check_type("log", log, TrainingLog, "a pmt.firmware.monitor.TrainingLog")
    if not is_iterable(lines) or isinstance(lines, str | bytes):
        raise TypeError(f"lines is {kind_of(lines)}: must be lines of text, as of an open file")
    for line in lines:
        yield log.read(line)
        if to_verdict and log.verdict is not None:
            return


def _time(seconds: float) -> str:
    whole = round(seconds)
    hours, minutes = divmod(whole // 60, 60)
    return f"{hours}:{minutes:02}:{whole % 60:02}" if hours else f"{minutes}:{whole % 60:02}"
