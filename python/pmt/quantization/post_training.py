"""Post-training quantization of a float network, correction of its biases, and the way back."""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from pmt._core import LARGEST_WEIGHT
from pmt._util.arrays import Array, DoubleArray, FloatArray, Int8Array
from pmt._util.checks import check_callable, checked_flag, kind_of
from pmt.formats.layers import check_limits
from pmt.model import Model
from pmt.net.float_graph import (
    ACTIVATION_BOUNDS,
    Activation,
    Bounds,
    FloatGraph,
    FloatOp,
    FloatTensor,
    check_calibration,
    check_float_graph,
    check_images,
    check_is_float,
    check_same_ops,
    require_steps,
)
from pmt.net.graph import (
    Graph,
    Op,
    Tensor,
    channel_axis,
    channel_shape,
    check_is_graph,
    graph_of_activations,
    is_layer,
)
from pmt.net.ops import ACTIVATED_KINDS, DEFINITIONS, KEEPING_KINDS, taps
from pmt.net.pixels import PixelFormula, raw_pixels, whole_steps
from pmt.quantization.equalization import equalize as equalized
from pmt.quantization.float_forward import (
    Progress,
    float_steps,
    image_batches,
    last_readers,
    live_elements,
    normalize,
    real_values,
)
from pmt.quantization.ranges import (
    INT8_STEPS,
    Range,
    RangeMethod,
    activation_ranges,
    check_method,
    scale_and_zero_point,
)

_LARGEST_BIAS = 2.0**23  # beyond, a float32 no longer holds every integer
# Bias correction: the bound of biases, and the images that run at once.
_CORRECTED_BIASES = (-(2**24), 2**24)
_IMAGE_BYTES = 256 * 2**20
_IMAGES_AT_ONCE = 16
_RELU6_TOP = 6.0


