"""A sweep: the unfinished runs of a grid, in processes or on a cluster."""

from __future__ import annotations

import contextlib
import dataclasses
import functools
import importlib
import math
import time
import warnings
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import joblib

from pmt_lab.sweep.execution import Outcome, execute
from pmt_lab.sweep.grid import Grid, read_grid
from pmt_lab.sweep.planning import Plan, changed_options, check_corruptions, plan
from pmt_lab.sweep.result import finished_results, read_result
from pmt_lab.sweep.run_spec import RunSpec

_SECONDS_BETWEEN_LOOKS = 2.0
_SECONDS_TO_CONNECT = 30

Tell = Callable[[str], None]
Group = tuple[str, str, str]


@dataclass
class Summary:
    """Outcomes of runs: hashes of finished ones, and the errors of failed ones by hash."""

    finished: list[str] = field(default_factory=list)
    already: list[str] = field(default_factory=list)
    failed: dict[str, str] = field(default_factory=dict)


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
        Processes of one thread each. 1 does all in this process, with all its threads. 0 takes the
        backend of ``joblib.parallel_config``, where one is active, and else one process for each
        CPU.
    tell : callable, optional
        Gets a line of text for each run that ends.

    Returns
    -------
    Summary
        Outcomes of the runs. Those that raised an error have failed.

    Raises
    ------
    ValueError
        If a run awaits its learning rate.
    OSError
        If a worker process died; the same call continues from its last checkpoint.
    KeyboardInterrupt
        On Ctrl-C. The runs have left checkpoints; the same call continues.
    """
    if any(run.awaits_rate for run in runs):
        raise ValueError("runs await learning rates that trials choose; call Sweep.run instead")
    folder = Path(out).absolute()
    folder.mkdir(parents=True, exist_ok=True)
    summary = Summary(already=list(finished_results((run.hash for run in runs), folder)))
    left = {run.hash: run for run in runs if run.hash not in summary.already}
    count, ended = len(left), 0
    tell = tell or (lambda text: None)
    while left:
        with contextlib.closing(_outcomes(list(left.values()), folder, jobs)) as outcomes:
            for outcome in outcomes:
                if outcome.state == "busy":
                    continue
                run, ended = left.pop(outcome.hash), ended + 1
                if outcome.state == "failed":
                    summary.failed[run.hash] = outcome.text
                else:
                    summary.finished.append(run.hash)
                tell(f"{ended:>{len(str(count))}}/{count}  {run.title}: {_told(outcome, folder)}")
        if left:  # others do them
            time.sleep(_SECONDS_BETWEEN_LOOKS)
    return summary


def _outcomes(runs: list[RunSpec], folder: Path, jobs: int) -> Generator[Outcome, None, None]:
    """Yield the outcomes of the runs, as they end."""
    if jobs == 1:
        for run in runs:
            yield execute(run, str(folder), 0)
        return
    backend, chosen = joblib.parallel.get_active_backend()
    outside = type(backend).__name__ != "LokyBackend" or chosen not in (None, 1)
    n_jobs = jobs or (None if outside else -1)
    parallel = joblib.Parallel(n_jobs, batch_size=1, return_as="generator_unordered")
    # One thread each: the processes share the cores.
    outcomes = parallel(joblib.delayed(execute)(run, str(folder), 1) for run in runs)
    try:
        for outcome in outcomes:  # noqa: UP028 - which would close them before the warning is caught
            yield outcome
    except RuntimeError as error:  # execute() raises none
        raise OSError(
            f"a worker process died ({type(error).__name__}: {error}); the same command continues, "
            "and fewer --jobs take less memory"
        ) from error
    finally:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UserWarning)  # joblib tells of cancelled runs
            outcomes.close()


def _told(outcome: Outcome, folder: Path) -> str:
    """Say in a few words how a run ended."""
    result = read_result(folder / outcome.hash)
    if outcome.state == "failed" or result is None:
        return f"{outcome.state}: {outcome.text}"
    if "test" not in result["after"]:  # of a trial
        return f"held-out loss {result['after']['held_out']['loss']:.4f}"
    before, after = result["before"]["test"], result["after"]["test"]
    shown = [
        f"{what} {before[what]:.4f} -> {after[what]:.4f}" if result["macs"] else
        f"{what} {after[what]:.4f}"
        for what in ("accuracy", "loss")
    ]  # fmt: skip
    return ", ".join(shown)


@contextlib.contextmanager
def _backend(dask: str | None) -> Iterator[None]:
    """Make a Dask cluster joblib's backend, if the address of its scheduler is given."""
    if dask is None:
        yield
        return
    try:
        distributed: Any = importlib.import_module("dask.distributed")
    except ImportError as error:
        raise ImportError('--dask needs Dask: pip install "dask[distributed]"') from error
    try:
        client = distributed.Client(dask, timeout=_SECONDS_TO_CONNECT)
    except (OSError, ValueError) as error:
        raise OSError(
            f"--dask {dask}: no scheduler answers there ({error}); start one with `dask "
            "scheduler`, and workers with `dask worker ADDRESS`"
        ) from error
    with client, joblib.parallel_config(backend="dask"):
        yield


