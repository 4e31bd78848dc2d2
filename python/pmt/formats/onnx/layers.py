"""Layers of ONNX: convolutions and matrix products."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt

from pmt.formats.layers import dense_kernel, spread_depthwise
from pmt.formats.onnx.call import Call
from pmt.formats.onnx.file import Unsupported
from pmt.formats.onnx.view import View
from pmt.formats.onnx.windows import node_window, pad_first
from pmt.net.graph import OpKind

Array = npt.NDArray[Any]
MOST_ZEROS = 64  # how often the stored weights a layer may have once zeros are written out


def convolution(call: Call) -> View:
    """Convert Conv: any group and dilation, weights (out, in / group, height, width)."""
    view = call.image()
    weights, scales, axis = call.weights(1)
    if weights.ndim != 4 or 0 in weights.shape:
        raise Unsupported(
            f"its weights have shape {weights.shape}", "only two-dimensional images are supported"
        )
    groups, out = call.attribute("group", 1), weights.shape[0]
    if groups < 1 or weights.shape[1] * groups != view.size[2] or out % groups:
        raise Unsupported(
            f"weights {weights.shape} in {groups} groups do not fit {view.size[2]} input channels",
            "the file contradicts itself, export again",
        )
    window = node_window(call, (weights.shape[2], weights.shape[3]), view.size)
    kind: OpKind = "depthwise_conv2d" if groups == view.size[2] > 1 else "conv2d"
    zeros = np.prod(window.kernel) / (weights.shape[2] * weights.shape[3])
    zeros *= groups if kind == "conv2d" else 1
    if zeros > MOST_ZEROS:
        raise Unsupported(
            f"groups {groups} and dilations {window.dilation} would have to be written out with "
            f"{zeros:.0f} times the weights, at most {MOST_ZEROS} times is supported",
            "use depthwise convolutions, fewer groups, or smaller dilations",
        )
    parameters = _parameters(call, weights, scales, axis, 0)
    if kind == "conv2d":
        parameters["weights"] = dense_kernel(weights.transpose(0, 2, 3, 1), groups, window.dilation)
    else:
        parameters["weights"] = spread_depthwise(weights[:, 0].transpose(1, 2, 0), window.dilation)
    if not window.padding_fits:
        view = pad_first(call, view, window.padding)
        window = replace(window, padding=(0, 0, 0, 0))
    return call.draft.emit(
        kind,
        call.layer_name("depthwise" if kind == "depthwise_conv2d" else "conv"),
        [view],
        (*window.output(view.size), out),
        kernel=window.kernel,
        stride=window.stride,
        padding=window.padding,
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
    parameters = _parameters(call, weights, scales, axis, 0, bias=False)
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
    parameters = _parameters(call, weights, scales, axis, 0, bias=beta != 0)
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
    out_axis: int,
    *,
    bias: bool = True,
) -> dict[str, Any]:
    """Return scales and bias, one of each for every output channel."""
    channels = weights.shape[out_axis]
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
        if axis not in (None, out_axis) or scales.size not in (1, channels):
            raise Unsupported(
                f"its {scales.size} weight scales run along axis {axis}, not along the {channels} "
                "output channels",
                "quantize per tensor or per output channel",
            )
        parameters["scales"] = np.broadcast_to(scales, (channels,)).copy()
    return parameters
