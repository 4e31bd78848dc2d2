"""Sums of products of the layers, and windows, on tensors of shape (N, height, width, channels)."""

from __future__ import annotations

from typing import Any, Protocol

from pmt.baselines.backprop.torch_package import torch
from pmt.net.graph import OpKind
from pmt.net.image_limits import LARGEST_WEIGHT

__all__ = ["WindowOp", "exact_sums", "padded", "pooled_maximum", "pooled_sum", "sums"]

# Whole numbers up to here are exact in float32, and so is any sum of them that stays below.
_EXACT_IN_FLOAT32 = 2**24


class WindowOp(Protocol):
    """The attributes that ops of int8 graphs and of float graphs have in common."""

    kind: OpKind
    kernel: tuple[int, int]
    stride: tuple[int, int]
    padding: tuple[int, int, int, int]


def sums(op: WindowOp, x: Any, weights: Any) -> Any:
    """Sum the products of a layer's inputs and weights, without bias; padding counts as zero.

    The weights are in the layout of :class:`pmt.net.graph.Op`.
    """
    if op.kind == "fully_connected":
        return (x.flatten(1) @ weights.T)[:, None, None, :]
    depthwise = op.kind == "depthwise_conv2d"
    oihw = weights.permute(2, 0, 1)[:, None] if depthwise else weights.permute(0, 3, 1, 2)
    groups = x.shape[3] if depthwise else 1
    top, left, bottom, right = op.padding
    symmetric = (top, left) == (bottom, right)
    if not symmetric:
        x = padded(x, op.padding, 0.0)
    # A view: the memory of (N, height, width, channels) is torch's channels_last.
    nchw = x.permute(0, 3, 1, 2)
    padding = (top, left) if symmetric else 0
    out = torch.nn.functional.conv2d(nchw, oihw, None, op.stride, padding, groups=groups)
    return out.permute(0, 2, 3, 1)


def exact_sums(op: WindowOp, x: Any, weights: Any, reach: int) -> Any:
    """Sum products of whole numbers exactly, then round to float32 once, as an int32 is converted.

    ``reach`` is the largest magnitude in ``x``; the order of the additions does not matter.
    """
    if _largest_sum(op, weights, reach) <= _EXACT_IN_FLOAT32:
        return sums(op, x, weights)
    return sums(op, x.double(), weights.double()).float()


def _largest_sum(op: WindowOp, weights: Any, reach: int) -> float:
    channels = weights.shape[-1 if op.kind == "depthwise_conv2d" else 0]
    most = float(weights.numel() // channels * LARGEST_WEIGHT * reach)
    if most <= _EXACT_IN_FLOAT32:
        return most
    if op.kind == "depthwise_conv2d":
        weights = weights.permute(2, 0, 1)
    return float(weights.detach().abs().flatten(1).sum(1).max()) * reach


def padded(x: Any, padding: tuple[int, int, int, int], value: float) -> Any:
    """Surround the images; ``padding`` is top, left, bottom, right."""
    top, left, bottom, right = padding
    if not any(padding):
        return x
    return torch.nn.functional.pad(x, (0, 0, left, right, top, bottom), value=value)


def pooled_sum(op: WindowOp, x: Any) -> Any:
    """Sum every window; padding counts as zero."""
    nchw = padded(x, op.padding, 0.0).permute(0, 3, 1, 2)
    out = torch.nn.functional.avg_pool2d(nchw, op.kernel, op.stride, divisor_override=1)
    return out.permute(0, 2, 3, 1)


def pooled_maximum(op: WindowOp, x: Any) -> Any:
    """Take the largest value of every window; padding does not count."""
    nchw = padded(x, op.padding, float("-inf")).permute(0, 3, 1, 2)
    return torch.nn.functional.max_pool2d(nchw, op.kernel, op.stride).permute(0, 2, 3, 1)
