"""TFLite operators with windows or weights: layers, pools, MEAN, REDUCE_MAX, PAD."""

import math
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from pmt._core import LARGEST_SIDE, LARGEST_WEIGHT
from pmt._util.arrays import Array, FloatArray, Int8Array
from pmt.formats.layers import (
    Unsupported,
    Window,
    channelwise_layer,
    grouped_kernel,
    kernel_extent,
    require_scales,
    same_sides,
    spread_depthwise,
)
from pmt.formats.tflite.elementwise import fused_clamp
from pmt.formats.tflite.file import CONVERT_INT8, FileOp, FileTensor
from pmt.formats.tflite.network import Step, StoredLayer
from pmt.net.graph import Op, Tensor
from pmt.net.ops import OpKind, Padding, Pair, padded_size

SAME, VALID = 0, 1
_LARGEST_KERNEL = 255
_LOWEST = -128


def window(step: Step, kernel: Pair) -> Window:
    """Work out the window of an operator on its first input.

    SAME is asymmetric: the odd row or column goes below and to the right. Padding that an earlier
    PAD left to its readers is added.
    """
    options, source = step.op.options, step.tensor()
    stride = (options["StrideH"], options["StrideW"])
    dilation = (options.get("DilationHFactor", 1), options.get("DilationWFactor", 1))
    if min(*stride, *kernel, *dilation) < 1:
        raise Unsupported(
            f"kernel {kernel}, stride {stride} and dilation {dilation} must be positive",
            "the file is damaged",
        )
    extent = kernel_extent(kernel, dilation)
    if max(*extent, *stride) > _LARGEST_KERNEL:
        raise Unsupported(
            f"kernel {kernel} with dilation {dilation} spans {extent}, stride {stride}",
            f"at most {_LARGEST_KERNEL} each; use a smaller kernel, dilation or stride",
        )
    before = step.network.absorbed.get(step.op.inputs[0], (0, 0, 0, 0))
    own = _padding(step, source, extent, stride, before)
    padding: Padding = (
        before[0] + own[0], before[1] + own[1], before[2] + own[2], before[3] + own[3],
    )  # fmt: skip
    result = Window(extent, stride, dilation, padding)
    if min(result.output(source.shape)) < 1 or not result.padding_fits:
        raise Unsupported(
            f"kernel {extent} with padding {padding} does not fit the input of "
            f"{source.height}x{source.width}",
            "use a smaller kernel or larger images",
        )
    return result


def _padding(step: Step, source: Tensor, extent: Pair, stride: Pair, before: Padding) -> Padding:
    options = step.op.options
    if "Top" in options:  # made by a rewrite of several operators
        return options["Top"], options["Left"], options["Bottom"], options["Right"]
    if options["Padding"] not in (SAME, VALID):
        raise Unsupported(f"padding {options['Padding']}", "use SAME or VALID")
    if options["Padding"] == VALID:
        return (0, 0, 0, 0)
    (top, bottom), (left, right) = map(
        same_sides, padded_size(source.shape, before), extent, stride
    )
    return top, left, bottom, right


def pool(step: Step, kind: Literal["average_pool", "max_pool"]) -> None:
    """Lower AVERAGE_POOL_2D and MAX_POOL_2D."""
    step.require_same_quantization()
    shape = window(step, (step.op.options["FilterHeight"], step.op.options["FilterWidth"]))
    step.emit(
        kind,
        (1, *shape.output(step.tensor().shape), step.tensor().channels),
        stem=kind,
        **shape.settings,
        clamp=fused_clamp(step),
    )


def mean(step: Step) -> None:
    """Lower MEAN over all positions, keeping the dimensions or not."""
    step.emit("mean", _reduced(step), stem="mean")


def reduce_max(step: Step) -> None:
    """Lower REDUCE_MAX over all positions: a max pool as large as the image."""
    step.require_same_quantization()
    source = step.tensor()
    kernel = (source.height, source.width)
    if max(kernel) > _LARGEST_KERNEL:
        raise Unsupported(
            f"the image of {kernel} is larger than a window", f"at most {_LARGEST_KERNEL} a side"
        )
    step.emit("max_pool", _reduced(step), stem="max_pool", kernel=kernel)


