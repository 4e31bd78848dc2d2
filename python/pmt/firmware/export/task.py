"""The training task of a target: model, options, layers, steps, samples; or a choice of layers."""

import dataclasses
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

import numpy as np

from pmt import _core
from pmt._util.arrays import Array, FloatArray, Int8Array, Int64Array
from pmt._util.checks import (
    check_type,
    checked_array,
    checked_candidates,
    checked_range,
    plain_number,
)
from pmt._util.text import c_text, counted
from pmt.datasets import Dataset
from pmt.datasets.dataset import checksums
from pmt.firmware.export.layout import block_lists
from pmt.model import Model
from pmt.model.loading import load
from pmt.protocol.stratification import units_of
from pmt.train.losses import is_function
from pmt.train.option_fields import LARGEST_FLOAT
from pmt.train.options import TrainingOptions
from pmt.train.prepare import without_statistics
from pmt.train.prepare.linear_head import head_macs
from pmt.train.prepare.preparation import without_head
from pmt.train.run.folder import RunFolder
from pmt.train.run.keep_best import cut_rate, held_out_indices, parted
from pmt.train.schedule import Schedule
from pmt.train.zo_trainer import ZOTrainer

# A card lists every step and what the host, which trains them all, has computed.
MOST_STEPS = 100_000
_INFERENCES = 2


@dataclass(frozen=True)
class Step:
    """One step: its counter, its learning rate, and its samples (indices into the task's)."""

    step: int
    learning_rate: float
    samples: tuple[int, ...]


@dataclass(frozen=True)
class Task:
    """A training task with its samples."""

    model: Model  # prepared for the first step
    options: _core.Options  # options as they are on a device
    layers: list[int]  # op indices, ascending
    batch: int  # largest number of samples in a step
    steps: tuple[Step, ...]
    images: Int8Array  # prepared samples (N, height, width, channels)
    # Their classes, int64 (N,), or targets, float32 (N, outputs).
    labels: Array
    inferences: int  # number of samples, from the first, whose activations are compared
    source: bytes  # image of the model that came
    dataset: Dataset  # data that the model was prepared and is trained with
    # That of the run's earlier steps, if it keeps one and there were any.
    surprisal: FloatArray | None = None

    def packed(self) -> dict[str, bytes]:
        """Return options and mean prediction as the card's sections hold them."""
        state = self.surprisal
        return {
            "options": self.options.pack(),
            "surprisal": b"" if state is None else state.astype("<f4").tobytes(),
        }

    def device(self) -> _core.DeviceMemory:
        """Return the core's plan of the training's memory."""
        return _core.DeviceMemory(self.model.core, self.options, self.layers, self.batch)


def checked_steps(name: str, value: int) -> int:
    """Return a whole number of steps within 1..:data:`MOST_STEPS`; a ValueError tells of others."""
    value = plain_number(value)
    if not isinstance(value, int) or isinstance(value, bool) or not 1 <= value <= MOST_STEPS:
        raise ValueError(
            f"{name}={value!r} must be a whole number of steps, 1..{MOST_STEPS}; a longer training "
            "is exported again from where the board has come"
        )
    return value


def make_task(
    source: Model | RunFolder | str | Path,
    *,
    dataset: Dataset,
    steps: int,
    options: TrainingOptions | None = None,
    layers: str | Sequence[str | int] | None = None,
    batch: int | None = None,
    learning_rates: Sequence[float] | None = None,
    inferences: int | None = None,
    selects: bool = False,
) -> Task:
    """Resolve the arguments of :func:`pmt.firmware.export.export`; see there.

    The task has only those samples of the data set that the steps use, and a run's mean prediction.
    """
    steps = checked_steps("steps", steps)
    model, run_options, first, prepared, state, cross_fitted, reverted = _read_source(source)
    dataset = model.match_classes(dataset)
    image = model.image()
    chosen, trained = _chosen(model, options or run_options, layers, batch, selects)
    _check_for_board(chosen)
    dataset = ZOTrainer(chosen).training_data(model, _trained_images(source, dataset))
    ZOTrainer(chosen).check_data(model, dataset)
    if not prepared:
        model = model.copy()
        ZOTrainer(chosen).preparation.apply(model, dataset)
    schedule = ZOTrainer(chosen).schedule(model, len(dataset))
    if cross_fitted:  # the steps are those that the run planned
        if chosen.cross_fit == "auto":
            schedule.spend_on_heads(head_macs(model, len(dataset)))
        schedule.keep_together(units_of(dataset), dataset)
    model = without_statistics(model)
    rates = _learning_rates(learning_rates, schedule, first, steps, reverted)
    wanted = [schedule.indices(first + i) for i in range(steps)]
    used, positions = np.unique(np.concatenate(wanted), return_inverse=True)
    rows = positions.reshape(steps, chosen.batch)
    core_options = chosen.to_core()
    images = model.prepare(dataset.images[used])
    if state is not None:
        core = _core.Trainer(model.core, core_options, trained, chosen.batch)
        _check_surprisal(state, core.surprisal().size)
    return Task(
        model=model,
        options=core_options,
        layers=trained,
        batch=chosen.batch,
        steps=tuple(
            Step(first + i, rates[i], tuple(int(s) for s in rows[i])) for i in range(steps)
        ),
        images=images,
        labels=np.ascontiguousarray(dataset.labels[used]),
        inferences=_inferences(inferences, len(used)),
        source=image,
        dataset=dataset,
        surprisal=state,
    )


