"""One op of a network, run by the core on activations that come from elsewhere."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import numpy.typing as npt

from pmt.model import Model
from pmt.net.graph import Graph, Op, Tensor, graph_of_activations

__all__ = ["run_op"]

Int8Array = npt.NDArray[np.int8]


def run_op(graph: Graph, op: Op, inputs: list[Int8Array]) -> Int8Array:
    """Run an op as the core does.

    Parameters
    ----------
    graph : Graph
        The network that the op belongs to.
    op : Op
        One of its ops.
    inputs : list of ndarray of int8, shape (N, height, width, channels)
        The op's input activations.

    Returns
    -------
    ndarray of int8, shape (N, height, width, channels)
        Its output.
    """
    sources = [graph.tensors[index] for index in op.inputs]
    target = graph.tensors[op.output]
    if len(sources) == 1:
        tensors, ops, images = [sources[0], target], [replace(op, inputs=(0,), output=1)], inputs[0]
    else:
        tensors, ops = _two_inputs(op, sources, target)
        images = np.stack(inputs, axis=2).reshape(len(inputs[0]), *_size(tensors[0]))
    core = Model.from_graph(graph_of_activations(tensors, ops)).core
    return np.stack([core.activations(image)[-1] for image in np.ascontiguousarray(images)])


def _two_inputs(op: Op, sources: list[Tensor], target: Tensor) -> tuple[list[Tensor], list[Op]]:
    """Return a network with one input, the two activations row by row in turns.

    Two exact depthwise layers take the even and the odd rows and give them their quantisation.
    """
    first = sources[0]
    both = Tensor("both", 2 * first.height, first.width, first.channels, 1.0, 0)
    ops = [_select_rows(i, source) for i, source in enumerate(sources)]
    return [both, *sources, target], [*ops, replace(op, inputs=(1, 2), output=3)]


def _select_rows(parity: int, tensor: Tensor) -> Op:
    weights = np.zeros((2, 1, tensor.channels), np.int8)
    weights[parity] = 1
    return Op(
        "depthwise_conv2d",
        f"rows {parity}",
        (0,),
        1 + parity,
        kernel=(2, 1),
        stride=(2, 1),
        weights=weights,
        bias=np.full(tensor.channels, -tensor.zero_point, np.int32),
        weight_scales=np.full(tensor.channels, tensor.scale, np.float32),
    )


def _size(tensor: Tensor) -> tuple[int, int, int]:
    return tensor.height, tensor.width, tensor.channels
