"""A sweep from its grid file: what is left of it, how long that takes, and doing it."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pmt._util.checks import OptionError, checked_integer
from pmt.research.sweep.grid_file import Problems, read_grid
from pmt.research.sweep.planning import Estimate, Plan, estimate, plan, shard
from pmt.research.sweep.run_spec import RunSpec
from pmt.research.sweep.sweeping import Summary, finished_results, run_all

__all__ = ["Sweep", "SweepForecast", "SweepJob", "SweepResult", "open_sweep", "run_sweep"]


@dataclass(frozen=True)
class SweepJob:
    """All runs of a grid file, see :func:`run_sweep`.

    Parameters
    ----------
    grid : str or pathlib.Path
        TOML file of the grid.
    out : str or pathlib.Path
        Folder of the runs; made if it is missing.
    jobs : int
        Processes of one thread each; 0 takes one for each CPU, 1 this process with all its threads.
    shard : (int, int)
        ``(I, N)`` does the I-th of N equal parts of the runs.
    dask : str, optional
        Address of a Dask scheduler, whose workers do the runs.
    """

    grid: str | Path
    out: str | Path
    jobs: int = 0
    shard: tuple[int, int] = (1, 1)
    dask: str | None = None

    def backend(self) -> contextlib.AbstractContextManager[Any]:
        """Return the context in which the runs are done."""
        if self.dask is None:
            return contextlib.nullcontext()
        from pmt.research.sweep.sweeping import dask_backend

        return dask_backend(self.dask)


@dataclass(frozen=True)
class Sweep:
    """A sweep that is planned.

    Attributes
    ----------
    job : SweepJob
        Where it is.
    plan : Plan
        The model and all runs of the grid.
    runs : tuple of RunSpec
        The runs of the job's part.
    results : dict of str to dict
        Results of those that were finished before, by their hash.
    """

    job: SweepJob
    plan: Plan
    runs: tuple[RunSpec, ...]
    results: dict[str, dict[str, Any]]

    @property
    def left(self) -> list[RunSpec]:
        """Runs that are not finished."""
        return [run for run in self.runs if run.hash not in self.results]

    def forecast(self) -> SweepForecast:
        """Estimate the work that is left, on this machine."""
        expected = estimate(
            self.left,
            self.results.values(),
            self.plan.model,
            held_out=self.plan.held_out,
            test=self.plan.test,
            jobs=self.job.jobs or _cpus(),
        )
        return SweepForecast(self, expected)

    def run(self, tell: Callable[[str], None] | None = None) -> SweepResult:
        """Do what is left; errors as of :func:`run_sweep`."""
        with self.job.backend():
            summary = run_all(self.runs, self.job.out, jobs=self.job.jobs, tell=tell)
        return SweepResult(self, summary)


def _cpus() -> int:
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


@dataclass(frozen=True)
class SweepForecast:
    """The work that is left of a sweep."""

    sweep: Sweep
    expected: Estimate

    def to_json(self) -> dict[str, Any]:
        """Return the figures for JSON."""
        results = self.sweep.results
        return {
            "runs": [{**_entry(run), "finished": run.hash in results} for run in self.sweep.runs],
            "finished": len(results),
            "left": self.expected.runs,
            "macs": self.expected.macs,
            "hours": self.expected.hours,
            "jobs": self.expected.jobs,
            "macs_per_second": self.expected.macs_per_second,
        }


@dataclass(frozen=True)
class SweepResult:
    """A sweep, and how its runs ended."""

    sweep: Sweep
    summary: Summary

    @property
    def done(self) -> int:
        """Number of runs that are finished."""
        return len(self.summary.finished) + len(self.summary.already)

    def to_json(self) -> dict[str, Any]:
        """Return the figures for JSON."""
        return {
            "runs": [_entry(run) for run in self.sweep.runs],
            "already": self.summary.already,
            "finished": self.summary.finished,
            "failed": self.summary.failed,
        }


def _entry(run: RunSpec) -> dict[str, Any]:
    return {"hash": run.hash, **run.axes, "macs": run.macs, "forwards": run.forwards}


def open_sweep(job: SweepJob) -> Sweep:
    """Read a grid, plan its runs, and find those that are finished; errors as of `run_sweep`."""
    _check(job)
    problems = Problems(str(job.grid))
    planned = plan(read_grid(job.grid, problems), problems)
    runs = shard(planned.runs, *job.shard)
    return Sweep(job, planned, runs, finished_results(runs, job.out))


def _check(job: SweepJob) -> None:
    if checked_integer("jobs", job.jobs) < 0:
        raise OptionError("jobs", f" {job.jobs}: must be 0 or more")
    number, count = (checked_integer("shard", part) for part in job.shard)
    if not 1 <= number <= count:
        raise OptionError("shard", f" {number}/{count}: the part must be 1..{count}")


def run_sweep(job: SweepJob, *, tell: Callable[[str], None] | None = None) -> SweepResult:
    """Do every run of a grid file that is not finished.

    Parameters
    ----------
    job : SweepJob
        The grid and the folder.
    tell : callable, optional
        Gets a line of text for each run that ends, and whatever else there is to say.

    Returns
    -------
    SweepResult
        What became of the runs.

    Raises
    ------
    GridError
        If something in the grid file is wrong; it holds all problems.
    ValueError, TypeError
        If `jobs` or `shard` is no such number.
    ImportError, RuntimeError, KeyboardInterrupt
        As :func:`pmt.research.sweep.run_all`.
    """
    return open_sweep(job).run(tell)
