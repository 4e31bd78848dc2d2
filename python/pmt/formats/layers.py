"""Tools of importers and exporters: layers as this engine has them, limits, problems.

Image ops have neither groups nor dilation. The zeros cost multiplications, and training may change
them as any other weight: a trained network is a dense one.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from pmt import _core
from pmt._util.arrays import Array, DoubleArray, Int8Array, Int32Array
from pmt._util.text import listed
from pmt.errors import FileError
from pmt.net.graph import Graph, Op, Tensor, channel_axis, check_graph
from pmt.net.ops import OpKind, Padding, Pair, output_size

# Remedy for recurrent layers.
NO_STATE = (
    "pmt trains networks without a state: give it the whole window of time as one input, with "
    "convolutions over it"
)
_BLOCK_COUNT = 4
UNIT_WEIGHT = 64  # of a layer that only scales: exact where the factor is 1, a power of two
_LOWEST, _HIGHEST = -(2**31), 2**31 - 1

Vector = DoubleArray


class Unsupported(Exception):
    """The reason that one operator cannot be imported, and a remedy for the user."""

    def __init__(self, reason: str, remedy: str) -> None:
        super().__init__(reason, remedy)


class Problems:
    """Problems and the operators that have them; equal problems of a kind are named once.

    ``form`` has places for reason and remedy; ``place`` says in words which operators of a kind
    have a problem; with ``lines`` each problem is a line of its own.
    """

    def __init__(
        self, form: str, place: Callable[[str, list[Any]], str], *, lines: bool = False
    ) -> None:
        self._form, self._place, self._lines = form, place, lines
        self._found: dict[tuple[str, str], list[Any]] = {}

    def __bool__(self) -> bool:
        return bool(self._found)

    def add(self, problem: Unsupported, kind: str = "", operator: Any = None) -> None:
        """Note a problem of an operator, or of the file as a whole."""
        operators = self._found.setdefault((kind, self._form.format(*problem.args)), [])
        if operator is not None:
            operators.append(operator)

    def error(self, source: str) -> FileError:
        """Return the one error about the file ``source``."""
        things = "1 thing is" if len(self._found) == 1 else f"{len(self._found)} things are"
        found = [self._place(kind, where) + text for (kind, text), where in self._found.items()]
        head = f"{source}: {things} not supported:"
        message = "\n- ".join([head, *found]) if self._lines else f"{head} {'; '.join(found)}"
        return FileError(source, found, message, "not supported")


def consecutive_blocks(layers: Sequence[int]) -> dict[str, list[int]]:
    """Split layers into ``B1`` .. ``B4``: consecutive groups whose sizes differ by at most one.

    The larger groups come first. Fewer than four layers give fewer than four blocks: none is empty.
    """
    parts = np.array_split(np.asarray(layers, np.int64), _BLOCK_COUNT)
    return {f"B{number}": part.tolist() for number, part in enumerate(parts, 1) if part.size}


def layer_blocks(layers: Sequence[int]) -> dict[str, list[int]]:
    """Return ``B1`` to ``B4`` (the layers before the head), ``head`` and ``all``."""
    return consecutive_blocks(layers[:-1]) | {"head": list(layers[-1:]), "all": list(layers)}


def bounded_bias(op: Op, source: Tensor) -> Int32Array:
    """Return a layer's biases, moved only where accumulator plus bias could leave int32.

    pmt adds the two in float32. Other engines add them in int32, where the bias of a dead channel,
    at the end of the range, would wrap. The largest change is the largest sum that the channel's
    weights can make. ``source`` is the layer's input; without biases they are zeros.
    """
    assert op.weights is not None
    weights = np.moveaxis(op.weights, channel_axis(op.kind), 0)
    bias = np.zeros(len(weights), np.int64) if op.bias is None else op.bias.astype(np.int64)
    sizes = np.abs(weights.reshape(len(weights), -1).astype(np.int64)).sum(axis=1)
    reach = sizes * max(127 - source.zero_point, 128 + source.zero_point)
    return np.clip(bias, _LOWEST + reach, _HIGHEST - reach).astype(np.int32)


def unit_layer(factors: Vector) -> tuple[Int8Array, Vector]:
    """Return weights and weight scales of a 1x1 depthwise layer with a factor per channel."""
    scales = np.where(factors == 0, 1.0, np.abs(factors)) / UNIT_WEIGHT
    return (UNIT_WEIGHT * np.sign(factors)).astype(np.int8).reshape(1, 1, -1), scales


def require_scales(scales: npt.NDArray[np.floating], what: str, remedy: str) -> None:
    """Raise Unsupported unless all scales are positive and finite."""
    wrong = scales[~(np.isfinite(scales) & (scales > 0))]
    if wrong.size:
        raise Unsupported(
            f"{wrong.size} of its {len(scales)} {what} are not positive and finite, such as "
            f"{wrong[0]}",
            remedy,
        )


def settle_ties(ops: Iterable[Op], tensors: Sequence[Tensor]) -> None:
    """Move the biases of layers of unit weights where all values would round at a tie.

    In-graph ``x * 2 - 1`` puts every pixel between two steps of its output, and rounding to even
    would make one of each two values. By 1/64 of a step, the ties go to the side where fewer
    values leave the int8 range.
    """
    for op in ops:
        if op.weights is None or op.bias is None or op.weight_scales is None:
            continue
        source, target = tensors[op.inputs[0]], tensors[op.output]
        weights = op.weights.ravel().astype(np.int64)
        if op.kernel != (1, 1) or not np.all(np.abs(weights) == UNIT_WEIGHT):
            continue
        steps = UNIT_WEIGHT * source.scale * op.weight_scales.astype(np.float64) / target.scale
        ties = (np.abs(steps - 1) < 1e-5) & (op.bias % UNIT_WEIGHT == UNIT_WEIGHT // 2)
        middle = (weights * (-0.5 - source.zero_point) + op.bias) / UNIT_WEIGHT + target.zero_point
        op.bias = op.bias + np.where(ties, np.where(middle > -0.5, -1, 1), 0).astype(np.int32)


def channelwise_layer(
    source: Tensor, factor: float | Vector = 1.0, offset: float | Vector = 0.0
) -> dict[str, Any]:
    """Return weights, bias and weight scales of the layer ``source * factor + offset``.

    Image ops cannot change a tensor's quantization or add a constant; this layer does both: factor
    1 and offset 0 requantize. Its int32 bias holds the offset to 1/64 of an input step; ValueError
    is raised if it does not fit there, or a factor is not finite.
    """
    factors = np.broadcast_to(np.asarray(factor, np.float64), (source.channels,))
    offsets = np.broadcast_to(np.asarray(offset, np.float64), (source.channels,))
    weights, scales = unit_layer(factors)
    bias = np.rint(offsets / (np.float32(source.scale) * scales))
    if not np.all(np.isfinite(scales)) or not np.all(np.abs(bias) < 2**31):
        raise ValueError("factors must be finite, offsets below 2^31 steps of the layer's bias")
    return {
        "weights": weights,
        "bias": bias.astype(np.int32),
        "weight_scales": scales.astype(np.float32),
    }


def kernel_extent(kernel: Pair, dilation: Pair) -> Pair:
    """Return the height and width that a dilated kernel spans."""
    return (kernel[0] - 1) * dilation[0] + 1, (kernel[1] - 1) * dilation[1] + 1


def same_sides(size: int, kernel: int, stride: int) -> Pair:
    """Return the rows that SAME adds before and after, the odd one after."""
    total = max(0, (-(-size // stride) - 1) * stride + kernel - size)
    return total // 2, total - total // 2


@dataclass(frozen=True)
class Window:
    """The pixels that a convolution or pool reads at once; ``kernel`` is spread by ``dilation``."""

    kernel: Pair
    stride: Pair
    dilation: Pair = (1, 1)
    padding: Padding = (0, 0, 0, 0)

    def output(self, size: Sequence[int]) -> Pair:
        """Return the output's height and width."""
        return output_size(size, self.kernel, self.stride, self.padding)

    @property
    def settings(self) -> dict[str, Any]:
        """The fields of an op with this window."""
        return {"kernel": self.kernel, "stride": self.stride, "padding": self.padding}

    @property
    def padding_fits(self) -> bool:
        """Whether every window reads at least one pixel: the rule of an image's ops."""
        top, left, bottom, right = self.padding
        return max(top, bottom) < self.kernel[0] and max(left, right) < self.kernel[1]


