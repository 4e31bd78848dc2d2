"""Preparation of a model before the first step: alignment, an input stage, and the solved head.

All take forward passes only, none of them perturbed, and every trainer may begin with them. They
leave the same bytes whichever trainer it is, so that methods start from the same state.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, Literal, get_args

import numpy as np
import numpy.typing as npt

from pmt import _core
from pmt.datasets import Dataset
from pmt.formats.writing import note_on_filters
from pmt.model import Model
from pmt.model.layers import copy_parameters
from pmt.net.input_stage import InputStage
from pmt.train.costs.work import Cost
from pmt.train.losses import is_function, reads, reads_labels
from pmt.train.option_fields import Range, Words, option
from pmt.train.prepare.alignment import align, alignment_cost
from pmt.train.prepare.clean_statistics import CleanStatistics, stored_statistics
from pmt.train.prepare.input_choice import (
    Trial,
    admit,
    choice_cost,
    choose_input_stage,
    why_no_input_stage,
)
from pmt.train.prepare.linear_head import has_linear_head, head_macs, head_op, solve_head

PreparationName = Literal["none", "align", "head", "align+head", "input+align", "input+align+head"]
PREPARATIONS: tuple[PreparationName, ...] = get_args(PreparationName)
HEADS = ("head", "head_alone")  # phases that solve the head
NOT_ALIGNED = (
    "not aligned: the model holds no statistics of clean images; "
    "`pmt statistics MODEL --data CLEAN --out MODEL.pmt` adds them"
)
_ALIGNMENT = 2**32 - 1  # names an order apart from those of epochs

PREPARATION = partial(
    option,
    metavar="NAME",
    help="preparation before the first step: none; align the model to training images without "
    "labels, as `pmt align` does; solve only its linear head, on features that are computed once; "
    "or both; with input, also choose filters before the network, for images at their own size. A "
    "model that stores no statistics of clean images is not aligned and gets no filters, and a "
    "head that is not to be trained, or not linear, is left unchanged",
    values=Words(PREPARATIONS),
)
ALIGN_IMAGES = partial(
    option, metavar="N", help="training images that a model is aligned to", values=Range(1, 10**5)
)


@dataclass(frozen=True)
class PhaseWork:
    """The work that a phase has done."""

    macs: int  # multiply-accumulates
    # Entries for the record of the phase: `head_strength`, how strongly the head was held to the
    # old one, `head_choice_macs`, the part of the MACs that chose it, and its mean loss on its own
    # images and by cross-validation, `head_loss` and `head_out_of_fold_loss`; `input_stage`, the
    # filters that were chosen, in words.
    figures: Mapping[str, Any] = field(default_factory=dict)
    # Does the same to a model and other images, with what was chosen; returns its work.
    again: Callable[[Model, Dataset], PhaseWork] | None = None
    changed: bool = True  # whether the model is another than after the phase before


@dataclass(frozen=True)
class Phase:
    """A phase of a preparation."""

    name: str  # of the state that it leaves: "aligned", "input", "head" or "head_alone"
    macs: int  # its multiply-accumulates, at least
    # Takes the model, which it changes in place, and the training images; returns its work. Ctrl-C
    # may leave the model changed in part.
    run: Callable[[Model, Dataset], PhaseWork]
    # Whether it begins with the original model, and replaces the phases before it.
    from_start: bool = False
    is_alternative: bool = False  # whether it is one to them, which must be clearly better

    def begin(self, model: Model, original: Model) -> Model:
        """Take a model back to the original one if the phase wants that; return it as it was."""
        if not self.from_start:
            return model
        before = model.copy()
        copy_parameters(original, model)
        return before


class Preparation:
    """The preparation of a run.

    Custom options need not have those of a preparation: there is none then. The result does not
    depend on the number of threads.
    """

    def __init__(self, options: Any, *, threads: int = 0) -> None:
        self.name: str = getattr(options, "preparation", "none")
        self.options = options
        self.threads = threads
        # Called as that of choose_input_stage().
        self.input_progress: Callable[[int, Trial], None] | None = None
        # A trainer whose options have no loss has cross-entropy.
        self._loss: str = getattr(options, "loss", "cross_entropy")
        self._reads_labels = reads_labels(self._loss)

    def reference(self, model: Model) -> CleanStatistics | None:
        """Return the statistics that a model is aligned to; None where it is not aligned."""
        return stored_statistics(model) if "align" in self.name else None

    def phases(self, model: Model, samples: int, *, pixels: bool = True) -> list[Phase]:
        """Return the phases for a model and a number of training samples, in their order."""
        phases = []
        statistics = self.reference(model)
        if statistics is not None:
            windows = bool(statistics.windows)
            images = min(self.options.align_images, samples)
            cost = alignment_cost(model, images, windows=windows)
            phases.append(Phase("aligned", cost.macs, partial(self._align, macs=cost.macs)))
            if "input" in self.name and not why_no_input_stage(model, pixels):
                choice = choice_cost(model, images, windows=windows)
                phases.append(Phase("input", choice.macs, self._choose_input, from_start=True))
        if self.trains_head(model):
            phases.append(Phase("head", head_macs(model, samples), self.solve_head))
        return phases

    def alternatives(self, phases: list[Phase]) -> list[Phase]:
        """Return phases that a run tries instead of these where held-out images choose.

        That is the head without alignment, which costs accuracy where there is nothing to align.
        """
        names = [phase.name for phase in phases]
        if "aligned" not in names or "head" not in names:
            return []
        return [replace(phases[-1], name="head_alone", from_start=True, is_alternative=True)]

    def notes(self, model: Model, data: Dataset) -> list[str]:
        """Return why a phase that the options name is left out, a line each."""
        notes = []
        why_not = why_no_input_stage(model, data.has_pixels)
        if "input" in self.name and why_not and self.reference(model) is not None:
            notes.append(f"no filters before the network: {why_not}")
        if "align" in self.name and self.reference(model) is None:
            notes.append(NOT_ALIGNED)
        if "head" in self.name and not self.trains_head(model):
            notes.append(f"head not trained alone: {self._why_no_head(model)}")
        return notes

    def _why_no_head(self, model: Model) -> str:
        if not self._reads_labels:
            return f"loss={self._loss!r} reads no labels"
        if not self._loss_fits(model):
            return f"the model gives {model.output_text}"
        head = head_op(model)
        if head not in [layer.index for layer in model.layers]:
            op = model.core.ops()[head]
            return f"the network ends in {op['kind']} {op['name']!r}, not in a layer with weights"
        trained = head in model.select_layers(self.options.layers)
        return "it is not linear" if trained else "it is not among the trained layers"

    def notes_on_input(self, model: Model) -> list[str]:
        """Return which images a trained model takes, and which files cannot hold its filters."""
        remedy = "train a model without filters"
        if "input" in self.name:
            remedy = f"train with the preparation {self.name.removeprefix('input+')}"
        notes = note_on_filters(model.input_stage, remedy)
        (height, width, _), (rows, columns, _) = model.image_shape, model.input_shape
        if (height, width) != (rows, columns):
            size = f"images of {height}x{width}"
            notes.append(f"the model takes {size}, and resamples them to {rows}x{columns}")
        return notes

    def admit(self, model: Model, size: tuple[int, int] | None) -> None:
        """Let a model take images of a size, see :func:`admit`, where filters are chosen."""
        if "input" in self.name:
            admit(model, size)

    def cost(self, model: Model, samples: int, *, pixels: bool = True) -> Cost:
        """Count the least work on a number of training samples; no forward of it is perturbed."""
        return Cost(0, sum(phase.macs for phase in self.phases(model, samples, pixels=pixels)))

    def apply(self, model: Model, data: Dataset) -> None:
        """Prepare a model in place; Ctrl-C may leave it aligned in part."""
        self.admit(model, data.pixel_size)
        original = model.copy()
        for phase in self.phases(model, len(data), pixels=data.has_pixels):
            before = phase.begin(model, original)
            if not phase.run(model, data).changed:
                copy_parameters(before, model)

    def solve_head(self, model: Model, data: Dataset, strength: float | None = None) -> PhaseWork:
        """Solve the head alone, held to the old one so strongly, or as cross-validation chooses."""
        work = solve_head(
            model,
            data,
            loss=self._head_loss,
            threads=self.threads,
            strength=strength,
        )
        figures = {
            "head_strength": work.strength,
            "head_choice_macs": work.choice_macs,
            "head_loss": round(work.loss, 6),
        }
        if work.out_of_fold_loss is not None:
            figures["head_out_of_fold_loss"] = round(work.out_of_fold_loss, 6)
        again = partial(self.solve_head, strength=work.strength)
        return PhaseWork(work.macs + work.choice_macs, figures, again)

    @property
    def _head_loss(self) -> str:
        """The loss of the head: the run's, or cross-entropy in place of a callable."""
        return "cross_entropy" if is_function(self._loss) else self._loss

    def _loss_fits(self, model: Model) -> bool:
        """Whether the head's loss fits the model's output."""
        return reads(self._head_loss).takes_targets or (model.is_classifier and model.classes > 1)

    def _alignment_images(self, data: Dataset) -> npt.NDArray[Any]:
        samples = len(data.images)
        count = min(self.options.align_images, samples)
        order = _core.sample_order(self.options.seed, _ALIGNMENT, samples)
        return data.images[np.sort(order[:count])]

    def _align(self, model: Model, data: Dataset, *, macs: int) -> PhaseWork:
        images, statistics = self._alignment_images(data), self.reference(model)
        align(model, images, statistics, threads=self.threads)
        return PhaseWork(macs)

    def _choose_input(self, model: Model, data: Dataset) -> PhaseWork:
        images, statistics = self._alignment_images(data), self.reference(model)
        found = choose_input_stage(
            model, images, statistics, threads=self.threads, progress=self.input_progress
        )
        figures = {
            "input_stage": "no filter" if found.stage is None else str(found.stage),
            "input_trials": len(found.trials),
        }
        again = partial(self._use_input, stage=found.stage)
        return PhaseWork(found.macs, figures, again, found.changed)

    def _use_input(self, model: Model, data: Dataset, *, stage: InputStage | None) -> PhaseWork:
        """Give a model a stage that was chosen, and align it behind that."""
        model.core = model.with_input_stage(stage).core
        cost = alignment_cost(model, min(self.options.align_images, len(data)))
        return self._align(model, data, macs=cost.macs)

    def trains_head(self, model: Model) -> bool:
        """Whether the head is solved alone: for a loss of labels or targets that fits the model."""
        if "head" not in self.name or not self._reads_labels or not self._loss_fits(model):
            return False
        trained = head_op(model) in model.select_layers(self.options.layers)
        return trained and has_linear_head(model)


def without_head(preparation: str) -> str:
    """Return a preparation less the head's training."""
    return preparation.removesuffix("+head") if "align" in preparation else "none"
