"""A sweep from its grid file: what is left of it, how long that takes, and doing it."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pmt._util.checks import OptionError, checked_integer
from pmt_lab.sweep.forecasting import Estimate, estimate
from pmt_lab.sweep.grid_file import Grid, Problems, read_grid
from pmt_lab.sweep.kept_runs import Records, divided, kept_rates
from pmt_lab.sweep.planning import Plan, check_corruptions, plan, shard
from pmt_lab.sweep.run_spec import RunSpec
from pmt_lab.sweep.sweeping import Summary, finished_results, run_all
from pmt_lab.sweep.tuning import Choice, choices, edge_line, group, tuned

__all__ = ["Sweep", "SweepForecast", "SweepJob", "SweepResult", "open_sweep", "run_sweep"]


@dataclass(frozen=True)
class SweepJob:
    """All runs of a grid file, see :func:`run_sweep`.

    Parameters
    ----------
    grid : str, pathlib.Path or Grid
        TOML file of the grid, or one that was read.
    out : str or pathlib.Path
        Folder of the runs; created if it is missing.
    jobs : int
        Processes of one thread each; 0 takes one for each CPU, 1 this process with all its threads.
    shard : (int, int)
        ``(I, N)`` runs the I-th of N equal parts; every part includes all trials of learning rates.
    dask : str, optional
        Address of a Dask scheduler, whose workers do the runs.
    """

    grid: str | Path | Grid
    out: str | Path
    jobs: int = 0
    shard: tuple[int, int] = (1, 1)
    dask: str | None = None

    def backend(self) -> contextlib.AbstractContextManager[Any]:
        """Return the context in which the runs are done."""
        if self.dask is None:
            return contextlib.nullcontext()
        from pmt_lab.sweep.sweeping import dask_backend

        return dask_backend(self.dask)


@dataclass(frozen=True)
class Sweep:
    """A planned sweep.

    Attributes
    ----------
    job : SweepJob
        Job that the plan was made for.
    plan : Plan
        The model and all runs of the grid.
    runs : tuple of RunSpec
        The runs of the job's part of the tables.
    results : dict of str to dict
        Results of those and of trials that were finished before, by their hash.
    trials : tuple of RunSpec
        The plan's trials that are finished or needed.
    choices : tuple of Choice
        Learning rates of which all trials are finished.
    kept : sequence of dict
        Records of runs that were done elsewhere, see :meth:`without`.
    elsewhere : sequence of dict
        Those that stand for runs of the grid.
    """

    job: SweepJob
    plan: Plan
    runs: tuple[RunSpec, ...]
    results: dict[str, dict[str, Any]]
    trials: tuple[RunSpec, ...] = ()
    choices: tuple[Choice, ...] = ()
    kept: Records = ()
    elsewhere: Records = ()

    @property
    def all_runs(self) -> tuple[RunSpec, ...]:
        """The trials, then the part's runs."""
        return (*self.trials, *self.runs)

    @property
    def awaiting(self) -> list[RunSpec]:
        """Runs whose learning rates trials have still to choose."""
        return [run for run in self.runs if run.awaits_rate]

    @property
    def left(self) -> list[RunSpec]:
        """Trials and runs that are not finished."""
        return [r for r in self.all_runs if r.awaits_rate or r.hash not in self.results]

    @property
    def edges(self) -> list[str]:
        """A line for each learning rate that is at the edge of those tried."""
        return [edge_line(choice.group) for choice in self.choices if choice.at_edge]

    def without(self, kept: Records) -> Sweep:
        """Leave out runs that were done elsewhere, and the trials that chose their rates.

        Parameters
        ----------
        kept : sequence of dict
            Records, as :func:`pmt_lab.report.run_record.run_record` makes them, of runs with
            the same model, data, protocol and budget. Runs that are finished here stay.
        """
        return _opened(self.job, self.plan, kept)

    def forecast(self, elsewhere: Iterable[Sequence[Mapping[str, Any]]] = ()) -> SweepForecast:
        """Estimate the work that is left, on this machine; see `estimate` for ``elsewhere``."""
        expected = estimate(
            self.left,
            self.results.values(),
            self.plan.model,
            held_out=self.plan.held_out,
            test=self.plan.test,
            jobs=self.job.jobs or _cpus(),
            elsewhere=elsewhere,
        )
        return SweepForecast(self, expected)

    def run(self, tell: Callable[[str], None] | None = None) -> SweepResult:
        """Run what is left, trials first; errors as in :func:`run_sweep`."""
        settled = self
        if self.job.dask is None:  # else the workers have what the corruptions need
            check_corruptions(self.left, self.plan.model, Problems(_path(self.job.grid)))
        with self.job.backend():
            ends = self._run(self.trials, tell) if self.trials else Summary()
            if self.awaiting:
                settled = _opened(self.job, self.plan, self.kept)
                for choice in settled.choices:
                    if tell is not None:
                        tell(choice.title)
            ends.add(self._run([run for run in settled.runs if not run.awaits_rate], tell))
        return SweepResult(settled, ends)

    def _run(self, runs: Sequence[RunSpec], tell: Callable[[str], None] | None) -> Summary:
        return run_all(runs, self.job.out, jobs=self.job.jobs, tell=tell)


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
            "runs": [
                {**_entry(run), "finished": not run.awaits_rate and run.hash in results}
                for run in self.sweep.all_runs
            ],
            "finished": len(results),
            "left": self.expected.runs,
            "macs": self.expected.macs,
            "hours": self.expected.hours,
            "jobs": self.expected.jobs,
            "macs_per_second": self.expected.macs_per_second,
            **_rates(self.sweep),
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
            "runs": [_entry(run) for run in self.sweep.all_runs],
            "already": self.summary.already,
            "finished": self.summary.finished,
            "failed": self.summary.failed,
            **_rates(self.sweep),
        }


