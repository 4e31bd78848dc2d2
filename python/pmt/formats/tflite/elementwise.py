"""TFLite operators on single values: sums, products with constants, activations, requantization."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import numpy.typing as npt

from pmt.formats.layers import channelwise_layer
from pmt.formats.tflite.file import CONVERT_INT8, Unsupported
from pmt.formats.tflite.network import Step, quantization
from pmt.net.graph import Pair

_ACTIVATIONS: dict[int, tuple[float | None, float | None]] = {
    0: (None, None),
    1: (0.0, None),
    2: (-1.0, 1.0),
    3: (0.0, 6.0),
}
_FOLD = "fold it into the layer before, or into its bias"


def add(step: Step) -> None:
    """Lower ADD of two activations, or of an activation and one constant for each channel."""
    if _constant_position(step) is not None:
        position, offset = _channel_constant(step)
        _emit_channelwise(step, 1 - position, 1.0, offset, "add_constant")
        return
    first, second = step.tensor(0).shape, step.tensor(1).shape
    if first != second:
        raise Unsupported(
            f"broadcasts {first} + {second}",
            "two activations must have one shape; remove the operator or train without it",
        )
    step.emit(
        "add",
        step.shape(0),
        stem="add",
        sources=(step.source(0), step.source(1)),
        size=first,
        clamp=fused_clamp(step),
    )


def subtract(step: Step) -> None:
    """Lower SUB of an activation and one constant for each channel, either way round."""
    _require_constant(step)
    position, values = _channel_constant(step)
    if position == 1:
        _emit_channelwise(step, 0, 1.0, -values, "subtract")
    else:
        _emit_channelwise(step, 1, -1.0, values, "subtract")


def multiply(step: Step) -> None:
    """Lower MUL of an activation and one constant for each channel."""
    _require_constant(step)
    position, factor = _channel_constant(step)
    _emit_channelwise(step, 1 - position, factor, 0.0, "multiply")


def requantize(step: Step) -> None:
    """Lower QUANTIZE from int8 to int8: nothing, or a channelwise layer."""
    step.source()
    if step.keeps_quantization():
        step.alias(step.shape())
    else:
        _emit_channelwise(step, 0, 1.0, 0.0, "requantize")


def bounded(step: Step, low: float | None, high: float | None) -> None:
    """Lower RELU and its kin: into the producer's clamp, else a 1x1 max pool, else a layer."""
    step.source()
    clamp = bounds_clamp(step, low, high)
    if step.keeps_quantization():
        _emit_clamp(step, 0, clamp)
    else:
        _emit_channelwise(step, 0, 1.0, 0.0, "relu", clamp)


def limited(step: Step, *, below: bool) -> None:
    """Lower MAXIMUM (``below``) and MINIMUM of an activation and one constant, as RELU."""
    _require_constant(step)
    position = _constant_position(step)
    constant = step.constant(position or 0)
    source = step.tensor(1 - (position or 0))
    assert constant is not None
    if constant.dtype != "INT8" or constant.data is None or constant.data.size != 1:
        raise Unsupported(
            f"its constant is {constant.dtype} of shape {constant.shape}",
            "one INT8 value is needed",
        )
    same = source.is_quantized_as(*quantization(constant))
    if not same or not source.is_quantized_as(*step.target_quantization()):
        raise Unsupported("inputs and output are quantized differently", CONVERT_INT8)
    value = int(constant.data.ravel()[0])
    clamp = (value, 127) if below else (-128, value)
    if clamp[0] == clamp[1]:
        raise Unsupported(f"its constant leaves the single value {value}", "remove the operator")
    _emit_clamp(step, 1 - (position or 0), clamp)


def _emit_clamp(step: Step, position: int, clamp: Pair) -> None:
    source, shape = step.source(position), step.shape(position)
    if step.network.clamp_producer(step.op.inputs[position], clamp):
        step.check_shape(shape)
        step.network.alias(step.output, step.op.inputs[position], shape)
    else:
        size = step.network.tensors[source].shape
        step.emit("max_pool", shape, stem="relu", sources=(source,), size=size, clamp=clamp)


def _emit_channelwise(
    step: Step,
    position: int,
    factor: float | npt.NDArray[np.float64],
    offset: float | npt.NDArray[np.float64],
    stem: str,
    clamp: Pair | None = None,
) -> None:
    source = step.tensor(position)
    step.network.reserve(source.channels)
    settings: dict[str, Any]
    try:
        settings = channelwise_layer(source, factor, offset)
    except ValueError as error:
        raise Unsupported(f"its constant: {error}", _FOLD) from None
    op = step.emit(
        "depthwise_conv2d",
        step.shape(position),
        stem=stem,
        sources=(step.source(position),),
        size=source.shape,
        clamp=clamp or fused_clamp(step),
        **settings,
    )
    step.network.helpers.add(op.name)
    if len(step.op.inputs) == 2:
        step.network.operators[op.output] += " constant"


def _constant_position(step: Step) -> int | None:
    if len(step.op.inputs) != 2 or min(step.op.inputs) < 0:
        raise Unsupported(f"{len(step.op.inputs)} inputs, two are needed", "the file is damaged")
    return next((i for i in range(2) if step.is_constant(i)), None)


def _require_constant(step: Step) -> None:
    if _constant_position(step) is None:
        raise Unsupported(
            "has two activations as inputs",
            "only a constant for each channel is imported here; of two activations only ADD",
        )


def _channel_constant(step: Step) -> tuple[int, npt.NDArray[np.float64]]:
    """Return where the constant stands, and its real values, one for each channel."""
    position = _constant_position(step)
    assert position is not None
    source, constant = step.tensor(1 - position), step.constant(position)
    assert constant is not None
    if constant.dtype != "INT8" or constant.data is None or len(constant.scales) != 1:
        raise Unsupported(f"its constant is {constant.dtype}, not INT8 with a scale", CONVERT_INT8)
    if constant.data.size != 1 and (
        constant.data.size != source.channels or constant.shape[-1] != source.channels
    ):
        raise Unsupported(
            f"its constant has shape {constant.shape} for {source.channels} channels",
            f"one value, or one for each channel; {_FOLD}",
        )
    zero_point = int(constant.zero_points[0]) if len(constant.zero_points) else 0
    steps = constant.data.ravel().astype(np.float64) - zero_point
    return position, np.resize(steps * float(constant.scales[0]), source.channels)


def fused_clamp(step: Step) -> Pair:
    """Return the bounds of the int8 output that the operator's fused activation sets."""
    activation = step.op.options.get("FusedActivationFunction", 0)
    if activation not in _ACTIVATIONS:
        raise Unsupported(f"fused activation {activation}", "use NONE, RELU, RELU_N1_TO_1 or RELU6")
    return bounds_clamp(step, *_ACTIVATIONS[activation])


def bounds_clamp(step: Step, low: float | None, high: float | None) -> Pair:
    """Return the int8 bounds of the output for real bounds, rounded as TFLite does."""
    scale, zero_point = step.target_quantization()

    def quantized(real: float | None, otherwise: int) -> int:
        if real is None:
            return otherwise
        steps = abs(real) / scale
        rounded = math.copysign(math.floor(min(steps, 1e6) + 0.5), real)  # halves away from zero
        return int(min(127, max(-128, zero_point + rounded)))

    clamp = quantized(low, -128), quantized(high, 127)
    if clamp[0] >= clamp[1]:
        raise Unsupported(
            f"its activation leaves the single value {clamp[0]} of its output (scale {scale}, "
            f"zero point {zero_point})",
            "calibrate the output range and convert the model again",
        )
    return clamp