def quantize_graph(
    float_graph: FloatGraph,
    calibration_images: Array,
    *,
    ranges: RangeMethod = "minmax",
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
        The network, batch norm folded into its layers. It is not changed.
    calibration_images : ndarray of uint8 or float32, shape (N, H, W, C)
        Some hundred typical images, at least 8, pixels 0..255, not used to report accuracy later.
        float32 inputs for a network that reads no pixels, whose ``input_mean`` is empty.
    ranges : {"minmax", "mse"}
        Rule for the ranges of activations, see :func:`activation_ranges`.
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
    check_method(ranges)
    checked_flag("equalize", equalize)
    checked_flag("bias_correction", bias_correction)
    check_callable("progress", progress)
    check_is_float(float_graph, "float_graph")
    check_calibration(float_graph, calibration_images)
    if equalize:
        float_graph = equalized(float_graph, calibration_images, progress=progress).graph
    found = activation_ranges(float_graph, calibration_images, method=ranges, progress=progress)
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
        As :func:`quantize_graph` makes it.

    Raises
    ------
    ValueError
        If the graph contradicts itself, or the ranges do not fit its tensors.
    """
    check_is_float(float_graph, "float_graph")
    check_float_graph(float_graph)
    _check_ranges(float_graph, ranges)
    tensors = _quantized_tensors(float_graph, ranges)
    source = tensors[float_graph.input]
    pixels = raw_pixels(source)
    if float_graph.reads_pixels:
        pixels = whole_steps(PixelFormula(float_graph.input_mean, float_graph.input_std), source)
    graph = Graph(
        tensors=tensors,
        ops=[_quantized_op(op, tensors) for op in float_graph.ops],
        input=float_graph.input,
        output=float_graph.output,
        input_mean=pixels.mean,
        input_std=pixels.std,
        blocks={name: list(layers) for name, layers in float_graph.blocks.items()},
        metadata=dict(float_graph.metadata),
    )
    check_limits(graph, "the network")
    return graph


def _check_ranges(graph: FloatGraph, ranges: Sequence[Range]) -> None:
    is_pairs = isinstance(ranges, Sequence) and all(
        isinstance(pair, tuple | list) and len(pair) == 2 for pair in ranges
    )
    if not is_pairs:
        raise TypeError(
            f"ranges is {kind_of(ranges)}: must be pairs (low, high), one per tensor, as "
            "activation_ranges() returns them"
        )
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
    (low, high), last = ranges[graph.output], graph.ops[-1]
    if is_layer(last) and last.bounds == ACTIVATION_BOUNDS["none"] and low == 0.0 < high:
        # A step below zero, because the core takes a zero point of -128 for that of a ReLU.
        parameters[graph.output] = scale_and_zero_point(-high / (INT8_STEPS - 1), high)
    elif is_layer(last) and last.bounds != ACTIVATION_BOUNDS["none"] and low < 0.0:
        scale, zero_point = parameters[graph.output]
        ends = np.rint(np.array(last.bounds) / scale) + zero_point
        if ends[0] <= -128 and ends[1] >= 127:
            # A step beyond both ends, because the core takes a clamp at int8's own ends for none.
            step = (high - low) / (INT8_STEPS - 2)
            parameters[graph.output] = scale_and_zero_point(low - step, high + step)
    if graph.reads_pixels:
        parameters[graph.input] = scale_and_zero_point(*_pixel_range(graph))
    for op in graph.ops:
        if op.kind in KEEPING_KINDS:
            parameters[op.output] = parameters[op.inputs[0]]
    return [
        Tensor(t.name, *t.shape, scale, zero_point)
        for t, (scale, zero_point) in zip(graph.tensors, parameters, strict=True)
    ]


def _pixel_range(graph: FloatGraph) -> Range:
    mean, std = np.asarray(graph.input_mean), np.asarray(graph.input_std)
    ends = np.concatenate([(0.0 - mean) / std, (255.0 - mean) / std])
    return min(float(ends.min()), 0.0), max(float(ends.max()), 0.0)


def _quantized_op(op: FloatOp, tensors: list[Tensor]) -> Op:
    result = Op(**op.base_fields(), clamp=_clamp(op, tensors[op.output]))
    if is_layer(op):
        _quantize_parameters(op, result, tensors[op.inputs[0]].scale)
    return result


def _clamp(op: FloatOp, output: Tensor) -> tuple[int, int]:
    steps = np.rint(np.array(op.bounds) / output.scale) + output.zero_point
    low, high = map(int, np.clip(steps, -128, 127))
    require_steps(repr(op.name), op.bounds, (low, high), output.scale)
    return low, high


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


def _weight_scales(weights: DoubleArray, bias: DoubleArray, input_scale: float) -> FloatArray:
    """One scale per output channel, ``weights`` being ``(out, rest)``.

    A channel of zeros takes the layer's largest scale, because a tiny one would make the squared
    inverse that scaled updates divide by explode, and its bias overflow int32.
    """
    scales = np.abs(weights).max(axis=1) / LARGEST_WEIGHT
    largest = scales.max()
    scales[scales == 0] = largest if largest > 0 else 1.0
    for_bias = np.abs(bias) / (input_scale * _LARGEST_BIAS)
    return np.asarray(np.maximum(scales, for_bias), np.float32)


def correct_biases(
    float_graph: FloatGraph, graph: Graph, images: Array, *, progress: Progress | None = None
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
    check_callable("progress", progress)
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


def _chosen(graph: FloatGraph, images: Array) -> Array:
    most = max(1, _IMAGE_BYTES // live_elements(graph))
    if len(images) <= most:
        return images
    return images[np.linspace(0, len(images) - 1, most).astype(np.int64)]


def _float_means(
    graph: FloatGraph, images: Array, progress: Progress | None
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
    op.bias = np.clip(op.bias + shift, *_CORRECTED_BIASES).astype(np.int32)


def _tap_means(op: FloatOp | Op, x: FloatArray) -> DoubleArray:
    """Mean input of each kernel tap: ``(kernel_h, kernel_w, in)``, or ``(in,)``."""
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
    if len(sources) > 1:
        return _combined(op, sources, tensors)
    model = Model.from_graph(graph_of_activations(tensors, [replace(op, inputs=(0,), output=1)]))
    return np.stack([model.core.activations(image)[1] for image in sources[0]])


def _combined(op: Op, sources: list[Int8Array], tensors: list[Tensor]) -> Int8Array:
    # A network has one input, so such an op cannot stand alone. See docs/reference/integers.md.
    forward, target = DEFINITIONS[op.kind].forward, tensors[-1]
    assert forward is not None
    real = [real_values(t, values) for t, values in zip(tensors, sources, strict=False)]
    steps = np.rint(forward(op, real) / np.float32(target.scale)) + target.zero_point
    return np.asarray(np.clip(steps, *op.clamp), np.int8)


def dequantize(graph: Graph) -> FloatGraph:
    """Return the float network with the real values of an int8 network's weights and biases.

    Use it to train further in floating point and quantize again. Quantized again with the ranges of
    ``graph`` (:func:`quantize_with_ranges`) it has the same int8 weights and scales in every
    channel whose largest weight is 127 or -127 and whose bias is below ``2**23`` steps. Other
    channels get the scale that their largest weight fills; dead ones (a bias at the end of int32)
    the scale that their bias needs. The bounds of an int8 output become the activation that they
    most likely come from: a lower bound of zero is ReLU6 where the upper one is at most 6, else
    ReLU; other outputs are not bounded.

    Parameters
    ----------
    graph : Graph
        The int8 network; it is not changed.

    Returns
    -------
    FloatGraph
        Tensors, ops, input mean and spread, blocks and metadata as in ``graph``.

    Raises
    ------
    ValueError
        If a layer has no weights, scales or bias.
    """
    check_is_graph(graph)
    return FloatGraph(
        tensors=[FloatTensor(t.name, *t.shape) for t in graph.tensors],
        ops=[_dequantized_op(op, graph) for op in graph.ops],
        input=graph.input,
        output=graph.output,
        input_mean=tuple(graph.input_mean),
        input_std=tuple(graph.input_std),
        blocks={name: list(layers) for name, layers in graph.blocks.items()},
        metadata=dict(graph.metadata),
    )


def tensor_ranges(graph: Graph) -> list[Bounds]:
    """Return the real values of -128 and 127 for every tensor of an int8 network."""
    check_is_graph(graph)
    return [_real_bounds(tensor, (-128, 127)) for tensor in graph.tensors]


def _dequantized_op(op: Op, graph: Graph) -> FloatOp:
    result = FloatOp(**op.base_fields())
    if op.kind in ACTIVATED_KINDS:
        result.activation = _activation(op.clamp, graph.tensors[op.output])
    if is_layer(op):
        if op.weights is None or op.weight_scales is None or op.bias is None:
            raise ValueError(f"op {op.name!r}: weights, weight_scales or bias are missing")
        scales = op.weight_scales.astype(np.float64)
        weights = op.weights * scales.reshape(channel_shape(op, op.weights.ndim))
        bias = op.bias * (graph.tensors[op.inputs[0]].scale * scales)
        result.weights, result.bias = weights.astype(np.float32), bias.astype(np.float32)
    return result


def _activation(clamp: tuple[int, int], output: Tensor) -> Activation:
    if clamp[0] != output.zero_point:
        return "none"
    # A scale is a float32: the top of a ReLU6 is 6 within its rounding.
    return "relu6" if _real_bounds(output, clamp)[1] <= _RELU6_TOP * (1 + 1e-6) else "relu"


def _real_bounds(tensor: Tensor, steps: tuple[int, int]) -> Bounds:
    low, high = ((step - tensor.zero_point) * tensor.scale for step in steps)
    return low, high
