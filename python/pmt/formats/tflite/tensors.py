"""Activations of a ``.tflite`` file: which types can be read, and as which tensor of a graph."""

from __future__ import annotations

import math

from pmt.formats.tflite.file import FileModel, FileOp, FileTensor
from pmt.formats.tflite.problems import CONVERT_INT8, Unsupported
from pmt.net.graph import Tensor

__all__ = ["activation", "check_types", "is_shape_value", "layout", "quantisation"]

_LARGEST = 2**28  # values that all activations of an image may have
_FLOATS = ("FLOAT32", "FLOAT16", "FLOAT64", "BFLOAT16")
_OTHER_SCHEMES = {
    "INT16": "its activations are INT16, int8 is trained here",
    "UINT8": "its activations are UINT8, the asymmetric scheme of TensorFlow 1",
}
_INT8_WEIGHTS = ("INT8", "INT4")


def is_shape_value(tensor: FileTensor) -> bool:
    """Whether a tensor holds sizes, not an activation."""
    return tensor.data is None and tensor.dtype in ("INT32", "INT64")


def check_types(op: FileOp, model: FileModel) -> None:
    """Raise Unsupported if an operator does not compute in int8.

    Raises
    ------
    Unsupported
        If one of its activations is not INT8, or a constant is not stored as a plain array.
    """
    tensors = [model.tensors[i] for i in (*op.inputs, *op.outputs) if i >= 0]
    dtypes = {t.dtype for t in tensors if t.data is None and not is_shape_value(t)}
    if is_shape_value(model.tensors[op.outputs[0]]):
        return
    for dtype, reason in _OTHER_SCHEMES.items():
        if dtype in dtypes:
            raise Unsupported(reason, CONVERT_INT8)
    if dtypes & set(_FLOATS):
        if any(t.data is not None and t.dtype in _INT8_WEIGHTS for t in tensors):
            raise Unsupported(
                "is hybrid, dynamic-range quantised: int8 weights, float activations",
                CONVERT_INT8,
            )
        raise Unsupported("computes in float", CONVERT_INT8)
    for dtype in sorted(dtypes - {"INT8"}):
        raise Unsupported(f"its activations are {dtype}", CONVERT_INT8)
    for tensor in tensors:
        if tensor.storage:
            raise Unsupported(
                f"the values of tensor {tensor.name!r} are {tensor.storage}",
                "store them as a plain constant of the file",
            )


def quantisation(tensor: FileTensor) -> tuple[float, int]:
    """Return scale and zero point of an int8 activation."""
    if tensor.dtype != "INT8":
        raise Unsupported(f"tensor {tensor.name!r} is {tensor.dtype}, not INT8", CONVERT_INT8)
    if len(tensor.scales) != 1 or len(tensor.zero_points) > 1:
        raise Unsupported(
            f"tensor {tensor.name!r} has {len(tensor.scales)} scales, an activation needs one",
            CONVERT_INT8,
        )
    scale = float(tensor.scales[0])
    zero_point = int(tensor.zero_points[0]) if len(tensor.zero_points) else 0
    if not (math.isfinite(scale) and scale > 0) or not -128 <= zero_point <= 127:
        raise Unsupported(
            f"tensor {tensor.name!r} has scale {scale}, zero point {zero_point}",
            "the scale must be positive, the zero point in [-128, 127]; convert the model again",
        )
    return scale, zero_point


def layout(shape: tuple[int, ...]) -> tuple[int, int, int]:
    """Return height, width, channels of an activation of one image.

    Raises
    ------
    Unsupported
        If the shape is not (1, H, W, C), (1, N, C), (N, C) or (C,), or is too large.
    """
    inner = list(shape[1:] if len(shape) > 2 else shape)
    while len(inner) > 3 and 1 in inner:
        inner.remove(1)  # no operator looks into more than height, width and channels
    batch_first = len(shape) < 3 or shape[0] == 1
    if not 1 <= len(inner) <= 3 or not batch_first or min(inner) < 1:
        raise Unsupported(
            f"an activation has shape {shape}",
            "shapes (1, H, W, C), (1, N, C) and (1, C) of positive sizes are imported; convert "
            "with batch size 1 (or None) and a fixed input size",
        )
    height, width, channels = (1, 1, *inner)[-3:]
    if height * width * channels > _LARGEST:
        raise Unsupported(f"an activation of shape {shape} is too large", "at most 2^28 values")
    return height, width, channels


def activation(tensor: FileTensor, shape: tuple[int, int, int]) -> Tensor:
    """Return an int8 activation of this height, width and channels as a tensor of a graph."""
    return Tensor(tensor.name, *shape, *quantisation(tensor))
