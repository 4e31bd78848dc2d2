"""The metrics of a run: records, their sums, and the file of one JSON object per line."""

import json
import math
import os
from pathlib import Path
from typing import Any, TypedDict, get_type_hints

from pmt import _core
from pmt._util import atomic_file
from pmt.errors import FileError
from pmt.train.costs.work import Cost

_PROBLEM = "records could not be written, and the run goes on from its last checkpoint"
_NEEDED = {
    "phase": ("phase", "macs", "seconds"),
    "refit": ("phase", "macs", "seconds"),
    "step": ("loss", "changed", "seconds"),
    "epoch": ("epoch", "changed", "forwards", "macs", "seconds"),
}
_PAIRS = (("valid_accuracy", "valid_loss"), ("held_out_accuracy", "held_out_loss"))
_OF_WORK = ("macs", "forwards", "seconds")  # of a state all or none


class StateRecord(TypedDict, total=False):
    """The figures of a phase or an epoch, see :class:`pmt.RunResult`; a run has some of them."""

    kind: str
    phase: str
    step: int
    epoch: float
    train_loss: float
    train_accuracy: float
    valid_loss: float
    valid_accuracy: float
    held_out_loss: float
    held_out_accuracy: float
    out_of_fold_loss: float
    out_of_fold_accuracy: float
    changed: int
    forwards: int
    macs: int
    seconds: float
    best: bool
    taken_back: bool
    input_stage: str
    input_trials: int
    head_strength: float
    head_choice_macs: int
    head_loss: float
    head_out_of_fold_loss: float


# Entries that a trainer, a resumed run and reports count on, those of a step too; others are free.
_KINDS = {**get_type_hints(StateRecord), "loss": float, "loss_sum": int, "correct": int}


class RunHistory:
    """Adds up the work of a run: of its phases, and of steps, also those whose record says none."""

    def __init__(self, step_cost: Cost) -> None:
        self.step_cost = step_cost
        self.records: list[dict[str, Any]] = []  # of all but steps, which may be many
        self.best: dict[str, Any] | None = None  # the last one marked so
        self.last_state: dict[str, Any] | None = None  # of a phase or an epoch
        self.steps_back = 0  # epochs that were reverted
        self.stopped = False  # before the last step, by a callback or the budget
        self.refit: dict[str, Any] | None = None  # of the head, after the best state was chosen
        self.step_macs = 0  # of all steps
        self.most_step_macs = 0  # of the step that took most, of those that say it themselves
        self.recorded_to = -1  # steps before the end of the last epoch that is recorded
        self._forwards = 0
        self._macs = 0
        self._seconds = 0.0
        self._epoch: list[dict[str, Any]] = []  # the steps after it

    def add(self, record: dict[str, Any]) -> None:
        """Take a record in, the next one."""
        if record["kind"] != "step":
            self.records.append(record)
        if record.get("best"):
            self.best = record
        if record["kind"] in ("start", "phase", "epoch"):
            self.last_state = record
        if record["kind"] == "refit":
            self.refit = record
        self.stopped |= record["kind"] == "stop"
        self.steps_back += bool(record.get("taken_back"))
        if record["kind"] == "step":
            self._epoch.append(record)
            self._forwards += record.get("forwards", self.step_cost.forwards)
            macs = record.get("macs", self.step_cost.macs)
            self._macs += macs
            self.step_macs += macs
            self.most_step_macs = max(self.most_step_macs, record.get("macs", 0))
            self._seconds += record["seconds"]
        elif record["kind"] in ("start", "phase") and "macs" in record:
            self._macs = record["macs"]
            self._seconds = record["seconds"]
        elif record["kind"] == "epoch":
            self._macs, self._seconds = record["macs"], record["seconds"]
            self.recorded_to = record["step"] + 1
            self._epoch = []

    def of_kind(self, *kinds: str) -> list[dict[str, Any]]:
        """Return the records of some kinds; steps have none after their epoch."""
        return [record for record in self.records if record["kind"] in kinds]

    @property
    def phases(self) -> list[dict[str, Any]]:
        """The records of the states before the first step."""
        return self.of_kind("start", "phase")

    def training_figures(self, batch: int) -> dict[str, float]:
        """Return mean loss and accuracy over the samples of the present epoch, if it has any.

        Samples without labels have no accuracy.
        """
        if not self._epoch:
            return {}
        seen = len(self._epoch) * batch
        figures = {"train_loss": _loss_sum(self._epoch, batch) / seen}
        if all("correct" in r for r in self._epoch):
            figures["train_accuracy"] = sum(r["correct"] for r in self._epoch) / seen
        return figures

    def totals(self, seconds: float = 0.0, macs: int = 0) -> dict[str, Any]:
        """Return the weights changed in the present epoch, and the run's work so far.

        Time and work that no record has yet are added.
        """
        return {
            "changed": sum(r["changed"] for r in self._epoch),
            "forwards": self._forwards,
            "macs": self._macs + macs,
            "seconds": round(self._seconds + seconds, 2),
        }


