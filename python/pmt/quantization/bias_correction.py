"""Bias correction: what quantization shifts on average is taken off the bias."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt

from pmt.model import Model
from pmt.net.float_graph import FloatGraph, FloatOp, check_images, check_same_ops
from pmt.net.graph import Graph, Op, Tensor, graph_of_activations, is_layer
from pmt.quantization.float_forward import (
    Progress,
    float_steps,
    image_batches,
    last_readers,
    live_elements,
    normalize,
    taps,
)

Int8Array = npt.NDArray[np.int8]
DoubleArray = npt.NDArray[np.float64]

_IMAGE_BYTES = 256 * 2**20
_IMAGES_AT_ONCE = 16
_LARGEST_BIAS = 2**24  # beyond, a float32 no longer holds every integer


def correct_biases(
    float_graph: FloatGraph,
    graph: Graph,
    images: npt.NDArray[Any],
    *,
    progress: Progress | None = None,
) -> Graph:
    """Shift every bias so that the layer's mean output is that of the float network.

    The empirical bias correction of Nagel et al. 2019 (arXiv:1906.04721, section 4.2): layer by
    layer, the mean of every channel before its activation, over images and pixels, is taken in the
    float network and in the int8 network, whose input to the layer already comes from corrected
    layers; the difference goes into the bias. The means of a layer's output are its weights times
    the means of what each tap of its kernel reads, so that no layer is computed for them.

    Parameters
    ----------
    float_graph : FloatGraph
        The network that ``graph`` was quantized from.
    graph : Graph
        The int8 network. It is not changed.
    images : ndarray of uint8, shape (N, H, W, C)
        Calibration images, pixels 0..255. Where their int8 activations would not fit into 256 MB,
        evenly chosen ones are used.
    progress : callable, optional
        Called as ``progress(done, in_all)``: images first, then ops.

    Returns
    -------
    Graph
        A copy with other biases.

    Raises
    ------
    ValueError
        If the images do not fit, or the graphs do not have the same ops.
    """
    check_same_ops(float_graph, graph)
    check_images(float_graph, images)
    images = _chosen(float_graph, images)
    expected = _float_means(float_graph, images, progress)
    result = replace(graph, ops=[replace(op) for op in graph.ops])
    last_reader = last_readers(float_graph)
    known = {graph.input: Model.from_graph(graph).prepare(images)}
    for position, op in enumerate(result.ops):
        sources = [known[index] for index in op.inputs]
        if is_layer(op):
            _correct(op, result, sources[0], expected[position])
        known[op.output] = run_op(result, op, sources)
        for index in (*op.inputs, op.output):
            if last_reader.get(index, -1) <= position:
                known.pop(index, None)
        if progress is not None:
            progress(position + 1, len(result.ops))
    return result


def _chosen(graph: FloatGraph, images: npt.NDArray[Any]) -> npt.NDArray[Any]:
    most = max(1, _IMAGE_BYTES // live_elements(graph))
    if len(images) <= most:
        return images
    return images[np.linspace(0, len(images) - 1, most).astype(np.int64)]


def _float_means(
    graph: FloatGraph, images: npt.NDArray[Any], progress: Progress | None
) -> dict[int, DoubleArray]:
    """Mean of every layer's output before the activation, by the op's position."""
    positions = {op.output: position for position, op in enumerate(graph.ops)}
    means: dict[int, DoubleArray] = {}
    for part in image_batches(graph, images, progress):
        for step in float_steps(graph, normalize(graph, part)):
            if is_layer(step.op):
                position = positions[step.op.output]
                share = _tap_means(step.op, step.sources[0]) * (len(part) / len(images))
                means[position] = means.get(position, 0.0) + share
    return {place: _output_means(graph.ops[place], inputs) for place, inputs in means.items()}


def _correct(op: Op, graph: Graph, source: Int8Array, expected: DoubleArray) -> None:
    assert op.weights is not None
    assert op.weight_scales is not None
    assert op.bias is not None
    tensor = graph.tensors[op.inputs[0]]
    steps = np.zeros(())
    for first in range(0, len(source), _IMAGES_AT_ONCE):
        part = source[first : first + _IMAGES_AT_ONCE].astype(np.float32)
        share = _tap_means(op, part - np.float32(tensor.zero_point)) * (len(part) / len(source))
        steps = steps + share
    unit = tensor.scale * op.weight_scales.astype(np.float64)
    found = _output_means(op, steps)
    shift = np.rint(expected / unit - found)
    op.bias = np.clip(op.bias + shift, -_LARGEST_BIAS, _LARGEST_BIAS).astype(np.int32)


def _tap_means(op: FloatOp | Op, x: npt.NDArray[np.float32]) -> DoubleArray:
    """Mean of what each kernel tap reads: ``(kernel_h, kernel_w, in)``, or ``(in,)``."""
    if op.kind == "fully_connected":
        return np.asarray(x.reshape(len(x), -1).mean(axis=0, dtype=np.float64))
    means = [tap.mean(axis=(0, 1, 2), dtype=np.float64) for _, _, tap in taps(x, op, 0.0)]
    return np.asarray(means).reshape(*op.kernel, -1)


def _output_means(op: FloatOp | Op, inputs: DoubleArray) -> DoubleArray:
    """Mean of every output channel, bias included, in the units of weights times input."""
    assert op.weights is not None
    weights = op.weights.astype(np.float64)
    bias = 0.0 if op.bias is None else op.bias.astype(np.float64)
    if op.kind == "fully_connected":
        return np.asarray(weights @ inputs + bias)
    if op.kind == "conv2d":
        return np.asarray(np.einsum("oijc,ijc->o", weights, inputs) + bias)
    multiplier = weights.shape[-1] // inputs.shape[-1]
    return np.asarray((weights * np.repeat(inputs, multiplier, axis=-1)).sum(axis=(0, 1)) + bias)


def run_op(graph: Graph, op: Op, sources: list[Int8Array]) -> Int8Array:
    """Run one op of ``graph`` on its int8 inputs, ``(N, H, W, C)`` each."""
    tensors = [graph.tensors[index] for index in (*op.inputs, op.output)]
    if op.kind == "add":
        return _add(op, sources, tensors)
    model = Model.from_graph(graph_of_activations(tensors, [replace(op, inputs=(0,), output=1)]))
    return np.stack([model.core.activations(image)[1] for image in sources[0]])


def _add(op: Op, sources: list[Int8Array], tensors: list[Tensor]) -> Int8Array:
    # A network has one input, so an addition cannot stand alone. See docs/reference/integers.md.
    terms = [
        (values.astype(np.float32) - np.float32(tensor.zero_point)) * np.float32(tensor.scale)
        for values, tensor in zip(sources, tensors, strict=False)
    ]
    target = tensors[-1]
    steps = np.rint((terms[0] + terms[1]) / np.float32(target.scale)) + target.zero_point
    return np.asarray(np.clip(steps, *op.clamp), np.int8)
