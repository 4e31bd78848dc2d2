"""Nodes that compute value by value, or look at values in another way.

That is additions, normalizations and clippings; reshapes, transpositions, the softmax and shapes.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt

from pmt._util.arrays import Array, DoubleArray
from pmt.formats.layers import Unsupported
from pmt.formats.onnx.call import TRAINING, Call, QuantizedConstant, Value, memory_view
from pmt.formats.onnx.draft import View, flattened, image_view, reshaped, transposed
from pmt.formats.onnx.file import MAX_RANK

# Data types by their numbers in ONNX.
FLOATS = (1, 10, 11, 16)


def addition(call: Call) -> View:
    """Convert Add and Sum: of two activations, or a constant that becomes a bias."""
    both = isinstance(call.values[0], View) and isinstance(call.values[1], View)
    if both and len(call.node.inputs) == 2:
        return _residual(call, call.view(0), call.view(1))
    view, constant, _ = _operands(call)
    return _affine(call, view, 1.0, constant)


def _residual(call: Call, first: View, second: View) -> View:
    alike = first.size == second.size and first.axes == second.axes
    if not alike and first.shape == second.shape and len(first.axes) == 4:
        first, second = call.image(0), call.image(1)  # one of them was reshaped
    if first.size != second.size or first.axes != second.axes:
        raise Unsupported(
            f"it adds values of shape {first.shape} and {second.shape}, whose elements do not lie "
            "alike",
            "add activations of equal shape only",
        )
    result = call.draft.emit("add", call.name("add"), [first, second], first.size)
    return View(result.tensor, first.batch, first.size, first.axes)


def concatenation(call: Call) -> View:
    """Convert Concat along the channels: of two activations as an op, of more as a chain."""
    views = [call.view(i) for i in range(max(1, len(call.node.inputs)))]
    rank, axis = len(views[0].axes), call.attribute("axis", None)
    if not -rank <= axis < rank:
        raise Unsupported(f"its axis is {axis}, of values of {rank} axes", "export again")
    views, order = _side_by_side(call, views, axis % rank)
    joined, name = views[0], call.name("concatenation")
    for view in views[1:]:
        size = (*joined.size[:2], joined.size[2] + view.size[2])
        joined = call.draft.emit("concatenation", name, [joined, view], size)
    return image_view(joined.tensor, joined.batch, joined.size, order, raw=joined.raw)


def _side_by_side(call: Call, views: list[View], axis: int) -> tuple[list[View], str]:
    """Return activations that can be joined along their channels, and the letters of their axes.

    What is flattened or reshaped in the order of memory becomes an activation of its own.
    """
    rank = len(views[0].axes)
    alike = len({view.shape[:axis] + view.shape[axis + 1 :] for view in views}) == 1
    for order in {2: ("NC",), 3: ("NCW", "NWC"), 4: ("NCHW", "NHWC")}.get(rank, ()):
        has_order = all(_has_order(view, order) for view in views)
        if alike and order.index("C") == axis and has_order:
            return views, order
    if alike and rank == 2 and axis == 1 and all(view.in_memory_order for view in views):
        made = [memory_view(call, view, (1, 1, view.shape[1]), "NHWC") for view in views]
        return made, "NC"
    if not alike or rank not in (3, 4) or axis != 1:
        shapes = ", ".join(str(view.shape) for view in views)
        raise Unsupported(
            f"it joins values of shapes {shapes} along axis {axis}",
            "only activations of one height and width are joined, along their channels; flattened "
            "maps only if they are flattened as (height, width, channels)",
        )
    made = [call.image(i) for i in range(len(views))]
    return made, {3: "NCW", 4: "NCHW"}[rank]


def _has_order(view: View, order: str) -> bool:
    alike = image_view(view.tensor, view.batch, view.size, order)
    return view.axes == alike.axes and view.shape == alike.shape


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
        raise Unsupported(*TRAINING)
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
        low = _number(call.constant(1, "bound"))
    if call.has(2):
        high = _number(call.constant(2, "bound"))
    return _clipped(call, call.view(), low, high)


def limited(call: Call) -> View:
    """Convert Max and Min of an activation and one number."""
    view, constant, _ = _operands(call)
    bound = _number(constant)
    low, high = (bound, np.inf) if call.node.kind == "Max" else (-np.inf, bound)
    return _clipped(call, view, low, high)


def _clipped(call: Call, view: View, low: float, high: float) -> View:
    if not low < high:
        raise Unsupported(f"it clips to [{low}, {high}]", "the lower bound must be the smaller")
    return call.draft.clip(view, low, high, call.name("clip"))


def _number(values: npt.NDArray[Any]) -> float:
    flat = np.unique(values)
    if flat.size != 1 or np.isnan(flat[0]):
        raise Unsupported("its bound is not one number", "use one bound for all channels")
    return float(flat[0])


def _affine(
    call: Call, view: View, factor: float | DoubleArray, offset: float | DoubleArray
) -> View:
    channels = (view.size[2],)
    factors = np.broadcast_to(np.asarray(factor, np.float64), channels)
    offsets = np.broadcast_to(np.asarray(offset, np.float64), channels)
    if not np.all(np.isfinite(factors) & np.isfinite(offsets)):
        raise Unsupported("its constants are not finite", "train again or repair the weights")
    name = call.name(call.node.kind.lower())
    return call.draft.scale_and_shift(view, factors, offsets, name)


def _operands(call: Call) -> tuple[View, DoubleArray, bool]:
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


def _by_channel(view: View, constant: DoubleArray) -> DoubleArray:
    """Reduce a constant that is broadcast over an activation to a number or one per channel."""
    shape = view.shape
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


def cast(call: Call) -> View:
    """Convert Cast between floats, which changes nothing here."""
    to = call.attribute("to", 1)
    if to not in FLOATS:
        raise Unsupported(f"it casts an activation to data type {to}", "only floats are supported")
    return call.view()


def dropout(call: Call) -> View:
    """Convert Dropout, which does nothing at inference."""
    call.require_inference()
    return call.view()


def flatten(call: Call) -> View:
    """Convert Flatten."""
    view = call.view()
    axis = call.attribute("axis", 1)
    rank = len(view.axes)
    if not -rank <= axis <= rank:
        raise Unsupported(f"axis is {axis} of {rank}", "export again")
    return flattened(view, axis if axis >= 0 else axis + rank)


def reshape(call: Call) -> View:
    """Convert Reshape to a constant shape."""
    view = call.view()
    wanted = call.constant(1, "shape").ravel()
    shape = target_shape(
        view.shape, [int(n) for n in wanted[:9]], bool(call.attribute("allowzero", 0))
    )
    result = reshaped(view, shape)
    if result is not None:
        return result
    # Splitting an axis needs an activation of its own, in the order of memory.
    if view.in_memory_order and len(shape) == 4 and shape[0] == view.batch:
        return memory_view(call, view, (shape[1], shape[2], shape[3]), "NHWC")
    raise Unsupported(
        f"it reshapes {view.shape} to {tuple(shape)}, which splits or mixes channels and pixels",
        "only flattening, and shapes that keep the pixels whole, are supported",
    )


def gather(call: Call) -> View:
    """Convert a Gather that takes every value in its order, in another shape.

    It is what torch writes for the mean over a whole image (``as_strided``).
    """
    view = call.view()
    indices = call.constant(1, "indices")
    in_order = len(view.axes) == 1 and np.array_equal(indices.ravel(), np.arange(view.shape[0]))
    result = reshaped(view, indices.shape) if in_order and indices.ndim <= MAX_RANK else None
    if result is None:
        raise Unsupported(
            f"it picks values out of an activation of shape {view.shape}",
            "only a Gather that keeps all of them in their order is supported",
        )
    return result


def target_shape(shape: tuple[int, ...], wanted: list[int], allow_zero: bool) -> list[int]:
    """Return the sizes that Reshape gives: 0 copies, -1 takes the rest."""
    sizes = [
        shape[i] if size == 0 and not allow_zero and i < len(shape) else size
        for i, size in enumerate(wanted)
    ]
    total = int(np.prod(shape, dtype=object))
    known = int(np.prod([size for size in sizes if size != -1], dtype=object))
    if sizes.count(-1) == 1 and known > 0 and total % known == 0:
        sizes[sizes.index(-1)] = total // known
    if min(sizes, default=1) < 0 or int(np.prod(sizes, dtype=object)) != total:
        raise Unsupported(
            f"it reshapes {shape} to {wanted}", "export with the image size of the network"
        )
    return sizes


def transpose(call: Call) -> View:
    """Convert Transpose."""
    view = call.view()
    return transposed(view, call.attribute("perm", list(range(len(view.axes)))[::-1]))


def squeeze(call: Call) -> View:
    """Convert Squeeze; without axes, all sizes of 1 go, but never the batch."""
    view = call.view()
    axes = call.axes(len(view.axes))
    if axes is None:
        axes = [i for i, size in enumerate(view.shape) if i and size == 1]
    if any(view.axes[axis] for axis in axes):
        raise Unsupported(
            f"it removes the axes {axes} of a value of shape {view.shape}",
            "only sizes of 1 can be removed",
        )
    return replace(view, axes=tuple(a for i, a in enumerate(view.axes) if i not in axes))


def unsqueeze(call: Call) -> View:
    """Convert Unsqueeze."""
    view = call.view()
    count = len(call.attribute("axes", [])) or call.constant(1, "axes").size
    rank = len(view.axes) + count
    axes = call.axes(rank)
    if axes is None or len(axes) != count or rank > 8:
        raise Unsupported(f"its axes are {axes}", "export again")
    remaining = list(view.axes)
    return replace(view, axes=tuple("" if i in axes else remaining.pop(0) for i in range(rank)))


def softmax(call: Call) -> View:
    """Leave out a Softmax, LogSoftmax or ArgMax over the classes; only the output may follow."""
    view = call.view()
    usual = 1 if call.opset < 13 else -1
    axis = call.attribute("axis", 0 if call.node.kind == "ArgMax" else usual)
    rank = len(view.axes)
    if not -rank <= axis < rank or view.axes[axis] != view.letters("HWC"):
        raise Unsupported(
            f"it runs over axis {axis} of a value of shape {view.shape}",
            "only a softmax over the classes, at the end, can be left out",
        )
    return left_out(call)


def left_out(call: Call) -> View:
    """Leave out a function of single logits, such as Sigmoid; only the output may follow."""
    call.draft.dropped.append(f"{call.node.name} ({call.node.kind})")
    return replace(call.view(), dropped=call.node.name)


def hard_sigmoid(call: Call) -> View:
    """Leave out a HardSigmoid, but for its clamp: logits beyond it are equal."""
    factor, offset = call.attribute("alpha", 0.2), call.attribute("beta", 0.5)
    if not factor > 0.0:
        raise Unsupported(f"its alpha is {factor}", "only a rising HardSigmoid can be left out")
    low, high = -offset / factor, (1.0 - offset) / factor
    return replace(_clipped(call, call.view(), low, high), dropped=left_out(call).dropped)


def shape_of(call: Call) -> Array:
    """Compute Shape, of an activation too; a batch of open size counts as 1."""
    value = call.values[0]
    if isinstance(value, QuantizedConstant):
        value = value.values
    shape = value.shape if value is not None else ()
    return np.array(shape, np.int64)[call.attribute("start", 0) : call.attribute("end", MAX_RANK)]


CONVERTERS: dict[str, Callable[[Call], Value]] = {
    "Add": addition,
    "BatchNormalization": batch_normalization,
    "Cast": cast,
    "Clip": clip,
    "Concat": concatenation,
    "Div": division,
    "Dropout": dropout,
    "Flatten": flatten,
    "Gather": gather,
    "LogSoftmax": softmax,
    "Max": limited,
    "Min": limited,
    "Mul": multiplication,
    "Relu": relu,
    "Reshape": reshape,
    "Shape": shape_of,
    "Softmax": softmax,
    "Squeeze": squeeze,
    "Sub": subtraction,
    "Sum": addition,
    "Transpose": transpose,
    "Unsqueeze": unsqueeze,
}
