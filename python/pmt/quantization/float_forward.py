"""The float network's forward pass: the reference that quantisation is measured against."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from pmt.quantization import windows
from pmt.quantization.float_graph import ACTIVATION_BOUNDS, FloatGraph, FloatOp

FloatArray = npt.NDArray[np.float32]


def normalise(graph: FloatGraph, images: npt.NDArray[Any]) -> FloatArray:
    """Turn pixels 0..255, ``(N, H, W, C)``, into the network's float32 input.

    Raises
    ------
    ValueError
        The images are not uint8 of the network's input shape, or there are none.
    """
    shape = graph.tensors[graph.input].shape
    if images.dtype != np.uint8 or images.ndim != 4 or images.shape[1:] != shape or not len(images):
        raise ValueError(
            f"images are {images.dtype} of shape {images.shape}, but the network reads uint8 "
            f"images (N, {shape[0]}, {shape[1]}, {shape[2]}) with N at least 1: convert them first"
        )
    mean = np.asarray(graph.input_mean, np.float32)
    std = np.asarray(graph.input_std, np.float32)
    return (images.astype(np.float32) - mean) / std


def float_activations(graph: FloatGraph, inputs: FloatArray) -> list[FloatArray]:
    """Compute every activation.

    Parameters
    ----------
    graph : FloatGraph
        The network.
    inputs : ndarray of float32, shape (N, H, W, C)
        The network's input, see :func:`normalise`.

    Returns
    -------
    list of ndarray of float32
        One per tensor of the graph, ``(N, H, W, C)`` each.
    """
    known: dict[int, FloatArray] = {graph.input: inputs}
    for op in graph.ops:
        shape = graph.tensors[op.output].shape
        result = _result(op, [known[index] for index in op.inputs])
        low, high = ACTIVATION_BOUNDS[op.activation]
        result = np.clip(result, np.float32(low), np.float32(high))
        known[op.output] = result.reshape(-1, *shape)
    return [known[index] for index in range(len(graph.tensors))]


def _result(op: FloatOp, sources: list[FloatArray]) -> FloatArray:
    x = sources[0]
    match op.kind:
        case "add":
            return x + sources[1]
        case "mean":
            return np.asarray(x.mean(axis=(1, 2), dtype=np.float32))
        case "average_pool":
            return windows.pool_average(x, op)
        case "max_pool":
            return windows.pool_maximum(x, op)
        case "pad":
            return windows.pad(x, op.padding, 0.0)
        case "reshape":
            return x
    assert op.weights is not None  # checked by quantize()
    if op.kind == "conv2d":
        total = windows.convolve(x, op.weights, op)
    elif op.kind == "depthwise_conv2d":
        total = windows.convolve_depthwise(x, op.weights, op)
    else:
        total = x.reshape(len(x), -1) @ op.weights.T
    return total if op.bias is None else total + op.bias
