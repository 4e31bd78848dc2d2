"""How far an imported network's values are from those of the engine its format belongs to.

Every op is run by the core on the other engine's own inputs, so that what is counted is the op's
own difference and not what came before it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from pmt.model import Model
from pmt.net.graph import Graph
from pmt.research.benchmark.single_op import run_op

__all__ = [
    "OpDifference",
    "TopOne",
    "compare_ops",
    "compare_top_one",
    "head_classes",
    "network_classes",
]

Int8Array = npt.NDArray[np.int8]
IntArray = npt.NDArray[np.int64]


@dataclass(frozen=True)
class OpDifference:
    """One op: how many of its int8 outputs differ, and by how many steps at most."""

    name: str
    operator: str
    values: int
    differing: int
    largest: int


@dataclass(frozen=True)
class TopOne:
    """Predicted classes of one network in two engines.

    ``tied`` counts images whose two largest outputs are equal in the other engine; of the rest,
    ``equal`` have the same class. ``widest`` is the largest margin between the two, in steps of
    the other engine's output, where the class differs.
    """

    images: int
    tied: int
    equal: int
    widest: int


def compare_ops(
    graph: Graph, reference: Mapping[int, Int8Array], operators: Mapping[int, str]
) -> list[OpDifference]:
    """Compare every op whose output the other engine has too.

    Parameters
    ----------
    graph : Graph
        The imported network.
    reference : mapping of int to ndarray of int8, shape (N, height, width, channels)
        The other engine's activations by tensor of the graph, the input among them. Missing ones
        are those that importing added; the core's own values stand in for them.
    operators : mapping of int to str
        What the other format calls the operator that writes a tensor.

    Returns
    -------
    list of OpDifference
        In the order of the ops.
    """
    values = dict(reference)
    found = []
    for op in graph.ops:
        output = run_op(graph, op, [values[index] for index in op.inputs])
        if op.output not in reference:
            values[op.output] = output
            continue
        steps = np.abs(output.astype(np.int16) - reference[op.output])
        operator = operators.get(op.output, op.kind)
        count = int(np.count_nonzero(steps))
        found.append(OpDifference(op.name, operator, steps.size, count, int(steps.max())))
    return found


def head_classes(graph: Graph, reference: Mapping[int, Int8Array]) -> IntArray:
    """Return the classes that the last op alone predicts from the other engine's activations.

    Parameters
    ----------
    graph : Graph
        The imported network.
    reference : mapping of int to ndarray of int8, shape (N, height, width, channels)
        The other engine's activations, the last op's input among them.

    Returns
    -------
    ndarray of int64, shape (N,)
        Classes by the last op's int8 output.
    """
    last = graph.ops[-1]
    output = run_op(graph, last, [reference[index] for index in last.inputs])
    return np.asarray(output.reshape(len(output), -1).argmax(axis=1), np.int64)


def network_classes(graph: Graph, images: Int8Array) -> IntArray:
    """Return the classes that the whole network predicts from int8 inputs (N, H, W, C)."""
    logits = Model.from_graph(graph).core.logits(np.ascontiguousarray(images), threads=1)
    return np.asarray(logits.argmax(axis=1), np.int64)


def compare_top_one(predicted: IntArray, outputs: npt.NDArray[np.integer]) -> TopOne:
    """Compare predicted classes with the other engine's outputs.

    Parameters
    ----------
    predicted : ndarray of int64, shape (N,)
        Classes.
    outputs : ndarray of integers, shape (N, classes)
        The other engine's quantised logits or probabilities.
    """
    wide = outputs.astype(np.int64)
    ordered = np.sort(wide, axis=1)
    margin = ordered[:, -1] - ordered[:, -2]
    same = predicted == wide.argmax(axis=1)
    return TopOne(
        images=len(outputs),
        tied=int(np.count_nonzero(margin == 0)),
        equal=int(np.count_nonzero((margin > 0) & same)),
        widest=int(margin[~same].max(initial=0)),
    )
