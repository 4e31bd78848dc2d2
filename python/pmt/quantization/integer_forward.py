"""The int8 network's forward pass in NumPy, with every activation: slow, for reports."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from pmt.graph import Graph, Op, Tensor
from pmt.quantization import windows

Int8Array = npt.NDArray[np.int8]
_f32 = np.float32


def quantised_input(graph: Graph, images: npt.NDArray[np.uint8]) -> Int8Array:
    """Turn pixels 0..255, ``(N, H, W, C)``, into the int8 input of the same shape."""
    tensor = graph.tensors[graph.input]
    mean, std = np.asarray(graph.input_mean, _f32), np.asarray(graph.input_std, _f32)
    steps = ((images.astype(_f32) - mean) / std) / _f32(tensor.scale)
    return _int8(np.rint(steps), tensor.zero_point, (-128, 127))


def integer_activations(graph: Graph, inputs: Int8Array) -> list[Int8Array]:
    """Compute every activation as the core does, bit for bit.

    Parameters
    ----------
    graph : Graph
        The int8 network.
    inputs : ndarray of int8, shape (N, H, W, C)
        See :func:`quantised_input`.

    Returns
    -------
    list of ndarray of int8
        One per tensor of the graph, ``(N, H, W, C)`` each.
    """
    known = {graph.input: inputs}
    for op in graph.ops:
        target = graph.tensors[op.output]
        result = _result(graph, op, [known[index] for index in op.inputs])
        known[op.output] = result.reshape(-1, target.height, target.width, target.channels)
    return [known[index] for index in range(len(graph.tensors))]


def dequantised(tensor: Tensor, values: Int8Array) -> npt.NDArray[np.float32]:
    """Real values ``scale * (q - zero_point)`` of an activation."""
    return (values.astype(_f32) - _f32(tensor.zero_point)) * _f32(tensor.scale)


def _result(graph: Graph, op: Op, sources: list[Int8Array]) -> Int8Array:
    x, target = sources[0], graph.tensors[op.output]
    source = graph.tensors[op.inputs[0]]
    match op.kind:
        case "add":
            first, second = (
                dequantised(graph.tensors[index], values)
                for index, values in zip(op.inputs, sources, strict=True)
            )
            return _int8(
                np.rint((first + second) / _f32(target.scale)), target.zero_point, op.clamp
            )
        case "mean":
            return _mean(x, source, target, op)
        case "average_pool":
            return _int8(np.rint(windows.pool_average(x.astype(_f32), op)), 0, op.clamp)
        case "max_pool":
            return _int8(windows.pool_maximum(x.astype(_f32), op), 0, op.clamp)
        case "pad":
            return windows.pad(x, op.padding, source.zero_point)
        case "reshape":
            return x
    assert op.weight_scales is not None  # a quantised graph is complete
    bias = 0 if op.bias is None else op.bias.astype(_f32)
    scale = (_f32(source.scale) * op.weight_scales) / _f32(target.scale)
    return _int8(
        np.rint((_accumulators(op, x, source) + bias) * scale), target.zero_point, op.clamp
    )


def _accumulators(op: Op, x: Int8Array, source: Tensor) -> npt.NDArray[np.float32]:
    """Float32 of the integer sums, which are exact in float64."""
    assert op.weights is not None
    centred = x.astype(np.float64) - source.zero_point
    weights = op.weights.astype(np.float64)
    if op.kind == "conv2d":
        total = windows.convolve(centred, weights, op)
    elif op.kind == "depthwise_conv2d":
        total = windows.convolve_depthwise(centred, weights, op)
    else:
        total = centred.reshape(len(x), -1) @ weights.T
    return total.astype(_f32)


def _mean(x: Int8Array, source: Tensor, target: Tensor, op: Op) -> Int8Array:
    total = x.sum(axis=(1, 2), dtype=np.int32).astype(_f32)
    mean = total / _f32(source.height * source.width)
    ratio = _f32(source.scale) / _f32(target.scale)
    if ratio == 1 and source.zero_point == target.zero_point:
        return _int8(np.rint(mean), 0, op.clamp)
    steps = (mean - _f32(source.zero_point)) * ratio
    return _int8(np.rint(steps), target.zero_point, op.clamp)


def _int8(steps: npt.NDArray[Any], zero_point: int, clamp: tuple[int, int]) -> Int8Array:
    return np.clip(steps.astype(np.float64) + zero_point, *clamp).astype(np.int8)
