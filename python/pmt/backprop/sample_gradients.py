"""A layer's weight gradient for every sample of a batch on its own."""

from __future__ import annotations

from typing import Any

from pmt.backprop import layer_sums
from pmt.backprop.torch_package import torch

__all__ = ["sample_weight_gradients"]


def sample_weight_gradients(op: layer_sums.WindowOp, x: Any, gradient: Any) -> Any:
    """Correlate a layer's input with the gradient by its accumulators, sample by sample.

    Parameters
    ----------
    op : Op or FloatOp
        A layer.
    x : tensor of float32, shape (N, height, width, channels)
        Its (centred) input.
    gradient : tensor of float32, shape (N, out_height, out_width, out_channels)
        Gradient by its accumulators.

    Returns
    -------
    tensor of float32, shape (N, *weights)
        Weights in the layout of :class:`pmt.graph.Op`.
    """
    samples, channels = len(x), gradient.shape[3]
    if op.kind == "fully_connected":
        return torch.einsum("no,ni->noi", gradient.flatten(1), x.flatten(1))
    patches = _patches(op, x)  # (N, in, taps, positions)
    by_position = gradient.reshape(samples, -1, channels)
    if op.kind == "conv2d":
        weights = torch.einsum("npo,nctp->notc", by_position, patches)
        return weights.reshape(samples, channels, *op.kernel, -1)
    grouped = by_position.reshape(samples, by_position.shape[1], x.shape[3], -1)
    weights = torch.einsum("npcm,nctp->ntcm", grouped, patches)
    return weights.reshape(samples, *op.kernel, channels)


def _patches(op: layer_sums.WindowOp, x: Any) -> Any:
    nchw = layer_sums.padded(x, op.padding, 0.0).permute(0, 3, 1, 2)
    columns = torch.nn.functional.unfold(nchw, op.kernel, stride=op.stride)
    taps = op.kernel[0] * op.kernel[1]
    return columns.reshape(len(x), x.shape[3], taps, -1)
