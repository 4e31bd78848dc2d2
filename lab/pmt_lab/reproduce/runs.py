"""The sweeps of studies: their grids, their runs as compact JSON, and rows of accuracy."""

import dataclasses
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from pmt import methods
from pmt.protocol import wilson_of_share
from pmt_lab.files import counted
from pmt_lab.report import FinishedRun, accuracy_interval, difference_interval, run_record
from pmt_lab.reproduce.results import settings_of
from pmt_lab.reproduce.study import (
    ACCURACY,
    Context,
    Data,
    Interval,
    Row,
    Scale,
    Study,
    beside,
    compared,
    not_run,
)
from pmt_lab.sweep import NO_ADAPTATION, Grid, Sweep, open_sweep, read_grid

GRIDS = Path(__file__).parent / "grids"

_SMALL_MACS = 5 * 10**8
_SMALL_MODEL = "fashion_mnist_dscnn"
_SMALL_PROTOCOL = {"images": 40, "held_out": 10, "test_images": 20}
# Options of every method that has them; deepzero's step is a query for each of its weights.
_SMALL_OPTIONS: dict[str, Any] = {"batch": 10, "queries": 4, "align_images": 20}
# Steps with a query for each weight, and a scheme that only MCUNet has.
_NOT_SMALL = ("deepzero", "deepzero_sparse", "mcutrain")


def grid_study(
    name: str,
    item: str,
    title: str,
    grids: tuple[str, ...] | Callable[[Scale, Context], Mapping[str, Grid]],
    compare: Callable[[Data, Data], list[Row]],
    plot: Callable[..., Any],
    plot_losses: Callable[..., Any] | None = None,
    conditions: str = "",
) -> Study:
    """Return a study of sweeps: of these grids on CIFAR-10-C, or of ``grids(scale, context)``."""

    def measure(scale: Scale, context: Context) -> dict[str, Any]:
        if callable(grids):
            return measure_grids(grids(scale, context), context)
        return measure_grids({grid: cifar10_grid(grid, scale, context) for grid in grids}, context)

    return Study(name, item, title, measure, compare, plot, plot_losses, True, conditions)


def read_study_grid(name: str) -> Grid:
    """Read a grid of this package; `name` is that of its file."""
    return read_grid(GRIDS / f"{name}.toml")


def cifar10_grid(name: str, scale: Scale, context: Context) -> Grid:
    """Return a grid on CIFAR-10-C, at full scale with the user's copy of CIFAR-10."""
    grid = read_study_grid(name)
    if scale == "small":
        return small(grid)
    data = {**grid.data, "path": str(context.need_cifar10())}
    return dataclasses.replace(grid, data=data)


def of_method(grid: Grid, *names: str) -> Grid:
    """Return a grid with one or some of its methods."""
    return dataclasses.replace(grid, methods=tuple(m for m in grid.methods if m.name in names))


def small(grid: Grid) -> Grid:
    """Return a grid of seconds that takes the same path, on bundled data.

    The bundled Fashion-MNIST network and images stand for MCUNet and CIFAR-10; the first corruption
    and the first seed for all; 20 training, 10 held-out and 20 test images; batches of 10 images, 4
    queries; 1 epoch, or 0.5 GMAC; learning rates are not tuned. Left out are DeepZero, whose
    step alone takes longer, and MCUTrain, whose scheme is for MCUNet only.
    """
    tables = tuple(
        dataclasses.replace(table, options=_without(table.options, _SMALL_OPTIONS))
        for table in grid.methods
        if table.base not in _NOT_SMALL
    )
    known = {field for table in tables for field in _options(table.base)}
    length = {} if grid.macs else {"epochs": 1}
    options = {**grid.options, **_SMALL_OPTIONS, **length}
    return dataclasses.replace(
        grid,
        model={"path": _SMALL_MODEL},
        data={**grid.data, "path": "bundled"},
        protocol={**grid.protocol, **_SMALL_PROTOCOL},
        macs=_SMALL_MACS if grid.macs else 0,
        methods=tables,
        corruptions=grid.corruptions[:1],
        seeds=grid.seeds[:1],
        options={name: value for name, value in options.items() if name in known},
        tuning=None,
    )


