"""The sweeps of a study: done, or taken as far as they are finished, as compact JSON."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from pmt._util.progress import duration
from pmt_lab.report import FinishedRun
from pmt_lab.report.run_record import run_record
from pmt_lab.reproduce.results import settings_of
from pmt_lab.reproduce.study import Context, Forecast
from pmt_lab.sweep import (
    Grid,
    RunSpec,
    Sweep,
    SweepJob,
    estimate,
    finished_results,
    open_sweep,
)

__all__ = ["forecast_grids", "measure_grids"]


def measure_grids(grids: Mapping[str, Grid], context: Context) -> dict[str, Any]:
    """Do the runs of some grids that are not finished, and return what all came to.

    Parameters
    ----------
    grids : dict of str to Grid
        Grids by name; a grid's runs are in the folder of that name in ``context.runs``.
    context : Context
        With ``collect`` no run is done.

    Returns
    -------
    dict
        ``grids``: by name ``model``, ``protocol``, ``macs`` (the budget), ``runs``
        (:func:`pmt_lab.report.run_record.run_record`; those that earlier results hold come
        last), ``missing`` (axes of the runs that are not there, the ``seconds`` each takes here,
        and the ``error`` of one that failed) and ``failed`` (titles and errors).
        ``seconds``: of all finished runs.
    """
    finished: list[dict[str, Any]] = []
    found = {name: _measure(name, grid, context, finished) for name, grid in grids.items()}
    seconds = sum(run["train_seconds"] for grid in found.values() for run in grid["runs"])
    return {"grids": found, "seconds": round(seconds, 1)}


def forecast_grids(grids: Mapping[str, Grid], context: Context) -> Forecast:
    """Estimate the work that is left of some grids."""
    runs, of, hours = 0, 0, 0.0
    for name, grid in grids.items():
        sweep = _open(name, grid, context, context.shard)
        expected = sweep.forecast(context.timed).expected
        runs, hours = runs + expected.runs, hours + expected.hours
        of += len(sweep.all_runs) + len(sweep.elsewhere)
    return Forecast(runs, of, hours)


def _open(name: str, grid: Grid, context: Context, shard: tuple[int, int]) -> Sweep:
    """Open a grid's sweep without the runs that earlier results hold."""
    folder = context.runs / name
    job = SweepJob(grid, folder, jobs=context.jobs, shard=shard, dask=context.dask)
    sweep = open_sweep(job)
    alike = (
        one for one in context.kept.get(name, ()) if settings_of(one) == _settings(sweep, grid)
    )
    kept = [run for one in alike for run in one["runs"]]
    return sweep.without(kept) if kept else sweep


def _settings(sweep: Sweep, grid: Grid) -> dict[str, Any]:
    """Return what grids with comparable runs agree in."""
    return {
        "model": sweep.plan.model.name,
        "protocol": dict(grid.protocol),
        "macs": grid.macs,
    }


def _measure(
    name: str, grid: Grid, context: Context, finished: list[dict[str, Any]]
) -> dict[str, Any]:
    """Do a grid, and add its results to those that tell how long others take."""
    sweep = _open(name, grid, context, context.shard)
    failed: dict[str, str] = {}
    errors: Mapping[str, str] = {}
    if sweep.left and not context.collect:
        took = duration(sweep.forecast(context.timed).expected.hours * 3600)
        context.tell(f"{name}: {len(sweep.left)} of {len(sweep.all_runs)} runs left, about {took}")
        done = sweep.run(context.tell)
        sweep = done.sweep
        titles = {run.hash: run.title for run in sweep.all_runs if not run.awaits_rate}
        errors = done.summary.failed
        failed = {titles[run]: error for run, error in errors.items()}
    whole = sweep if context.shard == (1, 1) else _open(name, grid, context, (1, 1))
    known = finished_results((run for run in whole.runs if not run.awaits_rate), whole.job.out)
    finished += known.values()
    runs = [run for run in whole.runs if not run.awaits_rate and run.hash in known]
    folder = context.runs / name
    here = [run_record(FinishedRun(folder / run.hash, known[run.hash])) for run in runs]
    return {
        **_settings(whole, grid),
        "runs": [*here, *whole.elsewhere],
        "missing": list(_missing(whole, known, finished, context.timed, errors)),
        "failed": failed,
    }


def _missing(
    sweep: Sweep,
    known: Mapping[str, Any],
    finished: Sequence[Mapping[str, Any]],
    timed: Sequence[Sequence[Mapping[str, Any]]],
    errors: Mapping[str, str],
) -> Iterator[dict[str, Any]]:
    """Yield the axes of the runs that are not finished, and the time of each on one thread."""
    seconds: dict[tuple[str, str, str], float] = {}
    for run in sweep.runs:
        if not run.awaits_rate and run.hash in known:
            continue
        alike = (run.method, run.options.get("layers", ""), run.preparation)
        if alike not in seconds:
            seconds[alike] = _seconds(run, sweep, finished, timed)
        failed = not run.awaits_rate and run.hash in errors
        error = {"error": errors[run.hash]} if failed else {}
        yield {**run.axes, "macs": run.macs, "seconds": round(seconds[alike]), **error}


def _seconds(
    run: RunSpec,
    sweep: Sweep,
    finished: Sequence[Mapping[str, Any]],
    timed: Sequence[Sequence[Mapping[str, Any]]],
) -> float:
    """Estimate the time of a run on one thread."""
    plan, rest = sweep.plan, {"held_out": sweep.plan.held_out, "test": sweep.plan.test}
    one = estimate([run], finished, plan.model, **rest, jobs=2, elsewhere=timed)
    return one.hours * 3600