def _loss_sum(records: list[dict[str, Any]], batch: int) -> float:
    """Sum the loss over the samples of some steps, in nats."""
    if all("loss_sum" in r for r in records):
        return float(sum(r["loss_sum"] for r in records) / _core.LOSS_ONE)
    return float(sum(r["loss"] * batch for r in records))


class Metrics:
    """Writes the metrics of a run, and reads them, which may be growing, each record once."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._offset = 0
        self._lines = 0

    def new(self) -> list[dict[str, Any]]:
        """Return the records since the last call; a last line without its end is not one yet."""
        try:
            with self.path.open("rb") as file:
                file.seek(self._offset)
                whole, newline, _ = file.read().rpartition(b"\n")
        except FileNotFoundError:
            return []
        if not newline:
            return []
        self._offset += len(whole) + 1
        return [self._record(line) for line in whole.split(b"\n")]

    def _record(self, line: bytes) -> dict[str, Any]:
        self._lines += 1
        try:
            record = json.loads(line)
            problem = _problem(record)
        except (ValueError, RecursionError):
            problem = "no JSON"
        if problem:
            what = (
                f"line {self._lines} is not a record of a run: {problem}; restore the file, or "
                "start the run again in another folder"
            )
            raise FileError(str(self.path), [what])
        assert isinstance(record, dict)
        return record

    def append(self, record: dict[str, Any]) -> None:
        """Append a record to the file, whose entries are checked."""
        problem = _problem(record)
        if problem:
            raise ValueError(f"{self.path}: a record of {record!r}: {problem}")
        line = json.dumps(record, sort_keys=True) + "\n"
        with atomic_file.explaining(_PROBLEM, self.path):
            # Without O_CREAT: a folder that was emptied in mid-run must not look like a run.
            descriptor = os.open(self.path, os.O_WRONLY | os.O_APPEND)
            with os.fdopen(descriptor, "wb") as file:
                file.write(line.encode())

    def replace(self, records: list[dict[str, Any]]) -> None:
        """Write the file anew, whole or not at all."""
        lines = "".join(json.dumps(record, sort_keys=True) + "\n" for record in records)
        atomic_file.write_text(self.path, lines)

    def sync(self) -> None:
        """Flush appended lines to disk."""
        with atomic_file.explaining(_PROBLEM, self.path):
            descriptor = os.open(self.path, os.O_RDWR)
            try:
                os.fsync(descriptor)
            finally:
                os.close(descriptor)


def _problem(record: object) -> str:
    """Return the problem of a record; empty if it has none."""
    if not isinstance(record, dict):
        return "no JSON object"
    kind = record.get("kind")
    if not isinstance(kind, str):
        return "it has no kind"
    needed = ["step", *_NEEDED.get(kind, ())]
    if kind in ("start", "phase") and "macs" in record:
        needed += _OF_WORK
    needed += [loss for accuracy, loss in _PAIRS if accuracy in record]
    for name in needed:
        if name not in record:
            return f"it has no {name}"
    for name, value in record.items():
        if _KINDS.get(name) is int and type(value) is not int:
            return f"{name} = {value!r} must be a whole number"
        if _KINDS.get(name) is float and (
            isinstance(value, bool) or not isinstance(value, (int, float))
        ):
            return f"{name} = {value!r} must be a number"
        if isinstance(value, float) and not math.isfinite(value):
            return f"{name} = {value!r} must be finite"
        if isinstance(value, int) and not -(2**63) <= value < 2**63:
            return f"{name} is a number of more than 64 bits"
    return ""
