"""From a grid to its runs, everything checked before the first one starts."""

import dataclasses
import itertools
import zlib
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

import pmt
from pmt import methods
from pmt.model import Model
from pmt.protocol import Split, data_path, model_path
from pmt.train.prepare import PREPARATIONS
from pmt_lab.files import described, did_you_mean
from pmt_lab.sweep.grid import CLEAN, FEWEST_HELD_OUT, Grid, GridError, MethodTable
from pmt_lab.sweep.images import checksums, load_split, pools
from pmt_lab.sweep.run_spec import NO_ADAPTATION, RunSpec

# Options that the grid has elsewhere, for every method alike.
_ELSEWHERE = {"seed": "[axes] seeds", "macs": "[budget] macs"}
_AXES = ("layers", "preparation", "seed")
_BAD_INPUT = (ValueError, TypeError, OSError, ImportError)


@dataclass(frozen=True)
class Plan:
    """The runs of a grid, in the order of work, and the untrained model.

    ``runs`` are those of the tables, by corruption and severity, so that a worker makes its images
    once; ``trials`` choose learning rates, which such runs await, and are to be done first.
    """

    runs: tuple[RunSpec, ...]
    model: Model
    trials: tuple[RunSpec, ...] = ()


def plan(grid: Grid, problems: Iterable[str] = ()) -> Plan:
    """Work out a grid's runs, finished or not; `check_corruptions` finds missing requirements.

    A GridError holds all that is wrong, after ``problems`` that were found before: model or data
    that cannot be read or do not fit, unknown methods, layers and options, values out of range, or
    a budget less than a step.
    """
    found = list(problems)
    options = method_options(grid, found)
    model = _model(grid, found)
    images = _clean_split(grid, model, found)
    trained = _trained(grid, options, model, images, found)
    contents = _contents(grid, model, found) if model is not None and images is not None else {}
    if found:
        raise GridError(grid.path, found)
    assert model is not None
    runs = tuple(
        dataclasses.replace(
            run,
            corruption=corruption,
            severity=severity,
            order={**run.order, "corruption": grid.corruptions.index(corruption)},
            contents=contents[corruption, severity],
        )
        for corruption, severity in grid.shifts
        for seed in (None, *grid.seeds)
        for run in trained
        if run.options.get("seed") == seed
    )
    return Plan(runs, model, tuple(_trials(grid, trained, contents)))


def check_corruptions(path: str, runs: Iterable[RunSpec], model: Model) -> None:
    """Corrupt an image as these runs do; a GridError tells of a missing photograph or package."""
    first: dict[str, RunSpec] = {}
    for run in sorted(runs, key=lambda run: run.trial > 0):
        first.setdefault(run.corruption, run)
    problems = []
    for run in first.values():
        try:
            for pool in pools(run.data, run.corruption, run.severity, model):
                pool.take(np.arange(1))
        except _BAD_INPUT as error:
            place = "[tuning] corruption" if run.trial else "[axes] corruptions"
            problems.append(f"{place}: {described(error)}")
    if problems:
        raise GridError(path, problems)


def method_options(grid: Grid, problems: list[str]) -> dict[str, dict[str, Any]]:
    """Return every method's options without those of the axes and the budget.

    Methods with problems are left out. An entry of ``[options]`` goes to the methods that have such
    an option; one that no method has is a problem.
    """
    methods.load_plugins()
    defaults = {table.name: _defaults(table, problems) for table in grid.methods}
    every = sorted({name for known in defaults.values() if known for name in known})
    for name in grid.options if every else ():  # without a known method all would be wrong
        if name not in every:
            near = did_you_mean(name, every)
            problems.append(f"[options] {name} is not an option of any method{near}")
    shared = dict(_ELSEWHERE, layers="[axes] layers")
    if grid.preparations:
        shared["preparation"] = "[axes] preparations"
    checked = {}
    for table in grid.methods:
        known = defaults[table.name]
        if known is None:
            continue
        places = (
            ("[options]", {k: v for k, v in grid.options.items() if k in known}, shared),
            (f"[method.{table.name}]", table.options, _ELSEWHERE),
        )
        options: dict[str, Any] = {}
        for place, given, elsewhere in places:
            for name, value in given.items():
                problem = _problem_of(name, known, elsewhere, grid)
                if problem:
                    problems.append(f"{place} {name}{problem}")
                else:  # whole numbers where floats are meant: one hash for both
                    is_float = type(value) is int and isinstance(known[name], float)
                    options[name] = float(value) if is_float else value
        layers = known.get("layers", "all")
        if known and (methods.method(table.base).own_layers or layers != "all"):
            options.setdefault("layers", layers)
        checked[table.name] = options
    return checked


