"""The exported project: all that a board's firmware is built from, of a model or of files."""

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from html import escape
from pathlib import Path
from typing import Any

from pmt import _core
from pmt._util.text import counted
from pmt.datasets import Dataset
from pmt.datasets.dataset import DataLike
from pmt.errors import OptionError
from pmt.firmware.export import layout
from pmt.firmware.export.card import SAVE_INTERVAL, Expected, build_card, compute_expected
from pmt.firmware.export.folder import Lock, check_inputs, checked_out, inputs_of, write_project
from pmt.firmware.export.layout import Format
from pmt.firmware.export.linked import LinkedParts, linked_parts
from pmt.firmware.export.report import (
    ExportReport,
    arena_parts,
    check_budgets,
    estimated_instructions,
    fixed_memory,
    peak_op,
    planned_arena,
    project_latency,
)
from pmt.firmware.export.target import Target, find_target, parse_size
from pmt.firmware.export.task import (
    BlockSelection,
    Task,
    checked_steps,
    make_task,
    select_blocks,
    with_held_out,
)
from pmt.methods.registry import options_of
from pmt.model import Model
from pmt.model.loading import BUNDLED_MODELS, load
from pmt.protocol import DataSource
from pmt.protocol.data_source import BUNDLED
from pmt.train.costs.work import device_restarts, zeroth_order_work
from pmt.train.option_fields import warn_without_effect
from pmt.train.options import Preset, TrainingOptions
from pmt.train.options import preset as preset_options
from pmt.train.prepare.preparation import without_head
from pmt.train.run.folder import RunFolder
from pmt.train.run.keep_best import part

_LEAST_TIMEOUT = 300  # seconds


def export(
    model_or_run: Model | RunFolder | str | Path,
    *,
    target: str,
    like: str | None = None,
    out: str | Path,
    dataset: DataLike,
    options: TrainingOptions | None = None,
    layers: str | Sequence[str | int] | None = None,
    steps: int = 5,
    batch: int | None = None,
    learning_rates: Sequence[float] | None = None,
    candidates: Sequence[str] | None = None,
    held_out: DataLike | None = None,
    inferences: int | None = None,
    save_interval: int = SAVE_INTERVAL,
    format: Format = "make",
    ram: str | int | None = None,
    flash: str | int | None = None,
    stack: str | int | None = None,
    force: bool = False,
    arguments: Mapping[str, Any] | None = None,
    lock: Lock | None = None,
) -> ExportReport:
    """Write a firmware project that trains the model on a board.

    The project holds the core's sources, the model, the board's files, an application, and
    ``card.img``: the samples, the steps, and every result that the host computed from them. Run on
    the target it trains, compares, and leaves checkpoints on the card, which
    :func:`pmt.load` and :func:`pmt.firmware.export.read_card` read.

    Parameters
    ----------
    model_or_run : Model, RunFolder, str or pathlib.Path
        The model, a model file, or a run folder. A run continues, with its own options, from its
        last step.
    target : str
        A board: one of :func:`pmt.firmware.export.targets`, or the path of a TOML file that
        describes one.
    like : str, optional
        Another target, whose sizes of flash and RAM limit an emulated one: by the linker's regions
        and by the memory protection unit.
    out : str or pathlib.Path
        Folder to write: a new or empty one, or an earlier export. Its ``app/`` and files that no
        export wrote are kept; ``build/`` is removed.
    dataset : Dataset or tuple of two arrays
        Training data, of the model's input size; the card gets the samples that the steps use.
    options : TrainingOptions, optional
        Options of the training; by default the run's, or the ``default`` preset.
    layers : str or sequence, optional
        Layers to train, see :meth:`pmt.Model.select_layers`; by default the options'.
    steps : int
        Number of steps, 1..100,000.
    batch : int, optional
        Samples of a step; by default the options'.
    learning_rates : sequence of float, optional
        One for each step; by default the schedule's, cut as the run's own after reverted epochs.
    candidates : sequence of str, optional
        Blocks or layers, several joined by ``+``: the board tries each with the steps, and then
        trains the one with the smallest loss on ``held_out``, in place of ``layers``.
    held_out : Dataset or tuple of two arrays, optional
        Samples to choose on; none of ``dataset``.
    inferences : int, optional
        Samples whose activations are compared op by op, before training; by default two, or the
        one that is used.
    save_interval : int
        Steps between checkpoints, 1..100,000; there is also one after the last step.
    format : str
        Build system: ``"make"`` (and CMake), ``"platformio"`` for a board, ``"zephyr"`` or
        ``"arduino"`` for the target ``generic``.
    ram, flash, stack : str or int, optional
        Budgets, in bytes or as ``"256K"``, ``"1M"``; by default the board's, and a stack of 2 KB
        more where the board chooses a block. They become regions of the linker script: firmware
        that does not fit does not link.
    force : bool
        Replace files of an earlier export that were changed since.
    arguments : mapping, optional
        Arguments of the command line, for the folder's ``pmt.lock``.
    lock : Lock, optional
        Lock of an earlier export that this one must equal: every input, and every byte it writes.

    Returns
    -------
    ExportReport
        Sizes and the command to run; prints as a table.

    Raises
    ------
    ValueError
        If an argument is outside its range, the training cannot fit the budgets, or an input or a
        file is not the one of ``lock``.
    FileExistsError
        If the folder holds files that no export wrote, or changed files of one.
    OSError
        If the folder cannot be written; what was there is unchanged.
    """
    board = find_target(target, like)
    layout.check_format(format, board)
    save_interval = checked_steps("save_interval", save_interval)
    out = checked_out(out, force=force, learner=False)
    task_of = partial(
        make_task,
        model_or_run,
        dataset=Dataset.of(dataset, "dataset"),
        options=options,
        steps=steps,
        batch=batch,
        learning_rates=learning_rates,
        inferences=inferences,
        selects=candidates is not None,
    )
    task, selection = _chosen_task(task_of, layers, candidates, held_out, format)
    inputs = inputs_of(task)
    if lock is not None:
        check_inputs(lock, inputs)
        arguments = lock.arguments  # where the inputs were found this time does not matter
    parts = _linked_parts(task, selection)
    report = _plan(
        task,
        board,
        selection,
        parts,
        path=out,
        budgets={"flash": flash, "ram": ram, "stack": stack},
        build_system=format,
    )
    check_budgets(report, board)
    report, files = _results(task, report, board, save_interval, format)
    if board.linked:  # a library's core may serve several exports
        files |= parts.headers()
    project = _project(board, format, report, files, selection)
    if lock is not None:
        lock.check_files(project)
    write_project(out, project, arguments, inputs)
    return report


