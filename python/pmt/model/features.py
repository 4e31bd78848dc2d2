"""Models that end in features: a map, or an embedding, instead of a logit for each class."""

from dataclasses import replace
from typing import Any

from pmt._util.checks import plain_number
from pmt._util.text import nearest
from pmt.net.graph import FEATURES_ENTRY, OF_CLASSES, STATISTICS_KEY, Graph, Op, is_layer


def features_graph(graph: Graph, layer: str | int | None) -> Graph:
    """Return the part of a network that ends in the output of one of its ops.

    By default that is what the last layer with weights reads. Blocks keep the layers that are left.
    Errors are those of :meth:`pmt.Model.features`.
    """
    last = _before_head(graph) if layer is None else _index(graph, layer)
    needed = _ancestors(graph, last)
    if not any(is_layer(graph.ops[index]) for index in needed):
        raise ValueError(
            f"layer={graph.ops[last].name!r}: no layer with weights comes before its output, so "
            "that nothing could be trained; choose a later one"
        )
    used = sorted({graph.input} | {graph.ops[index].output for index in needed})
    tensors = {old: new for new, old in enumerate(used)}
    numbers = {old: new for new, old in enumerate(needed)}
    return replace(
        graph,
        tensors=[graph.tensors[old] for old in used],
        ops=[
            replace(op, inputs=tuple(tensors[i] for i in op.inputs), output=tensors[op.output])
            for op in (graph.ops[index] for index in needed)
        ],
        input=tensors[graph.input],
        output=tensors[graph.ops[last].output],
        blocks={
            name: left
            for name, members in graph.blocks.items()
            if (left := [numbers[index] for index in members if index in numbers])
        },
        metadata=_metadata(graph.metadata, [graph.ops[index] for index in needed]),
    )


def _metadata(metadata: dict[str, Any], ops: list[Op]) -> dict[str, Any]:
    """Return the metadata of the ops that are left."""
    kept = {k: v for k, v in metadata.items() if k not in OF_CLASSES} | FEATURES_ENTRY
    statistics = kept.get(STATISTICS_KEY)
    if isinstance(statistics, dict):
        # The last layer has none: nothing is aligned to what ends the network.
        layers = [op.name for op in ops if is_layer(op)][:-1]
        kept[STATISTICS_KEY] = {
            key: {name: of for name, of in value.items() if name in layers}
            if isinstance(value, dict)
            else value
            for key, value in statistics.items()
        }
    return kept


def _writers(graph: Graph) -> dict[int, int]:
    return {op.output: index for index, op in enumerate(graph.ops)}


def _before_head(graph: Graph) -> int:
    head = next(op for op in reversed(graph.ops) if is_layer(op))
    writer = _writers(graph).get(head.inputs[0])
    if writer is None:
        raise ValueError(
            f"layer=None: {head.name!r} is the only layer with weights, and reads the input; name "
            "an op that comes after it"
        )
    return writer


def _index(graph: Graph, layer: str | int) -> int:
    layer = plain_number(layer)
    if not isinstance(layer, str | int):
        raise TypeError(
            f"layer is {type(layer).__name__}: must be the name or the index of one layer, a "
            "string or an integer"
        )
    names = [op.name for op in graph.ops]
    if isinstance(layer, str) and layer in names:
        return names.index(layer)
    is_number = isinstance(layer, int) and not isinstance(layer, bool)
    if is_number and layer in range(len(names)):
        return int(layer)
    if layer in graph.blocks:
        members = ", ".join(names[index] for index in graph.blocks[str(layer)])
        raise ValueError(f"layer={layer!r} is a block; give one of its layers: {members}")
    near = nearest(str(layer), names)
    remedy = f"did you mean {near!r}?" if near else "`pmt info` lists names and indices"
    raise ValueError(f"layer={layer!r} is not an op of the model; {remedy}")


def _ancestors(graph: Graph, last: int) -> list[int]:
    """Return the ops that the output of one depends on, with itself, in their order."""
    writers, needed, open_ops = _writers(graph), {last}, [last]
    while open_ops:
        for tensor in graph.ops[open_ops.pop()].inputs:
            writer = writers.get(tensor)
            if writer is not None and writer not in needed:
                needed.add(writer)
                open_ops.append(writer)
    return sorted(needed)
