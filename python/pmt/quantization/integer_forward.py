"""Activations of an int8 network, op by op or all of them, as the core computes them."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import numpy.typing as npt

from pmt.model import Model
from pmt.net.graph import Graph, Op, Tensor, graph_of_activations

Int8Array = npt.NDArray[np.int8]


def integer_activations(graph: Graph, images: npt.NDArray[np.uint8]) -> list[Int8Array]:
    """Run the network and keep every activation.

    Parameters
    ----------
    graph : Graph
        The int8 network.
    images : ndarray of uint8, shape (N, H, W, C)
        Pixels 0..255.

    Returns
    -------
    list of ndarray of int8
        One per tensor of the graph, ``(N, H, W, C)`` each; the input is among them.
    """
    model = Model.from_graph(graph)
    per_image = [model.core.activations(image) for image in model.prepare(images)]
    return [np.stack(tensors) for tensors in zip(*per_image, strict=True)]


def dequantized(tensor: Tensor, values: Int8Array) -> npt.NDArray[np.float32]:
    """Real values ``scale * (q - zero_point)`` of an activation."""
    real = (values.astype(np.float32) - np.float32(tensor.zero_point)) * np.float32(tensor.scale)
    return np.asarray(real, np.float32)


def run_op(graph: Graph, op: Op, sources: list[Int8Array]) -> Int8Array:
    """Run one op of ``graph`` on its int8 inputs, ``(N, H, W, C)`` each."""
    tensors = [graph.tensors[index] for index in (*op.inputs, op.output)]
    if op.kind == "add":
        return _add(op, sources, tensors)
    model = Model.from_graph(graph_of_activations(tensors, [replace(op, inputs=(0,), output=1)]))
    return np.stack([model.core.activations(image)[1] for image in sources[0]])


def _add(op: Op, sources: list[Int8Array], tensors: list[Tensor]) -> Int8Array:
    # A network has one input, so an addition cannot stand alone. See docs/reference/integers.md.
    terms = [
        (values.astype(np.float32) - np.float32(tensor.zero_point)) * np.float32(tensor.scale)
        for values, tensor in zip(sources, tensors, strict=False)
    ]
    target = tensors[-1]
    steps = np.rint((terms[0] + terms[1]) / np.float32(target.scale)) + target.zero_point
    return np.asarray(np.clip(steps, *op.clamp), np.int8)
