"""Rounding whose derivative is taken as that of the identity: the straight-through estimator.

Values here are *centred*: an activation is ``q - zero_point``, so that zero stands for zero.
"""

from __future__ import annotations

from typing import Any

from pmt.baselines.backprop.torch_package import torch

__all__ = ["LARGEST_WEIGHT", "quantise", "requantise", "round_weights"]

LARGEST_WEIGHT = 127


class _RoundWeights(torch.autograd.Function):  # type: ignore[misc]
    @staticmethod
    def forward(context: Any, weights: Any) -> Any:
        return weights.round().clamp_(-LARGEST_WEIGHT, LARGEST_WEIGHT)

    @staticmethod
    def backward(context: Any, gradient: Any) -> Any:
        return gradient


class _Quantise(torch.autograd.Function):  # type: ignore[misc]
    @staticmethod
    def forward(context: Any, real: Any, low: int, high: int) -> Any:
        rounded = real.round()
        output = rounded.clamp(low, high)
        if context.needs_input_grad[0]:
            context.save_for_backward(output.eq(rounded))
        return output

    @staticmethod
    def backward(context: Any, gradient: Any) -> Any:
        (inside,) = context.saved_tensors
        return gradient * inside, None, None


class _Requantise(torch.autograd.Function):  # type: ignore[misc]
    @staticmethod
    def forward(
        context: Any, accumulators: Any, bias: Any, scales: Any, low: int, high: int
    ) -> Any:
        # docs/reference/integers.md: the sum is one float32 operation, the product another.
        rounded = (accumulators + bias.round().float()).mul_(scales).round_()
        output = rounded.clamp(low, high)
        if any(context.needs_input_grad[:2]):
            context.save_for_backward(output.eq(rounded), scales)
        return output

    @staticmethod
    def backward(context: Any, gradient: Any) -> Any:
        inside, scales = context.saved_tensors
        by_accumulator = (gradient * inside).mul_(scales)
        by_bias = None
        if context.needs_input_grad[1]:
            channels = by_accumulator.shape[-1]
            by_bias = by_accumulator.reshape(-1, channels).sum(0).double()
        return by_accumulator, by_bias, None, None, None


def round_weights(weights: Any) -> Any:
    """Round to whole weight steps in -127..127; the gradient passes unchanged, clipped or not."""
    return _RoundWeights.apply(weights)


def quantise(real: Any, low: int, high: int) -> Any:
    """Round to the nearest, halves to even, and clip.

    The gradient passes where the rounded value lies in ``low..high``, both bounds included, and is
    zero where it was clipped.
    """
    return _Quantise.apply(real, low, high)


def requantise(accumulators: Any, bias: Any, scales: Any, low: int, high: int) -> Any:
    """Turn a layer's accumulators into its centred output.

    Parameters
    ----------
    accumulators : tensor of float32, shape (..., channels)
        Whole numbers.
    bias : tensor of float64, shape (channels,)
        In steps of an accumulator; rounded here, with a straight-through gradient.
    scales : tensor of float32, shape (channels,)
        ``s_x * s_w / s_y``, the output's steps for one step of an accumulator.
    low, high : int
        Bounds of the centred output.

    Returns
    -------
    tensor of float32
        ``clip(round_half_even((accumulators + bias) * scales), low, high)``. The gradient passes
        where the rounded value lies in ``low..high``, both bounds included.
    """
    return _Requantise.apply(accumulators, bias, scales, low, high)
