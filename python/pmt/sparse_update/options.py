"""Every choice of sparse back-propagation."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal

from pmt.backprop.options import BackpropOptions

__all__ = ["MCUTrainOptions", "TinyTrainOptions"]


@dataclass(frozen=True)
class MCUTrainOptions(BackpropOptions):
    """Options of MCUTrain; those of :class:`pmt.backprop.BackpropOptions`, and what is updated.

    Attributes
    ----------
    scheme : str
        Name of a published scheme of MCUNet (``49KB``, ``74KB``, ``99KB``, ``124KB``, ``148KB``),
        or a scheme as JSON. :class:`pmt.sparse_update.MCUTrainTrainer` takes a file's name too, and
        puts in what it holds.
    chosen : str
        The scheme with its channels, as JSON. Empty: they are chosen by the weights when training
        begins.
    """

    scheme: str = "99KB"
    chosen: str = ""

    def __post_init__(self) -> None:
        super().__post_init__()
        _refuse_layers(self.layers, "scheme")


@dataclass(frozen=True)
class TinyTrainOptions(BackpropOptions):
    """Options of TinyTrain; those of :class:`pmt.backprop.BackpropOptions`, and its budgets.

    Attributes
    ----------
    memory : int
        Budget of what the update adds to memory, in bytes, by MCUTrain's count.
    backward_macs : float
        Budget of the backward pass, as a share of a full one's multiply-accumulates, above 0 and up
        to 1. MCUTrain's 99 KB scheme takes 0.28 of MCUNet's.
    inspect : int
        How many last layers before the head are scored; 18 are six blocks of MCUNet.
    scored_images : int
        Training images that the scores are computed on: the first ones.
    potentials : {"fisher", "forward"}
        How channels are scored: by the Fisher potential of the publication, which takes a backward
        pass, or by the measured change of the loss without each channel.
    chosen : str
        The choice, as JSON. Empty: it is made by the data when training begins.
    """

    memory: int = 100 * 1024
    backward_macs: float = 0.3
    inspect: int = 18
    scored_images: int = 200
    potentials: Literal["fisher", "forward"] = "fisher"
    chosen: str = ""

    def __post_init__(self) -> None:
        super().__post_init__()
        _refuse_layers(self.layers, "inspect")
        for name, low in (("memory", 0), ("inspect", 1), ("scored_images", 1)):
            value = getattr(self, name)
            if isinstance(value, bool) or not isinstance(value, int):
                raise TypeError(f"{name}={value!r} must be an int")
            if value < low:
                raise ValueError(f"{name}={value!r} must be {low} or more")
        if self.potentials not in ("fisher", "forward"):
            raise ValueError(
                f"potentials={self.potentials!r} is unknown; choose one of fisher, forward"
            )
        if not math.isfinite(self.backward_macs) or not 0.0 < self.backward_macs <= 1.0:
            raise ValueError(
                f"backward_macs={self.backward_macs!r} must be above 0 and up to 1, a share of the "
                "full backward pass"
            )


def _refuse_layers(layers: str, instead: str) -> None:
    if layers != "all":
        raise ValueError(
            f"layers={layers!r} has no meaning here: what is trained follows {instead}"
        )