def _defaults(table: MethodTable, problems: list[str]) -> dict[str, Any] | None:
    if table.base == NO_ADAPTATION:
        return {}
    place = "[axes] methods" if table.base == table.name else f"[method.{table.name}] base"
    if table.base not in methods.METHODS:
        near = did_you_mean(table.base, methods.METHODS)
        problems.append(f"{place}: {table.base!r} is not a method{near}")
        return None
    try:
        return dataclasses.asdict(methods.trainer(table.base, threads=1).options)
    except ImportError as error:
        problems.append(f"{place}: {table.base!r}: {error}")
        return None


def _problem_of(
    name: str, known: Mapping[str, Any], elsewhere: Mapping[str, str], grid: Grid
) -> str:
    if name not in known:
        remedy = did_you_mean(name, known) if known else "; this method has no options"
        return f" is unknown{remedy}"
    if name in elsewhere:
        return f": give {elsewhere[name]} instead"
    if name == "epochs" and grid.macs:
        return ": [budget] macs says how long all methods train; leave one"
    return ""


def changed_options(base: str, options: Mapping[str, Any]) -> dict[str, Any]:
    """Return the options that differ from the method's own, but those of the axes."""
    if base == NO_ADAPTATION:
        return {}
    own = dataclasses.asdict(methods.trainer(base, threads=1).options)
    return {
        name: value
        for name, value in options.items()
        if name not in _AXES and (name not in own or own[name] != value)
    }


def _takes_steps(base: str) -> bool:
    """Whether a method trains after its preparation, so that its learning rate matters."""
    return methods.method(base).kind.name != NO_ADAPTATION


def _model(grid: Grid, problems: list[str]) -> Model | None:
    if not grid.model.get("path"):
        return None
    try:
        model = pmt.load(**grid.model)
    except _BAD_INPUT as error:
        problems.append(f"[model] {described(error)}")
        return None
    places = [("[axes] layers", layers) for layers in grid.layers]
    places += [
        (f"[method.{one.name}]", one.options["layers"])
        for one in grid.methods
        if "layers" in one.options
    ]
    for place, layers in places:
        try:
            model.select_layers(layers)
        except (ValueError, TypeError) as error:
            problems.append(f"{place}: {error}")
    return model


def _clean_split(grid: Grid, model: Model | None, problems: list[str]) -> Split | None:
    """Choose the images without corruption, which tells how many there are and whether they fit."""
    if model is None or not grid.data.get("path"):
        return None
    place = "[data]"
    try:
        pair = pools(grid.data, CLEAN, 0, model)
        model.check_classes(pair[1].images)
        place = "[protocol]"
        images = load_split(pair, grid.protocol)
        if (count := len(images.held_out_indices)) < FEWEST_HELD_OUT:
            raise ValueError(
                f"held_out={grid.protocol['held_out']}: classes and copies leave {count} of them; "
                f"a choice needs {FEWEST_HELD_OUT} or more, so take more images"
            )
        return images
    except _BAD_INPUT as error:
        problems.append(f"{place} {described(error)}")
        return None


def _contents(
    grid: Grid, model: Model, problems: list[str]
) -> dict[tuple[str, int], dict[str, Any]]:
    """Return the identity of model and data of every shift."""
    common = {
        "model_crc32": zlib.crc32(model.image()),
        "labels": "coarse" if grid.data["coarse_labels"] else "fine",
        "constants": grid.data["constants"],
        "corruption_seed": grid.data["corruption_seed"],
    }
    tuned = [] if grid.tuning is None else [(grid.tuning.corruption, grid.tuning.severity)]
    found = {}
    for shift in dict.fromkeys([*grid.shifts, *tuned]):
        try:
            pair = pools(grid.data, *shift, model)
            found[shift] = {**common, **checksums(pair, grid.protocol)}
        except _BAD_INPUT as error:
            problems.append(f"[data] {described(error)}")
    return found