def _reduced(step: Step) -> tuple[int, ...]:
    """Return the output's shape if the axes are all positions and no channel."""
    shape, axes = step.shape(), step.integers(1)
    rank = len(shape)
    reduced = {a % rank for a in axes or () if -rank <= a < rank}
    remaining = [i for i in range(1, rank - 1) if i not in reduced and shape[i] != 1]
    legal = axes is not None and all(-rank <= a < rank for a in axes)
    if not legal or rank < 3 or remaining or rank - 1 in reduced or (0 in reduced):
        raise Unsupported(
            f"reduces axes {axes} of shape {shape}",
            "only all of height and width (axes 1, 2) at once can be reduced",
        )
    keeps = len(step.network.model.tensors[step.output].shape) == rank
    return (*(1,) * (rank - 1), shape[-1]) if keeps else (1, shape[-1])


def pad(step: Step) -> None:
    """Lower PAD and PADV2.

    Padding that every reader can take into its own window costs nothing: zero points before a
    convolution, -128 before a max pool. Else it is an op of its own; a value other than the zero
    point needs the tensor to be relabeled, so that this value becomes its zero point and back.
    """
    step.require_same_quantization()
    amounts, shape = _amounts(step)
    value = _value(step)
    readers = step.network.readers.get(step.output, [])
    if readers and all(_takes(step, op, amounts, value) for op in readers):
        step.alias(step.shape())
        step.network.absorbed[step.output] = amounts
    elif value == step.tensor().zero_point:
        step.emit("pad", shape, stem="pad", padding=amounts)
    else:
        _pad_with(step, shape, amounts, value)


def _amounts(step: Step) -> tuple[Padding, tuple[int, ...]]:
    """Return top, left, bottom, right and the output's shape."""
    source, shape = step.tensor(), step.shape()
    constant = step.constant(1)
    pairs = None if constant is None or constant.data is None else constant.data
    rank = len(shape)
    if pairs is None or pairs.shape != (rank, 2) or constant.dtype not in ("INT32", "INT64"):  # type: ignore[union-attr]
        raise Unsupported(f"paddings must be a constant of shape ({rank}, 2)", "store it so")
    sides = [(int(before), int(after)) for before, after in pairs]
    inner = [(0, 0), (0, 0), *sides[1:-1]][-2:]
    legal = rank in (3, 4) and sides[0] == (0, 0) == sides[-1]
    if not legal or any(n < 0 or n > LARGEST_SIDE for side in inner for n in side):
        raise Unsupported(
            f"paddings {pairs.tolist()}",
            f"only height and width can be padded, by 0 to {LARGEST_SIDE}",
        )
    (top, bottom), (left, right) = inner
    padding = (top, left, bottom, right)
    height, width = padded_size(source.shape, padding)
    size = (1, height, width, source.channels)
    return padding, size if rank == 4 else (1, width, source.channels)


def _value(step: Step) -> int:
    """Return the int8 value to pad with."""
    zero_point = step.tensor().zero_point
    if len(step.op.inputs) < 3 or step.op.inputs[2] < 0:
        return zero_point
    constant = step.constant(2)
    if constant is None or constant.data is None or constant.data.size != 1:
        raise Unsupported("the value to pad with is not a constant", "store one INT8 value")
    if constant.dtype != "INT8":
        raise Unsupported(f"the value to pad with is {constant.dtype}", "store one INT8 value")
    return int(constant.data.ravel()[0])


def _takes(step: Step, op: FileOp, amounts: Padding, value: int) -> bool:
    """Whether a reader's window can have this padding as its own."""
    options, model = op.options, step.network.model
    if op.kind in ("CONV_2D", "DEPTHWISE_CONV_2D") and op.inputs[1:2]:
        weights = model.tensors[op.inputs[1]].shape if op.inputs[1] >= 0 else ()
        if value != step.tensor().zero_point or len(weights) != 4 or op.inputs[0] != step.output:
            return False
        dilation = options["DilationHFactor"], options["DilationWFactor"]
        height, width = kernel_extent((weights[1], weights[2]), dilation)
    elif op.kind == "MAX_POOL_2D" and value == _LOWEST:
        height, width = options["FilterHeight"], options["FilterWidth"]
    else:
        return False
    top, left, bottom, right = amounts
    plain = options["Padding"] == VALID and "Top" not in options
    return plain and max(top, bottom) < height and max(left, right) < width


