"""All runs of a sweep, in many processes, until every one is finished."""

from __future__ import annotations

import importlib
import json
import threading
import time
import warnings
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from pmt._util.extras import missing_extra
from pmt._util.folder_lock import FolderLock
from pmt._util.progress import ProgressLine, duration
from pmt_lab.sweep.execution import Outcome, execute
from pmt_lab.sweep.failure import forget_failure
from pmt_lab.sweep.result import read_result
from pmt_lab.sweep.run_spec import RunSpec

__all__ = ["Summary", "dask_backend", "finished_results", "run_all"]

# The pool may die so often without having finished a run before the sweep gives up.
_DEATHS = 3
_SECONDS_BETWEEN_LOOKS = 2.0
_SECONDS_BETWEEN_READINGS = 1.0
_SECONDS_TO_CONNECT = 30
_END_OF_METRICS = 4096

Tell = Callable[[str], None]


@dataclass
class Summary:
    """Outcomes of all runs: hashes, and the errors of failed ones."""

    finished: list[str] = field(default_factory=list)
    already: list[str] = field(default_factory=list)
    failed: dict[str, str] = field(default_factory=dict)

    def add(self, other: Summary) -> None:
        """Add the outcomes of other runs."""
        self.finished += other.finished
        self.already += other.already
        self.failed |= other.failed


def finished_results(runs: Iterable[RunSpec], out: str | Path) -> dict[str, dict[str, Any]]:
    """Return the results that are there, by hash.

    Raises
    ------
    ValueError
        If one is damaged.
    """
    found = ((run.hash, read_result(Path(out) / run.hash)) for run in runs)
    return {hash: result for hash, result in found if result is not None}


def run_all(
    runs: Sequence[RunSpec], out: str | Path, *, jobs: int = 0, tell: Tell | None = None
) -> Summary:
    """Run everything that is not finished.

    Parameters
    ----------
    runs : sequence of RunSpec
        The runs, see :func:`pmt_lab.sweep.plan`. None may await a learning rate.
    out : str or pathlib.Path
        Folder of the sweep; created if it is missing. Each run gets a folder in it, named by its
        hash. Several processes, on several machines, may work in one folder at once: a run is done
        by one of them, and the others wait for it at the end.
    jobs : int
        Processes. 1 does all in this process, with all its threads. 0 takes the backend of
        ``joblib.parallel_config``, where one is active, and else one process for each CPU.
    tell : callable, optional
        Gets a line of text for each run that ends, and other messages.

    Returns
    -------
    Summary
        Outcomes of the runs. Those that raised an error have failed; a worker that died has not:
        what it did is done again from its last checkpoint.

    Raises
    ------
    ValueError
        If a run awaits its learning rate.
    ImportError
        If more than one process is wanted and joblib is missing.
    OSError
        If the pool died three times without having finished a run.
    KeyboardInterrupt
        On Ctrl-C. The runs have left checkpoints; the same call continues.
    """
    say = tell if tell is not None else lambda text: None
    if any(run.awaits_rate for run in runs):
        raise ValueError("runs await learning rates that trials choose; call run_sweep instead")
    folder = Path(out).absolute()
    folder.mkdir(parents=True, exist_ok=True)
    summary = Summary(already=list(finished_results(runs, folder)))
    finished = set(summary.already)
    left = [run for run in runs if run.hash not in finished]
    for run in runs:
        if run.hash in finished:  # elsewhere, perhaps, after it failed here
            forget_failure(run, folder)
    progress = _RunProgress(left, folder)
    with progress:
        deaths = 0
        while left:
            busy: dict[str, str] = {}
            before = len(summary.finished)
            try:
                with _stopping(_outcomes(left, folder, jobs)) as outcomes:
                    for outcome in outcomes:
                        _note(outcome, summary, busy)
                        progress.say(say, outcome)
            except _BrokenPoolError as broken:
                error = broken.error
                deaths = deaths + 1 if len(summary.finished) == before else 1
                if isinstance(error, ImportError) or deaths > _DEATHS:
                    raise _gave_up(error) from error
                progress.interrupt(say, f"a worker died ({type(error).__name__}); going on")
            left = [r for r in left if r.hash not in (*summary.finished, *summary.failed)]
            if left and len(busy) == len(left):
                _wait(left, busy, folder, progress, say)
    return summary


@contextmanager
def dask_backend(address: str) -> Iterator[None]:
    """Make a Dask cluster joblib's backend for as long as the block lasts.

    The address is that of the scheduler, such as ``tcp://host:8786``. An ImportError tells that
    joblib or Dask is missing, an OSError that nothing answers.
    """
    try:
        joblib: Any = importlib.import_module("joblib")
        distributed: Any = importlib.import_module("dask.distributed")
    except ImportError as error:
        need = '--dask needs joblib and Dask (pip install "dask[distributed]")'
        raise missing_extra(need, "sweep") from error
    try:
        client = distributed.Client(address, timeout=_SECONDS_TO_CONNECT)
    except (OSError, ValueError) as error:
        raise OSError(
            f"--dask {address}: no scheduler answers there ({error}); start one with `dask "
            "scheduler`, and workers with `dask worker ADDRESS`"
        ) from error
    with client, joblib.parallel_config(backend="dask"):
        yield


