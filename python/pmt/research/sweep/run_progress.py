"""How far a sweep is: the steps of runs under way, read from their folders."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path

from pmt._util.progress import ProgressLine, duration
from pmt.research.sweep.execution import Outcome
from pmt.research.sweep.result_file import read_result
from pmt.research.sweep.run_spec import RunSpec

__all__ = ["RunProgress"]

_SECONDS_BETWEEN_LOOKS = 1.0
_END_OF_METRICS = 4096


class RunProgress:
    """A progress line in GMACs on a terminal, whatever processes and machines do the work.

    Parameters
    ----------
    runs : sequence of RunSpec
        The runs that are left.
    folder : pathlib.Path
        Folder of the sweep.
    """

    def __init__(self, runs: Sequence[RunSpec], folder: Path) -> None:
        self.runs = {run.hash: run for run in runs}
        self.folder = folder
        self.ended: set[str] = set()
        self._stop = threading.Event()
        self._thread: threading.Thread | None = None
        self._line: ProgressLine | None = None
        self._lock = threading.Lock()

    def __enter__(self) -> RunProgress:
        total = sum(_gmacs(run.macs) for run in self.runs.values())
        self._line = ProgressLine(total, done=self._done(), unit="GMAC")
        if self.runs and self._line.terminal is not None:
            self._thread = threading.Thread(target=self._watch, name="pmt sweep", daemon=True)
            self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        if self._thread is not None:
            self._thread.join()
        assert self._line is not None
        self._line.clear()

    def say(self, tell: Callable[[str], None], outcome: Outcome) -> None:
        """Tell how a run ended."""
        if outcome.state == "busy":
            return
        self.ended.add(outcome.hash)
        run = self.runs[outcome.hash]
        text = f"{len(self.ended):>{len(str(len(self.runs)))}}/{len(self.runs)}  {run.title}: "
        self.interrupt(tell, text + self._result(outcome))

    def interrupt(self, tell: Callable[[str], None], text: str) -> None:
        """Tell something, above the progress line."""
        with self._lock:
            if self._line is not None:
                self._line.clear()
            tell(text)

    def _result(self, outcome: Outcome) -> str:
        if outcome.state == "failed":
            return f"failed: {outcome.text}"
        if outcome.state == "found":
            return "finished by another process"
        result = read_result(self.folder / outcome.hash)
        if result is None:
            return "finished"
        before, after = result["before"]["test"], result["after"]["test"]
        figures = f"accuracy {after['accuracy']:.4f}, loss {after['loss']:.4f}"
        if not result["macs"]:
            return figures
        return (
            f"accuracy {before['accuracy']:.4f} -> {after['accuracy']:.4f}, "
            f"loss {before['loss']:.4f} -> {after['loss']:.4f}, {duration(result['seconds'])}"
        )

    def _watch(self) -> None:
        while not self._stop.wait(_SECONDS_BETWEEN_LOOKS):
            with self._lock:
                assert self._line is not None
                self._line.update(self._done(), f"{len(self.ended)}/{len(self.runs)} runs")

    def _done(self) -> int:
        done = 0
        for run in self.runs.values():
            if run.hash in self.ended:
                done += _gmacs(run.macs)
            elif run.steps:
                done += _gmacs(run.macs * self._steps(run) // run.steps)
        return done

    def _steps(self, run: RunSpec) -> int:
        """Return the steps that a run has recorded."""
        # A damaged line is named by who reads the whole file.
        with suppress(OSError, ValueError, ArithmeticError, LookupError, TypeError, RecursionError):
            with (self.folder / run.hash / "metrics.jsonl").open("rb") as file:
                file.seek(0, 2)
                file.seek(max(0, file.tell() - _END_OF_METRICS))
                lines = file.read().decode(errors="replace").rpartition("\n")[0].splitlines()
            return min(run.steps, int(json.loads(lines[-1])["step"]) + 1)
        return 0


def _gmacs(macs: int) -> int:
    return round(macs / 1e9)
