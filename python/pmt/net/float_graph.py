"""The float network that post-training quantisation starts from: what a front end builds."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from pmt.net.graph import OpKind

Bounds = tuple[float, float]
Activation = Literal["none", "relu", "relu6"]

LAYER_KINDS: tuple[OpKind, ...] = ("conv2d", "depthwise_conv2d", "fully_connected")
# An activation fused into an op that keeps its input's quantisation has no clamp to become.
ACTIVATED_KINDS: tuple[OpKind, ...] = (*LAYER_KINDS, "add")
ACTIVATION_BOUNDS: dict[Activation, Bounds] = {
    "none": (-np.inf, np.inf),
    "relu": (0.0, np.inf),
    "relu6": (0.0, 6.0),
}


@dataclass(frozen=True)
class FloatTensor:
    """One activation: its name and its shape without the batch."""

    name: str
    height: int
    width: int
    channels: int

    @property
    def shape(self) -> tuple[int, int, int]:
        """Height, width, channels."""
        return (self.height, self.width, self.channels)


@dataclass
class FloatOp:
    """One operation with float32 parameters. Tensors are indices into the graph's.

    Layouts are those of :class:`pmt.net.graph.Op`: weights ``(out, kernel_h, kernel_w, in)`` for
    ``conv2d``, ``(kernel_h, kernel_w, out)`` for ``depthwise_conv2d``, ``(out, in)`` for
    ``fully_connected``; bias ``(out,)``; ``padding`` is top, left, bottom, right. ``activation`` is
    applied to the output and becomes the clamp of the quantised op: the name of a function, or
    explicit bounds ``(low, high)``, either of which may be infinite.
    """

    kind: OpKind
    name: str
    inputs: tuple[int, ...]
    output: int
    kernel: tuple[int, int] = (1, 1)
    stride: tuple[int, int] = (1, 1)
    padding: tuple[int, int, int, int] = (0, 0, 0, 0)
    activation: Activation | Bounds = "none"
    weights: npt.NDArray[np.float32] | None = None
    bias: npt.NDArray[np.float32] | None = None

    @property
    def bounds(self) -> Bounds:
        """Lowest and highest value that the activation lets through."""
        if isinstance(self.activation, str):
            return ACTIVATION_BOUNDS[self.activation]
        return self.activation


@dataclass
class FloatGraph:
    """A float network, ops in execution order.

    ``input_mean`` and ``input_std`` are per channel, in units of a 0..255 pixel: the network's
    input is ``(pixel - mean) / std``. ``blocks`` and ``metadata`` are handed on to the
    :class:`pmt.net.graph.Graph`.
    """

    tensors: list[FloatTensor]
    ops: list[FloatOp]
    input: int
    output: int
    input_mean: tuple[float, ...]
    input_std: tuple[float, ...]
    blocks: dict[str, list[int]] = field(default_factory=dict)
    metadata: dict[str, Any] = field(default_factory=dict)