def _options(method: str) -> dict[str, Any]:
    """Return a method's options; none for the one that trains nothing."""
    if method == NO_ADAPTATION:
        return {}
    return dataclasses.asdict(methods.trainer(method, threads=1).options)


def _without(options: Mapping[str, Any], names: Iterable[str]) -> dict[str, Any]:
    return {name: value for name, value in options.items() if name not in (*names, "epochs")}


def measure_grids(grids: Mapping[str, Grid], context: Context) -> dict[str, Any]:
    """Do the unfinished runs of some grids, if any is to be done, and return the results of all.

    A grid's runs are in the folder of its name beside ``context.folder``; with ``collect`` none is
    done. The result has ``grids``: by name ``model``, ``protocol``, ``macs`` (the budget), ``runs``
    (:func:`pmt_lab.report.run_record`; those that the earlier result holds come last), ``missing``
    (axes of the runs that are not there, and the ``error`` of one that failed) and ``failed``
    (titles and errors); and ``seconds`` of all finished runs.
    """
    found = {name: _measure(name, grid, context) for name, grid in grids.items()}
    seconds = sum(run["train_seconds"] for grid in found.values() for run in grid["runs"])
    return {"grids": found, "seconds": round(seconds, 1)}


def _measure(name: str, grid: Grid, context: Context) -> dict[str, Any]:
    sweep = _open(name, grid, context)
    errors: Mapping[str, str] = {}
    if sweep.left and not context.collect:
        context.tell(f"{name}: {len(sweep.left)} of {len(sweep.all_runs)} runs left")
        sweep, summary = sweep.run(jobs=context.jobs, dask=context.dask, tell=context.tell)
        errors = summary.failed
    titles = {run.hash: run.title for run in sweep.all_runs if not run.awaits_rate}
    runs, missing = [], []
    for run in sweep.runs:
        key = "" if run.awaits_rate else run.hash
        if key in sweep.results:
            runs.append(run_record(FinishedRun(sweep.out / key, sweep.results[key])))
        else:
            missing.append({**run.axes, **({"error": errors[key]} if key in errors else {})})
    return {
        **_settings(sweep, grid),
        "runs": [*runs, *sweep.elsewhere],
        "missing": missing,
        "failed": {titles[key]: error for key, error in errors.items()},
    }


def _open(name: str, grid: Grid, context: Context) -> Sweep:
    """Open a grid's sweep without the runs that the earlier result holds."""
    folder = context.folder.parent / name
    sweep = open_sweep(grid, folder)
    earlier = context.earlier.get("grids", {}).get(name)
    alike = earlier is not None and settings_of(earlier) == _settings(sweep, grid)
    if earlier is None or not alike:
        return sweep
    return open_sweep(grid, folder, kept=earlier["runs"])


def _settings(sweep: Sweep, grid: Grid) -> dict[str, Any]:
    """Return the settings that grids with comparable runs share."""
    model = sweep.plan.model.name
    return {"model": model, "protocol": dict(grid.protocol), "macs": grid.macs}


