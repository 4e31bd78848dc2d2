"""TFLite operators that pad: PAD and PADV2."""

from __future__ import annotations

from dataclasses import replace

from pmt.formats.layers import channelwise_layer, kernel_extent
from pmt.formats.tflite.file import FileOp, Unsupported
from pmt.formats.tflite.network import Padding, Step
from pmt.formats.tflite.poolings import require_same_quantization
from pmt.formats.tflite.windows import VALID
from pmt.net.graph import Op

__all__ = ["pad"]

_LOWEST = -128


def pad(step: Step) -> None:
    """Lower PAD and PADV2.

    Padding that every reader can take into its own window costs nothing: zero points before a
    convolution, -128 before a max pool. Else it is an op of its own; a value other than the zero
    point needs the tensor to be relabeled, so that this value becomes its zero point and back.
    """
    require_same_quantization(step)
    amounts, shape = _amounts(step)
    value = _value(step)
    if _readers_take(step, amounts, value):
        step.alias(step.shape())
        step.network.absorbed[step.output] = amounts
    elif value == step.tensor().zero_point:
        step.emit("pad", shape, stem="pad", padding=amounts)
    else:
        _pad_with(step, shape, amounts, value)


def _amounts(step: Step) -> tuple[Padding, tuple[int, ...]]:
    """Return top, left, bottom, right and the output's shape."""
    source, shape = step.tensor(), step.shape()
    constant = step.constant(1)
    pairs = None if constant is None or constant.data is None else constant.data
    rank = len(shape)
    if pairs is None or pairs.shape != (rank, 2) or constant.dtype not in ("INT32", "INT64"):  # type: ignore[union-attr]
        raise Unsupported(f"paddings must be a constant of shape ({rank}, 2)", "store it so")
    sides = [(int(before), int(after)) for before, after in pairs]
    inner = [(0, 0), (0, 0), *sides[1:-1]][-2:]
    legal = rank in (3, 4) and sides[0] == (0, 0) == sides[-1]
    if not legal or any(n < 0 or n > 4096 for side in inner for n in side):
        raise Unsupported(
            f"paddings {pairs.tolist()}", "only height and width can be padded, by 0 to 4096"
        )
    (top, bottom), (left, right) = inner
    height, width = source.height + top + bottom, source.width + left + right
    size = (1, height, width, source.channels)
    return (top, left, bottom, right), size if rank == 4 else (1, width, source.channels)


def _value(step: Step) -> int:
    """Return the int8 value to pad with."""
    zero_point = step.tensor().zero_point
    if len(step.op.inputs) < 3 or step.op.inputs[2] < 0:
        return zero_point
    constant = step.constant(2)
    if constant is None or constant.data is None or constant.data.size != 1:
        raise Unsupported("the value to pad with is not a constant", "store one INT8 value")
    if constant.dtype != "INT8":
        raise Unsupported(f"the value to pad with is {constant.dtype}", "store one INT8 value")
    return int(constant.data.ravel()[0])


def _readers_take(step: Step, amounts: Padding, value: int) -> bool:
    readers = step.network.readers.get(step.output, [])
    return bool(readers) and all(_takes(step, op, amounts, value) for op in readers)


def _takes(step: Step, op: FileOp, amounts: Padding, value: int) -> bool:
    """Whether a reader's window can have this padding as its own."""
    options, model = op.options, step.network.model
    if op.kind in ("CONV_2D", "DEPTHWISE_CONV_2D") and op.inputs[1:2]:
        weights = model.tensors[op.inputs[1]].shape if op.inputs[1] >= 0 else ()
        if value != step.tensor().zero_point or len(weights) != 4 or op.inputs[0] != step.output:
            return False
        dilation = options["DilationHFactor"], options["DilationWFactor"]
        height, width = kernel_extent((weights[1], weights[2]), dilation)
    elif op.kind == "MAX_POOL_2D" and value == _LOWEST:
        height, width = options["FilterHeight"], options["FilterWidth"]
    else:
        return False
    top, left, bottom, right = amounts
    plain = options["Padding"] == VALID and "Top" not in options
    return plain and max(top, bottom) < height and max(left, right) < width


def _pad_with(step: Step, shape: tuple[int, ...], amounts: Padding, value: int) -> None:
    """Relabel the zero point as ``value``, pad, and relabel back; the bytes stay."""
    network, source = step.network, step.tensor()
    network.reserve(2 * source.channels)
    offset = (source.zero_point - value) * float(source.scale)
    size = (
        source.height + amounts[0] + amounts[2],
        source.width + amounts[1] + amounts[3],
        source.channels,
    )
    relabeled = replace(source, name=f"{source.name}_relabelled", zero_point=value)
    padded = replace(relabeled, name=f"{source.name}_padded", height=size[0], width=size[1])
    first, second = network.intermediate(relabeled), network.intermediate(padded)
    forth = Op(
        "depthwise_conv2d",
        network.name("relabel"),
        (step.source(),),
        first,
        **channelwise_layer(source, 1.0, offset),
    )
    network.append(forth)
    network.append(Op("pad", network.name("pad"), (first,), second, padding=amounts))
    back = step.emit(
        "depthwise_conv2d",
        shape,
        stem="relabel",
        sources=(second,),
        size=size,
        **channelwise_layer(padded, 1.0, -offset),
    )
    network.helpers |= {forth.name, back.name}
