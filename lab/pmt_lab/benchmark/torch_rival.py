"""PyTorch on the dequantized network: forwards, and a straightforward MeZO step.

As in the published algorithm, the perturbation is drawn again from its seed wherever it is needed:
to add it, to subtract it twice, to add it once more, and for the update.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt

from pmt._util.extras import import_extra
from pmt.formats.onnx.exporter import oihw
from pmt.model import Model
from pmt.net.graph import Graph, Op
from pmt_lab.benchmark.rivals import Array, Rival

__all__ = ["MezoStep", "TorchFloat"]

_EPSILON = 1e-3
_LEARNING_RATE = 1e-6


class FloatNetwork:
    """The float network that an int8 graph stands for; ``parameters`` are its weights and biases.

    Where the clamp begins at zero the int8 op has an activation function, and so has this one; it
    ends where int8 does. Other outputs are not bounded.
    """

    def __init__(self, graph: Graph) -> None:
        self.torch = _torch()
        self.graph = graph
        self.parameters: dict[int, tuple[Any, Any]] = {
            op.output: self._dequantized(op) for op in graph.ops if op.weights is not None
        }

    def __call__(self, images: Any) -> Any:
        """Run on real-valued images (N, channels, height, width); returns (N, classes)."""
        tensors = {self.graph.input: images}
        for op in self.graph.ops:
            tensors[op.output] = self._activated(op, self._op(op, tensors))
        return tensors[self.graph.output].flatten(1)

    def real(self, images: npt.NDArray[np.int8]) -> Any:
        """Return the real-valued images of int8 input."""
        tensor = self.graph.tensors[self.graph.input]
        values = (images.astype(np.float32) - tensor.zero_point) * np.float32(tensor.scale)
        nchw = self.torch.from_numpy(values.transpose(0, 3, 1, 2).copy())
        return nchw.to(memory_format=self.torch.channels_last)

    def _dequantized(self, op: Op) -> tuple[Any, Any]:
        assert op.bias is not None
        assert op.weight_scales is not None
        source = self.graph.tensors[op.inputs[0]]
        scales = op.weight_scales[:, None, None, None].astype(np.float32)
        weights = self.torch.from_numpy(oihw(op, source) * scales)
        bias = op.bias.astype(np.float32) * np.float32(source.scale) * op.weight_scales
        layout = self.torch.channels_last
        return weights.contiguous(memory_format=layout), self.torch.from_numpy(bias)

    def _op(self, op: Op, tensors: dict[int, Any]) -> Any:
        functional = self.torch.nn.functional
        x = tensors[op.inputs[0]]
        out = self.graph.tensors[op.output]
        if op.kind == "add":
            return x + tensors[op.inputs[1]]
        if op.kind == "mean":
            return x.mean((2, 3), keepdim=True)
        if op.kind == "reshape":
            nhwc = x.permute(0, 2, 3, 1).reshape(len(x), out.height, out.width, out.channels)
            return nhwc.permute(0, 3, 1, 2)
        if op.kind == "max_pool":
            return functional.max_pool2d(self._padded(op, x, -np.inf), op.kernel, op.stride)
        if op.kind == "average_pool":
            if any(op.padding):
                raise ValueError(f"{op.name}: a padded average is not compared with torch")
            return functional.avg_pool2d(x, op.kernel, op.stride)
        if op.kind == "pad":
            return self._padded(op, x, 0.0)
        weights, bias = self.parameters[op.output]
        groups = x.shape[1] if op.kind == "depthwise_conv2d" else 1
        top, left, bottom, right = op.padding
        if (top, left) == (bottom, right):
            return functional.conv2d(x, weights, bias, op.stride, (top, left), groups=groups)
        return functional.conv2d(self._padded(op, x, 0.0), weights, bias, op.stride, groups=groups)

    def _padded(self, op: Op, x: Any, value: float) -> Any:
        top, left, bottom, right = op.padding
        return self.torch.nn.functional.pad(x, (left, right, top, bottom), value=value)

    def _activated(self, op: Op, x: Any) -> Any:
        out = self.graph.tensors[op.output]
        low, high = op.clamp
        if low != out.zero_point:
            return x
        return x.clamp_(0.0, out.scale * (high - out.zero_point))


class TorchFloat(Rival):
    """The float forward in inference mode."""

    def __init__(self, model: Model) -> None:
        self.torch = _torch()
        self.title = f"PyTorch {self.torch.__version__}, float32"
        self.network = FloatNetwork(model.to_graph())

    def _prepared(self, images: npt.NDArray[np.int8]) -> Any:
        return self.network.real(images)

    def _forward(self, shape: tuple[int, ...], threads: int) -> Callable[[Any], Array]:
        def run(part: Any) -> Array:
            self.torch.set_num_threads(threads)
            with self.torch.inference_mode():
                made: Array = self.network(part).numpy()
            return made

        return run


class MezoStep:
    """A step on one batch; calling it trains a float copy of the network."""

    forwards_per_image = 2

    def __init__(
        self,
        model: Model,
        images: npt.NDArray[np.int8],
        labels: npt.NDArray[np.int64],
        threads: int,
    ) -> None:
        self.network = FloatNetwork(model.to_graph())
        self.torch = self.network.torch
        self.title = f"MeZO in PyTorch {self.torch.__version__}"
        self.images = self.network.real(images)
        self.labels = self.torch.from_numpy(labels)
        self.parameters = [p for pair in self.network.parameters.values() for p in pair]
        self.threads = threads
        self.seed = 0

    def __call__(self) -> float:
        """Train one step; return the projected gradient."""
        self.torch.set_num_threads(self.threads)
        self.seed += 1
        with self.torch.inference_mode():
            self._perturb(_EPSILON)
            plus = self._loss()
            self._perturb(-2 * _EPSILON)
            minus = self._loss()
            self._perturb(_EPSILON)
            gradient = (plus - minus) / (2 * _EPSILON)
            self._perturb(-_LEARNING_RATE * gradient)
        return gradient

    def _perturb(self, scale: float) -> None:
        generator = self.torch.Generator().manual_seed(self.seed)
        for parameter in self.parameters:
            z = self.torch.randn(parameter.shape, generator=generator)
            parameter.add_(z, alpha=scale)

    def _loss(self) -> float:
        logits = self.network(self.images)
        return float(self.torch.nn.functional.cross_entropy(logits, self.labels))


def _torch() -> Any:
    return import_extra("torch", "--against needs the package torch", "torch")
