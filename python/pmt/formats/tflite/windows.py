"""Windows and activation functions of TFLite operators."""

from __future__ import annotations

import math

from pmt.formats.layers import kernel_extent
from pmt.formats.tflite.file import Unsupported
from pmt.formats.tflite.network import Padding, Step
from pmt.net.graph import Tensor

__all__ = ["SAME", "VALID", "Window", "bounds_clamp", "fused_clamp", "window"]

SAME, VALID = 0, 1
_LARGEST_KERNEL = 255
_ACTIVATIONS: dict[int, tuple[float | None, float | None]] = {
    0: (None, None),
    1: (0.0, None),
    2: (-1.0, 1.0),
    3: (0.0, 6.0),
}


class Window:
    """Kernel with its dilation, stride, padding, and the size of the output."""

    def __init__(
        self,
        source: Tensor,
        kernel: tuple[int, int],
        stride: tuple[int, int],
        dilation: tuple[int, int],
        padding: Padding,
    ) -> None:
        self.kernel = kernel
        self.stride = stride
        self.dilation = dilation
        self.padding = padding
        top, left, bottom, right = padding
        self.height = (source.height + top + bottom - kernel[0]) // stride[0] + 1
        self.width = (source.width + left + right - kernel[1]) // stride[1] + 1


def window(step: Step, kernel: tuple[int, int]) -> Window:
    """Work out the window of an operator on its first input.

    SAME is asymmetric: the odd row or column goes below and to the right. Padding that an earlier
    PAD left to its readers is added.

    Raises
    ------
    Unsupported
        If kernel, stride or dilation is out of range, or nothing is left of the input.
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
    result = Window(source, extent, stride, dilation, padding)
    overlaps = max(padding[0], padding[2]) < extent[0] and max(padding[1], padding[3]) < extent[1]
    if min(result.height, result.width) < 1 or not overlaps:
        raise Unsupported(
            f"kernel {extent} with padding {padding} does not fit the input of "
            f"{source.height}x{source.width}",
            "use a smaller kernel or larger images",
        )
    return result


def _padding(
    step: Step,
    source: Tensor,
    extent: tuple[int, int],
    stride: tuple[int, int],
    before: Padding,
) -> Padding:
    options = step.op.options
    if "Top" in options:  # made by a rewrite of several operators
        return options["Top"], options["Left"], options["Bottom"], options["Right"]
    if options["Padding"] not in (SAME, VALID):
        raise Unsupported(f"padding {options['Padding']}", "use SAME or VALID")
    if options["Padding"] == VALID:
        return (0, 0, 0, 0)
    sizes = (source.height + before[0] + before[2], source.width + before[1] + before[3])
    totals = [
        max(0, (-(-size // s) - 1) * s + k - size)
        for size, k, s in zip(sizes, extent, stride, strict=True)
    ]
    top, left = totals[0] // 2, totals[1] // 2
    return top, left, totals[0] - top, totals[1] - left


def fused_clamp(step: Step) -> tuple[int, int]:
    """Return the bounds of the int8 output that the operator's fused activation sets."""
    activation = step.op.options.get("FusedActivationFunction", 0)
    if activation not in _ACTIVATIONS:
        raise Unsupported(f"fused activation {activation}", "use NONE, RELU, RELU_N1_TO_1 or RELU6")
    return bounds_clamp(step, *_ACTIVATIONS[activation])


def bounds_clamp(step: Step, low: float | None, high: float | None) -> tuple[int, int]:
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
