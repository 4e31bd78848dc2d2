"""Pools and means of ONNX."""

from __future__ import annotations

from dataclasses import replace

from pmt.formats.onnx.call import Call
from pmt.formats.onnx.problems import Unsupported
from pmt.formats.onnx.view import View
from pmt.formats.onnx.windows import Window, node_window, pad_first

__all__ = [
    "average_pool",
    "global_average_pool",
    "global_max_pool",
    "max_pool",
    "node_axes",
    "pad",
    "reduce_mean",
]


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
    # What only rounding up adds is never counted.
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
    return _pool(call, view, Window(view.size[:2], (1, 1), (0, 0, 0, 0), (1, 1)))


def reduce_mean(call: Call) -> View:
    """Convert ReduceMean over height, width, or both."""
    view = call.view()
    axes = node_axes(call, len(view.axes))
    if axes is None:
        axes = [] if call.attribute("noop_with_empty_axes", 0) else list(range(len(view.axes)))
    letters = "".join(view.axes[axis] for axis in sorted(axes))
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
    """Convert Pad with zeros around height and width."""
    view = call.image()
    mode = call.attribute("mode", "constant")
    if mode != "constant":
        raise Unsupported(f"it pads by {mode!r}", "pad with zeros")
    value = float(call.attribute("value", 0.0))
    if call.has(2):
        value = float(call.constant(2, "value").ravel()[:1].sum())
    if value != 0:
        raise Unsupported(f"it pads with {value}", "pad with zeros")
    amounts = call.attribute("pads", []) if call.opset < 11 else _integers(call, 1, "pads")
    axes = [0, 1, 2, 3]
    if call.has(3):
        axes = [axis % 4 for axis in _integers(call, 3, "axes")]
    if len(amounts) != 2 * len(axes):
        raise Unsupported(f"it has {len(amounts)} pads for {len(axes)} axes", "export again")
    before = dict(zip(axes, amounts[: len(axes)], strict=True))
    after = dict(zip(axes, amounts[len(axes) :], strict=True))
    others = [side.get(axis, 0) for side in (before, after) for axis in (0, 1)]
    padding = tuple(side.get(axis, 0) for side in (before, after) for axis in (2, 3))
    if any(others) or min(padding) < 0:
        raise Unsupported(
            f"it pads by {amounts}", "only height and width can be padded, by zeros or more"
        )
    return pad_first(call, view, (padding[0], padding[1], padding[2], padding[3]))


def node_axes(call: Call, rank: int) -> list[int] | None:
    """Return the axes of a node, an attribute or an input, counted from the start."""
    axes = call.attribute("axes", None)
    if call.has(1):
        axes = _integers(call, 1, "axes")
    if axes is None:
        return None
    if not isinstance(axes, list) or not all(
        isinstance(axis, int) and -rank <= axis < rank for axis in axes
    ):
        raise Unsupported(f"its axes are {str(axes)[:40]} of {rank}", "export again")
    return sorted({axis % rank for axis in axes})


def _integers(call: Call, index: int, what: str) -> list[int]:
    values = call.constant(index, what)
    if values.dtype.kind not in "iu" or values.size > 64:
        raise Unsupported(f"its {what} are {values.dtype}", "whole numbers are needed")
    return [int(value) for value in values.ravel()]


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
    kind = "average_pool" if call.node.kind == "AveragePool" else "max_pool"
    return call.draft.emit(
        "average_pool" if kind == "average_pool" else "max_pool",
        call.name(kind),
        [view],
        (*window.output(view.size), view.size[2]),
        kernel=window.kernel,
        stride=window.stride,
        padding=window.padding,
    )
