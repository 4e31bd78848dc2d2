"""TFLite operators that reduce windows or whole images: pools, MEAN, REDUCE_MAX."""

from __future__ import annotations

from typing import Literal

from pmt.formats.tflite.network import Step, same_quantisation
from pmt.formats.tflite.problems import CONVERT_INT8, Unsupported
from pmt.formats.tflite.windows import fused_clamp, window

__all__ = ["mean", "pool", "reduce_max"]

_LARGEST_KERNEL = 255


def pool(step: Step, kind: Literal["average_pool", "max_pool"]) -> None:
    """Lower AVERAGE_POOL_2D and MAX_POOL_2D."""
    require_same_quantisation(step)
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
    require_same_quantisation(step)
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


def require_same_quantisation(step: Step) -> None:
    """Raise Unsupported unless input and output have one scale and zero point."""
    if not same_quantisation(step.tensor(), step.target_quantisation()):
        raise Unsupported("input and output are quantised differently", CONVERT_INT8)