def _chosen_task(
    task_of: Callable[..., Task],
    layers: str | Sequence[str | int] | None,
    candidates: Sequence[str] | None,
    held_out: DataLike | None,
    build_system: str,
) -> tuple[Task, BlockSelection | None]:
    """Return the task of the layers, or the selection's and the one of its choice."""
    task = task_of(layers=layers)
    if candidates is None and held_out is None:
        return task, None
    choosing = None if held_out is None else Dataset.of(held_out, "held_out")
    selection = select_blocks(task, candidates, choosing, layers, build_system)
    return with_held_out(task_of(layers=selection.best), selection), selection


def _results(
    task: Task, report: ExportReport, board: Target, save_interval: int, build_system: str
) -> tuple[ExportReport, dict[str, bytes]]:
    """Return the report with the card's size, and the files of the host's results."""
    expected = compute_expected(task)
    card = build_card(task, expected, save_interval)
    report = replace(report, card_bytes=len(card))
    return report, {
        "card.img": card,
        "model/model.pmt": task.model.image(),
        "expected.json": _json(_readable(task, expected, report)),
        "export.json": _json(_manifest(report, board, build_system)),
    }


def _plan(
    task: Task,
    board: Target,
    selection: BlockSelection | None,
    linked: LinkedParts,
    *,
    path: Path,
    budgets: Mapping[str, str | int | None],
    build_system: str,
) -> ExportReport:
    """Count the firmware's memory, without the card, which is not made yet."""
    fixed = fixed_memory(board, selects=selection is not None)
    regions = (board.flash.bytes, board.ram.bytes) if board.linked else (0, 0)
    usual = {"flash": regions[0], "ram": regions[1], "stack": fixed.stack}
    sizes = {
        name: usual[name] if given is None else parse_size(name, given)
        for name, given in budgets.items()
    }
    of_ops = estimated_instructions(task.model.core, board.kernels)
    macs, instructions = _task_work(task), _task_work(task, of_ops)
    latency = project_latency(board)
    names = {layer.index: layer.name for layer in task.model.layers}
    arena = _arena_bytes(task, board)
    parts = arena_parts(task, arena)
    if selection is not None:
        trials = selection.trials(task)
        macs += sum(_task_work(trial) for trial in trials)
        instructions += sum(_task_work(trial, of_ops) for trial in trials)
        largest = max(_arena_bytes(trial, board) for trial in trials)
        parts["larger candidates"] = max(0, largest - arena)
        arena = max(arena, largest)
    return ExportReport(
        path=path,
        target=board.name,
        layers=tuple(names[op] for op in task.layers),
        steps=len(task.steps),
        batch=task.batch,
        queries=task.options.queries,
        flash_bytes=sizes["flash"],
        ram_bytes=sizes["ram"],
        model_bytes=len(task.model.image()),
        code_bytes=max(0, fixed.code - linked.saved_bytes()),
        arena_bytes=arena,
        arena_parts=parts,
        peak=peak_op(task),
        stack_bytes=sizes["stack"],
        variable_bytes=fixed.variables,
        card_bytes=0,
        macs=macs,
        instructions=instructions,
        seconds=latency.seconds(instructions),
        speed=latency.factors(),
        run=layout.run_command(build_system, board, path),
        selection="" if selection is None else selection.describe(),
    )