def _note(outcome: Outcome, summary: Summary, busy: dict[str, str]) -> None:
    if outcome.state in ("finished", "found"):
        summary.finished.append(outcome.hash)
    elif outcome.state == "failed":
        summary.failed[outcome.hash] = outcome.text
    else:
        busy[outcome.hash] = outcome.text


def _gave_up(error: Exception) -> Exception:
    if isinstance(error, ImportError):
        return error
    return OSError(
        f"the worker processes died {_DEATHS + 1} times without finishing a run, the last time of "
        f"{type(error).__name__}: {error}; fewer --jobs take less memory"
    )


class _BrokenPoolError(Exception):
    """The end of a pool whose worker died, and the error by which it showed."""

    def __init__(self, error: Exception) -> None:
        super().__init__(str(error))
        self.error = error


@contextmanager
def _stopping(outcomes: Generator[Outcome, None, None]) -> Iterator[Generator[Outcome, None, None]]:
    """Cancel the runs that are left, where an error ends the block."""
    try:
        yield outcomes
    finally:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UserWarning)  # joblib tells of cancelled runs
            outcomes.close()


def _outcomes(runs: list[RunSpec], folder: Path, jobs: int) -> Generator[Outcome, None, None]:
    """Yield what becomes of the runs, as they end."""
    if jobs == 1:
        for run in runs:
            yield execute(run, str(folder), 0)
        return
    try:
        joblib: Any = importlib.import_module("joblib")
    except ImportError as error:
        need = "several processes need joblib, --jobs 1 does without"
        raise missing_extra(need, "sweep") from error
    parallel = joblib.Parallel(n_jobs=_jobs(jobs), batch_size=1, return_as="generator_unordered")
    # One thread each: the processes share the cores.
    outcomes = parallel(joblib.delayed(execute)(run, str(folder), 1) for run in runs)
    try:
        yield from outcomes
    except Exception as error:
        # execute() raises none: the pool is broken, perhaps as a worker was killed.
        raise _BrokenPoolError(error) from error
    finally:
        outcomes.close()


def _jobs(jobs: int) -> int | None:
    """Return joblib's ``n_jobs``: None takes the one of a backend that was chosen outside."""
    if jobs > 0:
        return jobs
    backend, n_jobs = importlib.import_module("joblib.parallel").get_active_backend()
    chosen_outside = type(backend).__name__ != "LokyBackend" or n_jobs not in (None, 1)
    return None if chosen_outside else -1


def _wait(
    left: list[RunSpec], busy: dict[str, str], folder: Path, progress: _RunProgress, say: Tell
) -> None:
    """Wait until another process has finished one of the runs, or given it up."""
    holders = ", ".join(sorted(set(busy.values())))
    progress.interrupt(say, f"waiting for runs that others are doing: {len(left)} ({holders})")
    while True:
        for run in left:
            lock = FolderLock.of_folder(folder / run.hash)
            if read_result(folder / run.hash) is not None or lock.is_free():
                return
        time.sleep(_SECONDS_BETWEEN_LOOKS)


class _RunProgress:
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

    def __enter__(self) -> _RunProgress:
        total = sum(_gmacs(run.macs) for run in self.runs.values())
        self._line = ProgressLine(total, done=self._done(), unit="GMAC")
        if self.runs and self._line.terminal is not None:
            self._thread = threading.Thread(target=self._watch, name="pmt-lab sweep", daemon=True)
            self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        if self._thread is not None:
            self._thread.join()
        assert self._line is not None
        self._line.clear()

    def say(self, tell: Tell, outcome: Outcome) -> None:
        """Tell how a run ended."""
        if outcome.state == "busy":
            return
        self.ended.add(outcome.hash)
        run = self.runs[outcome.hash]
        text = f"{len(self.ended):>{len(str(len(self.runs)))}}/{len(self.runs)}  {run.title}: "
        self.interrupt(tell, text + self._result(run, outcome))

    def interrupt(self, tell: Tell, text: str) -> None:
        """Tell something, above the progress line."""
        with self._lock:
            if self._line is not None:
                self._line.clear()
            tell(text)

    def _result(self, run: RunSpec, outcome: Outcome) -> str:
        if outcome.state == "failed":
            return f"failed: {outcome.text}"
        if outcome.state == "found":
            return "finished by another process"
        result = read_result(self.folder / outcome.hash)
        if result is None:
            return "finished"
        if run.trial:
            loss = result["after"]["held_out"]["loss"]
            return f"held-out loss {loss:.4f}, {duration(result['seconds'])}"
        before, after = result["before"]["test"], result["after"]["test"]
        figures = f"accuracy {after['accuracy']:.4f}, loss {after['loss']:.4f}"
        if not result["macs"]:
            return figures
        return (
            f"accuracy {before['accuracy']:.4f} -> {after['accuracy']:.4f}, "
            f"loss {before['loss']:.4f} -> {after['loss']:.4f}, {duration(result['seconds'])}"
        )

    def _watch(self) -> None:
        while not self._stop.wait(_SECONDS_BETWEEN_READINGS):
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
