"""The int8 network in torch, with straight-through gradients, and the float one it stands for.

The one place that imports torch; modules that need it take it from here. Tensors of activations
have the shape (N, height, width, channels). Values of the int8 network are *centered*: an
activation is ``q - zero_point``, so that zero stands for zero.
"""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from typing import Any

import numpy as np

from pmt._core import LARGEST_WEIGHT
from pmt._util.arrays import Array, DoubleArray, FloatArray, Int8Array, Int32Array, Int64Array
from pmt._util.extras import import_extra
from pmt.model import Model
from pmt.model.model import check_model
from pmt.net.float_graph import FloatGraph, FloatOp
from pmt.net.graph import Graph, Op
from pmt.net.ops import BaseOp
from pmt.quantization.post_training import dequantize

torch: Any = import_extra("torch", "back-propagation needs the package torch", "torch")


_IMAGES_AT_ONCE = 50  # bounds the memory of kept activations; their gradients add up


def tensor_of(array: Array) -> Any:
    """Return a tensor with a copy of an array: torch warns of arrays that cannot be written."""
    return torch.from_numpy(np.array(array))


@contextmanager
def _torch_threads(threads: int) -> Iterator[None]:
    """Set the number of torch's threads; 0 leaves it those that it has."""
    before = torch.get_num_threads()
    try:
        if threads > 0:
            torch.set_num_threads(threads)
        yield
    finally:
        torch.set_num_threads(before)


# Whole numbers up to here are exact in float32, and so is any sum of them that stays below.
_EXACT_IN_FLOAT32 = 2**24


def sums(op: BaseOp, x: Any, weights: Any) -> Any:
    """Sum products of inputs and weights, laid out as an op's, without bias; padding is zero."""
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


def exact_sums(op: BaseOp, x: Any, weights: Any, reach: int) -> Any:
    """Sum products of whole numbers exactly, then round to float32 once, as an int32 is converted.

    ``reach`` is the largest magnitude in ``x``; the order of the additions does not matter.
    """
    if _largest_sum(op, weights, reach) <= _EXACT_IN_FLOAT32:
        return sums(op, x, weights)
    return sums(op, x.double(), weights.double()).float()


def _largest_sum(op: BaseOp, weights: Any, reach: int) -> float:
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


def pooled_sum(op: BaseOp, x: Any) -> Any:
    """Sum every window; padding counts as zero."""
    nchw = padded(x, op.padding, 0.0).permute(0, 3, 1, 2)
    out = torch.nn.functional.avg_pool2d(nchw, op.kernel, op.stride, divisor_override=1)
    return out.permute(0, 2, 3, 1)


def pooled_maximum(op: BaseOp, x: Any) -> Any:
    """Take the largest value of every window; padding does not count."""
    nchw = padded(x, op.padding, float("-inf")).permute(0, 3, 1, 2)
    return torch.nn.functional.max_pool2d(nchw, op.kernel, op.stride).permute(0, 2, 3, 1)


def sample_weight_gradients(op: Op, x: Any, gradient: Any) -> Any:
    """Correlate a layer's centered input with the gradient by its accumulators: (N, *weights)."""
    assert op.weights is not None
    found = []
    with torch.enable_grad():
        for one, by_sums in zip(x.detach(), gradient, strict=True):
            # Sums are linear in the weights, so that any will do.
            weights = torch.zeros(op.weights.shape, dtype=x.dtype, requires_grad=True)
            total = (sums(op, one[None], weights) * by_sums).sum()
            found.append(torch.autograd.grad(total, weights)[0])
    return torch.stack(found)


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
    """Round to the nearest, halves to even, and clip; the gradient is zero where it was clipped."""
    return _Quantize.apply(real, low, high)


def requantize(accumulators: Any, bias: Any, scales: Any, low: int, high: int) -> Any:
    """Return ``clip(round_half_even((accumulators + bias) * scales), low, high)``, centered.

    The bias is float64, in steps of an accumulator, and rounded here with a straight-through
    gradient; scales are ``s_x * s_w / s_y``, the output's steps for one of an accumulator. The
    gradient passes where the rounded value lies in ``low..high``, both bounds included.
    """
    return _Requantize.apply(accumulators, bias, scales, low, high)


