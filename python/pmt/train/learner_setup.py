"""Parts of a learner: its memory, its room for samples, its epochs, its image and statistics.

The learner on a PC and the export of one for a board take the same arguments from here.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

import numpy as np

from pmt import _core
from pmt._util.arrays import FloatArray
from pmt._util.checks import checked_candidates, checked_integer
from pmt._util.text import table
from pmt.errors import OptionError
from pmt.model import Model
from pmt.train.losses import check_one_output
from pmt.train.options import TrainingOptions, check_options
from pmt.train.prepare.clean_statistics import (
    CleanStatistics,
    WindowStatistics,
    aligned_layers,
    stored_statistics,
    window_layers,
    without_statistics,
)

# Options, the layers of each block, samples of a batch, epochs, and the rate with its final share.
EpochArguments: TypeAlias = tuple[
    _core.Options, tuple[tuple[int, ...], ...], int, int, float, float
]

# Weights that alignment changes, as the core names them.
AlignedWeights = Literal["none", "windows", "reliability"]

_HELD_OUT = 4  # one sample in four, at most
_MOST_SAMPLES = 2**20


@dataclass(frozen=True)
class LearnerSizes:
    """Memory of a learner on a device, in bytes.

    Attributes
    ----------
    persistent : int
        Parameters of the states, samples' records, tables.
    predict, input, align, head, epochs : int
        Beside it, of a prediction and of each phase; 0 where the model has no such phase.
    needed : int
        The persistent part and the largest of the others: what a learner is opened with.
    external : int
        Outside of that, for activations; 0 where none are kept.
    streams : tuple of (int, int, int)
        Runs of ops that go through line buffers: first, last, rows at once.
    """

    persistent: int
    predict: int
    input: int
    align: int
    head: int
    epochs: int
    needed: int
    external: int
    streams: tuple[tuple[int, int, int], ...]

    def __str__(self) -> str:
        rows = [("persistent", f"{self.persistent:,}")]
        rows += [(f"phase {name}", f"{size:,}") for name, size in self.phases().items()]
        rows.append(("needed", f"{self.needed:,}"))
        if self.external:
            rows.append(("external", f"{self.external:,}"))
        return table(["memory", "bytes"], rows, left=["memory"])

    def phases(self) -> dict[str, int]:
        """Return the memory of predictions and phases, of those that there are."""
        names = ("predict", "input", "align", "head", "epochs")
        return {name: getattr(self, name) for name in names if getattr(self, name)}


def learner_room(
    samples: int, held_out: int | None, choose_input: bool, **of_learning: object
) -> tuple[int, int]:
    """Return how many samples a learner has room for, and how many of them may be held out.

    Without samples, arguments of learning must be None.
    """
    samples = checked_integer("samples", samples)
    if not 0 <= samples <= _MOST_SAMPLES:
        raise OptionError("samples", f"={samples} must be 0..{_MOST_SAMPLES}")
    for name, value in {"held_out": held_out or None, **of_learning}.items():
        if samples == 0 and value is not None:
            rule = "=0, which learns nothing"
            raise OptionError(name, "= cannot be given with ", "samples", rule)
    if choose_input and samples < _core.INPUT_FEWEST_IMAGES:
        rule = f"={samples}: filters are chosen on {_core.INPUT_FEWEST_IMAGES} or more; raise it"
        raise OptionError("samples", f"{rule}, or leave out ", "choose_input")
    most = samples // _HELD_OUT if held_out is None else checked_integer("held_out", held_out)
    if not 0 <= most <= samples:
        rule = f"={most} must be 0..{samples}, the number of "
        raise OptionError("held_out", rule, "samples", "; lower it")
    return samples, most


def epochs_of(
    model: Model,
    options: TrainingOptions | None,
    samples: int = 0,
    select: Sequence[str] | None = None,
) -> EpochArguments | None:
    """Return the options of a training that the core reads, with the layers of each block."""
    if options is None:
        if select is not None:
            remedy = ", too, for example pmt.TrainingOptions(epochs=1)"
            raise OptionError("select", " says what epochs train: give ", "options", remedy)
        return None
    check_options(options)
    check_one_output(options.loss, model)
    if options.macs > 0:
        rule = f"={options.macs} is a budget, and a learner takes whole epochs: give "
        raise OptionError("macs", rule, "epochs", " instead")
    if options.epochs * samples >= 2**31:
        rule = f"={options.epochs}: with samples={samples} these are 2^31 or more; take fewer"
        raise OptionError("epochs", rule)
    names, argument = [options.layers], "layers"
    if select is not None:
        names = [name.replace("+", ",") for name in checked_candidates(select, "select")]
        argument = "select"
    blocks = tuple(tuple(model.select_layers(name, argument=argument)) for name in names)
    rates = options.learning_rate, options.final_learning_rate
    return options.to_core(), blocks, options.batch, options.epochs, *rates


def check_clean(clean: object, choose_input: bool, keeps_activations: bool) -> None:
    """Raise a ValueError where an argument is about alignment, and no channels are aligned."""
    for name, is_given, use in (
        ("choose_input", choose_input, "aligns behind the filters"),
        ("keeps_activations", keeps_activations, "keeps what alignment reads"),
    ):
        if is_given and clean is None:
            raise OptionError(
                name,
                f"=True {use}, and the model holds no statistics of clean images to align to; "
                "pmt.statistics(model, images) (pmt statistics) adds them, or leave it out",
            )


def plan_sizes(
    image: bytes,
    clean: Any,
    weights: AlignedWeights,
    chooses_input: bool,
    samples: int,
    held_out: int,
    keeps_confirmed: bool,
    keeps_activations: bool,
    epochs: EpochArguments | None,
) -> LearnerSizes:
    """Count a learner's memory on a device."""
    keeps = (keeps_confirmed, keeps_activations)
    parts, needed, streams = _core.plan_learner(
        image, clean, weights, chooses_input, samples, held_out, *keeps, epochs
    )
    return LearnerSizes(**parts, needed=needed, streams=tuple(streams))


