"""An int8 network in torch: the core's bytes forward, straight-through gradients backward.

Values here are *centered*: an activation is ``q - zero_point``, so that zero stands for zero.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt

from pmt.baselines.backprop import layer_sums
from pmt.baselines.backprop.torch_package import torch
from pmt.model import Model
from pmt.net.graph import Graph, Op, Tensor
from pmt.net.image_limits import LARGEST_WEIGHT

__all__ = ["IntegerNetwork", "quantize", "requantize", "round_weights"]


class _RoundWeights(torch.autograd.Function):  # type: ignore[misc]
    @staticmethod
    def forward(context: Any, weights: Any) -> Any:
        return weights.round().clamp_(-LARGEST_WEIGHT, LARGEST_WEIGHT)

    @staticmethod
    def backward(context: Any, gradient: Any) -> Any:
        return gradient


class _Quantize(torch.autograd.Function):  # type: ignore[misc]
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


class _Requantize(torch.autograd.Function):  # type: ignore[misc]
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


def quantize(real: Any, low: int, high: int) -> Any:
    """Round to the nearest, halves to even, and clip.

    The gradient passes where the rounded value lies in ``low..high``, both bounds included, and is
    zero where it was clipped.
    """
    return _Quantize.apply(real, low, high)


def requantize(accumulators: Any, bias: Any, scales: Any, low: int, high: int) -> Any:
    """Return ``clip(round_half_even((accumulators + bias) * scales), low, high)``, centered.

    The bias is float64, in steps of an accumulator, and rounded here with a straight-through
    gradient; scales are ``s_x * s_w / s_y``, the output's steps for one of an accumulator. The
    gradient passes where the rounded value lies in ``low..high``, both bounds included.
    """
    return _Requantize.apply(accumulators, bias, scales, low, high)


class IntegerNetwork(torch.nn.Module):  # type: ignore[misc]
    """An int8 network that torch can differentiate.

    The forward pass gives the bytes of the core (docs/reference/integers.md) for every activation,
    and its float32 logits: accumulators are sums of whole numbers, in float32 where none can pass
    ``2**24`` and in float64 elsewhere, so that no order of additions changes them. The backward
    pass takes rounding as the identity and a clamp as it is (zero where a value was clipped).

    Parameters
    ----------
    model : Model
        The network. Its parameters are copied.

    Attributes
    ----------
    graph : Graph
        The int8 graph that the network was made of.
    weights : torch.nn.ParameterDict
        Float32, in weight steps and in the layout of :class:`pmt.net.graph.Op`, by the layer's op
        index as a string. The forward pass rounds them to whole numbers in -127..127.
    biases : torch.nn.ParameterDict
        Float64 (which holds every int32), in steps of an accumulator; rounded in the forward pass.
    watched : dict
        Functions ``(x, accumulators) -> accumulators`` by op index, which a layer calls with its
        centered input and its sums before the bias; for studies of what passes through a layer.

    Raises
    ------
    ImportError
        If torch is missing.

    Examples
    --------
    >>> import pmt, torch
    >>> model = pmt.load("fashion_mnist_dscnn")
    >>> network = pmt.backprop.IntegerNetwork(model)
    >>> data = pmt.datasets.bundled("test").take(8)
    >>> logits = network(torch.from_numpy(model.prepare(data.images)))
    >>> bool((logits.detach().numpy() == model.logits(data.images)).all())
    True
    """

    def __init__(self, model: Model) -> None:
        super().__init__()
        self.graph: Graph = model.to_graph()
        self.weights = torch.nn.ParameterDict()
        self.biases = torch.nn.ParameterDict()
        self.watched: dict[int, Callable[[Any, Any], Any]] = {}
        for index, op in enumerate(self.graph.ops):
            if op.weights is not None:
                self._add_layer(index, op)

    def _add_layer(self, index: int, op: Op) -> None:
        assert op.weights is not None
        assert op.bias is not None
        assert op.weight_scales is not None
        source, target = self.graph.tensors[op.inputs[0]], self.graph.tensors[op.output]
        parameter = torch.nn.Parameter
        self.weights[str(index)] = parameter(torch.from_numpy(op.weights.astype(np.float32)))
        self.biases[str(index)] = parameter(torch.from_numpy(op.bias.astype(np.float64)))
        real = np.float32(source.scale) * op.weight_scales
        self.register_buffer(f"accumulator_scales{index}", torch.from_numpy(real))
        steps = torch.from_numpy(real / np.float32(target.scale))
        self.register_buffer(f"output_scales{index}", steps)

    @property
    def has_linear_head(self) -> bool:
        """Whether the logits are the accumulators of the last layer, as in the core."""
        op = self.graph.ops[-1]
        source = self.graph.tensors[op.inputs[0]]
        whole = op.kernel == (source.height, source.width) and not any(op.padding)
        return op.kind == "fully_connected" or (op.kind == "conv2d" and whole)

    def forward(self, images: Any) -> Any:
        """Compute the logits.

        Parameters
        ----------
        images : tensor of int8, shape (N, height, width, channels)
            The network's input, see :meth:`pmt.Model.prepare`.

        Returns
        -------
        tensor of float32, shape (N, classes)
            The core's logits, bit for bit.
        """
        ops = self.graph.ops
        if not self.has_linear_head:
            out = self.graph.tensors[ops[-1].output]
            return self._run(images, len(ops))[ops[-1].output].flatten(1) * out.scale
        last = len(ops) - 1
        x = self._run(images, last)[ops[last].inputs[0]]
        bias = self.biases[str(last)]
        # Straight through, as in `requantize`.
        whole = (bias + (bias.round() - bias).detach()).float()
        return ((self._sums(last, x) + whole) * self._buffer("accumulator", last)).flatten(1)

    def activations(self, images: Any) -> dict[int, Any]:
        """Compute every activation, as part of the graph that autograd sees.

        Parameters
        ----------
        images : tensor of int8, shape (N, height, width, channels)
            The network's input.

        Returns
        -------
        dict of int to tensor of float32
            By tensor index, ``(N, height, width, channels)``: centered values ``q - zero_point``,
            whole numbers.
        """
        return self._run(images, len(self.graph.ops))

    def parameters_as_integers(
        self, index: int
    ) -> tuple[npt.NDArray[np.int8], npt.NDArray[np.int32]]:
        """Return a layer's weights (int8) and biases (int32) as the forward pass sees them."""
        with torch.no_grad():
            weights = round_weights(self.weights[str(index)]).numpy().astype(np.int8)
            bias = self.biases[str(index)].round().numpy()
        limits = np.iinfo(np.int32)
        return weights, np.clip(bias, limits.min, limits.max).astype(np.int32)

    def _run(self, images: Any, count: int) -> dict[int, Any]:
        source = self.graph.tensors[self.graph.input]
        known = {self.graph.input: images.float() - source.zero_point}
        for index, op in enumerate(self.graph.ops[:count]):
            out = self.graph.tensors[op.output]
            result = self._op(index, op, [known[i] for i in op.inputs])
            known[op.output] = result.reshape(-1, out.height, out.width, out.channels)
        return known

    def _op(self, index: int, op: Op, sources: list[Any]) -> Any:
        x = sources[0]
        out = self.graph.tensors[op.output]
        low, high = (bound - out.zero_point for bound in op.clamp)
        match op.kind:
            case "add":
                return quantize(self._real_sum(op, sources), low, high)
            case "mean":
                return self._mean(op, x)
            case "average_pool":
                return self._average(op, x)
            case "max_pool":
                return quantize(layer_sums.pooled_maximum(op, x), low, high)
            case "pad":
                return layer_sums.padded(x, op.padding, 0.0)
            case "reshape":
                return x
        scales = self._buffer("output", index)
        return requantize(self._sums(index, x), self.biases[str(index)], scales, low, high)

    def _sums(self, index: int, x: Any) -> Any:
        op = self.graph.ops[index]
        zero = self.graph.tensors[op.inputs[0]].zero_point
        weights = round_weights(self.weights[str(index)])
        accumulators = layer_sums.exact_sums(op, x, weights, max(128 + zero, 127 - zero))
        watch = self.watched.get(index)
        return watch(x, accumulators) if watch else accumulators

    def _real_sum(self, op: Op, sources: list[Any]) -> Any:
        first, second = (self.graph.tensors[i].scale for i in op.inputs)
        real = sources[0] * first + sources[1] * second
        return real / self.graph.tensors[op.output].scale

    # Halves round to even, and adding an odd zero point moves them: averages are rounded with it.
    def _average(self, op: Op, x: Any) -> Any:
        tensor = self.graph.tensors[op.output]
        taps = layer_sums.pooled_sum(op, torch.ones_like(x[:1, :, :, :1]))
        real = layer_sums.pooled_sum(op, x + tensor.zero_point) / taps
        return quantize(real, *op.clamp) - tensor.zero_point

    def _mean(self, op: Op, x: Any) -> Any:
        source, target = self.graph.tensors[op.inputs[0]], self.graph.tensors[op.output]
        count = source.height * source.width
        total = (x.double() + source.zero_point).sum((1, 2), keepdim=True)
        real = total.float() / count
        if _same_quantization(source, target):
            return quantize(real, *op.clamp) - target.zero_point
        ratio = float(np.float32(source.scale) / np.float32(target.scale))
        low, high = (bound - target.zero_point for bound in op.clamp)
        return quantize((real - source.zero_point) * ratio, low, high)

    def _buffer(self, kind: str, index: int) -> Any:
        return getattr(self, f"{kind}_scales{index}")


def _same_quantization(a: Tensor, b: Tensor) -> bool:
    return a.scale == b.scale and a.zero_point == b.zero_point