@dataclass(frozen=True)
class Sweep:
    """A planned sweep, see :func:`open_sweep`.

    ``trials`` are the plan's that are finished or needed, ``runs`` the others but for those that
    records stand for: these are ``elsewhere``, of all in ``kept``. ``results`` has what is
    finished, by hash; ``rates`` how trials chose learning rates, by method, preparation and layers.
    """

    grid: Grid
    plan: Plan
    out: Path
    kept: Sequence[Mapping[str, Any]]
    trials: tuple[RunSpec, ...]
    runs: tuple[RunSpec, ...]
    elsewhere: tuple[Mapping[str, Any], ...]
    results: dict[str, dict[str, Any]]
    rates: dict[Group, Mapping[str, Any]]

    @property
    def all_runs(self) -> tuple[RunSpec, ...]:
        """The trials, then the runs."""
        return (*self.trials, *self.runs)

    @property
    def left(self) -> list[RunSpec]:
        """Trials and runs that are not finished."""
        return [r for r in self.all_runs if r.awaits_rate or r.hash not in self.results]

    @property
    def edges(self) -> list[str]:
        """A line for each learning rate that is at the edge of those tried."""
        return [
            f"the rate of {', '.join(group)} is at the edge of the factors tried"
            for group, rate in self.rates.items()
            if rate["at_edge"]
        ]

    def run(
        self, *, jobs: int = 0, dask: str | None = None, tell: Tell | None = None
    ) -> tuple[Sweep, Summary]:
        """Do the unfinished runs, trials first; return the sweep as it is then, and how runs ended.

        ``jobs`` and ``tell`` are those of :func:`run_all`; ``dask`` is the address of a Dask
        scheduler, whose workers do the runs. Errors are those of :func:`run_all`; an ImportError or
        OSError also says that Dask is missing or no scheduler answers. The same call continues.
        """
        if dask is None:  # else the workers have what the corruptions need
            check_corruptions(self.grid.path, self.left, self.plan.model)
        again = functools.partial(_opened, self.grid, self.plan, self.out, self.kept)
        with _backend(dask):
            summary = run_all(self.trials, self.out, jobs=jobs, tell=tell)
            runs = [run for run in again().runs if not run.awaits_rate]
            ends = run_all(runs, self.out, jobs=jobs, tell=tell)
        summary.finished += ends.finished
        summary.already += ends.already
        summary.failed |= ends.failed
        return again(), summary


def open_sweep(
    grid: str | Path | Grid,
    out: str | Path,
    *,
    kept: Sequence[Mapping[str, Any]] = (),
) -> Sweep:
    """Read a grid, plan its runs, and find those that are finished.

    Parameters
    ----------
    grid : str, pathlib.Path or Grid
        TOML file of the grid, or one that was read.
    out : str or pathlib.Path
        Folder of the runs.
    kept : sequence of dict
        Records, as :func:`pmt_lab.report.run_record` makes them, of runs with the same model, data,
        protocol and budget: they stand for the runs of their axes and options, and for the trials
        that chose their rates. Runs that are finished in ``out`` stay.

    Raises
    ------
    GridError
        If something in the grid file is wrong; it holds all problems.
    ValueError
        If a result is damaged.
    """
    problems: list[str] = []
    whole = grid if isinstance(grid, Grid) else read_grid(grid, problems)
    return _opened(whole, plan(whole, problems), Path(out), kept)


