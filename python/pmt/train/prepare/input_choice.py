"""The choice of an input stage: filters before the network, by forward passes alone.

A nonlinear filter at the image's own resolution removes what no weight of the network can remove,
and a wrong one destroys the image. No gradient passes a median, so candidates are tried: a copy of
the model is aligned to the images as each of them filters them, and its predictions of every image
and of copies shifted a little are compared. The cross-entropy of each with the others tells how
sure the model is, and whether of the same; less the entropy of their mean, for a model that calls
all images one class is sure, too (Liang et al. 2020, arXiv:2002.08546). No label is read.

Which candidates, and in which order, the core says that a board has, too:
``cpp/core/learn/input_search.hpp``.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from pmt import _core
from pmt._util.arrays import Int32Array, Uint8Array
from pmt._util.checks import check_callable, checked_flag, kind_of, refuse_mask
from pmt._util.text import counted
from pmt.datasets import Dataset
from pmt.errors import OptionError
from pmt.model import Model
from pmt.model.input_conversion import array_remedy, images_in_shape, reads_features
from pmt.model.layers import copy_parameters
from pmt.model.model import check_model
from pmt.net.image import read_stage
from pmt.net.input_stage import Filter, InputStage
from pmt.protocol.stratification import first_of_copies
from pmt.train.costs.work import Cost
from pmt.train.prepare.alignment import Alignment, align, alignment_cost
from pmt.train.prepare.clean_statistics import CleanStatistics, check_reference, stored_statistics

Filters = tuple[Filter, ...]

LIKELY_TRIALS = 28  # of a search that finds something, for a progress line
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


@dataclass(frozen=True, repr=False)
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

    def __repr__(self) -> str:
        return f"<InputChoice: {self}>"

    def __str__(self) -> str:
        tried = counted(len({trial.filters for trial in self.trials}), "candidate")
        chosen = self.stage if self.changed else "no filter is clearly better than what was there"
        return f"{chosen}, of {tried}"


def choose_input_stage(
    model: Model,
    images: Uint8Array,
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
    check_model(model)
    check_reference(reference)
    checked_flag("windows", windows)
    checked_flag("reliability", reliability)
    check_callable("progress", progress)
    refuse_mask("images", images)
    if not isinstance(images, np.ndarray):
        raise TypeError(f"images is {kind_of(images)}: must be a NumPy array{array_remedy(images)}")
    reason = why_no_input_stage(model, images.dtype == np.uint8)
    if reason:
        raise ValueError(f"no input stage can be chosen: {reason}")
    images = images_in_shape(images, model.image_shape)
    images = images[first_of_copies(Dataset.unlabeled(images))]
    size = model.image_shape[:2]
    start = with_any_stage(model)
    options: dict[str, Any] = {"windows": windows, "reliability": reliability, "threads": threads}

    search = _core.InputSearch(start.core, len(images))
    own = _filters(search.best)
    trials: list[Trial] = []
    found: dict[Filters, _Aligned] = {}  # on all images, of the own filters and the best ones
    forwards = macs = 0

    def aligned_behind(filters: Filters, count: int) -> _Aligned:
        nonlocal forwards, macs
        part = images[np.arange(count) * len(images) // count]
        candidate = start.with_input_stage(InputStage(size, filters))
        one = _aligned(candidate, part, reference, options)
        forwards, macs = forwards + one.forwards, macs + one.macs
        mean = float(one.disagreements.mean()) / _core.LOSS_ONE
        trials.append(Trial(filters, mean, count))
        if progress is not None:
            progress(len(trials), trials[-1])
        return one

    while not search.is_over:
        filters, count = _filters(search.candidate), search.images
        one = aligned_behind(filters, count)
        search.report(one.disagreements, one.entropy)
        if count == len(images):
            found[filters] = one
        found = {key: found[key] for key in (own, _filters(search.best)) if key in found}
    chosen = _filters(search.best)
    one = found.get(chosen) or aligned_behind(chosen, len(images))
    stage = model.input_stage if chosen == own else InputStage(size, chosen)
    changed = chosen != own
    copy_parameters(one.model if changed else one.model.with_input_stage(stage), model)
    return InputChoice(stage, changed, one.work, tuple(trials), forwards, macs)


class _Aligned(NamedTuple):
    """A candidate: a copy of the model that is aligned behind its filters, and the work of that."""

    model: Model
    work: Alignment
    disagreements: Int32Array  # of its predictions, fixed-point
    entropy: int  # the same of the images alone, summed
    forwards: int
    macs: int


def _aligned(
    candidate: Model, images: Uint8Array, reference: CleanStatistics | None, options: dict[str, Any]
) -> _Aligned:
    threads = options["threads"]
    inputs = candidate.prepare(images, threads=threads)
    work = align(candidate, inputs, reference, **options)
    views = [candidate.logits(view, threads=threads) for view in _core.shifted_images(inputs)]
    forwards = len(views) * len(inputs)
    return _Aligned(
        candidate,
        work,
        _core.disagreements(np.stack(views)),
        int(_core.disagreements(views[0][np.newaxis]).sum(dtype=np.int64)),
        work.forwards + forwards,
        work.macs + forwards * candidate.macs,
    )


def _filters(section: bytes) -> Filters:
    return read_stage(section).filters


def why_no_input_stage(model: Model, has_pixels: bool) -> str:
    """Return why no input stage can be chosen for a model, on pixels or not; empty where it can."""
    if not has_pixels or reads_features(model.core):
        return "the inputs are not pixels"
    if not model.is_classifier or model.classes < 2:
        return f"the model gives {model.output_text}"
    if model.input_shape[2] > _core.MOST_STAGE_CHANNELS:
        return f"the network's input has {model.input_shape[2]} channels"
    return ""


def with_any_stage(model: Model) -> Model:
    """Return a model with an input stage: its own one, or without filters for its input's size.

    An OptionError says that it reads no pixels.
    """
    if reads_features(model.core):
        rule = "=True: the model was quantized for inputs that are not pixels; leave it out"
        raise OptionError("choose_input", rule)
    if model.input_stage is not None:
        return model
    return model.with_input_stage(InputStage(model.input_shape[:2]))


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
    """Count the least work of a choice: the bank, and the best of it; noise probes come on top."""
    counts = [images]
    if images >= _core.INPUT_FEWEST_IMAGES:
        counts = [min(images, _core.INPUT_BANK_IMAGES)] * (_core.INPUT_BANK_SIZE + 1)
    if images > _core.INPUT_BANK_IMAGES:
        counts += [min(images, _core.INPUT_BEST_IMAGES)] * _core.INPUT_BANK_KEPT
    if images > _core.INPUT_BEST_IMAGES:
        counts += [images] * 2
    costs = [alignment_cost(model, n, windows=windows, reliability=False) for n in counts]
    views = _core.INPUT_VIEWS * sum(counts)
    forwards = views + sum(cost.forwards for cost in costs)
    return Cost(forwards, views * model.macs + sum(cost.macs for cost in costs))
