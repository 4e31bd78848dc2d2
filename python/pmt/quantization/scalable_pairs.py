"""Pairs of layers between which a factor per channel can be moved."""

from __future__ import annotations

from dataclasses import dataclass

from pmt.net.float_graph import LAYER_KINDS, FloatGraph, FloatOp

# A positive factor per channel passes through these unchanged; padding is zero in float.
_TRANSPARENT = ("pad", "max_pool", "average_pool", "mean")


@dataclass(frozen=True)
class Pair:
    """Two layers, as positions in the graph's ops, and the tensors that lie between them."""

    first: int
    second: int
    between: tuple[int, ...]


def scalable_pairs(graph: FloatGraph) -> list[Pair]:
    """Find every layer whose output reaches one other layer alone.

    Paddings, pools and means may lie between, and a reshape before a fully_connected layer. An
    activation that two ops read, or that is the network's output, belongs to no pair.
    """
    readers: dict[int, list[int]] = {}
    for position, op in enumerate(graph.ops):
        for index in op.inputs:
            readers.setdefault(index, []).append(position)
    pairs = []
    for position, op in enumerate(graph.ops):
        if op.kind in LAYER_KINDS:
            pair = _pair_from(graph, position, readers)
            if pair is not None:
                pairs.append(pair)
    return pairs


def _pair_from(graph: FloatGraph, first: int, readers: dict[int, list[int]]) -> Pair | None:
    channels = graph.tensors[graph.ops[first].output].channels
    tensor = graph.ops[first].output
    between = [tensor]
    flattened = False
    while tensor != graph.output and len(readers.get(tensor, [])) == 1:
        (position,) = readers[tensor]
        op = graph.ops[position]
        if op.kind in LAYER_KINDS:
            fits = op.kind == "fully_connected" or not flattened
            return Pair(first, position, tuple(between)) if fits else None
        if op.kind == "reshape":
            flattened = flattened or graph.tensors[op.output].channels != channels
        elif op.kind not in _TRANSPARENT or flattened or not _plain(op):
            return None
        tensor = op.output
        between.append(tensor)
    return None


def _plain(op: FloatOp) -> bool:
    return op.activation == "none"
