"""The choice of an input stage: filters before the network, by forward passes alone.

A nonlinear filter at the image's own resolution removes what no weight of the network can remove,
and a wrong one destroys the image. No gradient passes a median, so candidates are tried: a copy of
the model is aligned to the images as each of them filters them, and its predictions of every image
and of copies shifted a little are compared. The cross-entropy of each with the others tells how
sure the model is, and whether of the same; less the entropy of their mean, for a model that calls
all images one class is sure, too (Liang et al. 2020, arXiv:2002.08546). No label is read.

The best of a bank on some images are compared on all (successive halving; Jamieson, Talwalkar
2016, arXiv:1502.07943), the best one's strength is searched (pattern search; Hooke, Jeeves 1961),
and a second filter is tried after it. All candidates see the same images, and no filter wins
unless it is better beyond doubt, image by image.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from pmt import _core
from pmt.datasets import Dataset
from pmt.model import Model
from pmt.model.layers import copy_parameters
from pmt.net.input_stage import NOISE_MODELS, Filter, InputStage, fits
from pmt.protocol.copies import first_of_copies
from pmt.train.costs.work import Cost
from pmt.train.prepare.alignment import Alignment, align, alignment_cost
from pmt.train.prepare.clean_statistics import CleanStatistics, stored_statistics

Filters = tuple[Filter, ...]
IntArray = npt.NDArray[np.int32]

__all__ = [
    "BANK",
    "LIKELY_TRIALS",
    "InputChoice",
    "Trial",
    "admit",
    "choice_cost",
    "choose_input_stage",
    "why_no_input_stage",
]

# Tried first. Their strengths are where a search begins, not its result.
BANK = (
    Filter("switching_median", 32),
    *(Filter("dct_shrinkage", strength, noise) for noise in NOISE_MODELS for strength in (25, 60)),
    Filter("sharpening", 11),
    Filter("sharpening", 32),
    Filter("standardization", 55),
    Filter("tone_curve", -5),
    Filter("tone_curve", 5),
)
_NONE: Filters = ()
LIKELY_TRIALS = 28  # of a search that finds something, for a progress line
_FEWEST_IMAGES = 30  # fewer decide by chance
_FIRST_IMAGES = 100  # that the whole bank is tried on
_MOST_IMAGES = 300  # that the best are tried on; the last decision is on all
_KEPT = 4  # of the bank
_FACTORS = (0.7, 1.4)  # of a strength, in a search
_MOST_STEPS = 4  # of a search
_CHAIN_ERRORS = 2  # standard errors by which a second filter must be better than one
_ERRORS = 2  # by which a filter must be better than none
_SHIFTS = 32  # of which one is the part of a side that views of an image are shifted by
_VIEWS = 3
# Images of more pixels are resampled to the network's input before they are filtered.
_LARGEST = 4  # times the input's pixels


@dataclass(frozen=True)
class Trial:
    """A candidate: its filters, none of them for the images as they are, and its mean disagreement.

    ``disagreement`` is in nats, less the entropy of the mean prediction, on ``images`` images.
    """

    filters: Filters
    disagreement: float
    images: int

    @property
    def text(self) -> str:
        """The filters in a few words."""
        return ", ".join(map(str, self.filters)) or "no filter"

    def record(self) -> dict[str, Any]:
        """Return it as plain values, for a report."""
        filters = [str(one) for one in self.filters]
        return {"filters": filters, "disagreement": self.disagreement, "images": self.images}


@dataclass(frozen=True)
class InputChoice:
    """The result of a choice.

    Attributes
    ----------
    stage : InputStage or None
        What was chosen: the model's own stage, or none, where nothing is better.
    changed : bool
        Whether that is another stage than the model had.
    alignment : Alignment
        That of the model as it was left; its work is a part of the choice's.
    trials : tuple of Trial
        All candidates, in the order of the search.
    forwards, macs : int
        Unperturbed forwards, and their multiply-accumulates.
    """

    stage: InputStage | None
    changed: bool
    alignment: Alignment
    trials: tuple[Trial, ...]
    forwards: int
    macs: int


def choose_input_stage(
    model: Model,
    images: npt.NDArray[np.uint8],
    reference: CleanStatistics | None = None,
    *,
    windows: bool = True,
    reliability: bool = True,
    threads: int = 0,
    progress: Callable[[int, Trial], None] | None = None,
) -> InputChoice:
    """Choose the filters before a network, and align the network behind them, in place.

    Parameters
    ----------
    model : Model
        A classifier of two classes or more.
    images : ndarray of uint8, shape (N, height, width, channels)
        New images of the model's :attr:`pmt.Model.image_shape`, at best as the camera gives them;
        some hundred. Equal images count once, and fewer than 30 choose nothing. No labels.
    reference, windows, reliability, threads
        As in :func:`align`.
    progress : callable, optional
        Called as ``progress(number, trial)`` after each candidate.

    Returns
    -------
    InputChoice
        What was chosen. The model is aligned, whatever that is.

    Raises
    ------
    TypeError, ValueError
        If images are not pixels of the model's size, the model gives no classes, or as
        :func:`align`.
    """
    reason = why_no_input_stage(model, images.dtype == np.uint8)
    if reason:
        raise ValueError(f"no input stage can be chosen: {reason}")
    images = images[first_of_copies(Dataset.unlabeled(images))]
    size = model.image_shape[:2]
    own = _NONE if model.input_stage is None else model.input_stage.filters
    options: dict[str, Any] = {"windows": windows, "reliability": reliability}

    def aligned(filters: Filters, part: npt.NDArray[np.uint8]) -> Aligned:
        changed = filters != own
        candidate = model.with_input_stage(InputStage(size, filters)) if changed else model.copy()
        inputs = candidate.prepare(part, threads=threads)
        work = align(candidate, inputs, reference, threads=threads, **options)
        views = [candidate.logits(view, threads=threads) for view in _views(inputs)]
        forwards = len(views) * len(inputs)
        return Aligned(
            candidate,
            work,
            _core.disagreements(np.stack(views)),
            _core.disagreements(np.stack([views[0]] * 2)),
            work.forwards + forwards,
            work.macs + forwards * model.macs,
        )

    bank: list[Filters] = [(one,) for one in BANK if fits(one, size) and (one,) != own]
    search = _Search(_spread(images), bank, aligned, progress)
    chosen = own if len(images) < _FEWEST_IMAGES else search.chosen(own)
    found = search.on_all_images(chosen)
    stage = model.input_stage if chosen == own else InputStage(size, chosen)
    copy_parameters(found.model, model)
    return InputChoice(
        stage, chosen != own, found.work, tuple(search.trials), search.forwards, search.macs
    )


def why_no_input_stage(model: Model, has_pixels: bool) -> str:
    """Return why no input stage can be chosen for a model, on pixels or not; empty where it can."""
    if not has_pixels:
        return "the inputs are not pixels"
    if not model.is_classifier or model.classes < 2:
        return f"the model gives {model.output_text}"
    if model.input_shape[2] > _core.MOST_STAGE_CHANNELS:
        return f"the network's input has {model.input_shape[2]} channels"
    return ""


def admit(model: Model, size: tuple[int, int] | None) -> None:
    """Let a model take images of a height and width, for which filters are to be chosen.

    It gets an input stage without filters if they have another size than its input, and it has no
    stage yet; but not for images of more than four times its input's pixels, which are to be
    resampled before. None stands for inputs that are not pixels, or have several sizes.
    """
    if size is None or size == model.image_shape[:2] or model.input_stage is not None:
        return
    height, width, _ = model.input_shape
    is_small = size[0] * size[1] <= _LARGEST * height * width
    if is_small and not why_no_input_stage(model, True) and stored_statistics(model) is not None:
        model.core = model.with_input_stage(InputStage(size)).core


def choice_cost(model: Model, images: int, *, windows: bool = True) -> Cost:
    """Count the least work of a choice on so many images: the bank, and the best of it.

    Noise probes, which are taken where there is noise, come on top.
    """
    counts = [images]
    if images >= _FEWEST_IMAGES:
        counts = [min(images, _FIRST_IMAGES)] * (len(BANK) + 1)
    if images > _FIRST_IMAGES:
        counts += [min(images, _MOST_IMAGES)] * _KEPT
    if images > _MOST_IMAGES:
        counts += [images] * 2
    costs = [alignment_cost(model, n, windows=windows, reliability=False) for n in counts]
    forwards = sum(cost.forwards + _VIEWS * n for cost, n in zip(costs, counts, strict=True))
    macs = sum(cost.macs + _VIEWS * n * model.macs for cost, n in zip(costs, counts, strict=True))
    return Cost(forwards, macs)


def _views(inputs: npt.NDArray[np.int8]) -> list[npt.NDArray[np.int8]]:
    """Return inputs, and copies shifted to either side along both axes, with edges repeated."""
    steps = [max(1, round(side / _SHIFTS)) for side in inputs.shape[1:3]]
    padded = np.pad(inputs, [(0, 0), *((step, step) for step in steps), (0, 0)], mode="edge")
    ends = [
        (2 * step, side + 2 * step) for step, side in zip(steps, inputs.shape[1:3], strict=True)
    ]
    (top, bottom), (left, right) = ends
    first = padded[:, : inputs.shape[1], : inputs.shape[2]]
    last = padded[:, top:bottom, left:right]
    return [inputs, np.ascontiguousarray(first), np.ascontiguousarray(last)]


def _spread(images: npt.NDArray[np.uint8]) -> list[npt.NDArray[np.uint8]]:
    """Return those that the bank and the best are tried on, and all; each spread over all images.

    Images may be in the order of their classes.
    """
    counts = (min(len(images), n) for n in (_FIRST_IMAGES, _MOST_IMAGES, len(images)))
    return [images[np.arange(n) * len(images) // n] for n in counts]


class Aligned(NamedTuple):
    """A candidate: a copy of the model that is aligned behind its filters, and the work of that."""

    model: Model
    work: Alignment
    disagreements: IntArray  # of its predictions, fixed-point
    entropies: IntArray  # the same of two equal views
    forwards: int
    macs: int


class _Search:
    """A search among filters: every candidate is tried on the same images, and once."""

    def __init__(
        self,
        images: list[npt.NDArray[np.uint8]],
        bank: list[Filters],
        aligned: Callable[[Filters, npt.NDArray[np.uint8]], Aligned],
        progress: Callable[[int, Trial], None] | None,
    ) -> None:
        self._images = images
        self._bank = bank
        self._aligned = aligned
        self._progress = progress
        self._found: dict[tuple[Filters, int], Aligned] = {}
        self.trials: list[Trial] = []
        self.forwards = self.macs = 0

    def chosen(self, own: Filters) -> Filters:
        """Return the filters that are chosen: the model's own ones, unless others are better."""
        first = self._in_order([own, *self._bank], 0)
        hopeful = first[: first.index(own)]
        best = self._strongest(self._in_order([f for f in first if f != own][:_KEPT], 1)[0])
        for other in hopeful:
            if any(one.name == other[0].name for one in best):
                continue
            chain = (*best, *other)
            if self._is_better(chain, best, 1, _CHAIN_ERRORS):
                best = self._strongest(chain)
                break
        return best if self._is_better(best, own, 2, _ERRORS) and self._is_surer(best, own) else own

    def on_all_images(self, filters: Filters) -> Aligned:
        """Return the model that is aligned behind filters to all images."""
        return self._tried(filters, 2)

    def _tried(self, filters: Filters, stage: int) -> Aligned:
        images = self._images[stage]
        key = filters, len(images)
        if key not in self._found:
            found = self._found[key] = self._aligned(filters, images)
            self.forwards += found.forwards
            self.macs += found.macs
            mean = float(found.disagreements.mean()) / _core.LOSS_ONE
            self.trials.append(Trial(filters, mean, len(images)))
            if self._progress is not None:
                self._progress(len(self.trials), self.trials[-1])
        return self._found[key]

    def _disagreements(self, filters: Filters, stage: int) -> IntArray:
        """Return those of the images of a stage of the search, fixed-point."""
        return self._tried(filters, stage).disagreements

    def _in_order(self, candidates: list[Filters], stage: int) -> list[Filters]:
        """Return candidates by their disagreement, the best first."""
        return sorted(
            candidates, key=lambda filters: self._disagreements(filters, stage).sum(dtype=np.int64)
        )

    def _is_better(self, filters: Filters, than: Filters, stage: int, errors: int) -> bool:
        """Whether a candidate is better by more than so many standard errors, image by image."""
        first, second = self._disagreements(than, stage), self._disagreements(filters, stage)
        return _core.is_worse(first, second, errors)

    def _is_surer(self, filters: Filters, than: Filters) -> bool:
        """Whether predictions of all images have less entropy: blur alone makes views agree."""
        sums = [self._tried(one, 2).entropies.sum(dtype=np.int64) for one in (filters, than)]
        return bool(sums[0] < sums[1])

    def _strongest(self, best: Filters) -> Filters:
        """Search the strength of the last filter."""
        for factor in _FACTORS:
            for _ in range(_MOST_STEPS):
                following = (*best[:-1], _scaled(best[-1], factor))
                if self._in_order([best, following], 1)[0] == best:
                    break
                best = following
        return best


def _scaled(one: Filter, factor: float) -> Filter:
    """Return a filter of another strength inside its range, at least a step away."""
    low, high = _core.FILTER_STRENGTHS[one.name]
    size = abs(one.strength)
    scaled = max(size + 1, round(size * factor)) if factor > 1 else round(size * factor)
    strength = min(high, max(low, scaled if one.strength > 0 else -scaled))
    return replace(one, strength=strength) if strength else one
