"""An ONNX file as plain Python data: parsed, bounded and in an order of execution."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass, field
from graphlib import CycleError, TopologicalSorter
from heapq import heappop, heappush
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from pmt._util.extras import import_extra
from pmt._util.lfs import LFS_PROBLEM, LFS_REMEDY, is_lfs_pointer
from pmt.formats.layers import Problems, Unsupported
from pmt.formats.reading import require_file

MAX_RANK = 8
_MAX_BYTES = 2**31 - 1
_MAX_NODES = 50_000
_OLDEST_OPSET = 9
_DOMAINS = ("", "ai.onnx", "com.microsoft")
# Data types that a network's input may have, by their numbers in ONNX.
_DTYPES = {1: "float32", 2: "uint8", 3: "int8", 10: "float16", 11: "float64", 16: "bfloat16"}
# ONNX data type -> (name, bytes per value, the field that holds values which are not raw).
_TYPES = {
    1: ("float32", 4, "float_data"),
    2: ("uint8", 1, "int32_data"),
    3: ("int8", 1, "int32_data"),
    6: ("int32", 4, "int32_data"),
    7: ("int64", 8, "int64_data"),
    9: ("bool", 1, "int32_data"),
    10: ("float16", 2, "int32_data"),
    11: ("float64", 8, "double_data"),
    16: ("bfloat16", 2, "int32_data"),
}
_OTHER_TYPES = {4: "uint16", 5: "int16", 8: "string", 12: "uint32", 13: "uint64", 21: "uint4"}
_OTHER_TYPES |= {14: "complex64", 15: "complex128", 17: "float8", 18: "float8", 22: "int4"}
_LARGEST = float(np.finfo(np.float32).max)
_NAMED = 3  # nodes in one line of a message


def _place(kind: str, nodes: list[str]) -> str:
    if not kind:
        return ""
    named = ", ".join(repr(name[:80]) for name in nodes[:_NAMED])
    more = f" and {len(nodes) - _NAMED} more" if len(nodes) > _NAMED else ""
    return f"node {named}{more} ({kind}): "


@dataclass
class Node:
    """One node. An optional input that is left out is an empty string."""

    kind: str
    name: str
    inputs: list[str]
    outputs: list[str]
    attributes: dict[str, Any] = field(default_factory=dict)


@dataclass
class FileModel:
    """A file as the importer needs it.

    ``nodes`` are those the output depends on, each after the nodes it reads from. ``shape`` is the
    input's, with 0 for a size that is left open. ``reads`` counts how often the numbers of each
    value are read, by nodes or as the output; the node Shape does not read them. ``note`` is the
    metadata entry ``pmt`` of files that pmt has written.
    """

    nodes: list[Node]
    constants: dict[str, npt.NDArray[Any]]
    input: str
    input_dtype: str
    shape: tuple[int, ...]
    output: str
    opset: int
    reads: Counter[str]
    problems: Problems
    size: int
    note: str


def read_file(path: str | Path) -> FileModel:
    """Read and check a file, its nodes not yet understood.

    ``problems`` of the result holds constants that are not supported; the importer adds its own. A
    damaged file is a ValueError: no ONNX model, a cycle, names given twice or never, no single
    input and output, an opset older than 9.
    """
    path = Path(path)
    require_file(path)
    model = _parse(path)
    _check_header(path.name, model)
    return _Reader(path, model).read()


def _parse(path: Path) -> Any:
    onnx = import_extra("onnx", "reading .onnx needs the package onnx", "onnx")
    size = path.stat().st_size
    if size > _MAX_BYTES:
        raise ValueError(f"{path.name}: has {size} bytes, an ONNX file holds at most {_MAX_BYTES}")
    model = onnx.ModelProto()
    try:
        model.ParseFromString(path.read_bytes())
    except Exception as error:  # protobuf's implementations raise kinds of their own
        raise ValueError(f"{path.name}: is not an ONNX model, or is damaged: {error}") from None
    if not model.graph.node or not model.opset_import:
        raise ValueError(f"{path.name}: is not an ONNX model: it has no nodes or no opset")
    return model


def _check_header(source: str, model: Any) -> None:
    opset = _opset(model)
    if opset < _OLDEST_OPSET:
        raise ValueError(
            f"{source}: is of opset {opset}, at least {_OLDEST_OPSET} is needed: convert it with "
            "onnx.version_converter, or export again with a later opset_version"
        )
    if model.functions:
        raise ValueError(
            f"{source}: has {len(model.functions)} functions of its own: inline them with "
            "onnx.inliner.inline_local_functions, or export with optimize=True"
        )
    if len(model.graph.node) > _MAX_NODES:
        raise ValueError(
            f"{source}: has {len(model.graph.node)} nodes, at most {_MAX_NODES} are read"
        )


def _opset(model: Any) -> int:
    versions = [o.version for o in model.opset_import if o.domain in ("", "ai.onnx")]
    return int(max(versions, default=0))


class _Reader:
    def __init__(self, path: Path, model: Any) -> None:
        self._path, self._model, self._proto = path, model, model.graph
        self._source = path.name
        self._reader = ConstantReader(path.parent)
        self._problems = Problems("{}: {}", _place, lines=True)

    def read(self) -> FileModel:
        _check_text(self._source, self._proto)
        initializers = {tensor.name for tensor in self._proto.initializer}
        inputs = [value for value in self._proto.input if value.name not in initializers]
        outputs = [value.name for value in self._proto.output]
        if len(inputs) != 1 or len(outputs) != 1:
            problem = Unsupported(
                f"has the inputs {_names(v.name for v in inputs)} and the outputs "
                f"{_names(outputs)}, one of each is supported",
                "export only the classifier",
            )
            self._problems.add(problem)
            if not inputs or not outputs:
                raise self._problems.error(self._source)
        given = initializers | {value.name for value in inputs}
        producers = self._producers(given)
        needed = set().union(*(self._needed(name, producers, given) for name in outputs))
        nodes = [self._node(index) for index in self._ordered(needed, producers)]
        read = [name for node in nodes for name in node.inputs if name] + outputs
        dtype, shape = self._input(inputs[0])
        return FileModel(
            nodes=nodes,
            constants=self._constants(set(read)),
            input=inputs[0].name,
            input_dtype=dtype,
            shape=shape,
            output=outputs[0],
            opset=_opset(self._model),
            reads=Counter(
                [n for node in nodes if node.kind != "Shape" for n in node.inputs] + outputs
            ),
            problems=self._problems,
            size=self._path.stat().st_size,
            note=next((p.value for p in self._model.metadata_props if p.key == "pmt"), ""),
        )

    def _producers(self, given: set[str]) -> dict[str, int]:
        """Return which node writes each value, names being unique."""
        if len(self._proto.initializer) != len({t.name for t in self._proto.initializer}):
            raise ValueError(f"{self._source}: two initializers have the same name; export again")
        if self._proto.sparse_initializer:
            raise ValueError(f"{self._source}: has sparse initializers; export dense weights")
        producers: dict[str, int] = {}
        for index, node in enumerate(self._proto.node):
            for name in node.output:
                if name and (name in producers or name in given):
                    raise ValueError(
                        f"{self._source}: {name[:80]!r} is written twice, the second time by node "
                        f"{_node_name(node, index)!r} ({node.op_type}); export again"
                    )
                producers[name] = index
        producers.pop("", None)
        return producers

    def _needed(self, output: str, producers: dict[str, int], given: set[str]) -> set[int]:
        """Return the nodes that the output depends on."""
        needed: set[int] = set()
        waiting = [(output, "the graph's output")]
        while waiting:
            name, reader = waiting.pop()
            if name in given or not name:
                continue
            if name not in producers:
                raise ValueError(
                    f"{self._source}: {reader} reads {name[:80]!r}, which no node, input or "
                    "initializer gives; export again"
                )
            index = producers[name]
            if index not in needed:
                needed.add(index)
                node = self._proto.node[index]
                reader = f"node {_node_name(node, index)!r} ({node.op_type})"
                waiting += [(read, reader) for read in node.input]
        return needed

    def _ordered(self, needed: set[int], producers: dict[str, int]) -> list[int]:
        """Sort the nodes so that each follows those it reads from, else as in the file."""
        sorter: TopologicalSorter[int] = TopologicalSorter()
        for index in sorted(needed):
            read = {producers[n] for n in self._proto.node[index].input if n in producers}
            sorter.add(index, *sorted(read))
        with suppress(CycleError):  # what is not in a cycle is still sorted
            sorter.prepare()
        ready = sorted(sorter.get_ready())
        order: list[int] = []
        while ready:
            order.append(heappop(ready))
            sorter.done(order[-1])
            for index in sorter.get_ready():
                heappush(ready, index)
        if len(order) < len(needed):
            stuck = [_node_name(self._proto.node[i], i) for i in sorted(needed - set(order))]
            raise ValueError(
                f"{self._source}: its graph has a cycle through or before the nodes "
                f"{_names(stuck)}; a network is free of cycles, export again"
            )
        return order

    def _node(self, index: int) -> Node:
        proto = self._proto.node[index]
        name = _node_name(proto, index)
        kind = proto.op_type if proto.domain in _DOMAINS else f"{proto.domain}::{proto.op_type}"
        node = Node(kind, name, list(proto.input), list(proto.output))
        for attribute in proto.attribute:
            try:
                node.attributes[attribute.name] = self._attribute(attribute)
            except Unsupported as problem:
                self._problems.add(problem, kind, name)
        return node

    def _attribute(self, attribute: Any) -> Any:
        match attribute.type:
            case attribute.FLOAT:
                return float(attribute.f)
            case attribute.INT:
                return int(attribute.i)
            case attribute.STRING:
                return attribute.s.decode("utf-8", "replace")
            case attribute.TENSOR:
                return self._reader.array(attribute.t)
            case attribute.FLOATS:
                return [float(value) for value in attribute.floats]
            case attribute.INTS:
                return [int(value) for value in attribute.ints]
        return None

    def _constants(self, read: set[str]) -> dict[str, npt.NDArray[Any]]:
        constants = {}
        for tensor in self._proto.initializer:
            if tensor.name not in read:
                continue
            try:
                constants[tensor.name] = self._reader.array(tensor)
                self._check_finite(tensor.name, constants[tensor.name])
            except Unsupported as problem:
                self._problems.add(problem)
                # Later nodes are still looked at, to name all problems at once.
                constants[tensor.name] = np.zeros((0,), np.float32)
        return constants

    def _check_finite(self, name: str, values: npt.NDArray[Any]) -> None:
        if values.dtype.kind != "f" or (values.size == 1 and not np.isnan(values).any()):
            return  # an open bound of Clip may be infinite
        count = int(values.size - np.count_nonzero(np.isfinite(values)))
        if count:
            raise Unsupported(
                f"constant {name[:80]!r} has {count} of {values.size} values that are not finite",
                "train again or repair the weights",
            )

    def _input(self, value: Any) -> tuple[str, tuple[int, ...]]:
        tensor = value.type.tensor_type
        if not tensor.HasField("shape") or not 1 <= len(tensor.shape.dim) <= MAX_RANK:
            raise ValueError(
                f"{self._source}: the input {value.name[:80]!r} has no shape; export with a fixed "
                "height, width and number of channels"
            )
        dtype = _DTYPES.get(tensor.elem_type, f"of data type {tensor.elem_type}")
        sizes = tuple(max(0, int(dimension.dim_value)) for dimension in tensor.shape.dim)
        return dtype, sizes


def _check_text(source: str, graph: Any) -> None:
    """Refuse names that are not UTF-8: protobuf hands them out as bytes."""
    texts = [value.name for value in (*graph.input, *graph.output)]
    for node in graph.node:
        texts += [node.op_type, node.name, node.domain, *node.input, *node.output]
        texts += [attribute.name for attribute in node.attribute]
    for tensor in graph.initializer:
        texts += [text for entry in tensor.external_data for text in (entry.key, entry.value)]
        texts.append(tensor.name)
    if not all(isinstance(text, str) for text in texts):
        raise ValueError(f"{source}: has names that are not UTF-8; export again")


def _node_name(node: Any, index: int) -> str:
    return str(node.name or f"{node.op_type}_{index}")[:200]


def _names(names: Iterable[str]) -> str:
    listed = [repr(name[:80]) for name in names]
    more = f" and {len(listed) - 5} more" if len(listed) > 5 else ""
    return (", ".join(listed[:5]) or "none") + more


class ConstantReader:
    """Turns TensorProto messages into arrays; floats of any width become float32.

    External data must lie inside the model's folder; sizes are checked before anything is
    allocated.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder.resolve()
        self._taken: dict[Path, int] = {}

    def array(self, tensor: Any) -> npt.NDArray[Any]:
        """Return the values of a TensorProto, or raise Unsupported for its type or its size."""
        what = f"constant {tensor.name[:80]!r}"
        if tensor.data_type not in _TYPES:
            found = _OTHER_TYPES.get(tensor.data_type, f"of data type {tensor.data_type}")
            raise Unsupported(
                f"{what} is {found}", "weights must be float32 or int8, shapes int64; convert them"
            )
        name, width, field = _TYPES[tensor.data_type]
        shape = tuple(tensor.dims)
        if len(shape) > MAX_RANK or min(shape, default=0) < 0:
            raise Unsupported(f"{what} has shape {shape[:9]}", "the file is damaged, export again")
        count = math.prod(shape)
        if tensor.data_location == tensor.EXTERNAL:
            values = np.frombuffer(self._external(tensor, what, count * width), _storage(name))
        elif tensor.HasField("raw_data"):
            values = _from_raw(tensor.raw_data, name, count * width, what, shape)
        else:
            values = _from_field(getattr(tensor, field), name, count, what, shape)
        return _plain(values, name, what).reshape(shape)

    def _external(self, tensor: Any, what: str, size: int) -> bytes:
        entries = {entry.key: entry.value for entry in tensor.external_data}
        try:
            path = (self._folder / entries["location"]).resolve()
            offset = int(entries.get("offset", 0))
            length = int(entries.get("length", size))
        except (KeyError, ValueError, OSError):
            raise Unsupported(
                f"{what} has external data without a sound location, offset and length",
                "the file is damaged, export again",
            ) from None
        place = repr(entries["location"][:80])
        if not path.is_relative_to(self._folder) or not path.is_file():
            raise Unsupported(
                f"{what} has its data in {place}, which is not a file inside the model's folder",
                "put the data file beside the model, or export with the weights inside",
            )
        if is_lfs_pointer(path):
            raise Unsupported(f"its data file {place} {LFS_PROBLEM}", LFS_REMEDY)
        available = path.stat().st_size
        taken = self._taken[path] = self._taken.get(path, 0) + size
        if length != size or not 0 <= offset <= available - size or taken > available:
            raise Unsupported(
                f"{what} needs {size} bytes, but names {length} at offset {offset} of {place}, "
                f"which has {available} for all constants",
                "the files do not belong together, export again",
            )
        with path.open("rb") as file:
            file.seek(offset)
            content: bytes = file.read(size)
        return content


