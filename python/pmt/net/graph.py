"""The quantised graph as importers and the quantiser build it, before it becomes an image."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

OpKind = Literal[
    "conv2d",
    "depthwise_conv2d",
    "fully_connected",
    "add",
    "average_pool",
    "max_pool",
    "mean",
    "pad",
    "reshape",
]


@dataclass(frozen=True)
class Tensor:
    """One activation: shape without the batch, and its quantisation.

    The real value is ``scale * (q - zero_point)`` for the int8 value ``q``.
    """

    name: str
    height: int
    width: int
    channels: int
    scale: float
    zero_point: int

    @property
    def elements(self) -> int:
        """Number of int8 values."""
        return self.height * self.width * self.channels


@dataclass
class Op:
    """One operation. Tensors are indices into :attr:`Graph.tensors`.

    ``weights`` are int8: ``(out, kernel_h, kernel_w, in)`` for ``conv2d``,
    ``(kernel_h, kernel_w, out)`` for ``depthwise_conv2d``, ``(out, in)`` for ``fully_connected``.
    ``bias`` is int32 ``(out,)`` with scale ``s_x * s_w``; ``weight_scales`` is float32 ``(out,)``.
    ``padding`` is top, left, bottom, right; ``clamp`` the bounds of the int8 output.
    """

    kind: OpKind
    name: str
    inputs: tuple[int, ...]
    output: int
    kernel: tuple[int, int] = (1, 1)
    stride: tuple[int, int] = (1, 1)
    padding: tuple[int, int, int, int] = (0, 0, 0, 0)
    clamp: tuple[int, int] = (-128, 127)
    weights: npt.NDArray[np.int8] | None = None
    bias: npt.NDArray[np.int32] | None = None
    weight_scales: npt.NDArray[np.float32] | None = None


@dataclass
class Graph:
    """A whole network: ops in execution order.

    ``blocks`` maps a block's name to the indices of its layers (ops with weights), ascending.
    ``input_mean`` and ``input_std`` are per channel, in units of a 0..255 pixel: the real input is
    ``(pixel - mean) / std``, the int8 input ``round_half_even(real / scale) + zero_point``.
    ``metadata`` is JSON-serialisable: ``class_names``, ``source``, ``licence``, and what else a
    reader of the model wants to know.
    """

    tensors: list[Tensor]
    ops: list[Op]
    input: int
    output: int
    input_mean: tuple[float, ...]
    input_std: tuple[float, ...]
    blocks: dict[str, list[int]] = field(default_factory=dict)
    metadata: dict[str, Any] = field(default_factory=dict)


def graph_of_activations(tensors: list[Tensor], ops: list[Op]) -> Graph:
    """Return a network from its first tensor to its last, whose input is int8 and not pixels."""
    channels = min(tensors[0].channels, 4)
    return Graph(tensors, ops, 0, len(tensors) - 1, (0.0,) * channels, (1.0,) * channels)
