"""From a grid to its runs, everything checked before the first one starts."""

from __future__ import annotations

import dataclasses
import itertools
import math
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from pmt import _core, methods
from pmt._util import text as words
from pmt._util.text import counted
from pmt.model import Model
from pmt.model.loading import load
from pmt.protocol import Split
from pmt.protocol.data_source import data_path, model_path
from pmt.train.prepare.preparation import PREPARATIONS
from pmt_lab.sweep.grid_file import CLEAN, Grid, MethodTable, Problems
from pmt_lab.sweep.methods import check_methods, preparations_of, takes_steps
from pmt_lab.sweep.run_data import checksums, drawn, load_split, pools
from pmt_lab.sweep.run_spec import NO_ADAPTATION, RunSpec
from pmt_lab.sweep.tuning import trials_of

__all__ = ["Plan", "check_corruptions", "plan", "shard"]

_SHOWN_METHODS = 9
_BAD_INPUT = (ValueError, TypeError, OSError, ImportError)


@dataclass(frozen=True, repr=False)
class Plan:
    """The runs of a grid, in the order of work, and what evaluation will cost.

    Attributes
    ----------
    runs : tuple of RunSpec
        Runs of the tables, by corruption and severity, so that a worker makes its images once.
        Those whose learning rates trials choose await them, see ``RunSpec.awaits_rate``.
    model : Model
        The untrained model.
    held_out, test : int
        Images that are evaluated after every epoch, and at the end (as often again clean).
    trials : tuple of RunSpec
        Runs that choose learning rates, to be done first.
    """

    runs: tuple[RunSpec, ...]
    model: Model
    held_out: int
    test: int
    trials: tuple[RunSpec, ...] = ()

    _TITLES = ("method", "layers", "preparation", "runs", "GMAC")

    def __str__(self) -> str:
        return f"{self._caption}\n{words.table(self._TITLES, self._rows(), left=self._TITLES[:3])}"

    __repr__ = __str__

    def _repr_html_(self) -> str:
        return words.html_table(self._caption, self._TITLES, self._rows())

    @property
    def _caption(self) -> str:
        trials = f", {counted(len(self.trials), 'trial')} before them" if self.trials else ""
        return (
            f"{counted(len(self.runs), 'run')}{trials}; {self.model.name}, {self.held_out:,} "
            f"held-out and {counted(self.test, 'test image')}"
        )

    def _rows(self) -> list[list[str]]:
        groups: dict[tuple[str, str, str], list[RunSpec]] = {}
        for run in self.runs:
            layers = str(run.options.get("layers", ""))
            groups.setdefault((run.method, layers, run.preparation), []).append(run)
        rows = [
            [*group, f"{len(runs):,}", f"{sum(run.macs for run in runs) / 1e9:,.1f}"]
            for group, runs in groups.items()
        ]
        return words.shortened(rows, _SHOWN_METHODS)


def plan(grid: Grid, problems: Problems | None = None) -> Plan:
    """Work out a grid's runs, finished or not; see `check_corruptions` for what they lack.

    Parameters
    ----------
    grid : Grid
        The grid.
    problems : Problems, optional
        Errors that were found before; raised with the rest.

    Returns
    -------
    Plan
        Its runs.

    Raises
    ------
    GridError
        If something is wrong; it holds all of it: model or data that cannot be read or do not fit,
        unknown methods, layers and options, values out of range, or a budget less than a step.
    """
    problems = problems if problems is not None else Problems(grid.path)
    options = check_methods(grid, problems)
    model = _model(grid, problems)
    images = _clean_split(grid, model, problems) if model is not None else None
    if model is not None:
        _check_layers(grid, model, problems)
    trained = _trained(grid, options, model, images, problems)
    _check_twins(trained, problems)
    _check_tuning(grid, problems)
    contents = _contents(grid, model, problems) if model is not None and images else {}
    problems.stop()
    assert model is not None
    assert images is not None
    held_out = len(images.held_out) if images.held_out is not None else 0
    runs = tuple(_shifted(grid, trained, contents))
    trials = tuple(_trials(grid, trained, contents))
    return Plan(runs, model, held_out, len(images.test), trials)


