"""TFLite operators that only rename values: RESHAPE and its kin, and the shapes computed for them.

Converters compute the shape of a RESHAPE from that of its input where the batch is unknown (SHAPE,
STRIDED_SLICE, PACK and others). For one image all of it is known and is worked out here.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
import numpy.typing as npt

from pmt.formats.tflite.file import Unsupported
from pmt.formats.tflite.network import Step, layout

Sizes = npt.NDArray[np.int64]
_MOST_SIZES = 64
_FIXED_SIZE = "convert with a fixed input size, so that every shape is a constant"


def reshape(step: Step) -> None:
    """Lower RESHAPE: an op where the layout changes, else nothing."""
    elements = step.tensor().elements
    wanted = step.integers(1)
    if wanted is None:
        wanted = list(step.network.model.tensors[step.output].shape)
    known = math.prod(size for size in wanted if size != -1)
    if wanted.count(-1) == 1 and known > 0 and elements % known == 0:
        wanted[wanted.index(-1)] = elements // known
    if min(wanted, default=0) < 1 or math.prod(wanted) != elements:
        raise Unsupported(f"reshapes {elements} values to {tuple(wanted)}", _FIXED_SIZE)
    rename(step, tuple(wanted))


def squeeze(step: Step) -> None:
    """Lower SQUEEZE, whose output's shape the file says."""
    shape = step.network.model.tensors[step.output].shape
    if math.prod(shape) != step.tensor().elements:
        raise Unsupported(f"squeezes {step.shape()} to {shape}", _FIXED_SIZE)
    rename(step, shape)


def expand_dims(step: Step) -> None:
    """Lower EXPAND_DIMS with a constant axis."""
    shape, axes = step.shape(), step.integers(1)
    rank = len(shape) + 1
    if axes is None or len(axes) != 1 or not -rank <= axes[0] < rank:
        raise Unsupported(f"axis {axes} for shape {shape}", "store the axis as a constant")
    axis = axes[0] % rank
    rename(step, (*shape[:axis], 1, *shape[axis:]))


def transpose(step: Step) -> None:
    """Lower TRANSPOSE where it moves only axes of size 1, and so no value."""
    shape, order = step.shape(), step.integers(1)
    if order is None or sorted(order) != list(range(len(shape))):
        raise Unsupported(f"order {order} for shape {shape}", "store the order as a constant")
    moved = [axis for axis in order if shape[axis] != 1]
    if moved != sorted(moved):
        raise Unsupported(
            f"moves values: order {order} for shape {shape}",
            "convert from a channels-last network; only at the input may channels come first",
        )
    rename(step, tuple(shape[axis] for axis in order))


def rename(step: Step, shape: tuple[int, ...]) -> None:
    """Give the same values another shape."""
    step.require_same_quantization()
    source = step.tensor()
    # (positions, channels) keeps the graph's rows: what reads it looks at single positions.
    positions = len(shape) == 2 and shape[1] == source.channels
    if (positions or layout(shape) == source.shape) and not _stays_an_op(step):
        step.check_shape(shape)
        step.alias(shape)
    else:
        step.emit("reshape", shape, stem="reshape")


def _stays_an_op(step: Step) -> bool:
    """Whether a RESHAPE that changes nothing is kept.

    Random streams are numbered by op: the vector before a classifier has always been an op, and
    networks shall train as before. Before the output it would hide the last layer's accumulators.
    """
    source = step.tensor()
    readers = step.network.readers.get(step.output, [])
    leads_out = all(op.kind == "OUTPUT" for op in readers)
    return step.op.kind == "RESHAPE" and source.height * source.width == 1 and not leads_out


def evaluate_sizes(step: Step) -> None:
    """Work out an operator on sizes; Unsupported is raised if its inputs are not known."""
    if step.op.kind not in SIZE_OPERATORS:
        raise Unsupported("computes sizes in a way that is not known here", _FIXED_SIZE)
    try:
        result = np.asarray(SIZE_OPERATORS[step.op.kind](step))
    except (IndexError, ValueError):  # an index beyond the vector, or vectors of unequal length
        raise Unsupported("computes sizes from places that do not exist", _FIXED_SIZE) from None
    if result.size > _MOST_SIZES or np.any(np.abs(result) >= 2**31):
        raise Unsupported("computes sizes that no tensor has", _FIXED_SIZE)
    step.network.sizes[step.output] = result.astype(np.int64)


def _sizes(step: Step, position: int) -> Sizes:
    """Return an input, at most a vector of sizes."""
    if position < len(step.op.inputs):
        constant = step.constant(position)
        known = step.network.sizes.get(step.op.inputs[position])
        values = known if constant is None else constant.data
        integers = constant is None or constant.dtype in ("INT32", "INT64")
        if values is not None and integers and values.ndim <= 1 and values.size <= _MOST_SIZES:
            return np.asarray(values, np.int64)
    raise Unsupported(f"input {position} is not a known vector of sizes", _FIXED_SIZE)


def _shape(step: Step) -> Sizes:
    return np.array(step.shape(), np.int64)


def _strided_slice(step: Step) -> Sizes:
    values = _sizes(step, 0)
    begin, end, stride = (int(_sizes(step, i).reshape(-1)[0]) for i in (1, 2, 3))
    options = step.op.options
    if values.ndim != 1 or stride == 0 or options.get("EllipsisMask") or options.get("NewAxisMask"):
        raise Unsupported("slices sizes in an unusual way", _FIXED_SIZE)
    if options.get("ShrinkAxisMask", 0) & 1:
        return np.array(values[begin])
    first = None if options.get("BeginMask", 0) & 1 else begin
    return values[first : None if options.get("EndMask", 0) & 1 else end : stride]


def _pack(step: Step) -> Sizes:
    parts = [_sizes(step, i) for i in range(len(step.op.inputs))]
    if any(part.ndim for part in parts):
        raise Unsupported("packs vectors of sizes", _FIXED_SIZE)
    return np.array(parts, np.int64)


def _gather(step: Step) -> Sizes:
    return np.asarray(_sizes(step, 0)[_sizes(step, 1)])


def _concatenate(step: Step) -> Sizes:
    return np.concatenate([_sizes(step, i).reshape(-1) for i in range(len(step.op.inputs))])


def _product(step: Step) -> Sizes:
    product = math.prod(int(size) for size in _sizes(step, 0).reshape(-1))
    if abs(product) >= 2**31:
        raise Unsupported("computes a size beyond 2^31", _FIXED_SIZE)
    return np.array([product] if step.op.options.get("KeepDims") else product, np.int64)


def _multiply(step: Step) -> Sizes:
    return np.asarray(_sizes(step, 0) * _sizes(step, 1))


def _same(step: Step) -> Sizes:
    return _sizes(step, 0)


SIZE_OPERATORS: dict[str, Callable[[Step], Sizes]] = {
    "SHAPE": _shape,
    "STRIDED_SLICE": _strided_slice,
    "PACK": _pack,
    "GATHER": _gather,
    "CONCATENATION": _concatenate,
    "REDUCE_PROD": _product,
    "MUL": _multiply,
    "CAST": _same,
    "RESHAPE": _same,
    "SQUEEZE": _same,
}
