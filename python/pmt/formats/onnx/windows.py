"""Windows of convolutions and pools: strides, paddings and dilations of a node."""

from __future__ import annotations

from dataclasses import dataclass, replace

from pmt.formats.onnx.call import Call
from pmt.formats.onnx.problems import Unsupported
from pmt.formats.onnx.view import Shape, View

__all__ = ["Padding", "Window", "node_window", "pad_first"]

Padding = tuple[int, int, int, int]  # top, left, bottom, right


@dataclass(frozen=True)
class Window:
    """What a convolution or pool reads at once."""

    kernel: tuple[int, int]
    stride: tuple[int, int]
    padding: Padding
    dilation: tuple[int, int]

    def output(self, size: Shape) -> tuple[int, int]:
        """Return the output's height and width."""
        top, left, bottom, right = self.padding
        return (
            (size[0] + top + bottom - self.kernel[0]) // self.stride[0] + 1,
            (size[1] + left + right - self.kernel[1]) // self.stride[1] + 1,
        )

    @property
    def padding_fits(self) -> bool:
        """Whether every window reads at least one pixel: the rule of an image's ops."""
        top, left, bottom, right = self.padding
        return max(top, bottom) < self.kernel[0] and max(left, right) < self.kernel[1]


def node_window(call: Call, kernel: tuple[int, int], size: Shape) -> Window:
    """Return the window of a node, its kernel spread by the dilations.

    Raises
    ------
    Unsupported
        If attributes contradict each other, or the window does not fit the input.
    """
    height_stride, width_stride = call.integers("strides", [1, 1])
    dilation_h, dilation_w = call.integers("dilations", [1, 1])
    if call.integers("kernel_shape", list(kernel)) != list(kernel):
        raise Unsupported(
            f"kernel_shape is {call.node.attributes['kernel_shape']}, but the weights say {kernel}",
            "the file contradicts itself, export again",
        )
    spread = ((kernel[0] - 1) * dilation_h + 1, (kernel[1] - 1) * dilation_w + 1)
    if max(*spread, height_stride, width_stride) > 255:
        raise Unsupported(
            f"its window spans {spread} pixels with stride {(height_stride, width_stride)}",
            "at most 255 is supported",
        )
    window = Window(spread, (height_stride, width_stride), (0, 0, 0, 0), (dilation_h, dilation_w))
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
    if automatic == "VALID":
        return (0, 0, 0, 0)
    if automatic in ("SAME_UPPER", "SAME_LOWER"):
        sides = []
        for length, kernel, stride in zip(size[:2], window.kernel, window.stride, strict=True):
            total = max(0, (-(-length // stride) - 1) * stride + kernel - length)
            small, large = total // 2, total - total // 2
            sides.append((small, large) if automatic == "SAME_UPPER" else (large, small))
        return (sides[0][0], sides[1][0], sides[0][1], sides[1][1])
    if automatic != "NOTSET":
        raise Unsupported(f"auto_pad is {automatic[:20]!r}", "export again")
    top, left, bottom, right = explicit
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
    top, left, bottom, right = padding
    size = (view.size[0] + top + bottom, view.size[1] + left + right, view.size[2])
    if max(size) > 2**16:
        raise Unsupported(f"it pads to {size[0]}x{size[1]}", "the file is damaged, export again")
    return call.draft.emit("pad", call.name("pad"), [view], size, padding=padding)
