"""Adaptation to a data source without labels: an input stage, and alignment behind it."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from pmt._util.checks import SplitName, checked_flag, checked_range
from pmt.model import Model
from pmt.model.model import check_model
from pmt.protocol import DataSource
from pmt.protocol.data_source import check_source
from pmt.train.prepare.alignment import Alignment, align
from pmt.train.prepare.clean_statistics import DEFAULT_IMAGES
from pmt.train.prepare.input_choice import (
    InputChoice,
    Trial,
    admit,
    choose_input_stage,
    why_no_input_stage,
)


@dataclass(frozen=True)
class AlignedModel:
    """The alignment of a model as it was left, and the choice that led to it, if any."""

    alignment: Alignment
    choice: InputChoice | None = None

    @property
    def forwards(self) -> int:
        """Unperturbed forwards in all."""
        return (self.choice or self.alignment).forwards

    @property
    def macs(self) -> int:
        """Their multiply-accumulates."""
        return (self.choice or self.alignment).macs

    def to_json(self) -> dict[str, Any]:
        """Return the figures for JSON."""
        stage = self.choice.stage if self.choice else None
        return {
            "images": self.alignment.images,
            "layers": self.alignment.layers,
            "forwards": self.forwards,
            "macs": self.macs,
            "input_stage": None if stage is None else stage.record(),
            "input_trials": [] if self.choice is None else [t.record() for t in self.choice.trials],
        }


def align_model(
    model: Model,
    data: DataSource,
    *,
    split: SplitName = "train",
    limit: int = DEFAULT_IMAGES,
    choose_input: bool = True,
    windows: bool = True,
    reliability: bool = True,
    threads: int = 0,
    progress: Callable[[int, int], None] | None = None,
    input_progress: Callable[[int, Trial], None] | None = None,
) -> AlignedModel:
    """Align a model, in place, to images of a data source.

    Parameters
    ----------
    model : Model
        The model, with statistics of clean images in it.
    data : DataSource
        New images; no labels are used.
    split : {"train", "test"}
        Part of the data set.
    limit : int
        At most this many, always the same ones; 0 takes all.
    choose_input : bool
        Choose filters before the network, see
        :func:`pmt.train.prepare.choose_input_stage`, where that is possible.
    windows, reliability, threads, progress
        As in :func:`pmt.align`.
    input_progress : callable, optional
        As in :func:`pmt.train.prepare.choose_input_stage`.

    Returns
    -------
    AlignedModel
        Its work.

    Raises
    ------
    FileNotFoundError, ValueError, ImportError
        As :meth:`pmt.protocol.DataSource.load` and :func:`pmt.align`.
    """
    check_model(model)
    check_source(data)
    limit = checked_range("limit", limit, 0, 2**31 - 1)
    checked_flag("choose_input", choose_input)
    if choose_input:
        admit(model, data.own_size(split))
    pixels = data.load(split, model, limit=limit)
    options: dict[str, Any] = {"windows": windows, "reliability": reliability}
    if choose_input and not why_no_input_stage(model, pixels.has_pixels):
        choice = choose_input_stage(
            model, pixels.images, threads=threads, progress=input_progress, **options
        )
        return AlignedModel(choice.alignment, choice)
    return AlignedModel(align(model, pixels.images, threads=threads, progress=progress, **options))