def dense_kernel(weights: Array, groups: int, dilation: Pair = (1, 1)) -> Array:
    """Spread the weights of a convolution over all input channels and its dilation.

    Weights ``(out, height, width, in / groups)`` become ``(out, extent height, extent width, in)``,
    a copy of the same dtype.
    """
    out, height, width, inner = weights.shape
    extent = kernel_extent((height, width), dilation)
    result = np.zeros((out, *extent, inner * groups), weights.dtype)
    for group in range(groups):
        outputs = slice(group * out // groups, (group + 1) * out // groups)
        inputs = slice(group * inner, (group + 1) * inner)
        result[outputs, :: dilation[0], :: dilation[1], inputs] = weights[outputs]
    return result


def spread_depthwise(weights: Array, dilation: Pair) -> Array:
    """Spread depthwise weights (height, width, out) over their dilation; return a copy."""
    by_output = weights.transpose(2, 0, 1)[..., None]
    return np.ascontiguousarray(dense_kernel(by_output, 1, dilation)[..., 0].transpose(1, 2, 0))


def grouped_kernel(weights: Array, groups: int, dilation: Pair = (1, 1)) -> tuple[OpKind, Array]:
    """Return the kind of layer that a convolution of groups is, and its weights, spread.

    They are as :func:`dense_kernel` takes them; with one input channel each, groups are depthwise.
    """
    if groups > 1 and weights.shape[3] == 1:
        return "depthwise_conv2d", spread_depthwise(weights[..., 0].transpose(1, 2, 0), dilation)
    return "conv2d", dense_kernel(weights, groups, dilation)


def check_imported(graph: Graph, source: str) -> None:
    """Raise ValueError at the first contradiction of a graph that was read from a file."""
    try:
        check_graph(graph)
    except ValueError as error:
        raise ValueError(f"{source}: contradicts itself: {error}") from None


def check_limits(graph: Graph, source: str) -> None:
    """Raise ValueError with every limit of the image format that a consistent graph passes."""
    problems = [
        f"{len(values)} {what}, an image holds {limit}"
        for what, values, limit in (
            ("tensors", graph.tensors, _core.MOST_TENSORS),
            ("ops", graph.ops, _core.MOST_OPS),
        )
        if len(values) > limit
    ]
    total = sum(tensor.elements for tensor in graph.tensors)
    if total > _core.MOST_ACTIVATIONS:
        problems.append(f"activations of {total} values, an image holds {_core.MOST_ACTIVATIONS}")
    side, channels = _core.LARGEST_SIDE, _core.MOST_CHANNELS
    for tensor in graph.tensors:
        if max(tensor.height, tensor.width) > side or tensor.channels > channels:
            problems.append(
                f"tensor {tensor.name!r} of {tensor.height}x{tensor.width}x{tensor.channels}, at "
                f"most {side}x{side}x{channels}"
            )
        low, high = _core.TENSOR_SCALES
        if not low <= tensor.scale <= high:
            problems.append(
                f"tensor {tensor.name!r} has scale {tensor.scale}, not {low:.0e} to {high:.0e}"
            )
    for op in graph.ops:
        scales = op.weight_scales
        if scales is None:
            continue
        low, high = _core.WEIGHT_SCALES
        if not np.all((scales >= low) & (scales <= high)):
            problems.append(f"op {op.name!r} has weight scales outside of {low:.0e} to {high:.0e}")
    if problems:
        raise ValueError(
            f"{source}: beyond the limits of an image: {listed(problems, '; ')}; use a smaller "
            "network, or where scales are outside correct the weights (train with batch norm or "
            "weight decay)"
        )