def _linked_parts(task: Task, selection: BlockSelection | None) -> LinkedParts:
    tasks = [task, *([] if selection is None else selection.trials(task))]
    return linked_parts(task.model.core, [(each.options, each.layers) for each in tasks])


def _arena_bytes(task: Task, board: Target) -> int:
    return planned_arena(board, task.model.core, task.options, task.layers, task.batch)


def _task_work(task: Task, of_ops: Sequence[int] | None = None) -> int:
    """Count the multiply-accumulates of all steps and of the inferences that are compared.

    With ``of_ops``, what each op takes, they are counted in that measure.
    """
    given = (task.model.core, task.options, task.layers)
    work = zeroth_order_work(*given, of_ops=of_ops)
    restarts = device_restarts(*given, task.device(), task.batch, of_ops=of_ops)
    images = len(task.steps) * task.batch
    return images * (work.macs + restarts) + task.inferences * work.forward


def _readable(task: Task, expected: Expected, report: ExportReport) -> dict[str, Any]:
    """Return the contents of expected.json: the host's results, for people."""
    steps = [
        {
            "step": step.step,
            "learning_rate": step.learning_rate,
            "loss": result["loss"],
            "correct": result["correct"],
            "changed": result["changed"],
            "layers": {
                name: {"weights_crc32": f"{crcs[0]:08x}", "bias_crc32": f"{crcs[1]:08x}"}
                for name, crcs in zip(report.layers, parameters, strict=True)
            },
        }
        for step, result, parameters in zip(
            task.steps, expected.results, expected.parameters, strict=True
        )
    ]
    ops = [op["name"] for op in task.model.core.ops()]
    activations = [
        {name: f"{crc:08x}" for name, crc in zip(ops, sample, strict=True)}
        for sample in expected.activations
    ]
    return {"steps": steps, "activations_crc32": activations}


def _manifest(report: ExportReport, board: Target, build_system: str) -> dict[str, Any]:
    """Return the contents of export.json: nothing about where the folder is."""
    figures = report.to_json()
    del figures["path"]
    return {"pmt": _core.__version__, **figures, "run": layout.run_command(build_system, board)}


def _json(value: dict[str, Any]) -> bytes:
    return (json.dumps(value, indent=2) + "\n").encode()


def _project(
    board: Target,
    build_system: str,
    report: ExportReport,
    files: dict[str, bytes],
    selection: BlockSelection | None,
) -> dict[str, bytes]:
    """Return all files of the project: name -> content."""
    values = {
        **layout.values_of(board),
        **layout.image_values(files["model/model.pmt"]),
        "ARENA_BYTES": report.arena_bytes,
        "STACK_BYTES": report.stack_bytes,
        "RAM_BYTES": report.ram_bytes,
        "FLASH_BYTES": report.flash_bytes,
        "TIMEOUT": _LEAST_TIMEOUT + round(10 * report.seconds),
        "MEMORY": escape(f"{report.memory_table()}\n\n{report.verdict()}.", quote=False),
    }
    if selection is not None:
        values.update(selection.values())
    build_files = layout.build_files(board, values, selects=selection is not None)
    files = {**layout.source_files(board), **build_files, **files}
    return layout.arrange(files, build_system, board, values)


_HELD_OUT = 100
# A board has memory and time for small batches only, whatever the run or the preset has.
BOARD_SIZES = {"batch": 4, "queries": 8}


