"""An independent NumPy emulation of the integer semantics, working on a graph.

It shares no code with the core. Accumulators are float64 sums of integers below 2**53, which are
exact; every step after them is float32, in the order the design states.
"""

from typing import Any

import numpy as np
import numpy.typing as npt

from pmt.net.graph import Graph, Op, Tensor

Array = npt.NDArray[Any]
Activations = dict[int, npt.NDArray[np.int8]]
Steps = tuple[Array, int]

float32 = np.float32


def run(graph: Graph, inputs: npt.NDArray[np.int8]) -> Activations:
    """Every tensor of the network: index -> int8 (N, height, width, channels)."""
    values: Activations = {graph.input: inputs}
    for op in graph.ops:
        values[op.output] = run_op(graph, op, [values[i] for i in op.inputs])
    return values


def run_op(graph: Graph, op: Op, inputs: list[npt.NDArray[np.int8]]) -> npt.NDArray[np.int8]:
    """One operation on int8 inputs (N, height, width, channels)."""
    steps, zero_point = unrounded(graph, op, inputs)
    return _to_int8(np.rint(steps), zero_point, op.clamp)


def unrounded(graph: Graph, op: Op, inputs: list[Array], kind: Any = float32) -> tuple[Array, int]:
    """Output of an operation in steps from a zero point, neither rounded nor clipped, and that.

    ``kind`` is the float type that it is computed in.
    """
    sources = [graph.tensors[i] for i in op.inputs]
    target = graph.tensors[op.output]
    steps, zero_point = _OPS[op.kind](op, inputs, sources, target, kind)
    assert steps.shape[1:] == target.shape, op.name
    return steps, zero_point


def logits(graph: Graph, inputs: npt.NDArray[np.int8]) -> npt.NDArray[np.float32]:
    """Real logits (N, classes) from the last layer's accumulators, float32.

    Behind an activation they are its int8 output.
    """
    last = graph.ops[-1]
    if has_activation(graph):
        target = graph.tensors[last.output]
        steps = run(graph, inputs)[last.output].astype(float32) - float32(target.zero_point)
        return (steps * float32(target.scale)).reshape(len(inputs), -1)
    assert last.weights is not None
    assert last.bias is not None
    assert last.weight_scales is not None
    values = run(graph, inputs)
    source = graph.tensors[last.inputs[0]]
    acc = accumulators(last, values[last.inputs[0]], source)
    real = (acc.astype(float32) + last.bias.astype(float32)) * (
        float32(source.scale) * last.weight_scales
    )
    return real.reshape(len(inputs), -1)


def has_activation(graph: Graph) -> bool:
    """Whether the last layer cuts its output, at int8's end where that is zero."""
    last = graph.ops[-1]
    return last.clamp != (-128, 127) or graph.tensors[last.output].zero_point == -128


def quantize_pixels(graph: Graph, images: npt.NDArray[np.uint8]) -> npt.NDArray[np.int8]:
    """Pixels uint8 (N, height, width, channels) -> the network's int8 input."""
    tensor = graph.tensors[graph.input]
    mean = np.array(graph.input_mean, float32)
    std = np.array(graph.input_std, float32)
    real = (images.astype(float32) - mean) / std
    return _to_int8(np.rint(real / float32(tensor.scale)), tensor.zero_point, (-128, 127))


