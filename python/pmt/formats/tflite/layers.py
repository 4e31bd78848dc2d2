"""TFLite operators with weights: CONV_2D, DEPTHWISE_CONV_2D, FULLY_CONNECTED."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from pmt.formats.layers import dense_kernel, spread_depthwise
from pmt.formats.tflite.elementwise import fused_clamp
from pmt.formats.tflite.file import CONVERT_INT8, FileTensor, Unsupported
from pmt.formats.tflite.network import Step, StoredLayer
from pmt.formats.tflite.windows import Window, window

Int8Array = npt.NDArray[np.int8]


def conv_2d(step: Step) -> None:
    """Lower CONV_2D: one group as it is, one channel a group as depthwise, else with zeros."""
    stored = _weights(step, 0, 4)
    weights = stored.data
    assert weights is not None
    out, height, width, inner = weights.shape
    channels = step.tensor().channels
    if inner == 0 or channels % inner or out % (channels // inner):
        raise Unsupported(
            f"its weights take {inner} channels and give {out}, its input has {channels}",
            "input channels must be a multiple, and the output channels one of the groups",
        )
    groups = channels // inner
    shape = window(step, (height, width))
    taps = shape.kernel[0] * shape.kernel[1]
    if groups > 1 and inner == 1:
        step.network.reserve(taps * out)
        spread = spread_depthwise(weights[..., 0].transpose(1, 2, 0), shape.dilation)
        _emit(step, "depthwise_conv2d", stored, shape, spread)
        return
    step.network.reserve(taps * out * channels)
    dense = dense_kernel(weights, groups, shape.dilation)
    _emit(step, "conv2d", stored, shape, dense, groups=groups)


def depthwise_conv_2d(step: Step) -> None:
    """Lower DEPTHWISE_CONV_2D, with any channel multiplier."""
    stored = _weights(step, 3, 4)
    weights = stored.data
    assert weights is not None
    one, height, width, out = weights.shape
    channels = step.tensor().channels
    multiplier = step.op.options.get("DepthMultiplier", 0)
    if one != 1 or out % channels or multiplier not in (0, out // channels):
        raise Unsupported(
            f"weights {weights.shape} with multiplier {multiplier} for {channels} channels",
            "the output channels must be the input channels times the multiplier",
        )
    shape = window(step, (height, width))
    step.network.reserve(shape.kernel[0] * shape.kernel[1] * out)
    spread = spread_depthwise(weights[0], shape.dilation)
    _emit(step, "depthwise_conv2d", stored, shape, spread)


def fully_connected(step: Step) -> None:
    """Lower FULLY_CONNECTED: on all values, or on the channels of each position as a 1x1 conv2d."""
    stored = _weights(step, 0, 2)
    weights = stored.data
    assert weights is not None
    if step.op.options.get("WeightsFormat", 0) != 0:
        raise Unsupported("its weights are shuffled", "convert the model without that option")
    out, inner = weights.shape
    source, shape = step.tensor(), step.shape()
    step.network.reserve(weights.size)
    plain = weights.astype(np.int8)
    settings: dict[str, Any] = {**_parameters(step, stored, out), "clamp": fused_clamp(step)}
    if inner == source.elements:
        keeps_rank = len(step.network.model.tensors[step.output].shape) == len(shape)
        lead = (1,) * (len(shape) - 1) if keeps_rank else (1,)
        op = step.emit(
            "fully_connected",
            (*lead, out),
            stem="dense",
            named_by=stored,
            weights=plain,
            **settings,
        )
    elif inner == source.channels:
        op = step.emit(
            "conv2d",
            (*shape[:-1], out),
            stem="dense",
            named_by=stored,
            size=(source.height, source.width, out),
            weights=plain.reshape(out, 1, 1, inner),
            **settings,
        )
    else:
        raise Unsupported(
            f"{inner} weights per row for an input of {source.height}x{source.width}x"
            f"{source.channels}",
            "a row must take all values, or the channels of one position",
        )
    step.network.layers[op.name] = StoredLayer(step.number, step.op.inputs[1], _bias_index(step))


def _emit(
    step: Step,
    kind: Any,
    stored: FileTensor,
    shape: Window,
    weights: Int8Array,
    *,
    groups: int = 1,
) -> None:
    out = weights.shape[2] if kind == "depthwise_conv2d" else weights.shape[0]
    parameters: dict[str, Any] = _parameters(step, stored, out)
    rank = len(step.network.model.tensors[step.output].shape)
    # Folding dilation can leave a convolution between activations of rank 3.
    rows = () if rank == 3 and shape.height == 1 else (shape.height,)
    op = step.emit(
        kind,
        (1, *rows, shape.width, out),
        stem="depthwise" if kind == "depthwise_conv2d" else "conv",
        named_by=stored,
        kernel=shape.kernel,
        stride=shape.stride,
        padding=shape.padding,
        clamp=fused_clamp(step),
        weights=weights,
        **parameters,
    )
    step.network.layers[op.name] = StoredLayer(
        step.number, step.op.inputs[1], _bias_index(step), groups, shape.dilation
    )
    how = [f"{groups} groups"] * (groups > 1) + ["dilated"] * (shape.dilation != (1, 1))
    if how:
        step.network.operators[op.output] += f" ({', '.join(how)})"


def _weights(step: Step, axis: int, rank: int) -> FileTensor:
    tensor = step.constant(1)
    if tensor is None or tensor.data is None:
        raise Unsupported("its weights are not a constant", "store them in the file")
    if tensor.dtype != "INT8" or tensor.data.ndim != rank or tensor.data.size == 0:
        raise Unsupported(
            f"its weights are {tensor.dtype} of shape {tensor.shape}, not INT8 of rank {rank}",
            CONVERT_INT8,
        )
    if np.any(tensor.zero_points != 0):
        raise Unsupported("its weights have zero points other than 0", CONVERT_INT8)
    if len(tensor.scales) > 1 and tensor.quantized_dimension != axis:
        raise Unsupported(
            f"its weight scales run along dimension {tensor.quantized_dimension}, not {axis}",
            "convert the model again",
        )
    return tensor


def _bias_index(step: Step) -> int:
    return step.op.inputs[2] if len(step.op.inputs) > 2 else -1


def _parameters(step: Step, weights: FileTensor, channels: int) -> dict[str, npt.NDArray[Any]]:
    """Return bias (zeros if missing) and one weight scale per output channel."""
    scales = weights.scales
    if len(scales) not in (1, channels) or not np.all(np.isfinite(scales) & (scales > 0)):
        raise Unsupported(
            f"{len(scales)} weight scales for {channels} output channels",
            "one, or one for each channel, positive and finite; convert the model again",
        )
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
    return {"bias": bias, "weight_scales": np.resize(scales, channels).astype(np.float32)}


def _check_bias_scale(step: Step, bias: FileTensor, scales: npt.NDArray[np.float32]) -> None:
    """TFLite takes the bias in steps of input scale times weight scale, whatever the file says."""
    if len(bias.scales) != len(scales):
        return
    expected = scales.astype(np.float64) * step.tensor().scale
    if np.any(np.abs(bias.scales - expected) > 0.02 * expected):
        raise Unsupported(
            "its bias has another scale than input scale times weight scale",
            "the file contradicts itself; convert the model again",
        )