def _pad_with(step: Step, shape: tuple[int, ...], amounts: Padding, value: int) -> None:
    """Relabel the zero point as ``value``, pad, and relabel back; the bytes stay."""
    network, source = step.network, step.tensor()
    network.reserve(2 * source.channels)
    offset = (source.zero_point - value) * float(source.scale)
    height, width = padded_size(source.shape, amounts)
    relabeled = replace(source, name=f"{source.name}_relabeled", zero_point=value)
    padded = replace(relabeled, name=f"{source.name}_padded", height=height, width=width)
    first, second = network.intermediate(relabeled), network.intermediate(padded)
    layer, name = channelwise_layer(source, 1.0, offset), network.name("relabel")
    network.ops += [
        Op("depthwise_conv2d", name, (step.source(),), first, **layer),
        Op("pad", network.name("pad"), (first,), second, padding=amounts),
    ]
    step.emit(
        "depthwise_conv2d",
        shape,
        stem="relabel",
        sources=(second,),
        size=padded.shape,
        **channelwise_layer(padded, 1.0, -offset),
    )


def conv_2d(step: Step) -> None:
    """Lower CONV_2D: one group as it is, one channel a group as depthwise, else with zeros."""
    stored, weights = _weights(step, 0, 4)
    out, height, width, inner = weights.shape
    channels = step.tensor().channels
    if inner == 0 or channels % inner or out % (channels // inner):
        raise Unsupported(
            f"its weights take {inner} channels and give {out}, its input has {channels}",
            "input channels must be a multiple, and the output channels one of the groups",
        )
    groups = channels // inner
    shape = window(step, (height, width))
    depthwise = groups > 1 and inner == 1
    step.network.reserve(math.prod(shape.kernel) * out * (1 if depthwise else channels))
    kind, spread = grouped_kernel(weights, groups, shape.dilation)
    _emit(step, kind, stored, shape, spread)


def depthwise_conv_2d(step: Step) -> None:
    """Lower DEPTHWISE_CONV_2D, with any channel multiplier."""
    stored, weights = _weights(step, 3, 4)
    one, height, width, out = weights.shape
    channels = step.tensor().channels
    multiplier = step.op.options.get("DepthMultiplier", 0)
    if one != 1 or out % channels or multiplier not in (0, out // channels):
        raise Unsupported(
            f"weights {weights.shape} with multiplier {multiplier} for {channels} channels",
            "the output channels must be the input channels times the multiplier",
        )
    shape = window(step, (height, width))
    step.network.reserve(math.prod(shape.kernel) * out)
    spread = spread_depthwise(weights[0], shape.dilation)
    _emit(step, "depthwise_conv2d", stored, shape, spread)


def fully_connected(step: Step, order: npt.NDArray[np.intp] | None = None) -> None:
    """Lower FULLY_CONNECTED: on all values, or on the channels of each position as a 1x1 conv2d.

    ``order`` is the place in the file of each of the graph's values, where they differ.
    """
    stored, weights = _weights(step, 0, 2)
    if step.op.options.get("WeightsFormat", 0) != 0:
        raise Unsupported("its weights are shuffled", "convert the model without that option")
    out, inner = weights.shape
    source, shape = step.tensor(), step.shape()
    step.network.reserve(weights.size)
    parameters = _parameters(step, stored, out)
    size = None
    kind: OpKind = "fully_connected"
    if order is not None and inner != source.elements:
        raise Unsupported(f"{inner} weights per row for {source.elements} values", CONVERT_INT8)
    if inner == source.elements:
        weights = weights if order is None else weights[:, order]
        keeps_rank = len(step.network.model.tensors[step.output].shape) == len(shape)
        lead = (1,) * (len(shape) - 1) if keeps_rank else (1,)
    elif inner == source.channels:
        kind, lead, size = "conv2d", shape[:-1], (source.height, source.width, out)
        weights = weights.reshape(out, 1, 1, inner)
    else:
        raise Unsupported(
            f"{inner} weights per row for an input of {source.height}x{source.width}x"
            f"{source.channels}",
            "a row must take all values, or the channels of one position",
        )
    op = step.emit(
        kind,
        (*lead, out),
        stem="dense",
        named_by=stored,
        size=size,
        weights=weights.astype(np.int8),
        **parameters,
    )
    step.network.layers[op.name] = StoredLayer(step.op.inputs[1], _bias_index(step))


def _emit(step: Step, kind: Any, stored: FileTensor, shape: Window, weights: Int8Array) -> None:
    out = weights.shape[2] if kind == "depthwise_conv2d" else weights.shape[0]
    parameters = _parameters(step, stored, out)
    rank = len(step.network.model.tensors[step.output].shape)
    # Folding dilation can leave a convolution between activations of rank 3.
    height, width = shape.output(step.tensor().shape)
    rows = () if rank == 3 and height == 1 else (height,)
    op = step.emit(
        kind,
        (1, *rows, width, out),
        stem="depthwise" if kind == "depthwise_conv2d" else "conv",
        named_by=stored,
        weights=weights,
        **shape.settings,
        **parameters,
    )
    step.network.layers[op.name] = StoredLayer(step.op.inputs[1], _bias_index(step))


def _weights(step: Step, axis: int, rank: int) -> tuple[FileTensor, Array]:
    tensor = step.constant(1)
    if tensor is None or tensor.data is None:
        raise Unsupported("its weights are not a constant", "store them in the file")
    if tensor.dtype != "INT8" or tensor.data.ndim != rank or tensor.data.size == 0:
        raise Unsupported(
            f"its weights are {tensor.dtype} of shape {tensor.shape}, not INT8 of rank {rank}",
            CONVERT_INT8,
        )
    weights = _symmetric(tensor)
    if len(tensor.scales) > 1 and tensor.quantized_dimension != axis:
        raise Unsupported(
            f"its weight scales run along dimension {tensor.quantized_dimension}, not {axis}",
            "convert the model again",
        )
    return tensor, weights


def _symmetric(tensor: FileTensor) -> Array:
    """Return weights with a zero point of 0; uint8 ones where they fit int8 without theirs."""
    assert tensor.data is not None
    if not np.any(tensor.zero_points != 0):
        return tensor.data
    if not tensor.is_unsigned or len(tensor.zero_points) != 1:
        raise Unsupported("its weights have zero points other than 0", CONVERT_INT8)
    steps = tensor.data.astype(np.int16) - tensor.zero_points[0]
    if np.abs(steps).max() > LARGEST_WEIGHT:
        raise Unsupported(
            f"its uint8 weights are {steps.min()} to {steps.max()} steps from their zero point "
            f"{tensor.zero_points[0] + 128}, int8 holds {LARGEST_WEIGHT}",
            CONVERT_INT8,
        )
    return np.asarray(steps, np.int8)


def _bias_index(step: Step) -> int:
    return step.op.inputs[2] if len(step.op.inputs) > 2 else -1


def _parameters(step: Step, weights: FileTensor, channels: int) -> dict[str, Any]:
    """Return bias (zeros if missing), one weight scale per output channel, and the clamp."""
    scales = weights.scales
    if len(scales) not in (1, channels):
        raise Unsupported(
            f"{len(scales)} weight scales for {channels} output channels",
            "one, or one for each channel; convert the model again",
        )
    remedy = "calibrate on real data: constant or empty samples make such scales; convert again"
    require_scales(scales, "weight scales", remedy)
    bias = np.zeros(channels, np.int32)
    if _bias_index(step) >= 0:
        stored = step.constant(2)
        if stored is None or stored.data is None or stored.dtype != "INT32":
            raise Unsupported("its bias is not a constant of INT32", CONVERT_INT8)
        if stored.data.size != channels:
            raise Unsupported(
                f"{stored.data.size} biases for {channels} output channels", "the file is damaged"
            )
        _check_bias_scale(step, stored, scales)
        bias = stored.data.reshape(channels).astype(np.int32)
    weight_scales = np.resize(scales, channels).astype(np.float32)
    return {"bias": bias, "weight_scales": weight_scales, "clamp": fused_clamp(step)}


def _check_bias_scale(step: Step, bias: FileTensor, scales: FloatArray) -> None:
    """TFLite takes the bias in steps of input scale times weight scale, whatever the file says."""
    if len(bias.scales) != len(scales):
        return
    expected = scales.astype(np.float64) * step.tensor().scale
    if np.any(np.abs(bias.scales - expected) > 0.02 * expected):
        raise Unsupported(
            "its bias has another scale than input scale times weight scale",
            "the file contradicts itself; convert the model again",
        )


CONVERTERS: dict[str, Callable[[Step], None]] = {
    "CONV_2D": conv_2d,
    "DEPTHWISE_CONV_2D": depthwise_conv_2d,
    "FULLY_CONNECTED": fully_connected,
    "AVERAGE_POOL_2D": partial(pool, kind="average_pool"),
    "MAX_POOL_2D": partial(pool, kind="max_pool"),
    "MEAN": mean,
    "REDUCE_MAX": reduce_max,
    "PAD": pad,
    "PADV2": pad,
}