def _opened(grid: Grid, planned: Plan, out: Path, kept: Sequence[Mapping[str, Any]]) -> Sweep:
    trials = planned.trials
    tried = finished_results((trial.hash for trial in trials), out)
    rates = {**_kept_rates(planned, kept), **_rates(trials, tried)}
    needed = tuple(one for one in trials if one.hash in tried or one.group not in rates)
    runs = [
        dataclasses.replace(
            run,
            options={**run.options, "learning_rate": rates[run.group]["learning_rate"]},
            awaits_rate=False,
            tuning=rates[run.group],
        )
        if run.awaits_rate and run.group in rates
        else run
        for run in planned.runs
    ]
    known = finished_results((run.hash for run in runs if not run.awaits_rate), out)
    records = {str(sorted(one["axes"].items())): one for one in reversed(kept)}
    here, elsewhere = [], []
    for run in runs:
        one = records.get(str(sorted(run.axes.items())))
        stands = one is not None and not run.awaits_rate and _identity(run) == _recorded(one)
        if one is not None and stands and run.hash not in known:
            elsewhere.append(one)
        else:
            here.append(run)
    results = {**tried, **known}
    return Sweep(grid, planned, out, kept, needed, tuple(here), tuple(elsewhere), results, rates)


def _rates(
    trials: Iterable[RunSpec], results: Mapping[str, Mapping[str, Any]]
) -> dict[Group, dict[str, Any]]:
    """Return the choices of those groups whose trials all have results.

    The trial with the least loss on the held-out images wins; of equal losses the smaller rate.
    """
    groups: dict[Group, list[RunSpec]] = {}
    for trial in trials:
        groups.setdefault(trial.group, []).append(trial)
    found = {}
    for group, members in groups.items():
        if not all(trial.hash in results for trial in members):
            continue
        tried = []
        for trial in sorted(members, key=lambda trial: trial.trial):
            loss = float(results[trial.hash]["after"]["held_out"]["loss"])
            tried.append(
                {
                    "factor": trial.trial,
                    "learning_rate": float(trial.options["learning_rate"]),
                    "held_out_loss": loss if math.isfinite(loss) else None,
                    "hash": trial.hash,
                }
            )
        found[group] = chosen_rate(tried)
    return found


def chosen_rate(trials: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Return the choice among trials by ascending factor, as a run's result keeps it."""

    def loss(trial: Mapping[str, Any]) -> float:
        found = trial["held_out_loss"]
        return math.inf if found is None else float(found)

    best = min(trials, key=loss)
    return {
        "factor": best["factor"],
        "learning_rate": best["learning_rate"],
        # One beyond it may be better.
        "at_edge": best is trials[0] or best is trials[-1],
        "trials": list(trials),
    }


def _kept_rates(planned: Plan, kept: Sequence[Mapping[str, Any]]) -> dict[Group, Mapping[str, Any]]:
    """Return how trials elsewhere chose rates: with the options and the factors of this grid."""
    factors: dict[Group, set[float]] = {}
    for trial in planned.trials:
        factors.setdefault(trial.group, set()).add(trial.trial)
    awaiting = {run.group: _identity(run, rate=False) for run in planned.runs if run.awaits_rate}
    found = {}
    for record in kept:
        axes, tuning = record["axes"], record.get("tuning")
        group = (axes["method"], axes["preparation"], axes["layers"])
        if tuning is not None and group in awaiting:
            tried = {trial["factor"] for trial in tuning["trials"]}
            if tried == factors[group] and awaiting[group] == _recorded(record, rate=False):
                found[group] = tuning
    return found


def _identity(run: RunSpec, *, rate: bool = True) -> tuple[Any, ...]:
    options = changed_options(run.base, run.options)
    return _recorded({**run.definition(), "options": options}, rate=rate)


def _recorded(record: Mapping[str, Any], *, rate: bool = True) -> tuple[Any, ...]:
    """Return the key of a run among others of its axes, with or without the learning rate."""
    options = {n: one for n, one in record["options"].items() if rate or n != "learning_rate"}
    return record["base"], record.get("extensions", {}), options
