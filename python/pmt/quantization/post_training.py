"""Post-training quantization: float graph and calibration images in, int8 graph out."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from pmt.net.float_graph import (
    Bounds,
    FloatGraph,
    FloatOp,
    check_calibration,
    check_float_graph,
)
from pmt.net.graph import KEEPING_KINDS, Graph, Op, Tensor, channel_axis, is_layer
from pmt.net.image_limits import LARGEST_WEIGHT
from pmt.quantization.bias_correction import correct_biases
from pmt.quantization.equalization import equalize as equalized
from pmt.quantization.float_forward import Progress
from pmt.quantization.ranges import (
    Range,
    RangeMethod,
    activation_ranges,
    check_method,
    scale_and_zero_point,
)

_LARGEST_BIAS = 2.0**23  # beyond, a float32 no longer holds every integer


def quantize(
    float_graph: FloatGraph,
    calibration_images: npt.NDArray[Any],
    *,
    ranges: RangeMethod = "minmax",
    percentile: float | None = None,
    equalize: bool = False,
    bias_correction: bool = False,
    progress: Progress | None = None,
) -> Graph:
    """Quantize a float network to int8.

    Weights are symmetric in [-127, 127] with one scale per output channel, activations asymmetric
    with one scale and zero point per tensor, biases int32 with the scale of input times weights.
    ReLU and ReLU6 become the clamp of their op. The input's quantization follows from the pixel
    range 0..255, not from the calibration images; that of inputs that are not pixels from their
    range.

    Parameters
    ----------
    float_graph : FloatGraph
        The network, batch norm folded (:func:`fold_batch_norm`). It is not changed.
    calibration_images : ndarray of uint8 or float32, shape (N, H, W, C)
        Some hundred typical images, at least 8, pixels 0..255, not used to report accuracy later.
        float32 inputs for a network that reads no pixels, whose ``input_mean`` is empty.
    ranges : {"minmax", "percentile", "mse"}
        Rule for the ranges of activations, see :func:`activation_ranges`.
    percentile : float, optional
        For the ranges ``"percentile"``: 99.99 by default.
    equalize : bool
        Equalize channels over the calibration images first, see :func:`equalize`.
    bias_correction : bool
        Correct the biases in the end, see :func:`correct_biases`.
    progress : callable, optional
        Called as ``progress(done, in_all)`` within each of these stages.

    Returns
    -------
    Graph
        With the blocks and metadata of the float graph.

    Raises
    ------
    ValueError
        If the graph contradicts itself, an activation is not finite, the images do not fit the
        network or are too few, or an option is out of range. One message names all problems of
        graph and images.
    """
    check_method(ranges, percentile)
    check_calibration(float_graph, calibration_images)
    if equalize:
        float_graph = equalized(float_graph, calibration_images, progress=progress).graph
    found = activation_ranges(
        float_graph, calibration_images, method=ranges, percentile=percentile, progress=progress
    )
    graph = quantize_with_ranges(float_graph, found)
    if bias_correction:
        graph = correct_biases(float_graph, graph, calibration_images, progress=progress)
    return graph


def quantize_with_ranges(float_graph: FloatGraph, ranges: Sequence[Range]) -> Graph:
    """Quantize a float network to int8 with known ranges of its activations.

    Parameters
    ----------
    float_graph : FloatGraph
        The network. It is not changed.
    ranges : sequence of (float, float)
        Lowest and highest real value per tensor, zero inside; that of the input is not used where
        it is made of pixels.

    Returns
    -------
    Graph
        As :func:`quantize` makes it.

    Raises
    ------
    ValueError
        If the graph contradicts itself, or the ranges do not fit its tensors.
    """
    check_float_graph(float_graph)
    _check_ranges(float_graph, ranges)
    tensors = _quantized_tensors(float_graph, ranges)
    mean, std = _pixel_scaling(float_graph, tensors[float_graph.input])
    return Graph(
        tensors=tensors,
        ops=[_quantized_op(op, tensors) for op in float_graph.ops],
        input=float_graph.input,
        output=float_graph.output,
        input_mean=mean,
        input_std=std,
        blocks={name: list(layers) for name, layers in float_graph.blocks.items()},
        metadata=dict(float_graph.metadata),
    )


def _check_ranges(graph: FloatGraph, ranges: Sequence[Range]) -> None:
    if len(ranges) != len(graph.tensors):
        raise ValueError(
            f"there are {len(ranges)} ranges for the {len(graph.tensors)} tensors of the network: "
            "pass one (low, high) per tensor"
        )
    for tensor, (low, high) in zip(graph.tensors, ranges, strict=True):
        if not (-np.inf < low <= 0.0 <= high < np.inf):
            raise ValueError(
                f"the range of {tensor.name!r} is ({low}, {high}), but must be finite and hold "
                "zero, which padding and ReLU need exactly"
            )


def _quantized_tensors(graph: FloatGraph, ranges: Sequence[Range]) -> list[Tensor]:
    parameters = [scale_and_zero_point(*bounds) for bounds in ranges]
    if graph.reads_pixels:
        parameters[graph.input] = scale_and_zero_point(*_pixel_range(graph))
    for op in graph.ops:
        if op.kind in KEEPING_KINDS:
            parameters[op.output] = parameters[op.inputs[0]]
    return [
        Tensor(t.name, *t.shape, scale, zero_point)
        for t, (scale, zero_point) in zip(graph.tensors, parameters, strict=True)
    ]


def _pixel_scaling(
    graph: FloatGraph, source: Tensor
) -> tuple[tuple[float, ...], tuple[float, ...]]:
    """Return mean and std of pixels; where there are none, those by which 0 becomes -128."""
    if graph.reads_pixels:
        return graph.input_mean, graph.input_std
    channels = min(source.channels, 4)
    return (128.0 + source.zero_point,) * channels, (1.0 / source.scale,) * channels


def _pixel_range(graph: FloatGraph) -> Range:
    mean, std = np.asarray(graph.input_mean), np.asarray(graph.input_std)
    ends = np.concatenate([(0.0 - mean) / std, (255.0 - mean) / std])
    return min(float(ends.min()), 0.0), max(float(ends.max()), 0.0)


def _quantized_op(op: FloatOp, tensors: list[Tensor]) -> Op:
    result = Op(**op.base_fields(), clamp=_clamp(op.bounds, tensors[op.output]))
    if is_layer(op):
        _quantize_parameters(op, result, tensors[op.inputs[0]].scale)
    return result


def _clamp(bounds: Bounds, output: Tensor) -> tuple[int, int]:
    steps = np.rint(np.array(bounds) / output.scale) + output.zero_point
    clamped = np.clip(steps, -128, 127)
    return int(clamped[0]), int(clamped[1])


def _quantize_parameters(op: FloatOp, result: Op, input_scale: float) -> None:
    assert op.weights is not None  # by check_float_graph
    axis = channel_axis(op.kind)
    weights = np.moveaxis(op.weights, axis, 0).astype(np.float64)
    bias = np.zeros(len(weights)) if op.bias is None else op.bias.astype(np.float64)
    scales = _weight_scales(weights.reshape(len(weights), -1), bias, input_scale)
    column = scales.astype(np.float64).reshape(-1, *[1] * (weights.ndim - 1))
    steps = np.clip(np.rint(weights / column), -LARGEST_WEIGHT, LARGEST_WEIGHT)
    result.weights = np.ascontiguousarray(np.moveaxis(steps, 0, axis).astype(np.int8))
    result.weight_scales = scales
    result.bias = np.rint(bias / (input_scale * scales.astype(np.float64))).astype(np.int32)


def _weight_scales(
    weights: npt.NDArray[np.float64], bias: npt.NDArray[np.float64], input_scale: float
) -> npt.NDArray[np.float32]:
    """One scale per output channel, ``weights`` being ``(out, rest)``.

    A channel of zeros takes the layer's largest scale, because a tiny one would make the squared
    inverse that scaled updates divide by explode, and its bias overflow int32.
    """
    scales = np.abs(weights).max(axis=1) / LARGEST_WEIGHT
    largest = scales.max()
    scales[scales == 0] = largest if largest > 0 else 1.0
    for_bias = np.abs(bias) / (input_scale * _LARGEST_BIAS)
    return np.asarray(np.maximum(scales, for_bias), np.float32)