class _Network(torch.nn.Module):  # type: ignore[misc]
    """Parameters by the layer's op index as a string, and ops that both networks have."""

    def __init__(self, graph: Graph | FloatGraph) -> None:
        super().__init__()
        self.graph: Any = graph
        self.weights = torch.nn.ParameterDict()
        self.biases = torch.nn.ParameterDict()

    def add_gradients(self, images: Int8Array, labels: Int64Array, threads: int) -> FloatArray:
        """Add the gradients of the mean loss to the parameters'; return the logits."""
        found = []
        with _torch_threads(threads):
            for first in range(0, len(images), _IMAGES_AT_ONCE):
                part = slice(first, first + _IMAGES_AT_ONCE)
                logits, wanted = self(tensor_of(images[part])), tensor_of(labels[part])
                loss = torch.nn.functional.cross_entropy(logits, wanted, reduction="sum")
                (loss / len(images)).backward()
                found.append(logits.detach().numpy())
        return np.concatenate(found)

    def logits(self, images: Int8Array, threads: int) -> FloatArray:
        """Compute the logits of prepared images, without gradients."""
        with _torch_threads(threads), torch.no_grad():
            parts = [
                self(tensor_of(images[first : first + _IMAGES_AT_ONCE])).numpy()
                for first in range(0, len(images), _IMAGES_AT_ONCE)
            ]
        return np.concatenate(parts)

    def _run(self, first: Any, count: int) -> dict[int, Any]:
        """Run the first ``count`` ops on the input's values; return activations by tensor."""
        known = {self.graph.input: first}
        for index, op in enumerate(self.graph.ops[:count]):
            result = self._op(index, op, [known[i] for i in op.inputs])
            known[op.output] = result.reshape(-1, *self.graph.tensors[op.output].shape)
        return known

    def _op(self, index: int, op: Any, sources: list[Any]) -> Any:
        raise NotImplementedError


