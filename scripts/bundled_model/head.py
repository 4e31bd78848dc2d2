"""A linear head on the frozen int8 features of a network, fitted in float and quantized."""

from dataclasses import replace

import numpy as np
import numpy.typing as npt
import torch
from torch import nn

from pmt import Model
from pmt.datasets import Dataset
from pmt.net.graph import Graph

_WEIGHT_STEPS = 127
_INT8_STEPS = 255
WEIGHT_DECAYS = (1e-5, 1e-4, 1e-3, 1e-2, 1e-1)
_HELD_OUT = 5  # one image in five chooses the weight decay
_ITERATIONS = 200

Floats = npt.NDArray[np.float32]


def with_fitted_head(graph: Graph, data: Dataset, seed: int) -> tuple[Graph, float]:
    """Return the network with a head for the classes of `data`, and the weight decay chosen.

    The last op must be a 1x1 convolution or a fully connected layer. Its weights and bias are
    fitted by logistic regression (L-BFGS) on the features before it; the weight decay is the one
    that does best on a fifth of the images, then all images are fitted.
    """
    features = _features(graph, data)
    spread = float(features.std()) or 1.0
    order = np.random.default_rng(seed).permutation(len(features))
    held_out, rest = order[: len(order) // _HELD_OUT], order[len(order) // _HELD_OUT :]
    classes = len(data.class_names)

    def right(decay: float) -> float:
        weights, bias = _fitted(features[rest] / spread, data.labels[rest], classes, decay)
        guesses = (features[held_out] / spread @ weights.T + bias).argmax(1)
        return float((guesses == data.labels[held_out]).mean())

    best = max(WEIGHT_DECAYS, key=right)
    weights, bias = _fitted(features / spread, data.labels, classes, best)
    return _with_head(graph, weights / spread, bias, features), best


def _features(graph: Graph, data: Dataset) -> Floats:
    """The real values that the head reads, ``(N, channels)``: the network ends before it."""
    trunk = replace(
        graph, ops=graph.ops[:-1], output=graph.ops[-1].inputs[0], blocks={}, metadata={}
    )
    trunk.tensors = [t for i, t in enumerate(graph.tensors) if i != graph.output]
    assert graph.output == len(graph.tensors) - 1
    features: Floats = Model.from_graph(trunk).logits(data.images)
    return features


def _fitted(
    features: Floats, labels: npt.NDArray[np.int64], classes: int, decay: float
) -> tuple[Floats, Floats]:
    head = nn.Linear(features.shape[1], classes)
    nn.init.zeros_(head.weight)
    nn.init.zeros_(head.bias)
    x, y = torch.from_numpy(features), torch.from_numpy(labels.copy())
    optimizer = torch.optim.LBFGS(
        head.parameters(), max_iter=_ITERATIONS, line_search_fn="strong_wolfe"
    )

    def loss() -> torch.Tensor:
        optimizer.zero_grad()
        value = nn.functional.cross_entropy(head(x), y) + decay * head.weight.square().sum()
        value.backward()
        return value

    optimizer.step(loss)
    return head.weight.detach().numpy(), head.bias.detach().numpy()


def _with_head(graph: Graph, weights: Floats, bias: Floats, features: Floats) -> Graph:
    logits = features @ weights.T + bias
    low, high = min(float(logits.min()), 0.0), max(float(logits.max()), 0.0)
    scale = float(np.float32((high - low) / _INT8_STEPS))
    zero_point = int(np.clip(np.rint(-128 - low / scale), -128, 127))
    classes = len(weights)
    op = replace(graph.ops[-1])
    assert op.weights is not None
    weight_scales = np.maximum(np.abs(weights).max(1), 1e-6).astype(np.float32) / _WEIGHT_STEPS
    steps = np.clip(np.rint(weights / weight_scales[:, None]), -_WEIGHT_STEPS, _WEIGHT_STEPS)
    op.weights = steps.astype(np.int8).reshape(classes, *op.weights.shape[1:])
    op.weight_scales = weight_scales
    input_scale = graph.tensors[op.inputs[0]].scale
    op.bias = np.rint(bias / (input_scale * weight_scales.astype(np.float64))).astype(np.int32)
    output = replace(
        graph.tensors[graph.output], channels=classes, scale=scale, zero_point=zero_point
    )
    return replace(graph, tensors=[*graph.tensors[:-1], output], ops=[*graph.ops[:-1], op])