def check_corruptions(runs: Iterable[RunSpec], model: Model, problems: Problems) -> None:
    """Corrupt an image as these runs do, which tells what is lacking: photographs, a package.

    Raises
    ------
    GridError
        If something is.
    """
    first: dict[str, RunSpec] = {}
    for run in sorted(runs, key=lambda run: run.trial > 0):
        first.setdefault(run.corruption, run)
    for run in first.values():
        try:
            pair = pools(run.data, run.corruption, run.severity, model)
            for pool in drawn(pair, run.protocol).values():
                pool.take(np.arange(1))
        except _BAD_INPUT as error:
            place = "[tuning] corruption" if run.trial else "[axes] corruptions"
            problems.add(f"{place}: {_text(error)}")
    problems.stop()


def _shifted(
    grid: Grid, trained: list[RunSpec], contents: Mapping[tuple[str, int], Mapping[str, Any]]
) -> Iterator[RunSpec]:
    """Yield the runs of every shift."""
    for corruption, severity in _shifts(grid):
        for seed in (None, *grid.seeds):
            for run in trained:
                if run.options.get("seed") == seed:
                    yield dataclasses.replace(
                        run,
                        corruption=corruption,
                        severity=severity,
                        order={**run.order, "corruption": grid.corruptions.index(corruption)},
                        contents=contents[corruption, severity],
                    )


def _trials(
    grid: Grid, trained: list[RunSpec], contents: Mapping[tuple[str, int], Mapping[str, Any]]
) -> Iterator[RunSpec]:
    """Yield the trials of every learning rate that is to be chosen."""
    if grid.tuning is None:
        return
    shift = contents[grid.tuning.corruption, grid.tuning.severity]
    for run in trained:
        if run.awaits_rate and run.options["seed"] == grid.seeds[0]:
            for trial in trials_of(run, grid.tuning):
                yield dataclasses.replace(trial, contents=shift)


def shard(runs: tuple[RunSpec, ...], number: int, count: int) -> tuple[RunSpec, ...]:
    """Return the runs of one of ``count`` machines, ``number`` from 1: every count-th one."""
    return runs[number - 1 :: count]


def _shifts(grid: Grid) -> Iterator[tuple[str, int]]:
    for corruption in grid.corruptions:
        for severity in (0,) if corruption == CLEAN else grid.severities:
            yield corruption, severity


def _model(grid: Grid, problems: Problems) -> Model | None:
    path = grid.model.get("path")
    if not path:
        return None
    try:
        return load(path, **{k: v for k, v in grid.model.items() if k != "path"})
    except _BAD_INPUT as error:
        problems.add(f"[model] {_text(error)}")
        return None


def _clean_split(grid: Grid, model: Model, problems: Problems) -> Split | None:
    """Choose the images without corruption, which tells how many there are and whether they fit."""
    if not grid.data.get("path"):
        return None
    try:
        pair = pools(grid.data, CLEAN, 0, model)
        model.check_classes(pair[1].images)
    except _BAD_INPUT as error:
        problems.add(f"[data] {_text(error)}")
        return None
    try:
        return load_split(pair, grid.protocol)
    except _BAD_INPUT as error:
        problems.add(f"[protocol] {_text(error)}")
        return None


def _contents(
    grid: Grid, model: Model, problems: Problems
) -> dict[tuple[str, int], dict[str, Any]]:
    """Return what identifies model and data of every shift."""
    common = {
        "model_crc32": _core.crc32(model.image()),
        "labels": "coarse" if grid.data["coarse_labels"] else "fine",
        "constants": grid.data["constants"],
        "corruption_seed": grid.data["corruption_seed"],
    }
    found = {}
    shifts = dict.fromkeys(_shifts(grid))
    if grid.tuning is not None:
        shifts[grid.tuning.corruption, grid.tuning.severity] = None
    for shift in shifts:
        try:
            pair = pools(grid.data, *shift, model)
            found[shift] = {**common, **checksums(pair, grid.protocol)}
        except _BAD_INPUT as error:
            problems.add(f"[data] {_text(error)}")
    return found