def _entry(run: RunSpec) -> dict[str, Any]:
    cost = {"macs": run.macs, "forwards": run.forwards}
    if run.awaits_rate:
        return {"hash": None, **run.axes, **cost, "learning_rate": "to be tuned"}
    rate = run.options["learning_rate"] if run.trial or run.tuning else None
    tried = {} if rate is None else {"learning_rate": rate}
    return {"hash": run.hash, **run.axes, **cost, **tried, **({"trial": True} if run.trial else {})}


def _rates(sweep: Sweep) -> dict[str, Any]:
    """Return the learning rates that are chosen; nothing for a grid without trials."""
    if not sweep.plan.trials:
        return {}
    names = ("method", "preparation", "layers")
    return {
        "rates": [
            {**dict(zip(names, choice.group, strict=True)), **choice.to_record()}
            for choice in sweep.choices
        ]
    }


def open_sweep(job: SweepJob) -> Sweep:
    """Read a grid, plan its runs, and find those that are finished; errors as in `run_sweep`."""
    _check(job)
    if isinstance(job.grid, Grid):
        return _opened(job, plan(job.grid))
    problems = Problems(_path(job.grid))
    return _opened(job, plan(read_grid(job.grid, problems), problems))


def _path(grid: str | Path | Grid) -> str:
    return grid.path if isinstance(grid, Grid) else str(grid)


def _opened(job: SweepJob, planned: Plan, kept: Records = ()) -> Sweep:
    finished = finished_results(planned.trials, job.out)
    chosen = choices(planned.trials, finished)
    rates = kept_rates(planned.runs, planned.trials, kept)
    trials = (one for one in planned.trials if one.hash in finished or group(one) not in rates)
    here = {name: choice.to_record() for name, choice in chosen.items()}
    runs = tuned(shard(planned.runs, *job.shard), {**rates, **here})
    known = finished_results((run for run in runs if not run.awaits_rate), job.out)
    left, elsewhere = divided(runs, kept, known)
    results = {**finished, **known}
    made = tuple(chosen.values())
    return Sweep(job, planned, left, results, tuple(trials), made, kept, elsewhere)


def _check(job: SweepJob) -> None:
    if checked_integer("jobs", job.jobs) < 0:
        raise OptionError("jobs", f" {job.jobs}: must be 0 or more")
    number, count = (checked_integer("shard", part) for part in job.shard)
    if not 1 <= number <= count:
        raise OptionError("shard", f" {number}/{count}: the part must be 1..{count}")


def run_sweep(job: SweepJob, *, tell: Callable[[str], None] | None = None) -> SweepResult:
    """Run every configuration in a grid file that is not finished.

    Parameters
    ----------
    job : SweepJob
        The grid and the folder.
    tell : callable, optional
        Gets a line of text for each run that ends, and other messages.

    Returns
    -------
    SweepResult
        Outcomes of the runs.

    Raises
    ------
    GridError
        If something in the grid file is wrong; it holds all problems.
    ValueError, TypeError
        If `jobs` or `shard` is out of range or not a number.
    ImportError, OSError, KeyboardInterrupt
        As :func:`pmt_lab.sweep.run_all`.
    """
    return open_sweep(job).run(tell)
