"""Nodes that read only constants, computed at once: shapes, paddings, rearranged weights."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt

from pmt.formats.onnx.call import Call
from pmt.formats.onnx.file import MAX_RANK, Unsupported
from pmt.formats.onnx.shapes import target_shape
from pmt.formats.onnx.view import View

Array = npt.NDArray[Any]
_CAST = {1: "float32", 6: "int32", 7: "int64", 9: "bool", 10: "float32", 11: "float32"}


def fold(call: Call) -> Array:
    """Compute a node whose inputs are constants.

    Unsupported is raised if it contradicts itself, or its result would be far larger than the file.
    """
    given = call.values[: len(call.node.inputs)]
    arrays = [value if isinstance(value, np.ndarray) else np.zeros(0) for value in given]
    try:
        with np.errstate(all="ignore"):
            result = np.asarray(FOLDERS[call.node.kind](call, arrays))
    except (ValueError, IndexError, TypeError, KeyError, ArithmeticError) as error:
        raise Unsupported(
            f"its constants contradict each other: {error}", "the file is damaged, export again"
        ) from None
    if result.ndim > MAX_RANK or result.dtype.kind not in "fiub":
        raise Unsupported("its constants have too many axes", "the file is damaged, export again")
    return result


def shape_of(call: Call) -> Array:
    """Compute Shape, of an activation too; a batch of open size counts as 1."""
    value = call.values[0]
    shape = value.shape if isinstance(value, View | np.ndarray) else ()
    return np.array(shape, np.int64)[call.attribute("start", 0) : call.attribute("end", MAX_RANK)]


def _require(call: Call, count: int) -> None:
    if count > call.budget:
        raise Unsupported(
            f"it makes a constant of {count} values, the whole file has {call.budget}",
            "fold constants before the export",
        )


def _constant(call: Call, _inputs: list[Array]) -> Array:
    for name in ("value", "value_float", "value_int", "value_floats", "value_ints"):
        value = call.node.attributes.get(name)
        if value is not None:
            kind = np.float32 if "float" in name else np.int64
            return value if isinstance(value, np.ndarray) else np.array(value, kind)
    raise Unsupported("its value is not a tensor or number", "export with dense constants")


def _constant_of_shape(call: Call, inputs: list[Array]) -> Array:
    shape = [int(size) for size in inputs[0].ravel()]
    _require(call, math.prod(shape))
    value = call.node.attributes.get("value", np.zeros(1, np.float32))
    return np.full(shape, value.ravel()[0], value.dtype)


def _elementwise(function: Callable[[Array, Array], Array]) -> Callable[[Call, list[Array]], Array]:
    def compute(call: Call, inputs: list[Array]) -> Array:
        first, second = inputs
        _require(call, math.prod(np.broadcast_shapes(first.shape, second.shape)))
        return function(first, second).astype(first.dtype)

    return compute


def _divide(first: Array, second: Array) -> Array:
    return first / second if first.dtype.kind == "f" else first // second


def _concat(call: Call, inputs: list[Array]) -> Array:
    _require(call, sum(value.size for value in inputs))
    return np.concatenate(inputs, call.attribute("axis", 0))


def _gather(call: Call, inputs: list[Array]) -> Array:
    values, indices = inputs
    axis = call.attribute("axis", 0)
    _require(call, indices.size * math.prod(values.shape) // max(1, values.shape[axis]))
    return np.asarray(values.take(indices.astype(np.int64), axis))


def _range(call: Call, inputs: list[Array]) -> Array:
    start, limit, step = (value.ravel()[0] for value in inputs)
    _require(call, math.ceil((float(limit) - float(start)) / float(step)))
    return np.arange(start, limit, step)


def _slice(call: Call, inputs: list[Array]) -> Array:
    if call.opset < 10:
        starts, ends = call.attribute("starts", []), call.attribute("ends", [])
        axes, steps = call.attribute("axes", list(range(len(starts)))), [1] * len(starts)
    else:
        rows = [[int(n) for n in value.ravel()] for value in inputs[1:]]
        starts, ends = rows[0], rows[1]
        axes = rows[2] if len(rows) > 2 and rows[2] else list(range(len(starts)))
        steps = rows[3] if len(rows) > 3 else [1] * len(starts)
    cut = [slice(None)] * inputs[0].ndim
    for start, end, axis, step in zip(starts, ends, axes, steps, strict=True):
        # The least end means "before the first" where the step goes back.
        cut[axis] = slice(start, None if step < 0 and end < -(2**30) else end, step)
    return inputs[0][tuple(cut)]


def _cast(call: Call, inputs: list[Array]) -> Array:
    return inputs[0].astype(_CAST[call.attribute("to", 1)])


def _reshape(call: Call, inputs: list[Array]) -> Array:
    wanted = [int(size) for size in inputs[1].ravel()[:9]]
    return inputs[0].reshape(target_shape(inputs[0].shape, wanted, False))


def _squeeze(call: Call, inputs: list[Array]) -> Array:
    axes = call.axes(inputs[0].ndim)
    return inputs[0].squeeze(None if axes is None else tuple(axes))


def _unsqueeze(call: Call, inputs: list[Array]) -> Array:
    count = len(call.attribute("axes", [])) or inputs[1].size
    axes = call.axes(inputs[0].ndim + count)
    return np.expand_dims(inputs[0], tuple(axes or ()))


def _transpose(call: Call, inputs: list[Array]) -> Array:
    return inputs[0].transpose(call.attribute("perm", list(range(inputs[0].ndim))[::-1]))


def _flatten(call: Call, inputs: list[Array]) -> Array:
    head = math.prod(inputs[0].shape[: call.attribute("axis", 1)])
    return inputs[0].reshape(head, -1)


FOLDERS: dict[str, Callable[[Call, list[Array]], Array]] = {
    "Add": _elementwise(np.add),
    "Cast": _cast,
    "Concat": _concat,
    "Constant": _constant,
    "ConstantOfShape": _constant_of_shape,
    "Div": _elementwise(_divide),
    "Dropout": lambda _call, inputs: inputs[0],
    "Exp": lambda _call, inputs: np.exp(inputs[0]),
    "Flatten": _flatten,
    "Gather": _gather,
    "Identity": lambda _call, inputs: inputs[0],
    "Mul": _elementwise(np.multiply),
    "Neg": lambda _call, inputs: -inputs[0],
    "Pow": _elementwise(np.power),
    "Range": _range,
    "Reciprocal": lambda _call, inputs: 1 / inputs[0],
    "Reshape": _reshape,
    "Slice": _slice,
    "Sqrt": lambda _call, inputs: np.sqrt(inputs[0]),
    "Squeeze": _squeeze,
    "Sub": _elementwise(np.subtract),
    "Transpose": _transpose,
    "Unsqueeze": _unsqueeze,
}