def export_files(
    model: str,
    *,
    target: str,
    out: str | Path,
    data: DataSource | None = None,
    limit: int = 0,
    preset: Preset | None = None,
    method: str | None = None,
    options: Mapping[str, Any] | None = None,
    select: tuple[str, ...] | None = None,
    held_out: int | None = None,
    importer: Mapping[str, Any] | None = None,
    **project: Any,
) -> ExportReport:
    """Write a firmware project that trains a model of a file on a board.

    Parameters
    ----------
    model : str
        Run folder, model file or name of a bundled model. A run continues from its last step.
    target : str
        Board, or the path of a TOML file that describes one.
    out : str or pathlib.Path
        Folder to write: new, empty, or an earlier export.
    data : DataSource, optional
        The training images; by default the run's, or those of the bundled model.
    limit : int
        Choose from at most this many training images; 0 takes as many as the run, or all.
    preset : {"default", "paper", "released"}, optional
        Options to start from; by default the run's, or ``"default"``.
    method : str, optional
        A method of :mod:`pmt.methods` whose options to start from, in place of ``preset``; one that
        trains by perturbed forwards.
    options : dict, optional
        Options that differ from these. ``batch`` and ``queries`` are 4 and 8 unless they are given,
        whatever the run or the preset has.
    select : tuple of str, optional
        Blocks or layers, several joined by ``+``, of which the board chooses the one to train.
    held_out : int, optional
        Training images that ``select`` chooses on; by default 100.
    importer : dict, optional
        Options of :func:`pmt.load`.
    **project
        ``like``, ``format``, ``steps``, ``save_interval``, ``ram``, ``flash``, ``stack``,
        ``force``, ``arguments`` and ``lock`` of :func:`pmt.firmware.export.export`.

    Returns
    -------
    ExportReport
        Sizes and the command to run; prints as a table.

    Raises
    ------
    FileNotFoundError, ValueError, TypeError, ImportError
        If the model or the data cannot be read, or do not go with the options.
    ValueError, FileExistsError, OSError
        As :func:`pmt.firmware.export.export`.
    """
    folder = RunFolder(model)
    run = folder if Path(model).is_dir() and folder.exists() else None
    network = load(model, **importer or {}) if run is None else run.load_checkpoint()[0]
    training = board_options(preset, method, options or {}, run)
    network.select_layers(training.layers)
    if data is not None:
        images = data.load("train", network, limit=limit)
    else:
        images = _own_images(model, run, network, limit)
    if not images.is_labeled and "preparation" not in (options or {}):
        training = training.replace(preparation=without_head(training.preparation))
    dataset, chosen_on = _parted(images, select, held_out)
    return export(
        network if run is None else run,
        target=target,
        out=out,
        dataset=dataset,
        candidates=select,
        held_out=chosen_on,
        options=training,
        **project,
    )


def board_options(
    preset: Preset | None,
    method: str | None,
    options: Mapping[str, Any],
    run: RunFolder | None = None,
) -> TrainingOptions:
    """Return the options of a board's training, with its sizes where no others are given."""
    base: Any = None
    if method is not None:
        base = options_of(method)
        if not isinstance(base, TrainingOptions):
            what = "which trains in another way; a board trains by perturbed forwards: take another"
            raise OptionError("method", f" {method}, {what}")
    elif run is not None and preset is None:
        config = run.config()
        base = None if config.extends_steps else config.options
    if not isinstance(base, TrainingOptions):
        base = preset_options(preset or "default")
    chosen: TrainingOptions = base.replace(**{**BOARD_SIZES, **options})
    warn_without_effect(chosen, options, base)
    return chosen


def _own_images(name: str, run: RunFolder | None, model: Model, limit: int) -> Dataset:
    """Return the training images of a run, or those of the bundled model."""
    source = {} if run is None else run.read_config()[1]
    if not source and name == BUNDLED_MODELS[0]:  # what the bundled images are of
        source = {"data": BUNDLED, "limit": 0}
    if "data" not in source:
        raise OptionError("data", " is missing: the firmware needs images; see `pmt export --help`")
    return DataSource.from_config(source).load("train", model, limit=limit or source["limit"])


def _parted(
    images: Dataset, select: tuple[str, ...] | None, held_out: int | None
) -> tuple[Dataset, Dataset | None]:
    """Part held-out images from the others, where the board is to choose on some."""
    if select is None:
        if held_out is not None:
            raise OptionError("held_out", " needs ", "select", ": held-out images are for a choice")
        return images, None
    if not images.has_class_labels:
        raise OptionError("select", " needs images with class labels to choose on")
    count = held_out or _HELD_OUT
    if count >= len(images):
        raise OptionError(
            "held_out", f" {count} leaves nothing of {counted(len(images), 'image')} to train on"
        )
    return part(images, count, seed=0)
