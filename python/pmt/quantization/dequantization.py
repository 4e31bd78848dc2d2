"""The float network that an int8 network stands for."""

from __future__ import annotations

from typing import Literal

import numpy as np
import numpy.typing as npt

from pmt.net.float_graph import (
    ACTIVATED_KINDS,
    Activation,
    Bounds,
    FloatGraph,
    FloatOp,
    FloatTensor,
)
from pmt.net.graph import Graph, Op, Tensor, channel_shape, is_layer

FloatArray = npt.NDArray[np.float32]

Clamps = Literal["activation", "exact"]

_RELU6_TOP = 6.0


def dequantize(graph: Graph, *, clamps: Clamps = "activation") -> FloatGraph:
    """Return the float network with the real values of an int8 network's weights and biases.

    Use it to train further in floating point and quantize again. Quantized again with the ranges of
    ``graph`` (:func:`quantize_with_ranges`) it has the same int8 weights and scales in every
    channel whose largest weight is 127 or -127 and whose bias is below ``2**23`` steps. Other
    channels get the scale that their largest weight fills; dead ones (a bias at the end of int32)
    the scale that their bias needs.

    Parameters
    ----------
    graph : Graph
        The int8 network; it is not changed.
    clamps : {"activation", "exact"}
        Treatment of the bounds of an int8 output. ``"activation"`` (default) takes the function
        that they most likely come from: a lower bound of zero is ReLU6 where the upper one is at
        most 6, else ReLU; other outputs are not bounded. ``"exact"`` keeps both bounds as they
        are, so that the float network saturates where the int8 one does.

    Returns
    -------
    FloatGraph
        Tensors, ops, input mean and spread, blocks and metadata as in ``graph``.

    Raises
    ------
    ValueError
        If ``clamps`` is neither, or a layer has no weights, scales or bias.
    """
    if clamps not in ("activation", "exact"):
        raise ValueError(f"clamps={clamps!r}: must be 'activation' or 'exact'")
    return FloatGraph(
        tensors=[FloatTensor(t.name, *t.shape) for t in graph.tensors],
        ops=[_dequantized_op(op, graph, clamps) for op in graph.ops],
        input=graph.input,
        output=graph.output,
        input_mean=tuple(graph.input_mean),
        input_std=tuple(graph.input_std),
        blocks={name: list(layers) for name, layers in graph.blocks.items()},
        metadata=dict(graph.metadata),
    )


def tensor_ranges(graph: Graph) -> list[Bounds]:
    """Return the real values of -128 and 127 for every tensor of an int8 network."""
    return [_real_bounds(tensor, (-128, 127)) for tensor in graph.tensors]


def _dequantized_op(op: Op, graph: Graph, clamps: Clamps) -> FloatOp:
    result = FloatOp(**op.base_fields())
    if op.kind in ACTIVATED_KINDS:
        result.activation = _activation(op.clamp, graph.tensors[op.output], clamps)
    if is_layer(op):
        if op.weights is None or op.weight_scales is None or op.bias is None:
            raise ValueError(f"op {op.name!r}: weights, weight_scales or bias are missing")
        result.weights, result.bias = _parameters(op, graph.tensors[op.inputs[0]].scale)
    return result


def _parameters(op: Op, input_scale: float) -> tuple[FloatArray, FloatArray]:
    assert op.weights is not None
    assert op.weight_scales is not None
    assert op.bias is not None
    scales = op.weight_scales.astype(np.float64)
    weights = op.weights * scales.reshape(channel_shape(op, op.weights.ndim))
    return weights.astype(np.float32), (op.bias * (input_scale * scales)).astype(np.float32)


def _activation(clamp: tuple[int, int], output: Tensor, clamps: Clamps) -> Activation | Bounds:
    if clamps == "exact":
        return _real_bounds(output, clamp)
    if clamp[0] != output.zero_point:
        return "none"
    # A scale is a float32: the top of a ReLU6 is 6 within its rounding.
    return "relu6" if _real_bounds(output, clamp)[1] <= _RELU6_TOP * (1 + 1e-6) else "relu"


def _real_bounds(tensor: Tensor, steps: tuple[int, int]) -> Bounds:
    low, high = ((step - tensor.zero_point) * tensor.scale for step in steps)
    return low, high
