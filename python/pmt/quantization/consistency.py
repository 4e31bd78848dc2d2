"""Checks that a float graph can be quantised at all."""

from __future__ import annotations

import numpy as np

from pmt.quantization.float_graph import ACTIVATION_BOUNDS, LAYER_KINDS, FloatGraph, FloatOp

_WEIGHT_RANK = {"conv2d": 4, "depthwise_conv2d": 3, "fully_connected": 2}
_CHANNEL_AXIS = {"conv2d": 0, "depthwise_conv2d": 2, "fully_connected": 0}
# An activation fused into an op that keeps its input's quantisation has no clamp to become.
_FUSABLE = (*LAYER_KINDS, "add")


def check_float_graph(graph: FloatGraph) -> None:
    """Raise ValueError, naming the op, where parameters are missing, misshapen or not finite."""
    if 0.0 in graph.input_std:
        raise ValueError(
            f"input_std is {graph.input_std}, but must not be zero: pass the spread "
            "of the pixels, in units of 0..255"
        )
    for op in graph.ops:
        _check_activation(op)
        if op.kind in LAYER_KINDS:
            _check_parameters(op, graph.tensors[op.output].channels)


def _check_activation(op: FloatOp) -> None:
    if op.activation not in ACTIVATION_BOUNDS:
        raise ValueError(
            f"op {op.name!r}: activation {op.activation!r} is unknown, "
            f"use one of {', '.join(map(repr, ACTIVATION_BOUNDS))}"
        )
    if op.activation != "none" and op.kind not in _FUSABLE:
        raise ValueError(
            f"op {op.name!r}: activation {op.activation!r} cannot be fused into {op.kind}, "
            f"move it to the op before (one of {', '.join(_FUSABLE)})"
        )


def _check_parameters(op: FloatOp, channels: int) -> None:
    what = f"op {op.name!r} ({op.kind})"
    if op.weights is None:
        raise ValueError(f"{what}: weights are missing, pass a float32 array")
    rank, axis = _WEIGHT_RANK[op.kind], _CHANNEL_AXIS[op.kind]
    if op.weights.ndim != rank or op.weights.shape[axis] != channels:
        raise ValueError(
            f"{what}: weights have shape {op.weights.shape}, but must have {rank} axes with the "
            f"{channels} output channels on axis {axis}"
        )
    if op.bias is not None and op.bias.shape != (channels,):
        raise ValueError(f"{what}: bias has shape {op.bias.shape}, but must have ({channels},)")
    for name, values in (("weights", op.weights), ("bias", op.bias)):
        if values is not None and not np.all(np.isfinite(values)):
            raise ValueError(f"{what}: {name} hold a value that is not finite, retrain or repair")