def _chosen(
    model: Model,
    options: TrainingOptions | None,
    layers: str | Sequence[str | int] | None,
    batch: int | None,
    selects: bool,
) -> tuple[TrainingOptions, list[int]]:
    """Return the options with the other arguments, and the trained layers."""
    kinds = (TrainingOptions, type(None))
    check_type("options", options, kinds, "pmt.TrainingOptions; pmt.preset('default') makes some")
    chosen = options or TrainingOptions()
    if batch is not None:
        chosen = chosen.replace(batch=batch)
    trained = model.select_layers(chosen.layers if layers is None else layers)
    if selects:  # as `select` does: blocks are compared by equally long training
        chosen = chosen.replace(preparation=without_head(chosen.preparation))
    if layers is not None:  # what is prepared is what is trained
        chosen = chosen.replace(layers=_names(model, trained))
    return chosen, trained


def _inferences(given: int | None, samples: int) -> int:
    if given is None:
        return min(_INFERENCES, samples)
    return checked_range("inferences", given, 0, samples)


def _check_for_board(options: TrainingOptions) -> None:
    if is_function(options.loss):
        raise ValueError(
            f"loss={options.loss!r} is a Python callable, which no board runs; export with "
            "loss='cross_entropy' or another of the core's losses"
        )


def _names(model: Model, layers: Sequence[int]) -> str:
    return ",".join(layer.name for layer in model.layers if layer.index in layers)


def _check_surprisal(state: FloatArray, values: int) -> None:
    if state.size != values:
        raise ValueError(
            f"the mean prediction of the run has {state.size} values, that of these options and "
            f"layers {values}; export with the run's own, or its checkpoint.pmt, to begin anew"
        )


class _Source(NamedTuple):
    """The model to train, and facts of the run that it comes from."""

    model: Model
    options: TrainingOptions | None = None
    first: int = 0  # step
    is_prepared: bool = False
    surprisal: FloatArray | None = None  # of the mean prediction
    is_cross_fitted: bool = False  # whether steps went by cross-fitted heads
    reverted: int = 0  # epochs, each of which has cut the learning rate


def _read_source(source: Model | RunFolder | str | Path) -> _Source:
    """Return the model, with the facts of the run folder that holds it."""
    if isinstance(source, Model):
        return _Source(source.copy())
    folder = RunFolder.of(source)
    if not folder.exists():
        return _Source(load(folder.path if isinstance(source, RunFolder) else source))
    model, step = folder.load_checkpoint()
    config = folder.config()
    if config.extends_steps or not isinstance(config.options, TrainingOptions):
        return _Source(model)  # trained by other means; the target begins anew
    prepared, arrays = folder.is_prepared(model), folder.load_state(model)
    state, cross_fitted = arrays.get("surprisal"), "cross_fit" in arrays
    if folder.trained != folder.checkpoint:  # the best state: the mean prediction is not its
        model, state = Model(folder.trained.read_bytes()), None
    before = [r for r in folder.read_metrics() if r["step"] < step]
    reverted = sum(record.get("taken_back", False) for record in before)
    return _Source(model, config.options, step, prepared, state, cross_fitted, reverted)


def _trained_images(source: Model | RunFolder | str | Path, dataset: Dataset) -> Dataset:
    """Return the images of a run less those that it holds out; without a run, all."""
    folder = None if isinstance(source, Model) else RunFolder.of(source)
    if folder is None or not folder.exists() or not dataset.has_class_labels:
        return dataset
    config = folder.config()
    given = dict(zip(("train_images_crc32", "train_labels_crc32"), checksums(dataset), strict=True))
    of_run = given.items() <= config.contents.items()
    if not of_run or "held_out_images_crc32" in config.contents:
        return dataset
    chosen = held_out_indices(config.options, dataset)
    return parted(dataset, chosen)[0] if len(chosen) else dataset


