"""Every choice of sparse back-propagation."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, get_args

from pmt.baselines.backprop.options import BackpropOptions
from pmt.train.option_fields import Range, Words, document_options, option

__all__ = ["MCUTrainOptions", "TinyTrainOptions"]

_Potentials = Literal["fisher", "forward"]


@document_options
@dataclass(frozen=True)
class MCUTrainOptions(BackpropOptions):
    """Options of MCUTrain; those of :class:`pmt.backprop.BackpropOptions`, and what is updated."""

    scheme: str = option(
        "99KB",
        "SCHEME",
        "name of a published scheme of MCUNet (49KB, 74KB, 99KB, 124KB, 148KB), or a scheme as "
        "JSON. :class:`pmt.baselines.sparse_update.MCUTrainTrainer` takes a file's name too, "
        "and puts in what it holds",
    )
    chosen: str = option(
        "",
        "JSON",
        "the scheme with its channels, as JSON. Empty: they are chosen by the weights when "
        "training begins",
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        _refuse_layers(self.layers, "scheme")


@document_options
@dataclass(frozen=True)
class TinyTrainOptions(BackpropOptions):
    """Options of TinyTrain; those of :class:`pmt.backprop.BackpropOptions`, and its budgets."""

    memory: int = option(
        100 * 1024,
        "BYTES",
        "budget of what the update adds to memory, in bytes, by MCUTrain's count",
        Range(0),
    )
    backward_macs: float = option(
        0.3,
        "X",
        "budget of the backward pass, as a share of a full one's multiply-accumulates. MCUTrain's "
        "99 KB scheme takes 0.28 of MCUNet's",
        Range(0.0, 1.0, low_open=True, why="a share of the full backward pass"),
    )
    inspect: int = option(
        18,
        "N",
        "how many last layers before the head are scored; 18 are six blocks of MCUNet",
        Range(1),
    )
    scored_images: int = option(
        200, "N", "training images that the scores are computed on: the first ones", Range(1)
    )
    potentials: _Potentials = option(
        "fisher",
        "NAME",
        "how channels are scored: by the Fisher potential of the publication, which takes a "
        "backward pass, or by the measured change of the loss without each channel",
        Words(get_args(_Potentials)),
    )
    chosen: str = option(
        "", "JSON", "the choice, as JSON. Empty: it is made by the data when training begins"
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        _refuse_layers(self.layers, "inspect")


def _refuse_layers(layers: str, instead: str) -> None:
    if layers != "all":
        raise ValueError(
            f"layers={layers!r} has no meaning here: what is trained follows {instead}"
        )
