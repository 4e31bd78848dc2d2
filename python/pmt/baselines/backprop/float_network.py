"""The float network that an int8 network stands for, in torch."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from pmt.baselines.backprop import layer_sums
from pmt.baselines.backprop.torch_package import torch
from pmt.model import Model
from pmt.net.float_graph import FloatGraph, FloatOp
from pmt.net.image_limits import LARGEST_WEIGHT
from pmt.quantization.dequantization import dequantize

__all__ = ["FloatNetwork"]


class FloatNetwork(torch.nn.Module):  # type: ignore[misc]
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
        super().__init__()
        integers = model.to_graph()
        self.graph: FloatGraph = dequantize(integers)
        self.input = integers.tensors[integers.input]
        self.weights = torch.nn.ParameterDict()
        self.biases = torch.nn.ParameterDict()
        self._scales: dict[int, tuple[npt.NDArray[np.float64], npt.NDArray[np.float64]]] = {}
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
        known = {self.graph.input: (images.float() - self.input.zero_point) * self.input.scale}
        for index, op in enumerate(self.graph.ops):
            result = self._op(index, op, [known[i] for i in op.inputs])
            low, high = op.bounds
            if low > -np.inf or high < np.inf:
                result = result.clamp(low, high)
            known[op.output] = result.reshape(-1, *self.graph.tensors[op.output].shape)
        return known[self.graph.ops[-1].output].flatten(1)

    def parameters_as_integers(
        self, index: int
    ) -> tuple[npt.NDArray[np.int8], npt.NDArray[np.int32]]:
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
        x = sources[0]
        match op.kind:
            case "add":
                return x + sources[1]
            case "mean":
                return x.mean((1, 2), keepdim=True)
            case "average_pool":
                taps = layer_sums.pooled_sum(op, torch.ones_like(x[:1, :, :, :1]))
                return layer_sums.pooled_sum(op, x) / taps
            case "max_pool":
                return layer_sums.pooled_maximum(op, x)
            case "pad":
                return layer_sums.padded(x, op.padding, 0.0)
            case "reshape":
                return x
        return layer_sums.sums(op, x, self.weights[str(index)]) + self.biases[str(index)]