def _learning_rates(
    given: Sequence[float] | None, schedule: Schedule, first: int, steps: int, reverted: int
) -> list[float]:
    if given is None:
        # A finished run continues at its final rate.
        wanted = [min(first + i, schedule.steps) for i in range(steps)]
        return [cut_rate(schedule.learning_rate(step), reverted) for step in wanted]
    rates = checked_array("learning_rates", given)
    fits = rates.shape == (steps,) and rates.dtype.kind in "fiu"
    if not fits or not ((rates >= 0) & (rates <= LARGEST_FLOAT)).all():
        raise ValueError(
            f"learning_rates={given!r} must be {steps} finite numbers >= 0 that float32 holds, one "
            "for each step"
        )
    return [float(rate) for rate in rates]


@dataclass(frozen=True)
class BlockSelection:
    """A choice that the board makes: candidates, and the criterion."""

    names: tuple[str, ...]  # names of the candidates
    layers: tuple[list[int], ...]  # op indices of each, ascending
    # Ops that stream while each is trained: first and last op, rows at once.
    streams: tuple[list[tuple[int, int, int]], ...]
    # The host's results on the held-out samples: sum of the fixed-point losses, and hits.
    scores: tuple[tuple[int, int], ...]
    first_held_out: int  # first of the held-out samples on the card
    # The held-out samples, int8 (N, height, width, channels) and int64 (N,).
    images: Int8Array
    labels: Int64Array

    @property
    def held_out(self) -> int:
        """Number of held-out samples."""
        return len(self.images)

    @property
    def best(self) -> str:
        """The candidate with the smallest loss, the first of equals; as ``layers`` takes it."""
        losses = [loss for loss, _ in self.scores]
        return self.names[losses.index(min(losses))].replace("+", ",")

    def describe(self) -> str:
        """Describe the host's result in a line."""
        unit = int(_core.LOSS_ONE) * self.held_out
        found = ", ".join(
            f"{name} {10**4 * loss // unit / 10**4:.4f}"  # cut off, as the board prints it
            for name, (loss, _) in zip(self.names, self.scores, strict=True)
        )
        return f"{self.best}; losses on {counted(self.held_out, 'held-out sample')}: {found}"

    def trials(self, task: Task) -> list[Task]:
        """Return the training of every candidate, its scoring as inferences."""
        return [
            dataclasses.replace(task, layers=layers, inferences=self.held_out)
            for layers in self.layers
        ]

    def values(self) -> dict[str, object]:
        """Return the values for the template of ``model/selection.hpp``."""
        lists, named = block_lists(self.layers, self.streams)
        rows = zip(self.names, self.scores, named, strict=True)
        return {
            "CANDIDATE_LISTS": lists,
            "CANDIDATES": "\n".join(
                f"    {{{c_text(name)}, {layers}, {{{loss}, {hits}}}, {streams}}},"
                for name, (loss, hits), (layers, streams) in rows
            ),
            "CANDIDATE_COUNT": len(self.names),
            "FIRST_HELD_OUT": self.first_held_out,
            "HELD_OUT": self.held_out,
        }


def select_blocks(
    task: Task,
    names: Sequence[str] | None,
    held_out: Dataset | None,
    layers: object = None,
    build_system: str = "make",
) -> BlockSelection:
    """Try every candidate on the host, with the steps of a task.

    Names are two or more different blocks or layers, or several joined by ``+``; a ValueError tells
    of others. The task's own layers do not matter, and ``layers`` must be None: nothing else may
    say which layers to train.
    """
    if names is None or held_out is None:
        raise ValueError("candidates and held_out: a choice needs both; one of them is None")
    if layers is not None:
        raise ValueError(f"layers={layers!r}: the candidates say which layers to train")
    if build_system == "arduino":
        raise ValueError("format='arduino' has its own application; take another to select")
    checked_candidates(names)
    if task.dataset.has_targets:
        raise ValueError("candidates: class labels compare the blocks, and the data has targets")
    if task.steps[0].step != 0:
        raise ValueError("candidates: a run that has begun has its layers; select from its model")
    layers = tuple(task.model.select_layers(name.replace("+", ",")) for name in names)
    order = np.array([step.samples for step in task.steps]).ravel()
    held_out = task.model.match_classes(held_out)
    images = task.model.prepare(held_out.images)
    classes = np.ascontiguousarray(held_out.labels, np.int64)
    rates = np.array([step.learning_rate for step in task.steps], np.float32)
    taught = (task.images[order], task.labels[order], rates)
    core = task.model.core
    scores = _core.select_layers(core, task.options, list(layers), *taught, images, classes)
    streams = tuple(
        _core.DeviceMemory(core, task.options, trained, task.batch).segments() for trained in layers
    )
    return BlockSelection(
        tuple(names), layers, streams, tuple(scores), len(task.images), images, classes
    )


def with_held_out(task: Task, selection: BlockSelection) -> Task:
    """Return the task with the held-out samples after its own."""
    return dataclasses.replace(
        task,
        images=np.concatenate([task.images, selection.images]),
        labels=np.concatenate([task.labels, selection.labels]),
    )
