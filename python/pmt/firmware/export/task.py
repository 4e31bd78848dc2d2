"""What the target will train: model, options, layers, steps and samples."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt

from pmt import _core
from pmt.datasets import Dataset
from pmt.firmware.export.card import Step, check_steps
from pmt.model import Model
from pmt.model.loading import load
from pmt.train.clean_statistics import without_statistics
from pmt.train.costs.arena import device_options
from pmt.train.layer_settings import settings_for_step
from pmt.train.options import TrainingOptions
from pmt.train.run_folder import RunFolder
from pmt.train.schedule import Schedule
from pmt.train.trainer import ZOTrainer

__all__ = ["Task", "make_task"]

_INFERENCES = 2


@dataclass(frozen=True)
class Task:
    """A training task with its samples; ``layers`` are op indices, ascending, one setting each.

    ``model`` is prepared for the first step; ``source`` is the image that came, and ``dataset``
    what it was prepared and is trained with.
    """

    model: Model
    options: _core.Options
    layers: list[int]
    settings: list[_core.LayerSettings]
    batch: int
    steps: tuple[Step, ...]
    images: npt.NDArray[np.int8]
    labels: npt.NDArray[np.int64]
    inferences: int
    source: bytes
    dataset: Dataset
    memories: npt.NDArray[np.float32] | None = None


def make_task(
    source: Model | RunFolder | str | Path,
    *,
    dataset: Dataset,
    options: TrainingOptions | None,
    layers: str | Sequence[str | int] | None,
    steps: int,
    batch: int | None,
    learning_rates: Sequence[float] | None,
    inferences: int | None,
    selects: bool = False,
) -> Task:
    """Resolve the arguments of :func:`pmt.firmware.export.export`; see there.

    Returns
    -------
    Task
        With only those samples of the data set that the steps use, and with what the updates of a
        run remember of its steps.

    Raises
    ------
    ValueError
        If an argument is outside its range or does not fit the others.
    """
    check_steps("steps", steps)
    model, run_options, first, memories = _read_source(source)
    image = model.image()
    chosen = options or run_options or TrainingOptions()
    if batch is not None:
        chosen = chosen.replace(batch=batch)
    trained = model.select_layers(chosen.layers if layers is None else layers)
    if selects:  # as `select` does: blocks are compared by equally long training
        chosen = chosen.replace(head_epochs=0)
    if layers is not None:  # what is prepared is what is trained
        chosen = chosen.replace(layers=_names(model, trained))
    model.check_classes(dataset)
    if first == 0:
        model = model.copy()
        ZOTrainer(chosen).prepare(model, dataset)
    schedule = ZOTrainer(chosen).schedule(model, len(dataset))
    model = without_statistics(model)
    rates = _learning_rates(learning_rates, schedule, first, steps)
    wanted = [schedule.indices(first + i) for i in range(steps)]
    used, positions = np.unique(np.concatenate(wanted), return_inverse=True)
    rows = positions.reshape(steps, chosen.batch)
    if inferences is None:
        inferences = min(_INFERENCES, len(used))
    if not 0 <= inferences <= len(used):
        raise ValueError(
            f"inferences={inferences!r} must be 0..{len(used)}, the samples that the steps use"
        )
    core_options = device_options(chosen.for_samples(len(dataset)))
    if memories is not None:
        _check_memories(memories, model, core_options, trained)
    images = model.prepare(dataset.images[used])
    classes = np.ascontiguousarray(dataset.labels[used], np.int64)
    core = _core.Trainer(model.core, core_options, trained, chosen.batch)
    return Task(
        model=model,
        options=core_options,
        layers=trained,
        settings=settings_for_step(core, chosen, images[rows[0]], classes[rows[0]], first),
        batch=chosen.batch,
        steps=tuple(
            Step(first + i, rates[i], tuple(int(s) for s in rows[i])) for i in range(steps)
        ),
        images=images,
        labels=classes,
        inferences=inferences,
        source=image,
        dataset=dataset,
        memories=memories,
    )


def _names(model: Model, layers: Sequence[int]) -> str:
    return ",".join(layer.name for layer in model.layers if layer.index in layers)


def _check_memories(
    memories: npt.NDArray[np.float32],
    model: Model,
    options: _core.Options,
    layers: list[int],
) -> None:
    here = _core.Trainer(model.core, options, layers, 1, 1).optimizer_state().size
    if memories.size != here:
        raise ValueError(
            f"the updates of the run remember {memories.size} values, those of these options and "
            f"layers {here}; export with the run's own, or its checkpoint.pmt, to begin anew"
        )


def _read_source(
    source: Model | RunFolder | str | Path,
) -> tuple[Model, TrainingOptions | None, int, npt.NDArray[np.float32] | None]:
    """Return the model, the run's options, the first step to take, and what updates remember."""
    if isinstance(source, Model):
        return source.copy(), None, 0, None
    folder = RunFolder.of(source)
    if not folder.exists():
        return load(folder.path if isinstance(source, RunFolder) else source), None, 0, None
    model, step = folder.load_checkpoint()
    options = folder.read_config()[0]
    if not isinstance(options, TrainingOptions):  # trained by other means; the target begins anew
        return model, None, 0, None
    return model, options, step, folder.load_state(model).get("update")


def _learning_rates(
    given: Sequence[float] | None, schedule: Schedule, first: int, steps: int
) -> list[float]:
    if given is None:
        # A finished run goes on with its final rate.
        return [schedule.learning_rate(min(first + i, schedule.steps)) for i in range(steps)]
    rates = [float(rate) for rate in given]
    if len(rates) != steps or not all(math.isfinite(r) and r >= 0.0 for r in rates):
        raise ValueError(
            f"learning_rates={list(given)!r} must be {steps} finite numbers >= 0, one for each step"
        )
    return rates