def _storage(name: str) -> str:
    # bfloat16 is the upper half of a float32; NumPy has no such type.
    return "<u2" if name == "bfloat16" else np.dtype(name).newbyteorder("<").str


def _from_raw(
    data: bytes, name: str, size: int, what: str, shape: tuple[int, ...]
) -> npt.NDArray[Any]:
    if len(data) != size:
        raise Unsupported(
            f"{what} of shape {shape} and type {name} needs {size} bytes, but has {len(data)}",
            "the file is damaged, export again",
        )
    return np.frombuffer(data, _storage(name))


def _from_field(
    values: Any, name: str, count: int, what: str, shape: tuple[int, ...]
) -> npt.NDArray[Any]:
    if len(values) != count:
        raise Unsupported(
            f"{what} of shape {shape} needs {count} values, but has {len(values)}",
            "the file is damaged, export again",
        )
    if name in ("float16", "bfloat16"):  # stored as bits
        bits = np.array(values, np.int64).astype("<u2")
        return bits.view("<f2") if name == "float16" else bits
    wide = np.array(values, np.int64 if np.dtype(name).kind in "iub" else np.float64)
    if np.dtype(name).kind in "iu":
        limits = np.iinfo(name)
        if wide.size and not limits.min <= wide.min() <= wide.max() <= limits.max:
            raise Unsupported(f"{what} has values outside of {name}", "the file is damaged")
        return wide.astype(name)
    return wide if name == "float64" else np.array(values, name)


def _plain(values: npt.NDArray[Any], name: str, what: str) -> npt.NDArray[Any]:
    """Return native arrays: float32 for every float."""
    if name == "bfloat16":
        return (values.astype("<u4") << 16).view("<f4").astype(np.float32)
    if name == "float64":
        finite = values[np.isfinite(values)]
        if finite.size and np.abs(finite).max() > _LARGEST:
            raise Unsupported(f"{what} has float64 values beyond float32", "rescale the network")
        return values.astype(np.float32)
    if name == "float16":
        return values.astype(np.float32)
    return values.astype(np.dtype(name))