def aligned_weights(windows: bool, reliability: bool) -> AlignedWeights:
    """Return which weights an alignment changes."""
    if reliability and not windows:
        rule = "=True goes by windows, which tell how much noise images hold: give "
        raise OptionError("reliability", rule, "windows", "=True, too, or leave it out")
    return "reliability" if reliability else "windows" if windows else "none"


def learner_image(
    model: Model, samples: int, weights: AlignedWeights, choose_input: bool
) -> tuple[bytes, FloatArray | None]:
    """Return a model's image without statistics, and these, in pairs, if some are needed."""
    if not model.is_classifier:
        raise ValueError(
            f"the model gives {model.output_text}, and a learner tells classes apart, as does one "
            "that only predicts: give a model of classes"
        )
    if choose_input and model.classes == 1:
        raise OptionError(
            "choose_input",
            "=True chooses filters by the probabilities of classes, and the model has one output: "
            "leave it out",
        )
    statistics = stored_statistics(model) if samples > 0 else None
    windows = weights != "none"
    if windows and (statistics is None or not _has_windows(model, statistics)):
        raise OptionError(
            "windows",
            "=True aligns windows, and the model holds no statistics of those of clean images; "
            "pmt.statistics(model, images) (pmt statistics) adds them, or leave it out",
        )
    clean = None if statistics is None else _clean(model, statistics, windows)
    return without_statistics(model).image(), clean


def _has_windows(model: Model, statistics: CleanStatistics) -> bool:
    names = aligned_layers(model)
    return statistics.windows.keys() >= {names[index] for index in window_layers(model)}


def _clean(model: Model, statistics: CleanStatistics, windows: bool) -> FloatArray:
    """Return means and deviations of the channels, and behind them those of the windows."""
    names = aligned_layers(model)
    parts = [statistics.channels[name].T.ravel() for name in names.values()]
    if windows:
        for index in window_layers(model):
            parts += [values.ravel() for values in statistics.windows[names[index]]]
    values = np.concatenate(parts, dtype=np.float32)
    return np.pad(values, (0, len(values) % 2)).reshape(-1, 2)


def read_clean(model: Model, clean: bytes, windows: bool) -> CleanStatistics:
    """Return the statistics that :func:`learner_image` has made these bytes of."""
    values, at = np.frombuffer(clean, "<f4"), 0

    def taken(*shape: int) -> FloatArray:
        nonlocal at
        at += math.prod(shape)
        return values[at - math.prod(shape) : at].reshape(shape)

    names = aligned_layers(model)
    channels = {name: taken(len(model.core.bias(i)), 2).T.copy() for i, name in names.items()}
    found = {}
    for index, shape in window_layers(model).items() if windows else ():
        inputs = model.core.tensors()[model.core.ops()[index]["inputs"][0]]
        found[names[index]] = WindowStatistics(taken(inputs["channels"]), taken(*shape))
    return CleanStatistics(1, channels, found)
