"""Nodes that read windows of an image, convolutions, pools, means and paddings; and matrices."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt

from pmt._util.arrays import Array
from pmt.formats.layers import Unsupported, Window, grouped_kernel, kernel_extent, same_sides
from pmt.formats.onnx.call import Call, QuantizedConstant, Value
from pmt.formats.onnx.draft import View
from pmt.net.ops import OpKind, Padding, Pair, Shape, padded_size

_ONE_EACH = ("kernel_shape", "strides", "dilations")


def over_one_axis(convert: Callable[[Call], View]) -> Callable[[Call], View]:
    """Let a converter of nodes over height and width convert those over a length too."""

    def converted(call: Call) -> View:
        view = call.values[0]
        if not isinstance(view, View) or len(view.axes) != 3:
            return convert(call)
        result = convert(_over_images(call))
        return replace(result, axes=(*result.axes[:2], result.axes[3]))

    return converted


def _over_images(call: Call) -> Call:
    """Return the call with a height of 1 in its weights and attributes; Call.image has it too."""
    attributes = dict(call.node.attributes)
    for name in _ONE_EACH:
        if isinstance(attributes.get(name), list):
            attributes[name] = [1, *attributes[name]]
    pads = attributes.get("pads")
    if isinstance(pads, list) and len(pads) == 2:
        attributes["pads"] = [0, pads[0], 0, pads[1]]
    weights = [_with_height(value) for value in call.values[1:2]]
    node = replace(call.node, attributes=attributes)
    return replace(call, node=node, values=[*call.values[:1], *weights, *call.values[2:]])


def _with_height(weights: Value | None) -> Value | None:
    if isinstance(weights, QuantizedConstant) and weights.values.ndim == 3:
        axis = weights.axis
        moved = axis if axis is None or axis < 2 else axis + 1
        return replace(weights, values=weights.values[:, :, None], axis=moved)
    if isinstance(weights, np.ndarray) and weights.ndim == 3:
        return weights[:, :, None]
    return weights


MOST_ZEROS = 64  # how often the stored weights a layer may have once zeros are written out


def node_window(call: Call, kernel: Pair, size: Shape) -> Window:
    """Return the window of a node, its kernel spread by the dilations.

    Unsupported is raised if attributes contradict each other or the window does not fit the input.
    """
    height_stride, width_stride = call.integers("strides", [1, 1])
    dilation_h, dilation_w = call.integers("dilations", [1, 1])
    if call.integers("kernel_shape", list(kernel)) != list(kernel):
        raise Unsupported(
            f"kernel_shape is {call.node.attributes['kernel_shape']}, but the weights say {kernel}",
            "the file contradicts itself, export again",
        )
    spread = kernel_extent(kernel, (dilation_h, dilation_w))
    if max(*spread, height_stride, width_stride) > 255:
        raise Unsupported(
            f"its window spans {spread} pixels with stride {(height_stride, width_stride)}",
            "at most 255 is supported",
        )
    window = Window(spread, (height_stride, width_stride), (dilation_h, dilation_w))
    window = replace(window, padding=_padding(call, window, size))
    if min(window.output(size)) < 1:
        raise Unsupported(
            f"its window of {spread} does not fit the {size[0]}x{size[1]} input",
            "export with the image size that the network was trained for",
        )
    return window


def _padding(call: Call, window: Window, size: Shape) -> Padding:
    automatic = call.attribute("auto_pad", "NOTSET")
    explicit = call.integers("pads", [0, 0, 0, 0], least=0)
    if automatic in ("SAME_UPPER", "SAME_LOWER"):
        sides = map(same_sides, size[:2], window.kernel, window.stride)
        (top, bottom), (left, right) = sides
        upper = automatic == "SAME_UPPER"
        return (top, left, bottom, right) if upper else (bottom, right, top, left)
    if automatic not in ("NOTSET", "VALID"):
        raise Unsupported(f"auto_pad is {automatic[:20]!r}", "export again")
    top, left, bottom, right = explicit if automatic == "NOTSET" else [0, 0, 0, 0]
    if call.attribute("ceil_mode", 0):
        bottom = _rounded_up(size[0], top, bottom, window.kernel[0], window.stride[0])
        right = _rounded_up(size[1], left, right, window.kernel[1], window.stride[1])
    return (top, left, bottom, right)


def _rounded_up(size: int, before: int, after: int, kernel: int, stride: int) -> int:
    """Return the padding after the image with which the last, partial window counts too."""
    count = -(-(size + before + after - kernel) // stride) + 1
    if (count - 1) * stride >= size + before:  # a window must start inside
        count -= 1
    return max(after, (count - 1) * stride + kernel - size - before)


def pad_first(call: Call, view: View, padding: Padding) -> View:
    """Add an op that pads with zeros; it is joined with the layer after it where that is exact."""
    if not any(padding):
        return view
    size = (*padded_size(view.size, padding), view.size[2])
    if max(size) > 2**16:
        raise Unsupported(f"it pads to {size[0]}x{size[1]}", "the file is damaged, export again")
    return call.draft.emit("pad", call.name("pad"), [view], size, padding=padding)


def max_pool(call: Call) -> View:
    """Convert MaxPool; padding never wins, so rounding up is padding at the end."""
    if len([name for name in call.node.outputs if name]) > 1:
        raise Unsupported("its indices are read", "only the maxima are supported")
    view = call.image()
    return _pool(call, view, _window(call, view))


def average_pool(call: Call) -> View:
    """Convert AveragePool; where the padding counts, the zeros are added first."""
    view = call.image()
    window = _window(call, view)
    # Padding that only rounding up adds is never counted.
    padded = any(call.integers("pads", [0, 0, 0, 0], least=0)) or "SAME" in call.attribute(
        "auto_pad", "NOTSET"
    )
    if call.attribute("count_include_pad", 0) and padded:
        if call.attribute("ceil_mode", 0):
            raise Unsupported("it has both ceil_mode and count_include_pad", "set one of the two")
        view = pad_first(call, view, window.padding)
        window = replace(window, padding=(0, 0, 0, 0))
    whole = window.kernel == view.size[:2] and not any(window.padding)
    if whole and window.output(view.size) == (1, 1):
        return call.draft.emit("mean", call.name("mean"), [view], (1, 1, view.size[2]))
    return _pool(call, view, window)


def global_average_pool(call: Call) -> View:
    """Convert GlobalAveragePool."""
    view = call.image()
    return call.draft.emit("mean", call.name("mean"), [view], (1, 1, view.size[2]))


def global_max_pool(call: Call) -> View:
    """Convert GlobalMaxPool."""
    view = call.image()
    if max(view.size[:2]) > 255:
        raise Unsupported(f"it pools {view.size[0]}x{view.size[1]} pixels", "at most 255x255 are")
    return _pool(call, view, Window(view.size[:2], (1, 1)))


def reduce_mean(call: Call) -> View:
    """Convert ReduceMean over height, width, or both."""
    view = call.view()
    axes = call.axes(len(view.axes))
    if axes is None:
        axes = [] if call.attribute("noop_with_empty_axes", 0) else list(range(len(view.axes)))
    letters = "".join(view.axes[axis] for axis in axes)
    if set(letters) - set("HW"):
        raise Unsupported(
            f"it averages the axes {axes} of a value of shape {view.shape}",
            "only the mean over height and width is supported",
        )
    result = view
    if letters:
        height = 1 if "H" in letters else view.size[0]
        width = 1 if "W" in letters else view.size[1]
        size = (height, width, view.size[2])
        if (height, width) == (1, 1):
            result = call.draft.emit("mean", call.name("mean"), [view], size)
        else:
            kernel = (view.size[0] // height, view.size[1] // width)
            result = call.draft.emit(
                "average_pool", call.name("average_pool"), [view], size, kernel=kernel
            )
    shrunk = tuple("" if i in axes else axis for i, axis in enumerate(view.axes))
    if not call.attribute("keepdims", 1):
        shrunk = tuple(axis for i, axis in enumerate(view.axes) if i not in axes)
    return replace(result, axes=shrunk)


def pad(call: Call) -> View:
    """Convert Pad with zeros around height and width, or around a length."""
    mode = call.attribute("mode", "constant")
    if mode != "constant":
        raise Unsupported(f"it pads by {mode!r}", "pad with zeros")
    value = float(call.attribute("value", 0.0))
    if call.has(2):
        value = float(call.constant(2, "value").ravel()[:1].sum())
    if value != 0:
        raise Unsupported(f"it pads with {value}", "pad with zeros")
    amounts = call.attribute("pads", []) if call.opset < 11 else call.whole_numbers(1, "pads")
    rank = len(call.view().axes)
    axes = list(range(rank))
    if call.has(3):
        axes = [axis % rank for axis in call.whole_numbers(3, "axes")]
    if len(amounts) != 2 * len(axes):
        raise Unsupported(f"it has {len(amounts)} pads for {len(axes)} axes", "export again")
    before = dict(zip(axes, amounts[: len(axes)], strict=True))
    after = dict(zip(axes, amounts[len(axes) :], strict=True))
    view = call.image()
    others = [side.get(axis, 0) for side in (before, after) for axis in (0, 1)]
    height, width = rank - 2 if rank == 4 else -1, rank - 1
    padding = tuple(side.get(axis, 0) for side in (before, after) for axis in (height, width))
    if any(others) or min(padding) < 0:
        raise Unsupported(
            f"it pads by {amounts}", "only height and width can be padded, by zeros or more"
        )
    return pad_first(call, view, (padding[0], padding[1], padding[2], padding[3]))


def _window(call: Call, view: View) -> Window:
    kernel = call.integers("kernel_shape", [0, 0])
    window = node_window(call, (kernel[0], kernel[1]), view.size)
    if window.dilation != (1, 1):
        raise Unsupported("it has dilations", "pool without")
    if not window.padding_fits:
        raise Unsupported(
            f"padding {window.padding} is not smaller than the kernel {window.kernel}",
            "export again",
        )
    return window


def _pool(call: Call, view: View, window: Window) -> View:
    kind: OpKind = "average_pool" if call.node.kind == "AveragePool" else "max_pool"
    return call.draft.emit(
        kind, call.name(kind), [view], (*window.output(view.size), view.size[2]), **window.settings
    )


def convolution(call: Call) -> View:
    """Convert Conv: any group and dilation, weights (out, in / group, height, width)."""
    view = call.image()
    weights, scales, axis = call.weights(1)
    if weights.ndim != 4 or 0 in weights.shape:
        raise Unsupported(
            f"its weights have shape {weights.shape}",
            "images of two dimensions, and windows of one, are supported",
        )
    groups, out = call.attribute("group", 1), weights.shape[0]
    if groups < 1 or weights.shape[1] * groups != view.size[2] or out % groups:
        raise Unsupported(
            f"weights {weights.shape} in {groups} groups do not fit {view.size[2]} input channels",
            "the file contradicts itself, export again",
        )
    window = node_window(call, (weights.shape[2], weights.shape[3]), view.size)
    zeros = np.prod(window.kernel) / (weights.shape[2] * weights.shape[3])
    zeros *= groups if weights.shape[1] > 1 else 1
    if zeros > MOST_ZEROS:
        raise Unsupported(
            f"groups {groups} and dilations {window.dilation} would have to be written out with "
            f"{zeros:.0f} times the weights, at most {MOST_ZEROS} times is supported",
            "use depthwise convolutions, fewer groups, or smaller dilations",
        )
    parameters = _parameters(call, weights, scales, axis)
    kind, spread = grouped_kernel(weights.transpose(0, 2, 3, 1), groups, window.dilation)
    if not window.padding_fits:
        view = pad_first(call, view, window.padding)
        window = replace(window, padding=(0, 0, 0, 0))
    return call.draft.emit(
        kind,
        call.layer_name("depthwise" if kind == "depthwise_conv2d" else "conv"),
        [view],
        (*window.output(view.size), out),
        weights=spread,
        **window.settings,
        **parameters,
    )


def gemm(call: Call) -> View:
    """Convert Gemm: ``alpha * x * weights + beta * bias``."""
    if call.attribute("transA", 0):
        raise Unsupported("transA is set", "only products of images by constant weights are")
    weights, scales, axis = call.weights(1)
    if call.attribute("transB", 0) == 0 and weights.ndim == 2:
        weights, axis = weights.T, None if axis is None else 1 - axis
    alpha, beta = call.attribute("alpha", 1.0), call.attribute("beta", 1.0)
    if not np.isfinite([alpha, beta]).all() or alpha <= 0:
        raise Unsupported(f"alpha is {alpha}, beta {beta}", "positive numbers are supported")
    if scales is None:
        weights = weights * np.float32(alpha)
    else:
        scales = scales * alpha
    return _dense_layer(call, call.view(), weights, scales, axis, beta)


def matrix_product(call: Call) -> View:
    """Convert MatMul by constant weights (in, out): a layer, or a 1x1 convolution of an image."""
    view = call.view()
    weights, scales, axis = call.weights(1)
    if weights.ndim != 2:
        raise Unsupported(f"its weights have shape {weights.shape}", "a matrix is supported")
    weights, axis = weights.T, None if axis is None else 1 - axis
    if view.is_features():
        return _dense_layer(call, view, weights, scales, axis, 0.0)
    if view.axes[-1] != view.letters("C") or weights.shape[1] != view.size[2]:
        raise Unsupported(
            f"it multiplies a value of shape {view.shape}, not (batch, features)",
            "flatten before the layer",
        )
    parameters = _parameters(call, weights, scales, axis, bias=False)
    size = (view.size[0], view.size[1], weights.shape[0])
    ohwi = np.ascontiguousarray(weights[:, None, None, :])
    result = call.draft.emit(
        "conv2d", call.layer_name("conv"), [view], size, weights=ohwi, **parameters
    )
    axes = (*view.axes[:-1], result.letters("C"))
    if "C" in "".join(view.axes[:-1]):
        raise Unsupported(f"it multiplies a value of shape {view.shape}", "flatten it before")
    return replace(result, axes=axes)


def _dense_layer(
    call: Call,
    view: View,
    weights: Array,
    scales: npt.NDArray[np.float64] | None,
    axis: int | None,
    beta: float,
) -> View:
    if not view.is_features() or weights.ndim != 2 or weights.shape[1] != view.shape[1]:
        raise Unsupported(
            f"weights {weights.shape} (out, in) do not fit an input of shape {view.shape}",
            "flatten before the layer, or export with the size that the network was trained for",
        )
    if 0 in weights.shape:
        raise Unsupported(f"its weights have shape {weights.shape}", "export again")
    parameters = _parameters(call, weights, scales, axis, bias=beta != 0)
    if beta not in (0, 1) and parameters["bias"] is not None:
        parameters["bias"] = parameters["bias"] * beta
    result = call.draft.emit(
        "fully_connected",
        call.layer_name("dense"),
        [view],
        (1, 1, weights.shape[0]),
        weights=np.ascontiguousarray(weights[:, view.columns_to_memory()]),
        **parameters,
    )
    return replace(result, axes=(result.letters("N"), result.letters("C")))


def _parameters(
    call: Call,
    weights: Array,
    scales: npt.NDArray[np.float64] | None,
    axis: int | None,
    *,
    bias: bool = True,
) -> dict[str, Any]:
    """Return scales and bias, one of each for every output channel."""
    channels = len(weights)
    parameters: dict[str, Any] = {"bias": None}
    if bias and call.has(2):
        values = call.constant(2, "bias").astype(np.float64).ravel()
        if values.size not in (1, channels):
            raise Unsupported(
                f"its bias has {values.size} values for {channels} output channels",
                "the file contradicts itself, export again",
            )
        parameters["bias"] = np.broadcast_to(values, (channels,)).copy()
    if scales is not None:
        if axis not in (None, 0) or scales.size not in (1, channels):
            raise Unsupported(
                f"its {scales.size} weight scales run along axis {axis}, not along the {channels} "
                "output channels",
                "quantize per tensor or per output channel",
            )
        parameters["scales"] = np.broadcast_to(scales, (channels,)).copy()
    return parameters


CONVERTERS: dict[str, Callable[[Call], View]] = {
    "AveragePool": over_one_axis(average_pool),
    "Conv": over_one_axis(convolution),
    "Gemm": gemm,
    "GlobalAveragePool": over_one_axis(global_average_pool),
    "GlobalMaxPool": over_one_axis(global_max_pool),
    "MatMul": matrix_product,
    "MaxPool": over_one_axis(max_pool),
    "Pad": over_one_axis(pad),
    "ReduceMean": reduce_mean,
}
