"""TFLite operators that reduce windows or whole images: pools, MEAN, REDUCE_MAX."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from pmt.formats.tflite.file import CONVERT_INT8, Unsupported
from pmt.formats.tflite.network import Step, same_quantization
from pmt.formats.tflite.windows import fused_clamp, window

__all__ = [
    "Band",
    "bands",
    "mean",
    "pool",
    "reduce_max",
]


@dataclass(frozen=True)
class Band:
    """``count`` neighboring outputs with windows of ``kernel`` inputs, in ``start:stop``."""

    count: int
    kernel: int
    start: int
    stop: int


def bands(size: int, outputs: int, kernel: int, stride: int, padding: int) -> list[Band]:
    """Group outputs along one axis.

    Parameters
    ----------
    size, outputs : int
        Inputs and outputs along the axis.
    kernel, stride, padding : int
        Of the pooling; ``padding`` is the one before the first input.

    Returns
    -------
    list of Band
        In order. Whole windows are one band, each cut window is a band of its own.
    """
    found: list[Band] = []
    for i in range(outputs):
        first = i * stride - padding
        start, stop = max(first, 0), min(first + kernel, size)
        whole = stop - start == kernel
        if whole and found and found[-1].kernel == kernel:
            found[-1] = Band(found[-1].count + 1, kernel, found[-1].start, stop)
        else:
            found.append(Band(1, stop - start, start, stop))
    return found


_LARGEST_KERNEL = 255


def pool(step: Step, kind: Literal["average_pool", "max_pool"]) -> None:
    """Lower AVERAGE_POOL_2D and MAX_POOL_2D."""
    require_same_quantization(step)
    shape = window(step, (step.op.options["FilterHeight"], step.op.options["FilterWidth"]))
    step.emit(
        kind,
        (1, shape.height, shape.width, step.tensor().channels),
        stem=kind,
        kernel=shape.kernel,
        stride=shape.stride,
        padding=shape.padding,
        clamp=fused_clamp(step),
    )


def mean(step: Step) -> None:
    """Lower MEAN over all positions, keeping the dimensions or not."""
    step.emit("mean", _reduced(step), stem="mean")


def reduce_max(step: Step) -> None:
    """Lower REDUCE_MAX over all positions: a max pool as large as the image."""
    require_same_quantization(step)
    source = step.tensor()
    kernel = (source.height, source.width)
    if max(kernel) > _LARGEST_KERNEL:
        raise Unsupported(
            f"the image of {kernel} is larger than a window", f"at most {_LARGEST_KERNEL} a side"
        )
    step.emit("max_pool", _reduced(step), stem="max_pool", kernel=kernel)


def _reduced(step: Step) -> tuple[int, ...]:
    """Return the output's shape if the axes are all positions and no channel."""
    shape, axes = step.shape(), step.integers(1)
    rank = len(shape)
    reduced = {a % rank for a in axes or () if -rank <= a < rank}
    remaining = [i for i in range(1, rank - 1) if i not in reduced and shape[i] != 1]
    legal = axes is not None and all(-rank <= a < rank for a in axes)
    if not legal or rank < 3 or remaining or rank - 1 in reduced or (0 in reduced):
        raise Unsupported(
            f"reduces axes {axes} of shape {shape}",
            "only all of height and width (axes 1, 2) at once can be reduced",
        )
    keeps = len(step.network.model.tensors[step.output].shape) == rank
    return (*(1,) * (rank - 1), shape[-1]) if keeps else (1, shape[-1])


def require_same_quantization(step: Step) -> None:
    """Raise Unsupported unless input and output have one scale and zero point."""
    if not same_quantization(step.tensor(), step.target_quantization()):
        raise Unsupported("input and output are quantized differently", CONVERT_INT8)