def _trained(
    grid: Grid,
    options: Mapping[str, Mapping[str, Any]],
    model: Model | None,
    images: Split | None,
    problems: list[str],
) -> list[RunSpec]:
    """Return the runs of one shift.

    A method with layers or a preparation of its own runs once for all of that axis.
    """
    runs = []
    for table in grid.methods:
        if table.base == NO_ADAPTATION:
            runs.append(_spec(grid, table, "", {}, {}, 0))
        elif table.name in options:
            own = options[table.name]
            layers = [own["layers"]] if "layers" in own else grid.layers
            every = itertools.product(layers, _preparations(grid, table, own, problems), grid.seeds)
            for names, preparation, seed in every:
                chosen = {**own, "layers": names, **preparation, "seed": seed, "macs": grid.macs}
                try:
                    trainer = methods.trainer(table.base, threads=1, **chosen)
                    macs = _macs(trainer, model, images)
                except _BAD_INPUT as error:
                    problem = f"method {table.name!r}: {described(error)}"
                    if "layers=" not in problem:  # said of the axis
                        problems.append(problem)
                    continue
                settings = dataclasses.asdict(trainer.options)
                runs.append(_spec(grid, table, trainer.name, trainer.extensions, settings, macs))
    _check_twins(runs, problems)
    return runs


def _preparations(
    grid: Grid, table: MethodTable, own: Mapping[str, Any], problems: list[str]
) -> list[dict[str, Any]]:
    """Return the option of each preparation that a method runs with.

    That of its own table goes before the axis; without either it keeps its default. A method that
    is a preparation alone leaves out none.
    """
    if "preparation" in own or not grid.preparations:
        return [{}]
    names = [one for one in grid.preparations if one != "none" or _takes_steps(table.base)]
    if not names:
        problems.append(
            f"[axes] preparations: {table.name!r} needs one other than none; add one, or leave out "
            "the method"
        )
    return [{"preparation": name} for name in names]


def _macs(trainer: Any, model: Model | None, images: Split | None) -> int:
    """Return the multiply-accumulates of a run's preparation and steps."""
    if model is None or images is None:
        return 0
    count = len(images.train)
    steps = trainer.schedule(model, count).steps
    return int(trainer.preparation.cost(model, count).macs + trainer.cost(model).macs * steps)


def _spec(
    grid: Grid,
    table: MethodTable,
    trainer: str,
    extensions: Mapping[str, str],
    options: Mapping[str, Any],
    macs: int,
) -> RunSpec:
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
        macs=macs,
        awaits_rate=grid.tuning is not None and _takes_steps(table.base),
        extensions=extensions,
    )


def _check_twins(runs: list[RunSpec], problems: list[str]) -> None:
    """Note methods with the same options: one of them would do the other's work once more."""
    first: dict[str, str] = {}
    for run in runs:
        other = first.setdefault(repr((run.trainer, sorted(run.options.items()))), run.method)
        if other != run.method:
            problems.append(
                f"[axes] methods: {other!r} and {run.method!r} have the same options; leave one out"
            )


def _trials(
    grid: Grid, trained: list[RunSpec], contents: Mapping[tuple[str, int], Mapping[str, Any]]
) -> Iterator[RunSpec]:
    """Yield the trials of every learning rate that is to be chosen, which cost as a run does."""
    tuning = grid.tuning
    if tuning is None:
        return
    for run in trained:
        if not run.awaits_rate or run.options["seed"] != grid.seeds[0]:
            continue
        for factor in tuning.factors:
            # Six digits, as in a schedule: 0.3 x 0.001 is 0.0003.
            rate = float(f"{run.options['learning_rate'] * factor:.6g}")
            yield dataclasses.replace(
                run,
                options={**run.options, "seed": tuning.seed, "learning_rate": rate},
                corruption=tuning.corruption,
                severity=tuning.severity,
                contents=contents[tuning.corruption, tuning.severity],
                trial=factor,
                awaits_rate=False,
            )