class IntegerNetwork(_Network):
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
    has_linear_head : bool
        Whether the logits are the accumulators of the last layer.
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
        check_model(model)
        super().__init__(model.to_graph())
        self.has_linear_head = model.core.has_linear_head
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
            return self._activations(images, len(ops))[ops[-1].output].flatten(1) * out.scale
        last = len(ops) - 1
        x = self._activations(images, last)[ops[last].inputs[0]]
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
        return self._activations(images, len(self.graph.ops))

    def sample_gradients(
        self, images: Int8Array, labels: Int64Array, layers: list[int]
    ) -> tuple[dict[int, tuple[Array, Array]], Array]:
        """Differentiate each sample's loss by some layers' parameters, which ask for no gradient.

        Returns gradients by weights (N, weights) and by biases (N, channels), by op index, and the
        losses (N,); all float32.
        """
        seen: dict[int, tuple[Any, Any]] = {}

        def watch(index: int, x: Any, accumulators: Any) -> Any:
            # Its own bias is added after this point: one gradient serves weights and biases.
            if not accumulators.requires_grad:
                accumulators.requires_grad_()
            seen[index] = x.detach(), accumulators
            return accumulators

        self.watched = {index: partial(watch, index) for index in layers}
        losses = torch.nn.functional.cross_entropy(
            self(tensor_of(images)), tensor_of(labels), reduction="none"
        )
        gradients = torch.autograd.grad(losses.sum(), [seen[index][1] for index in layers])
        found = {}
        for index, gradient in zip(layers, gradients, strict=True):
            weights = sample_weight_gradients(self.graph.ops[index], seen[index][0], gradient)
            found[index] = (weights.flatten(1).numpy(), gradient.sum((1, 2)).numpy())
        return found, losses.detach().numpy()

    def channel_products(
        self, images: Int8Array, labels: Int64Array, layers: Sequence[int]
    ) -> dict[int, DoubleArray]:
        """Sum activation times gradient of some layers' inputs over positions: (N, channels)."""
        inputs: dict[int, Any] = {}

        def watch(index: int, x: Any, accumulators: Any) -> Any:
            x.retain_grad()
            inputs[index] = x
            return accumulators

        self.watched = {index: partial(watch, index) for index in layers}
        # The image asks for a gradient, and so does every activation that descends from it.
        logits = self(tensor_of(images).float().requires_grad_())
        losses = torch.nn.functional.cross_entropy(logits, tensor_of(labels), reduction="sum")
        losses.backward()
        found = {}
        for index, x in inputs.items():
            product = (x * x.grad).detach().double()
            linear = self.graph.ops[index].kind == "fully_connected"
            found[index] = (product.flatten(1) if linear else product.sum((1, 2))).numpy()
        return found

    def parameters_as_integers(self, index: int) -> tuple[Int8Array, Int32Array]:
        """Return a layer's weights (int8) and biases (int32) as the forward pass sees them."""
        with torch.no_grad():
            weights = round_weights(self.weights[str(index)]).numpy().astype(np.int8)
            bias = self.biases[str(index)].round().numpy()
        limits = np.iinfo(np.int32)
        return weights, np.clip(bias, limits.min, limits.max).astype(np.int32)

    def _activations(self, images: Any, count: int) -> dict[int, Any]:
        zero_point = self.graph.tensors[self.graph.input].zero_point
        return self._run(images.float() - zero_point, count)

    def _op(self, index: int, op: Op, sources: list[Any]) -> Any:
        x = sources[0]
        out = self.graph.tensors[op.output]
        low, high = (bound - out.zero_point for bound in op.clamp)
        match op.kind:
            case "add":
                return quantize(self._real_sum(op, sources), low, high)
            case "concatenation":
                return quantize(self._joined(op, sources), low, high)
            case "mean":
                return self._mean(op, x)
            case "average_pool":
                return self._average(op, x)
            case "max_pool":
                return quantize(pooled_maximum(op, x), low, high)
            case "pad":
                return padded(x, op.padding, 0.0)
            case "reshape":
                return x
        scales = self._buffer("output", index)
        return requantize(self._sums(index, x), self.biases[str(index)], scales, low, high)

    def _sums(self, index: int, x: Any) -> Any:
        op = self.graph.ops[index]
        zero = self.graph.tensors[op.inputs[0]].zero_point
        weights = round_weights(self.weights[str(index)])
        accumulators = exact_sums(op, x, weights, max(128 + zero, 127 - zero))
        watch = self.watched.get(index)
        return watch(x, accumulators) if watch else accumulators

    def _real_sum(self, op: Op, sources: list[Any]) -> Any:
        first, second = (self.graph.tensors[i].scale for i in op.inputs)
        real = sources[0] * first + sources[1] * second
        return real / self.graph.tensors[op.output].scale

    def _joined(self, op: Op, sources: list[Any]) -> Any:
        target = np.float32(self.graph.tensors[op.output].scale)
        scales = (np.float32(self.graph.tensors[index].scale) for index in op.inputs)
        parts = [x * float(scale / target) for x, scale in zip(sources, scales, strict=True)]
        return torch.cat(parts, 3)

    # Halves round to even, and adding an odd zero point moves them: averages are rounded with it.
    def _average(self, op: Op, x: Any) -> Any:
        tensor = self.graph.tensors[op.output]
        taps = pooled_sum(op, torch.ones_like(x[:1, :, :, :1]))
        real = pooled_sum(op, x + tensor.zero_point) / taps
        return quantize(real, *op.clamp) - tensor.zero_point

    def _mean(self, op: Op, x: Any) -> Any:
        source, target = self.graph.tensors[op.inputs[0]], self.graph.tensors[op.output]
        count = source.height * source.width
        total = (x.double() + source.zero_point).sum((1, 2), keepdim=True)
        real = total.float() / count
        if source.is_quantized_as(target.scale, target.zero_point):
            return quantize(real, *op.clamp) - target.zero_point
        ratio = float(np.float32(source.scale) / np.float32(target.scale))
        low, high = (bound - target.zero_point for bound in op.clamp)
        return quantize((real - source.zero_point) * ratio, low, high)

    def _buffer(self, kind: str, index: int) -> Any:
        return getattr(self, f"{kind}_scales{index}")


