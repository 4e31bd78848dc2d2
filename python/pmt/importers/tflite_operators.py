"""How each supported TFLite operator becomes an :class:`~pmt.graph.Op`."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt

from pmt.graph import Op, Tensor
from pmt.importers.tflite_file import FileOp, FileTensor

_ACTIVATIONS = {0: (None, None), 1: (0.0, None), 2: (-1.0, 1.0), 3: (0.0, 6.0)}
_SAME = 0


class Unsupported(Exception):
    """Why one operator cannot be imported; collected into one error by the importer."""


def activation_tensor(tensor: FileTensor) -> Tensor:
    """Convert an int8 activation, dropping the batch dimension, which must be 1."""
    if tensor.data is not None:
        raise Unsupported(f"tensor {tensor.name!r} is a constant, an activation is needed")
    if tensor.dtype != "INT8":
        raise Unsupported(f"tensor {tensor.name!r} is {tensor.dtype}, only INT8 is supported")
    if len(tensor.scales) != 1 or len(tensor.zero_points) > 1:
        raise Unsupported(f"tensor {tensor.name!r} needs exactly one scale and zero point")
    if len(tensor.shape) not in (2, 4) or tensor.shape[0] != 1 or min(tensor.shape) < 1:
        raise Unsupported(f"tensor {tensor.name!r} has shape {tensor.shape}, not (1, H, W, C)")
    height, width, channels = (1, 1, *tensor.shape[1:])[-3:]
    scale = float(tensor.scales[0])
    zero_point = int(tensor.zero_points[0]) if len(tensor.zero_points) else 0
    if not (math.isfinite(scale) and scale > 0) or not -128 <= zero_point <= 127:
        raise Unsupported(f"tensor {tensor.name!r} has scale {scale}, zero point {zero_point}")
    return Tensor(tensor.name, height, width, channels, scale, zero_point)


def convert(
    op: FileOp, name: str, sources: list[Tensor], target: Tensor, constants: list[FileTensor]
) -> Op:
    """Convert one operator.

    Parameters
    ----------
    op : FileOp
        A kind in :data:`CONVERTERS`.
    name : str
        The op's name.
    sources, target : list of Tensor, Tensor
        Its activations.
    constants : list of FileTensor
        Its other inputs in order: weights and bias, axes, paddings.

    Returns
    -------
    Op
        Without tensor indices: ``inputs`` is empty and ``output`` -1.

    Raises
    ------
    Unsupported
        If an option, shape, dtype or quantisation is not supported.
    """
    expected = 2 if op.kind == "ADD" else 1
    if len(sources) != expected:
        raise Unsupported(f"{len(sources)} activations as inputs, {expected} needed")
    result = CONVERTERS[op.kind](op, sources, target, constants)
    result.name = name
    if op.kind not in ("MEAN", "PAD", "RESHAPE"):
        result.clamp = _clamp(op.options.get("FusedActivationFunction", 0), target)
    return result


def _op(kind: Any, **settings: Any) -> Op:
    return Op(kind, "", (), -1, **settings)


def _clamp(activation: int, target: Tensor) -> tuple[int, int]:
    if activation not in _ACTIVATIONS:
        raise Unsupported(f"fused activation {activation}; NONE, RELU, RELU_N1_TO_1, RELU6 are")
    low, high = _ACTIVATIONS[activation]

    def quantised(real: float | None, otherwise: int) -> int:
        if real is None:
            return otherwise
        steps = float(np.rint(np.float32(real) / np.float32(target.scale)))
        return int(min(127, max(-128, steps + target.zero_point)))

    return quantised(low, -128), quantised(high, 127)


def _window(
    op: FileOp, kernel: tuple[int, int], source: Tensor
) -> tuple[tuple[int, int], tuple[int, int, int, int]]:
    """Return stride and padding; SAME is asymmetric, the odd row goes below and to the right."""
    stride = (op.options["StrideH"], op.options["StrideW"])
    if min(*stride, *kernel) < 1:
        raise Unsupported(f"kernel {kernel} and stride {stride} must be positive")
    if max(op.options.get("DilationHFactor", 1), op.options.get("DilationWFactor", 1)) != 1:
        raise Unsupported("dilation is not supported")
    if op.options["Padding"] != _SAME:
        return stride, (0, 0, 0, 0)
    sides = []
    for size, k, s in zip((source.height, source.width), kernel, stride, strict=True):
        total = max(0, (-(-size // s) - 1) * s + k - size)
        sides.append((total // 2, total - total // 2))
    return stride, (sides[0][0], sides[1][0], sides[0][1], sides[1][1])


def _weights(constants: list[FileTensor], axis: int, rank: int) -> npt.NDArray[np.int8]:
    tensor = constants[0] if constants else None
    if tensor is None or tensor.data is None:
        raise Unsupported("its weights are not a constant")
    if tensor.dtype != "INT8" or tensor.data.ndim != rank:
        raise Unsupported(f"weights are {tensor.dtype} of rank {len(tensor.shape)}")
    if np.any(tensor.zero_points != 0):
        raise Unsupported("weights have zero points other than 0")
    if len(tensor.scales) > 1 and tensor.quantized_dimension != axis:
        raise Unsupported(f"weight scales run along dimension {tensor.quantized_dimension}")
    return tensor.data.astype(np.int8)


def _parameters(constants: list[FileTensor], channels: int) -> dict[str, npt.NDArray[Any]]:
    """Return bias (zeros if missing) and one weight scale per output channel."""
    scales = constants[0].scales
    if len(scales) not in (1, channels):
        raise Unsupported(f"{len(scales)} weight scales for {channels} output channels")
    if not np.all(np.isfinite(scales) & (scales > 0)):
        raise Unsupported("weight scales must be positive and finite")
    bias = np.zeros(channels, np.int32)
    if len(constants) > 1:
        stored = constants[1]
        if stored.data is None or stored.dtype != "INT32" or stored.data.size != channels:
            raise Unsupported(f"bias must be {channels} constant INT32 values")
        bias = stored.data.reshape(channels).astype(np.int32)
    return {
        "bias": bias,
        "weight_scales": np.broadcast_to(scales, (channels,)).astype(np.float32),
    }


def _conv2d(op: FileOp, sources: list[Tensor], target: Tensor, constants: list[FileTensor]) -> Op:
    weights = _weights(constants, 0, 4)
    if weights.shape[3] != sources[0].channels:
        raise Unsupported(
            f"grouped convolution: {weights.shape[3]} of {sources[0].channels} channels"
        )
    kernel = (weights.shape[1], weights.shape[2])
    stride, padding = _window(op, kernel, sources[0])
    parameters: dict[str, Any] = _parameters(constants, weights.shape[0])
    return _op(
        "conv2d", kernel=kernel, stride=stride, padding=padding, weights=weights, **parameters
    )


def _depthwise(
    op: FileOp, sources: list[Tensor], target: Tensor, constants: list[FileTensor]
) -> Op:
    weights = _weights(constants, 3, 4)[0]
    kernel = (weights.shape[0], weights.shape[1])
    stride, padding = _window(op, kernel, sources[0])
    parameters: dict[str, Any] = _parameters(constants, weights.shape[2])
    return _op(
        "depthwise_conv2d",
        kernel=kernel,
        stride=stride,
        padding=padding,
        weights=weights,
        **parameters,
    )


def _fully_connected(
    op: FileOp, sources: list[Tensor], target: Tensor, constants: list[FileTensor]
) -> Op:
    weights = _weights(constants, 0, 2)
    if op.options.get("WeightsFormat", 0) != 0:
        raise Unsupported("shuffled weights are not supported")
    if weights.shape[1] != sources[0].elements:
        raise Unsupported(f"{weights.shape[1]} weights a row for {sources[0].elements} inputs")
    return _op("fully_connected", weights=weights, **_parameters(constants, weights.shape[0]))


def _add(op: FileOp, sources: list[Tensor], target: Tensor, constants: list[FileTensor]) -> Op:
    first, second = ((t.height, t.width, t.channels) for t in sources)
    if first != second:
        raise Unsupported(f"broadcasting {first} + {second} is not supported")
    return _op("add")


def _pool(op: FileOp, sources: list[Tensor], target: Tensor, constants: list[FileTensor]) -> Op:
    _require_equal_quantisation(sources[0], target)
    kernel = (op.options["FilterHeight"], op.options["FilterWidth"])
    stride, padding = _window(op, kernel, sources[0])
    kind = "average_pool" if op.kind == "AVERAGE_POOL_2D" else "max_pool"
    return _op(kind, kernel=kernel, stride=stride, padding=padding)


def _mean(op: FileOp, sources: list[Tensor], target: Tensor, constants: list[FileTensor]) -> Op:
    axes = None if not constants or constants[0].data is None else constants[0].data.ravel()
    if axes is None or sorted(int(a) % 4 for a in axes) != [1, 2]:
        raise Unsupported("only the mean over height and width (axes 1, 2) is supported")
    return _op("mean")


def _pad(op: FileOp, sources: list[Tensor], target: Tensor, constants: list[FileTensor]) -> Op:
    _require_equal_quantisation(sources[0], target)
    amounts = constants[0].data if constants else None
    if amounts is None or amounts.shape != (4, 2):
        raise Unsupported("paddings must be a constant of shape (4, 2)")
    (batch, rows, columns, channels) = amounts.astype(int).tolist()
    if any((*batch, *channels)) or min(*rows, *columns) < 0:
        raise Unsupported(f"paddings {amounts.tolist()}: only height and width can be padded")
    return _op("pad", padding=(rows[0], columns[0], rows[1], columns[1]))


def _reshape(op: FileOp, sources: list[Tensor], target: Tensor, constants: list[FileTensor]) -> Op:
    _require_equal_quantisation(sources[0], target)
    if sources[0].elements != target.elements:
        raise Unsupported(f"reshapes {sources[0].elements} values to {target.elements}")
    return _op("reshape")


def _require_equal_quantisation(source: Tensor, target: Tensor) -> None:
    if (source.scale, source.zero_point) != (target.scale, target.zero_point):
        raise Unsupported("input and output are quantised differently")


CONVERTERS: dict[str, Callable[[FileOp, list[Tensor], Tensor, list[FileTensor]], Op]] = {
    "CONV_2D": _conv2d,
    "DEPTHWISE_CONV_2D": _depthwise,
    "FULLY_CONNECTED": _fully_connected,
    "ADD": _add,
    "AVERAGE_POOL_2D": _pool,
    "MAX_POOL_2D": _pool,
    "MEAN": _mean,
    "PAD": _pad,
    "RESHAPE": _reshape,
}
