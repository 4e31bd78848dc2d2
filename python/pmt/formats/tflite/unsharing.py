"""Gives operators of a ``.tflite`` file constants of their own, where they share one.

A flatbuffer's offsets are relative and point forward, so nothing can be appended to its vectors of
tensors and buffers. The tables that change are written anew before all else, and point into the
file behind them, which keeps its bytes but for the operators' inputs.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

_HEADER = 8  # offset of the root, "TFL3"
_ALIGNMENT = 64  # of the inserted bytes: constants stay as aligned as they were
# Fields of tables by their places in the vtable: what points elsewhere, and numbers.
_MODEL = (range(6, 24, 2), {4})
_SUBGRAPH = (range(4, 14, 2), {14})
_TENSOR = ((4, 10, 12, 16, 18, 22), {6, 8, 14, 20, 24})
_SUBGRAPHS, _BUFFERS, _TENSORS, _BUFFER, _INPUTS = 8, 12, 4, 8, 6


class OwnConstant(NamedTuple):
    """New content of a constant that one input of an operator reads."""

    operator: int
    position: int
    content: bytes


@dataclass
class _Item:
    """Bytes to insert; ``references`` maps a place in them to a place in the file or an item.

    That at place 0 is a table's vtable, which is counted backwards; a vector has none there.
    """

    data: bytearray
    references: dict[int, int | _Item] = field(default_factory=dict)
    entry: int = 0  # where those that point to the item point
    place: int = 0


def with_own_constants(content: bytes, constants: Sequence[OwnConstant]) -> bytes:
    """Return a file whose first subgraph's operators read these constants.

    Each is a new tensor like the one that stood there, with a buffer of its own. ValueError is
    raised if the file has fields that are not known here.
    """
    import tflite

    model: Any = tflite.Model.GetRootAs(content, 0)
    graph = model.Subgraphs(0)
    data = bytearray(content)
    tensors, buffers = [], []
    for number, constant in enumerate(constants):
        operator = graph.Operators(constant.operator)
        tensor = _table(content, graph.Tensors(operator.Inputs(constant.position)), _TENSOR)
        place = graph.Tensors(operator.Inputs(constant.position))._tab.Offset(_BUFFER)
        struct.pack_into("<I", tensor.data, place, model.BuffersLength() + number)
        tensors.append(tensor)
        buffers.append(_buffer(constant.content))
        inputs = operator._tab.Vector(operator._tab.Offset(_INPUTS))
        place = inputs + 4 * constant.position
        struct.pack_into("<i", data, place, graph.TensorsLength() + number)
    all_tensors = _vector(_entries(graph, _TENSORS), tensors)
    first = _table(content, graph, _SUBGRAPH, {_TENSORS: all_tensors})
    subgraphs = _vector([first, *list(_entries(model, _SUBGRAPHS))[1:]], [])
    all_buffers = _vector(_entries(model, _BUFFERS), buffers)
    root = _table(content, model, _MODEL, {_SUBGRAPHS: subgraphs, _BUFFERS: all_buffers})
    items = [root, subgraphs, first, all_tensors, *tensors, all_buffers, *buffers]
    return _joined(data, items)


def _table(
    content: bytes,
    table: Any,
    fields: tuple[Sequence[int], set[int]],
    replaced: Mapping[int, _Item] | None = None,
) -> _Item:
    """Copy a table, whose vtable stays where it is."""
    pointing, numbers = fields
    place = table._tab.Pos
    vtable = place - struct.unpack_from("<i", content, place)[0]
    vtable_size, size = struct.unpack_from("<HH", content, vtable)
    item = _Item(bytearray(content[place : place + size]), {0: vtable})
    for slot in range(4, vtable_size, 2):
        (offset,) = struct.unpack_from("<H", content, vtable + slot)
        if not offset or slot in numbers:
            continue
        if slot not in pointing:
            raise ValueError("has tables of a newer format")
        target = place + offset + struct.unpack_from("<I", content, place + offset)[0]
        item.references[offset] = (replaced or {}).get(slot, target)
    return item


def _entries(table: Any, slot: int) -> Iterator[int]:
    """Yield the places of the tables that a vector lists."""
    first = table._tab.Vector(table._tab.Offset(slot))
    for index in range(table._tab.VectorLen(table._tab.Offset(slot))):
        yield table._tab.Indirect(first + 4 * index)


def _vector(old: Iterable[int | _Item], new: Sequence[_Item]) -> _Item:
    listed = [*old, *new]
    data = bytearray(struct.pack("<I", len(listed)) + bytes(4 * len(listed)))
    return _Item(data, {4 + 4 * index: target for index, target in enumerate(listed)})


def _buffer(content: bytes) -> _Item:
    """Return vtable, table and vector of a buffer, its first byte aligned to 16."""
    head = struct.pack("<HHHHiI12xI", 6, 8, 4, 0, 8, 16, len(content))
    return _Item(bytearray(head + content), entry=8)


def _joined(data: bytearray, items: Sequence[_Item]) -> bytes:
    """Return the file with items between its header and the rest."""
    place = _HEADER
    for item in items:
        place += -place % 16
        item.place = place
        place += len(item.data)
    shift = place - _HEADER + -(place - _HEADER) % _ALIGNMENT
    front = bytearray(shift)
    for item in items:
        for offset, target in item.references.items():
            here = item.place + offset
            there = target + shift if isinstance(target, int) else target.place + target.entry
            struct.pack_into("<i", item.data, offset, there - here if offset else here - there)
        front[item.place - _HEADER : item.place - _HEADER + len(item.data)] = item.data
    struct.pack_into("<I", data, 0, items[0].place)
    return bytes(data[:_HEADER] + front + data[_HEADER:])