@dataclass(frozen=True)
class Found:
    """Runs of a study with the same axes: the finished ones, and the axes of those missing."""

    runs: tuple[Data, ...]
    missing: tuple[Data, ...]
    small: bool

    @property
    def state(self) -> str:
        """Which runs are missing; empty where none is."""
        if not self.missing:
            absent = "left out at small scale" if self.small else "no run of it"
            return "" if self.runs else absent
        errors = dict.fromkeys(run["error"] for run in self.missing if "error" in run)
        count = len(self.missing)
        of = f"{count} of {count + len(self.runs)} runs" if self.runs else counted(count, "run")
        return "; ".join([f"{of} missing", *(f"failed: {error}" for error in errors)])

    @property
    def rate(self) -> str:
        """The learning rate that trials chose; empty where none did."""
        tuning = self.runs[0].get("tuning") if self.runs else None
        if tuning is None:
            return ""
        edge = ", at the edge of those tried" if tuning["at_edge"] else ""
        return f"rate {tuning['learning_rate']:g}{edge}"

    @property
    def untrained(self) -> str:
        """How many runs were reverted to the original model; empty where none was."""
        trained = [run for run in self.runs if run["steps"]]
        back = sum(run.get("chosen_state") == "start" for run in trained)
        if not back:
            return ""
        if len(trained) > 1:
            return f"{back} of {len(trained)} runs were reverted to the original model"
        return "reverted to the original model: no epoch is clearly better on held-out images"

    def accuracy(self) -> tuple[float, Interval]:
        """Return the mean accuracy in % and its 95 % interval over the test images.

        The same image under several seeds and corruptions counts once, as in reports.
        """
        runs = [FinishedRun(Path(), record) for record in self.runs]
        mean = float(np.mean([run.value("test_accuracy") for run in runs]))
        rights = self._rights()
        if rights:
            low, high = accuracy_interval([(0, bits) for bits in rights])
        else:
            low, high = wilson_of_share(mean, min(run.images("test_accuracy") for run in runs))
        return 100 * mean, (100 * low, 100 * high)

    def difference(self, other: "Found") -> Interval | None:
        """Return the 95 % interval of the difference of mean accuracies to other runs, in points.

        Paired by test image; None where the runs do not tell the same images.
        """
        ours, theirs = (np.array(found._rights(), float) for found in (self, other))
        if not ours.size or ours.shape[1:] != theirs.shape[1:]:
            return None
        pair = ((0, ours.mean(axis=0)), (0, theirs.mean(axis=0)))
        interval = difference_interval([ours.mean() - theirs.mean()], [pair])
        return None if interval is None else (100 * interval[0], 100 * interval[1])

    def _rights(self) -> list[npt.NDArray[np.bool_]]:
        """Which test images each run gets right; empty where not all of them tell the same ones."""
        runs = [FinishedRun(Path(), record).right("test_accuracy") for record in self.runs]
        bits = [right[1] for right in runs if right is not None]
        return bits if len(bits) == len(runs) and len({len(one) for one in bits}) == 1 else []

    def loss(self) -> float | None:
        """Return the mean loss on the held-out images; None where one is not finite."""
        losses = [record["after"]["held_out"]["loss"] for record in self.runs]
        return None if None in losses else float(np.mean(losses))


def find(data: Data, grids: str | Iterable[str], **axes: Any) -> Found:
    """Return the runs of some grids whose axes have these values, or one of several in a tuple."""
    names = [grids] if isinstance(grids, str) else list(grids)
    known = [data["grids"][name] for name in names if name in data.get("grids", {})]

    def fits(place: Data) -> bool:
        return all(
            place.get(name) in value if isinstance(value, tuple) else place.get(name) == value
            for name, value in axes.items()
        )

    return Found(
        tuple(run for grid in known for run in grid["runs"] if fits(run["axes"])),
        tuple(run for grid in known for run in grid["missing"] if fits(run)),
        any(grid["model"] == _SMALL_MODEL for grid in known),
    )


def accuracy_row(
    what: str,
    found: Found,
    theirs: float | None,
    *,
    why: str = "",
    whole: bool = False,
    rated: bool = True,
) -> Row:
    """Return the row of a test accuracy of some runs.

    ``theirs`` is the published one in %, which that of another network at small scale is not
    compared with; ``why`` the cause of a difference. ``whole`` says that a mean needs all runs,
    because its corruptions differ; ``rated`` that the row says which learning rate trials chose.
    """
    if not found.runs or (whole and found.missing):
        said = joined_reasons(why if whole else "", found.state)
        return not_run(what, None if found.small else theirs, ACCURACY.unit, said)
    ours, interval = found.accuracy()
    said = joined_reasons(why, found.rate if rated else "", found.untrained, found.state)
    if theirs is None or found.small:
        return beside(what, ours, ACCURACY.unit, interval=interval, why=said)
    return compared(what, ours, theirs, ACCURACY, interval=interval, why=said)


def joined_reasons(*reasons: str) -> str:
    """Return reasons one after the other, without the empty ones."""
    return "; ".join(filter(None, reasons))
