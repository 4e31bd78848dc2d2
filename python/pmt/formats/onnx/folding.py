"""Nodes that read constants alone: shapes, paddings and rearranged weights, computed at once."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from pmt._util.arrays import Array
from pmt._util.text import counted
from pmt.formats.layers import Unsupported
from pmt.formats.onnx.call import Call, QuantizedConstant, Value
from pmt.formats.onnx.definitions import require_types
from pmt.formats.onnx.elementwise import FLOATS, target_shape
from pmt.formats.onnx.file import MAX_RANK

BEFORE_EXPORT = "fold constants before the export"


def fold(call: Call) -> list[Array]:
    """Compute a node whose inputs are constants, as the reference of ONNX does.

    Unsupported is raised if it contradicts itself, or its result would be far larger than the file.
    """
    arrays = [_real(value) for value in call.values[: len(call.node.inputs)]]
    require_types(call.node, arrays, call.opset)
    try:
        with np.errstate(all="ignore"):
            _RULES.get(call.node.kind, _accept)(call, arrays)
            _require_room(call, arrays)
            results = _computed(call, arrays)
    except Unsupported:
        raise
    except Exception:  # the reference raises nearly anything, in words about its own code
        raise Unsupported(
            f"its constants contradict each other: inputs of shape {_shapes(arrays)}, attributes "
            f"{_attributes(call)}",
            "the file is damaged, export again",
        ) from None
    if any(result.ndim > MAX_RANK or result.dtype.kind not in "fiub" for result in results):
        raise Unsupported("its constants have too many axes", "the file is damaged, export again")
    return results


def _real(value: Value | None) -> Array:
    """Return a constant as an array; that of an input that is left out is empty."""
    if isinstance(value, QuantizedConstant):
        return value.real().astype(np.float32)
    return value if isinstance(value, np.ndarray) else np.zeros(0)


def _shapes(arrays: list[Array]) -> str:
    return ", ".join(str(array.shape) for array in arrays[:4]) or "none"


def _attributes(call: Call) -> str:
    named = (f"{name} {str(value)[:40]!r}" for name, value in call.node.attributes.items())
    return ", ".join(named) or "none"


def _accept(_call: Call, _arrays: list[Array]) -> None:
    pass


def _require_quotients(call: Call, arrays: list[Array]) -> None:
    """Refuse whole numbers whose quotient is none, or not of their type."""
    first, second = np.broadcast_arrays(*arrays)
    if first.dtype.kind not in "iu":
        return
    wrong = second == 0
    if first.dtype.kind == "i":
        wrong |= (first == np.iinfo(first.dtype).min) & (second == -1)
    if wrong.any():
        raise Unsupported(
            f"it divides {first[wrong][0]} by {second[wrong][0]}, of which {first.dtype} holds no "
            "result",
            BEFORE_EXPORT,
        )


def _require_parts(call: Call, arrays: list[Array]) -> None:
    """Refuse a Split whose parts are not the whole axis."""
    count, whole = len(call.node.outputs), arrays[0].shape[call.attribute("axis", 0)]
    wanted = call.attribute("num_outputs", 0)
    if wanted not in (0, count):
        raise Unsupported(
            f"it has {counted(count, 'output')}, and num_outputs is {wanted}",
            "the file is damaged, export again",
        )
    each = -(-whole // count) if wanted else whole // count
    last = whole - each * (count - 1) if wanted else each
    parts = call.attribute("split", [*[each] * (count - 1), last])
    if call.has(1):
        parts = arrays[1].ravel().tolist()
    if len(parts) != count or min(parts) < 1 or sum(parts) != whole:
        raise Unsupported(
            f"its {counted(count, 'output')} have the sizes {str(parts)[:60]} along an axis of "
            f"{whole}: there must be as many sizes, from 1 on, and they must sum to the axis",
            "the file is damaged, export again",
        )


def _require_room(call: Call, arrays: list[Array]) -> None:
    count = _SIZES[call.node.kind](call, arrays) if call.node.kind in _SIZES else 0
    if count > call.budget:
        raise Unsupported(
            f"it makes a constant of {count} values, the whole file has {call.budget}",
            BEFORE_EXPORT,
        )


def _computed(call: Call, arrays: list[Array]) -> list[Array]:
    if call.node.kind == "Dropout":  # of any opset, whatever its attributes
        return arrays[:1]
    from onnx import AttributeProto, helper, numpy_helper
    from onnx.reference import ReferenceEvaluator

    names = [f"x{place}" if name else "" for place, name in enumerate(call.node.inputs)]
    wanted = [f"y{place}" for place, _ in enumerate(call.node.outputs)]
    node = helper.make_node(call.node.kind, names, wanted)
    for name, value in call.node.attributes.items():
        if name == "to" and value in FLOATS:
            value = 1  # floats of any width are float32 here
        if isinstance(value, np.ndarray):
            value = numpy_helper.from_array(value)
        if value is not None:
            kind = AttributeProto.INTS if value == [] else None  # which nothing else would say
            node.attribute.append(helper.make_attribute(name, value, attr_type=kind))
    given = {name: array for name, array in zip(names, arrays, strict=True) if name}
    read, made = (list(map(helper.make_empty_tensor_value_info, ends)) for ends in (given, wanted))
    opsets = [helper.make_opsetid("", call.opset)]
    model = helper.make_model(helper.make_graph([node], "", read, made), opset_imports=opsets)
    results = map(np.asarray, ReferenceEvaluator(model).run(None, given))
    return [r.astype(np.float32) if r.dtype.kind == "f" else r for r in results]


def _broadcast(call: Call, inputs: list[Array]) -> int:
    given = zip(call.node.inputs, inputs, strict=True)
    return math.prod(np.broadcast_shapes(*(value.shape for name, value in given if name)))


def _gathered(call: Call, inputs: list[Array]) -> int:
    values, indices = inputs
    return int(indices.size * values.size // max(1, values.shape[call.attribute("axis", 0)]))


def _stored(call: Call, _inputs: list[Array]) -> int:
    values = [call.node.attributes.get(f"value{kind}") for kind in _VALUES]
    if all(value is None for value in values):
        raise Unsupported("its value is not a tensor or number", "export with dense constants")
    return 0


def _reshaped(_call: Call, inputs: list[Array]) -> int:
    return math.prod(target_shape(inputs[0].shape, [int(n) for n in inputs[1].ravel()[:9]], False))


def _counted(_call: Call, inputs: list[Array]) -> int:
    start, limit, step = (float(value.ravel()[0]) for value in inputs)
    return math.ceil((limit - start) / step)


def _expanded(_call: Call, inputs: list[Array]) -> int:
    shape = tuple(int(size) for size in inputs[1].ravel()[: MAX_RANK + 1])
    return math.prod(np.broadcast_shapes(inputs[0].shape, shape))


def _multiplied(_call: Call, inputs: list[Array]) -> int:
    """Count the values of a product of matrices; that of a vector has less."""
    first, second = (np.atleast_2d(value).shape for value in inputs)
    matrices = math.prod(np.broadcast_shapes(first[:-2], second[:-2]))
    return int(matrices * first[-2] * second[-1])


_VALUES = ("", "_float", "_int", "_floats", "_ints")
_BROADCASTING = (
    *("Add", "And", "Clip", "Div", "Equal", "Greater", "GreaterOrEqual", "Less", "LessOrEqual"),
    *("Max", "Mean", "Min", "Mod", "Mul", "Or", "Pow", "Sub", "Sum", "Where", "Xor"),
)
_REDUCING = (
    *("ArgMax", "ArgMin", "ReduceL1", "ReduceL2", "ReduceLogSum", "ReduceLogSumExp", "ReduceMax"),
    *("ReduceMean", "ReduceMin", "ReduceProd", "ReduceSum", "ReduceSumSquare", "Size"),
)
# How many values the result has, where it may have more than the inputs together.
_SIZES: dict[str, Callable[[Call, list[Array]], int]] = {
    **dict.fromkeys(_BROADCASTING, _broadcast),
    "Concat": lambda _call, inputs: sum(value.size for value in inputs),
    "Constant": _stored,
    "ConstantOfShape": lambda _call, inputs: math.prod(int(size) for size in inputs[0].ravel()),
    "Expand": _expanded,
    "Gather": _gathered,
    "MatMul": _multiplied,
    "NonZero": lambda _call, inputs: inputs[0].size * max(1, inputs[0].ndim),
    "Range": _counted,
    "Reshape": _reshaped,
    "Tile": lambda _call, inputs: inputs[0].size * math.prod(int(n) for n in inputs[1].ravel()),
}
# Rules of ONNX that its reference does not check.
_RULES: dict[str, Callable[[Call, list[Array]], None]] = {
    **dict.fromkeys(("Div", "Mod"), _require_quotients),
    "Dropout": lambda call, _arrays: call.require_inference(),
    "Split": _require_parts,
}
READ_ONE_BY_ONE = frozenset({"GatherElements", "ScatterElements", "ScatterND"})
# Nodes that are computed if their inputs are constants. Others may need far more memory than their
# result, or draw random numbers.
FOLDED = frozenset(
    (
        *_SIZES,
        *_REDUCING,
        *("Abs", "Cast", "Ceil", "Cos", "CumSum", "Dropout", "Erf", "Exp", "Flatten", "Floor"),
        *READ_ONE_BY_ONE,
        *("HardSigmoid", "Identity", "LeakyRelu", "Log", "Neg", "Not"),
        *("Reciprocal", "Relu", "Round", "Sigmoid", "Sign", "Sin"),
        *("Slice", "Softplus", "Split", "Sqrt", "Squeeze", "Tanh", "Transpose", "Trilu"),
        "Unsqueeze",
    )
)