def _check_layers(grid: Grid, model: Model, problems: Problems) -> None:
    for place, layers in [
        *(("[axes] layers", layers) for layers in grid.layers),
        *(
            (f"[method.{m.name}]", m.options["layers"])
            for m in grid.methods
            if "layers" in m.options
        ),
    ]:
        try:
            model.select_layers(layers)
        except (ValueError, TypeError) as error:
            problems.add(f"{place}: {error}")


def _trained(
    grid: Grid,
    options: Mapping[str, Mapping[str, Any]],
    model: Model | None,
    images: Split | None,
    problems: Problems,
) -> list[RunSpec]:
    """Return the runs of one shift.

    A method with layers or a preparation of its own runs once for all of that axis.
    """
    runs = []
    for table in grid.methods:
        if table.base == NO_ADAPTATION:
            runs.append(_spec(grid, table, "", {}))
        elif table.name in options:
            own = options[table.name]
            every = itertools.product(
                [own["layers"]] if "layers" in own else grid.layers,
                preparations_of(table, own, grid, problems),
                grid.seeds,
            )
            for layers, preparation, seed in every:
                chosen = {**own, "layers": layers, **preparation, "seed": seed, "macs": grid.macs}
                try:
                    runs.append(_costed(grid, table, chosen, model, images))
                except _BAD_INPUT as error:
                    problems.add(f"method {table.name!r}: {_text(error)}")
    return runs


def _costed(
    grid: Grid,
    table: MethodTable,
    options: Mapping[str, Any],
    model: Model | None,
    images: Split | None,
) -> RunSpec:
    trainer = methods.trainer(table.base, threads=1, **options)
    spec = _spec(grid, table, trainer.name, dataclasses.asdict(trainer.options))
    if model is None or images is None:
        return spec
    try:
        model.select_layers(spec.options["layers"])
    except ValueError:  # said by _check_layers
        return spec
    cost = trainer.cost(model)
    preparation = trainer.preparation.cost(model, len(images.train))
    schedule = trainer.schedule(model, len(images.train))
    return dataclasses.replace(
        spec,
        steps=schedule.steps,
        evaluations=1 + math.ceil(schedule.epochs_after(schedule.steps)),
        macs=preparation.macs + cost.macs * schedule.steps,
        forwards=cost.forwards * schedule.steps,
    )


def _spec(grid: Grid, table: MethodTable, trainer: str, options: Mapping[str, Any]) -> RunSpec:
    preparation = options.get("preparation", "none")
    return RunSpec(
        method=table.name,
        base=table.base,
        trainer=trainer,
        corruption="",
        severity=0,
        options=options,
        model={**grid.model, "path": model_path(grid.model.get("path", ""))},
        data={**grid.data, "path": data_path(grid.data.get("path", ""))},
        contents={},
        protocol=grid.protocol,
        order={
            "method": grid.methods.index(table),
            # One of a method's own, beside those of the axis, comes last.
            "preparation": (*grid.preparations, *PREPARATIONS).index(preparation),
        },
        awaits_rate=grid.tuning is not None and takes_steps(table.base),
    )


def _check_twins(runs: list[RunSpec], problems: Problems) -> None:
    """Note methods with the same options: one of them would do the other's work once more."""
    first: dict[str, str] = {}
    for run in runs:
        key = repr((run.trainer, sorted(run.options.items())))
        other = first.setdefault(key, run.method)
        if other != run.method:
            problems.add(
                f"[axes] methods: {other!r} and {run.method!r} have the same options; leave one out"
            )


def _check_tuning(grid: Grid, problems: Problems) -> None:
    if grid.tuning is None:
        return
    known = [table for table in grid.methods if table.base in methods.METHODS]
    if known and not any(takes_steps(table.base) for table in known):
        names = ", ".join(table.name for table in known)
        problems.add(
            f"[tuning]: no method takes steps that have a learning rate to choose: {names}; leave "
            "out the table, or add a method"
        )


def _text(error: BaseException) -> str:
    if isinstance(error, OSError) and error.strerror:
        return f"{error.filename}: {error.strerror}" if error.filename else error.strerror
    return str(error) or type(error).__name__
