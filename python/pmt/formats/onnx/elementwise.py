"""Elementwise nodes: additions, normalizations by constants, batch norm, clippings."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from pmt.formats.onnx.call import Call
from pmt.formats.onnx.file import Unsupported
from pmt.formats.onnx.view import View

Vector = npt.NDArray[np.float64]


def addition(call: Call) -> View:
    """Convert Add and Sum: of two activations, or a constant that becomes a bias."""
    both = isinstance(call.values[0], View) and isinstance(call.values[1], View)
    if both and len(call.node.inputs) == 2:
        return _residual(call, call.view(0), call.view(1))
    view, constant, _ = _operands(call)
    return _affine(call, view, 1.0, constant)


def _residual(call: Call, first: View, second: View) -> View:
    if first.size != second.size or first.axes != second.axes:
        raise Unsupported(
            f"it adds values of shape {first.shape} and {second.shape}, whose elements do not lie "
            "alike",
            "add activations of equal shape only",
        )
    result = call.draft.emit("add", call.name("add"), [first, second], first.size)
    return View(result.tensor, first.batch, first.size, first.axes)


def subtraction(call: Call) -> View:
    """Convert Sub with one constant."""
    view, constant, reverse = _operands(call)
    return _affine(call, view, -1.0, constant) if reverse else _affine(call, view, 1.0, -constant)


def multiplication(call: Call) -> View:
    """Convert Mul with one constant."""
    view, constant, _ = _operands(call)
    return _affine(call, view, constant, 0.0)


def division(call: Call) -> View:
    """Convert Div by a constant."""
    view, constant, reverse = _operands(call)
    if reverse or np.any(constant == 0):
        raise Unsupported("it divides by an activation or by zero", "divide by constants only")
    return _affine(call, view, 1.0 / constant, 0.0)


def batch_normalization(call: Call) -> View:
    """Convert BatchNormalization with its running statistics."""
    view = call.view()
    channels = view.size[2]
    if len(view.axes) < 2 or view.axes[1] != view.letters("C"):
        raise Unsupported(
            f"it normalizes axis 1 of a value of shape {view.shape}, which is not the channels",
            "export again, with images as (batch, channels, height, width)",
        )
    if call.attribute("training_mode", 0):
        raise Unsupported("it is in training mode", "call model.eval() before the export")
    names = ("scale", "bias", "mean", "variance")
    gamma, beta, mean, variance = (
        call.vector(index, channels, name) for index, name in enumerate(names, start=1)
    )
    spread = variance + call.attribute("epsilon", 1e-5)
    if not np.all(spread > 0):
        raise Unsupported(
            f"its variance + epsilon has the minimum {spread.min()}", "repair the running variance"
        )
    factor = gamma / np.sqrt(spread)
    return _affine(call, view, factor, beta - mean * factor)


def relu(call: Call) -> View:
    """Convert Relu."""
    return call.draft.clip(call.view(), 0.0, np.inf, call.name("relu"))


def clip(call: Call) -> View:
    """Convert Clip, its bounds being attributes or constants."""
    low, high = call.attribute("min", -np.inf), call.attribute("max", np.inf)
    if call.has(1):
        low = _scalar(call, 1)
    if call.has(2):
        high = _scalar(call, 2)
    return _clipped(call, call.view(), low, high)


def maximum(call: Call) -> View:
    """Convert Max of an activation and one number."""
    view, constant, _ = _operands(call)
    return _clipped(call, view, _number(constant), np.inf)


def minimum(call: Call) -> View:
    """Convert Min of an activation and one number."""
    view, constant, _ = _operands(call)
    return _clipped(call, view, -np.inf, _number(constant))


def _clipped(call: Call, view: View, low: float, high: float) -> View:
    if not low < high:
        raise Unsupported(f"it clips to [{low}, {high}]", "the lower bound must be the smaller")
    return call.draft.clip(view, low, high, call.name("clip"))


def _scalar(call: Call, index: int) -> float:
    return _number(call.constant(index, "bound"))


def _number(values: npt.NDArray[Any]) -> float:
    flat = np.unique(values)
    if flat.size != 1 or np.isnan(flat[0]):
        raise Unsupported("its bound is not one number", "use one bound for all channels")
    return float(flat[0])


def _affine(call: Call, view: View, factor: float | Vector, offset: float | Vector) -> View:
    channels = (view.size[2],)
    factors = np.broadcast_to(np.asarray(factor, np.float64), channels)
    offsets = np.broadcast_to(np.asarray(offset, np.float64), channels)
    if not np.all(np.isfinite(factors) & np.isfinite(offsets)):
        raise Unsupported("its constants are not finite", "train again or repair the weights")
    name = call.name(call.node.kind.lower())
    return call.draft.scale_and_shift(view, factors, offsets, name)


def _operands(call: Call) -> tuple[View, Vector, bool]:
    """Return the activation, the constant (a number or one per channel), and if it came first."""
    if len(call.node.inputs) != 2:
        raise Unsupported(f"it has {len(call.node.inputs)} inputs", "two are supported")
    reverse = not isinstance(call.values[0], View)
    if not reverse and isinstance(call.values[1], View):
        raise Unsupported(
            "both inputs are activations (squeeze-and-excitation, gates, Swish)",
            "only Add takes two activations: train the network without",
        )
    view = call.view(1 if reverse else 0)
    constant = call.constant(0 if reverse else 1, "second operand").astype(np.float64)
    return view, _by_channel(view, constant), reverse


def _by_channel(view: View, constant: Vector) -> Vector:
    """Reduce a constant that is broadcast over an activation to a number or one per channel."""
    shape = view.shape
    extra = constant.ndim - len(shape)
    if extra > 0 and constant.shape[:extra] == (1,) * extra:
        constant = constant.reshape(constant.shape[extra:])
    lengths = (1,) * (len(shape) - constant.ndim) + constant.shape
    if len(lengths) != len(shape) or any(
        own not in (1, size) for own, size in zip(lengths, shape, strict=True)
    ):
        raise Unsupported(
            f"a constant of shape {constant.shape} does not fit a value of shape {shape}",
            "one number, or one per channel, is supported",
        )
    letters = "".join(axis for axis, own in zip(view.axes, lengths, strict=True) if own > 1)
    values = np.asarray(constant.reshape([view.length(letter) for letter in letters]))
    for axis, letter in reversed(list(enumerate(letters))):
        if letter == "C":
            continue
        first = np.asarray(values.take([0], axis))
        if not np.array_equal(np.broadcast_to(first, values.shape), values):
            raise Unsupported(
                f"a constant of shape {constant.shape} differs from pixel to pixel",
                "one number, or one per channel, is supported",
            )
        values = np.asarray(first.squeeze(axis))
    return values
