"""TFLite operators on single values, and those that only rename values: RESHAPE and its kin.

Converters compute the shape of a RESHAPE from that of its input where the batch is unknown (SHAPE,
STRIDED_SLICE, PACK and others). For one image all of it is known and is worked out here.
"""

import math
from collections.abc import Callable
from functools import partial

import numpy as np

from pmt._util.arrays import DoubleArray, Int64Array
from pmt.formats.layers import Unsupported, channelwise_layer
from pmt.formats.tflite.file import CONVERT_INT8, FileTensor
from pmt.formats.tflite.network import Step, layout, quantization
from pmt.net.graph import Op, Tensor
from pmt.net.ops import Pair

Sizes = Int64Array

_ACTIVATIONS = {0: (-math.inf, math.inf), 1: (0.0, math.inf), 2: (-1.0, 1.0), 3: (0.0, 6.0)}
_FOLD = "fold it into the layer before, or into its bias"
_MOST_SIZES = 64
_FIXED_SIZE = "convert with a fixed input size, so that every shape is a constant"


def add(step: Step) -> None:
    """Lower ADD of two activations, or of an activation and one constant for each channel."""
    if _operands(step)[1] is not None:
        position, offset = _channel_constant(step)
        _emit_channelwise(step, position, 1.0, offset, "add_constant")
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


def concatenate(step: Step) -> None:
    """Lower CONCATENATION along the channels: of two activations as an op, of more as a chain."""
    shapes = [step.shape(i) for i in range(max(1, len(step.op.inputs)))]
    tensors = [step.tensor(i) for i in range(len(shapes))]
    rank, axis = len(shapes[0]), step.op.options.get("Axis", 0)
    alike = {(shape[:-1], tensor.shape[:2]) for shape, tensor in zip(shapes, tensors, strict=True)}
    if not -rank <= axis < rank:
        raise Unsupported(f"axis {axis} for shape {shapes[0]}", "the file is damaged")
    if axis not in (-1, rank - 1) or len(alike) != 1:
        raise Unsupported(
            f"joins {', '.join(map(str, shapes))} along axis {axis}",
            "only activations of one height and width are joined, along their channels",
        )
    if len(shapes) == 1:
        _keep_one(step)
        return
    network, channels, joined = step.network, tensors[0].channels, step.source(0)
    for i in range(1, len(shapes)):
        channels += tensors[i].channels
        sources, size = (joined, step.source(i)), (*tensors[0].shape[:2], channels)
        if i + 1 < len(shapes):
            name = network.name("concatenation")
            joined = network.intermediate(Tensor(name, *size, *step.target_quantization()))
            network.ops.append(Op("concatenation", name, sources, joined))
    step.emit(
        "concatenation",
        (*shapes[0][:-1], channels),
        stem="concatenation",
        sources=sources,
        size=size,
        clamp=fused_clamp(step),
    )


def _keep_one(step: Step) -> None:
    clamp = fused_clamp(step)
    if step.keeps_quantization() and clamp != (-128, 127):
        _emit_clamp(step, 0, clamp)
    else:
        requantize(step)


def subtract(step: Step) -> None:
    """Lower SUB of an activation and one constant for each channel, either way round."""
    position, values = _channel_constant(step)
    factor, offset = (1.0, -values) if position == 0 else (-1.0, values)
    _emit_channelwise(step, position, factor, offset, "subtract")


def multiply(step: Step) -> None:
    """Lower MUL of an activation and one constant for each channel."""
    position, factor = _channel_constant(step)
    _emit_channelwise(step, position, factor, 0.0, "multiply")


def requantize(step: Step) -> None:
    """Lower QUANTIZE from int8 to int8: nothing, or a channelwise layer."""
    step.source()
    if step.keeps_quantization():
        step.alias(step.shape())
    elif _concatenations_requantize(step):
        step.alias(step.shape())
        step.network.absorbed[step.output] = (0, 0, 0, 0)
    else:
        _emit_channelwise(step, 0, 1.0, 0.0, "requantize")


def _concatenations_requantize(step: Step) -> bool:
    """Whether only concatenations read the output, which requantize it themselves."""
    model, readers = step.network.model, step.network.readers.get(step.output, [])
    outputs = [model.tensors[op.outputs[0]] for op in readers if op.kind == "CONCATENATION"]
    wanted = step.target_quantization()
    return 0 < len(readers) == len(outputs) and all(quantization(t) == wanted for t in outputs)


def bounded(step: Step, low: float, high: float) -> None:
    """Lower RELU and its kin: into the producer's clamp, else a 1x1 max pool, else a layer."""
    step.source()
    clamp = bounds_clamp(step, low, high)
    if step.keeps_quantization():
        _emit_clamp(step, 0, clamp)
    else:
        _emit_channelwise(step, 0, 1.0, 0.0, "relu", clamp)