def accumulators(op: Op, x: npt.NDArray[np.int8], source: Tensor) -> Array:
    """Exact integer sums of a layer before the bias, float64 (N, out_h, out_w, out)."""
    assert op.weights is not None
    weights = op.weights.astype(np.float64)
    centered = x.astype(np.float64) - source.zero_point
    if op.kind == "fully_connected":
        acc = (centered.reshape(len(x), -1) @ weights.T)[:, None, None, :]
    elif op.kind == "conv2d":
        patches = windows(_pad(centered, op.padding, 0.0), op)
        acc = np.tensordot(patches, weights, axes=((3, 4, 5), (3, 1, 2)))
    else:
        repeated = np.repeat(centered, weights.shape[2] // centered.shape[3], axis=3)
        patches = windows(_pad(repeated, op.padding, 0.0), op)
        acc = np.einsum("nhwcij,ijc->nhwc", patches, weights, optimize=True)
    assert np.abs(acc).max(initial=0) < 2**31, op.name
    return acc


def _layer(op: Op, inputs: list[Array], sources: list[Tensor], target: Tensor, f: Any) -> Steps:
    assert op.bias is not None
    assert op.weight_scales is not None
    acc = accumulators(op, inputs[0], sources[0])
    scale = (f(sources[0].scale) * op.weight_scales.astype(f)) / f(target.scale)
    return (acc.astype(f) + op.bias.astype(f)) * scale, target.zero_point


def _add(op: Op, inputs: list[Array], sources: list[Tensor], target: Tensor, f: Any) -> Steps:
    terms = [
        (x.astype(f) - f(t.zero_point)) * f(t.scale) for x, t in zip(inputs, sources, strict=True)
    ]
    return (terms[0] + terms[1]) / f(target.scale), target.zero_point


def _concatenation(
    op: Op, inputs: list[Array], sources: list[Tensor], target: Tensor, f: Any
) -> Steps:
    parts = [
        (x.astype(f) - f(t.zero_point)) * (f(t.scale) / f(target.scale))
        for x, t in zip(inputs, sources, strict=True)
    ]
    return np.concatenate(parts, axis=3), target.zero_point


def _average_pool(
    op: Op, inputs: list[Array], sources: list[Tensor], target: Tensor, f: Any
) -> Steps:
    values = inputs[0].astype(np.float64)
    total = windows(_pad(values, op.padding, 0.0), op).sum(axis=(4, 5))
    count = windows(_pad(np.ones_like(values), op.padding, 0.0), op).sum(axis=(4, 5))
    return total.astype(f) / count.astype(f), 0


def padded_windows(op: Op, values: Array) -> Array:
    """Inputs of a max pool by output: (N, out_h, out_w, C, kernel_h, kernel_w)."""
    return windows(_pad(values.astype(np.float64), op.padding, -np.inf), op)


def _max_pool(op: Op, inputs: list[Array], *_: Any) -> Steps:
    return padded_windows(op, inputs[0]).max(axis=(4, 5)), 0


def _mean(op: Op, inputs: list[Array], sources: list[Tensor], target: Tensor, f: Any) -> Steps:
    source = sources[0]
    total = inputs[0].sum(axis=(1, 2), dtype=np.float64, keepdims=True).astype(f)
    mean = total / f(source.height * source.width)
    if (float32(source.scale), source.zero_point) == (float32(target.scale), target.zero_point):
        return mean, 0
    return (mean - f(source.zero_point)) * (f(source.scale) / f(target.scale)), target.zero_point


def _pad_op(op: Op, inputs: list[Array], sources: list[Tensor], *_: Any) -> Steps:
    return _pad(inputs[0], op.padding, sources[0].zero_point), 0


def _reshape(op: Op, inputs: list[Array], sources: list[Tensor], target: Tensor, _: Any) -> Steps:
    return inputs[0].reshape(-1, *target.shape), 0


def _pad(x: Array, padding: tuple[int, int, int, int], value: float) -> Array:
    top, left, bottom, right = padding
    return np.pad(x, ((0, 0), (top, bottom), (left, right), (0, 0)), constant_values=value)


def windows(x: Array, op: Op) -> Array:
    """(N, height, width, C) -> (N, out_h, out_w, C, kernel_h, kernel_w)."""
    view = np.lib.stride_tricks.sliding_window_view(x, op.kernel, axis=(1, 2))
    return view[:, :: op.stride[0], :: op.stride[1]]


def _to_int8(rounded: Array, zero_point: int, clamp: tuple[int, int]) -> npt.NDArray[np.int8]:
    return np.clip(rounded.astype(np.float64) + zero_point, *clamp).astype(np.int8)


_OPS = {
    "conv2d": _layer,
    "depthwise_conv2d": _layer,
    "fully_connected": _layer,
    "add": _add,
    "concatenation": _concatenation,
    "average_pool": _average_pool,
    "max_pool": _max_pool,
    "mean": _mean,
    "pad": _pad_op,
    "reshape": _reshape,
}