class FloatNetwork(_Network):
    """The dequantized network: :func:`pmt.quantization.dequantize`, float32 throughout.

    Batch norms are folded, as in every int8 network; activations are ReLU, ReLU6 or none. It reads
    the same int8 input as the int8 network, so that both see the same images.

    Parameters
    ----------
    model : Model
        The int8 network. Its parameters are copied.

    Attributes
    ----------
    graph : FloatGraph
        The dequantized graph.
    weights, biases : torch.nn.ParameterDict
        Float32, real values, in the layouts of :class:`pmt.net.graph.Op`, by the layer's op index
        as a string.

    Raises
    ------
    ImportError
        If torch is missing.
    """

    def __init__(self, model: Model) -> None:
        check_model(model)
        integers = model.to_graph()
        super().__init__(dequantize(integers))
        self.input = integers.tensors[integers.input]
        self._scales: dict[int, tuple[DoubleArray, DoubleArray]] = {}
        for index, (op, source) in enumerate(zip(self.graph.ops, integers.ops, strict=True)):
            if source.weight_scales is None:
                continue
            self.weights[str(index)] = torch.nn.Parameter(torch.from_numpy(op.weights))
            self.biases[str(index)] = torch.nn.Parameter(torch.from_numpy(op.bias))
            steps = source.weight_scales.astype(np.float64)
            self._scales[index] = (steps, steps * integers.tensors[source.inputs[0]].scale)

    def forward(self, images: Any) -> Any:
        """Compute the logits.

        Parameters
        ----------
        images : tensor of int8, shape (N, height, width, channels)
            The int8 network's input, see :meth:`pmt.Model.prepare`.

        Returns
        -------
        tensor of float32, shape (N, classes)
            Real logits.
        """
        real = (images.float() - self.input.zero_point) * self.input.scale
        last = self.graph.ops[-1]
        return self._run(real, len(self.graph.ops))[last.output].flatten(1)

    def parameters_as_integers(self, index: int) -> tuple[Int8Array, Int32Array]:
        """Quantize a layer's weights and biases with the int8 network's own scales, to nearest."""
        with torch.no_grad():
            weights = self.weights[str(index)].double().numpy()
            bias = self.biases[str(index)].double().numpy()
        weight_scales, bias_scales = self._scales[index]
        last = self.graph.ops[index].kind == "depthwise_conv2d"
        shape = (-1,) if last else (-1, *[1] * (weights.ndim - 1))
        steps = np.clip(
            np.rint(weights / weight_scales.reshape(shape)), -LARGEST_WEIGHT, LARGEST_WEIGHT
        )
        limits = np.iinfo(np.int32)
        whole = np.clip(np.rint(bias / bias_scales), limits.min, limits.max)
        return steps.astype(np.int8), whole.astype(np.int32)

    def _op(self, index: int, op: FloatOp, sources: list[Any]) -> Any:
        result = self._unbounded(index, op, sources)
        low, high = op.bounds
        return result.clamp(low, high) if low > -np.inf or high < np.inf else result

    def _unbounded(self, index: int, op: FloatOp, sources: list[Any]) -> Any:
        x = sources[0]
        match op.kind:
            case "add":
                return x + sources[1]
            case "concatenation":
                return torch.cat(sources, 3)
            case "mean":
                return x.mean((1, 2), keepdim=True)
            case "average_pool":
                taps = pooled_sum(op, torch.ones_like(x[:1, :, :, :1]))
                return pooled_sum(op, x) / taps
            case "max_pool":
                return pooled_maximum(op, x)
            case "pad":
                return padded(x, op.padding, 0.0)
            case "reshape":
                return x
        return sums(op, x, self.weights[str(index)]) + self.biases[str(index)]