def limited(step: Step, *, below: bool) -> None:
    """Lower MAXIMUM (``below``) and MINIMUM of an activation and one constant, as RELU."""
    position, constant = _with_constant(step)
    source = step.tensor(position)
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
    _emit_clamp(step, position, clamp)


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
    factor: float | DoubleArray,
    offset: float | DoubleArray,
    stem: str,
    clamp: Pair | None = None,
) -> None:
    source = step.tensor(position)
    step.network.reserve(source.channels)
    try:
        settings = channelwise_layer(source, factor, offset)
    except ValueError as error:
        raise Unsupported(f"its constant: {error}", _FOLD) from None
    step.emit(
        "depthwise_conv2d",
        step.shape(position),
        stem=stem,
        sources=(step.source(position),),
        size=source.shape,
        clamp=clamp or fused_clamp(step),
        **settings,
    )


def _operands(step: Step) -> tuple[int, FileTensor | None]:
    """Return where the activation stands, and the constant beside it, if there is one."""
    if len(step.op.inputs) != 2 or min(step.op.inputs) < 0:
        raise Unsupported(f"{len(step.op.inputs)} inputs, two are needed", "the file is damaged")
    first = step.constant(0)
    return (0, step.constant(1)) if first is None else (1, first)


def _with_constant(step: Step) -> tuple[int, FileTensor]:
    position, constant = _operands(step)
    if constant is None:
        raise Unsupported(
            "has two activations as inputs",
            "only a constant for each channel is imported here; of two activations only ADD",
        )
    return position, constant


def _channel_constant(step: Step) -> tuple[int, DoubleArray]:
    """Return where the activation stands, and the constant's real values, one a channel."""
    position, constant = _with_constant(step)
    source = step.tensor(position)
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


def bounds_clamp(step: Step, low: float, high: float) -> Pair:
    """Return the int8 bounds of the output for real bounds, rounded as TFLite does."""
    scale, zero_point = step.target_quantization()

    def quantized(real: float) -> int:
        steps = min(abs(real) / scale, 1e6)
        rounded = math.copysign(math.floor(steps + 0.5), real)  # halves away from zero
        return int(min(127, max(-128, zero_point + rounded)))

    clamp = quantized(low), quantized(high)
    if clamp[0] >= clamp[1]:
        raise Unsupported(
            f"its activation leaves the single value {clamp[0]} of its output (scale {scale}, "
            f"zero point {zero_point})",
            "calibrate the output range and convert the model again",
        )
    return clamp


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
    """Lower TRANSPOSE where it moves only axes of size 1, and so no value, or puts channels first.

    What reads channels that come first is in ``channels_first.py``.
    """
    shape, order = step.shape(), step.integers(1)
    if order is None or sorted(order) != list(range(len(shape))):
        raise Unsupported(f"order {order} for shape {shape}", "store the order as a constant")
    moved = [axis for axis in order if shape[axis] != 1]
    if moved != sorted(moved) and order == [0, 3, 1, 2]:
        step.require_same_quantization()
        step.alias(tuple(shape[axis] for axis in order))
        step.network.channels_first[step.output] = set()
    elif moved != sorted(moved):
        raise Unsupported(
            f"moves values: order {order} for shape {shape}",
            "convert from a channels-last network; only at the input may channels come first",
        )
    else:
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


def _product(step: Step) -> Sizes:
    product = math.prod(int(size) for size in _sizes(step, 0).reshape(-1))
    if abs(product) >= 2**31:
        raise Unsupported("computes a size beyond 2^31", _FIXED_SIZE)
    return np.array([product] if step.op.options.get("KeepDims") else product, np.int64)


SIZE_OPERATORS: dict[str, Callable[[Step], Sizes]] = {
    "SHAPE": lambda step: np.array(step.shape(), np.int64),
    "STRIDED_SLICE": _strided_slice,
    "PACK": _pack,
    "GATHER": lambda step: np.asarray(_sizes(step, 0)[_sizes(step, 1)]),
    "CONCATENATION": lambda step: np.concatenate(
        [_sizes(step, i).reshape(-1) for i in range(len(step.op.inputs))]
    ),
    "REDUCE_PROD": _product,
    "MUL": lambda step: np.asarray(_sizes(step, 0) * _sizes(step, 1)),
    **dict.fromkeys(("CAST", "RESHAPE", "SQUEEZE"), lambda step: _sizes(step, 0)),
}

CONVERTERS: dict[str, Callable[[Step], None]] = {
    "ADD": add,
    "CONCATENATION": concatenate,
    "SUB": subtract,
    "MUL": multiply,
    "QUANTIZE": requantize,
    "RELU": partial(bounded, low=0.0, high=math.inf),
    "RELU6": partial(bounded, low=0.0, high=6.0),
    "RELU_N1_TO_1": partial(bounded, low=-1.0, high=1.0),
    "RELU_0_TO_1": partial(bounded, low=0.0, high=1.0),
    "MAXIMUM": partial(limited, below=True),
    "MINIMUM": partial(limited, below=False),
    "RESHAPE": reshape,
    "SQUEEZE": squeeze,
    "EXPAND_DIMS": expand_dims,
    "TRANSPOSE": transpose,
}
