"""An ONNX file as plain Python data: parsed, bounded and in an order of execution."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from pmt._util.extras import import_extra
from pmt._util.lfs import LFS_PROBLEM, LFS_REMEDY, is_lfs_pointer
from pmt._util.text import printable
from pmt.formats.layers import Problems, Unsupported
from pmt.formats.reading import require_file

MAX_RANK = 8
_MAX_BYTES = 2**31 - 1
_MAX_NODES = 50_000
_OLDEST_OPSET = 9
_DOMAINS = ("", "ai.onnx", "com.microsoft")
# Data types that a network's input may have, by their numbers in ONNX.
_DTYPES = {1: "float32", 2: "uint8", 3: "int8", 10: "float16", 11: "float64", 16: "bfloat16"}
_FLOATS = ("float16", "bfloat16", "float32", "float64")
_INTEGERS = ("int8", "uint8", "int32", "int64", "bool")
_EXTERNAL = ("location", "offset", "length")  # where a tensor's data lie in another file
_EXPORT_AGAIN = "the file is damaged, export again"
_NAMED = 3  # nodes in one line of a message


def _place(kind: str, nodes: list[str]) -> str:
    if not kind:
        return ""
    named = ", ".join(repr(name[:80]) for name in nodes[:_NAMED])
    more = f" and {len(nodes) - _NAMED} more" if len(nodes) > _NAMED else ""
    return f"node {named}{more} ({kind}): "


@dataclass
class Node:
    """One node. An optional input that is left out is an empty string.

    ``problem`` is what is wrong with its attributes.
    """

    kind: str
    name: str
    inputs: list[str]
    outputs: list[str]
    attributes: dict[str, Any] = field(default_factory=dict)
    problem: Unsupported | None = None


@dataclass
class FileModel:
    """A file as the importer needs it.

    ``nodes`` are those the output depends on, each after the nodes it reads from. A constant that
    is refused is None. ``shape`` is the input's, with 0 for a size that is left open. ``reads``
    counts how often the numbers of each value are read, by nodes or as the output; the node Shape
    does not read them. ``note`` is the metadata entry ``pmt`` of files that pmt has written.
    """

    nodes: list[Node]
    constants: dict[str, npt.NDArray[Any] | None]
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
    damaged file is a ValueError: no ONNX model, names given twice, never or too late, no single
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
    except Exception:  # protobuf's implementations raise kinds and texts of their own
        raise ValueError(
            f"{path.name}: is not an ONNX model, or is damaged: its {size} bytes are no message of "
            "protobuf; copy the file again, or export again"
        ) from None
    if not model.graph.node or not model.opset_import:
        raise ValueError(
            f"{path.name}: is not an ONNX model: it has no nodes or no opset; export again"
        )
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
            f"{source}: has {len(model.graph.node)} nodes, at most {_MAX_NODES} are read: export a "
            "smaller network"
        )


def _opset(model: Any) -> int:
    versions = [o.version for o in model.opset_import if o.domain in ("", "ai.onnx")]
    return int(max(versions, default=0))


class _Reader:
    def __init__(self, path: Path, model: Any) -> None:
        self._onnx: Any = import_extra("onnx", "reading .onnx needs the package onnx", "onnx")
        self._path, self._model, self._proto = path, model, model.graph
        self._source = path.name
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
        self._check_order(initializers | {value.name for value in inputs}, outputs)
        nodes = self._needed_nodes(outputs)
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

    def _check_order(self, given: set[str], outputs: list[str]) -> None:
        """Refuse a value that is written twice, or read before it is written or never is."""
        if len(self._proto.initializer) != len({t.name for t in self._proto.initializer}):
            raise ValueError(f"{self._source}: two initializers have the same name; export again")
        if self._proto.sparse_initializer:
            raise ValueError(f"{self._source}: has sparse initializers; export dense weights")
        known = {"", *given}
        for index, node in enumerate(self._proto.node):
            reader = f"node {_node_name(node, index)!r} ({_kind(node)})"
            self._require_known(reader, node.input, known)
            for name in filter(None, node.output):
                if name in known:
                    raise ValueError(
                        f"{self._source}: {name[:80]!r} is written twice, the second time by "
                        f"{reader}; export again"
                    )
                known.add(name)
        self._require_known("the graph's output", outputs, known)

    def _require_known(self, reader: str, names: Iterable[str], known: set[str]) -> None:
        for name in names:
            if name not in known:
                raise ValueError(
                    f"{self._source}: {reader} reads {name[:80]!r}, which no node before it, input "
                    "or initializer gives; export again"
                )

    def _needed_nodes(self, outputs: list[str]) -> list[Node]:
        """Return the nodes that the output depends on, in the order of the file."""
        needed, read = [], set(outputs)
        for index, node in reversed(list(enumerate(self._proto.node))):
            if read.intersection(filter(None, node.output)):
                needed.append(self._node(node, index))
                read.update(node.input)
        return needed[::-1]

    def _node(self, proto: Any, index: int) -> Node:
        name = _node_name(proto, index)
        node = Node(_kind(proto), name, list(proto.input), list(proto.output))
        try:
            for attribute in proto.attribute:
                if attribute.name in node.attributes:
                    raise Unsupported(
                        f"it has two attributes {attribute.name[:80]!r}", _EXPORT_AGAIN
                    )
                node.attributes[attribute.name] = self._attribute(attribute)
        except Unsupported as problem:
            node.problem = problem
        return node

    def _attribute(self, attribute: Any) -> Any:
        if attribute.ref_attr_name:
            raise Unsupported(
                f"attribute {printable(attribute.name[:80])} is one of a function, outside of any",
                _EXPORT_AGAIN,
            )
        match attribute.type:
            case attribute.STRING:
                return attribute.s.decode("utf-8", "replace")
            case attribute.TENSOR:
                return self._array(attribute.t)
            case attribute.FLOAT | attribute.INT | attribute.FLOATS | attribute.INTS:
                return self._onnx.helper.get_attribute_value(attribute)
        return None

    def _constants(self, read: set[str]) -> dict[str, npt.NDArray[Any] | None]:
        constants: dict[str, npt.NDArray[Any] | None] = {}
        for tensor in self._proto.initializer:
            if tensor.name not in read:
                continue
            try:
                values = self._array(tensor)
                _check_finite(tensor.name, values)
                constants[tensor.name] = values
            except Unsupported as problem:  # later nodes are still looked at, to name all at once
                self._problems.add(problem)
                constants[tensor.name] = None
        return constants

    def _array(self, tensor: Any) -> npt.NDArray[Any]:
        """Return the values of a TensorProto, floats of any width as float32."""
        what = f"constant {tensor.name[:80]!r}"
        shape = tuple(tensor.dims)
        if len(shape) > MAX_RANK or min(shape, default=0) < 0:
            raise Unsupported(f"{what} has shape {shape[:9]}", _EXPORT_AGAIN)
        try:
            # This refuses external data outside of the model's folder.
            values = self._onnx.numpy_helper.to_array(tensor, str(self._path.parent))
        except Exception:  # damage raises nearly anything
            files = [e.value for e in tensor.external_data if e.key == "location"]
            if any(is_lfs_pointer(self._path.parent / str(file)) for file in files):
                raise Unsupported(f"its data file {files[0]!r} {LFS_PROBLEM}", LFS_REMEDY) from None
            raise Unsupported(
                f"{what} of shape {shape} cannot be read ({self._damage(tensor)})",
                "the file is damaged, or its data file is missing: export again",
            ) from None
        if values.dtype.name not in (*_FLOATS, *_INTEGERS):
            raise Unsupported(
                f"{what} is {values.dtype.name.replace('object', 'text')}",
                "weights must be float32 or int8, shapes int64; convert them",
            )
        with np.errstate(over="ignore"):  # what is not finite is refused later
            kind = np.float32 if values.dtype.name in _FLOATS else values.dtype
            return np.asarray(values, kind)

    def _damage(self, tensor: Any) -> str:
        """Return which rule the data of an unreadable tensor break."""
        kinds = self._onnx.TensorProto.DataType
        kind = dict(zip(kinds.values(), kinds.keys(), strict=True)).get(
            tensor.data_type, f"data type {tensor.data_type}"
        )
        if tensor.data_location != tensor.EXTERNAL:
            return f"its data are not as many values of type {kind}"
        entries = {entry.key: str(entry.value)[:80] for entry in tensor.external_data}
        place = ", ".join(f"{key} {entries.get(key, '')!r}" for key in _EXTERNAL)
        return f"its data at {place} are not as many values of type {kind} in the model's folder"

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


def _check_finite(name: str, values: npt.NDArray[Any]) -> None:
    if values.dtype.kind != "f" or (values.size == 1 and not np.isnan(values).any()):
        return  # an open bound of Clip may be infinite
    count = int(values.size - np.count_nonzero(np.isfinite(values)))
    if count:
        raise Unsupported(
            f"constant {name[:80]!r} has {count} of {values.size} values that are not finite",
            "train again or repair the weights",
        )


def _check_text(source: str, graph: Any) -> None:
    """Refuse names that are not UTF-8: protobuf hands them out as bytes."""
    texts = [value.name for value in (*graph.input, *graph.output, *graph.initializer)]
    for node in graph.node:
        texts += [node.op_type, node.name, node.domain, *node.input, *node.output]
        texts += [attribute.name for attribute in node.attribute]
    if not all(isinstance(text, str) for text in texts):
        raise ValueError(f"{source}: has names that are not UTF-8; export again")


def _kind(node: Any) -> str:
    """Return an operator's name, with the domain of one that is not ONNX's own."""
    kind = node.op_type if node.domain in _DOMAINS else f"{node.domain}::{node.op_type}"
    return printable(kind[:200]) or "no operator"


def _node_name(node: Any, index: int) -> str:
    return str(node.name or f"{node.op_type}_{index}")[:200]


def _names(names: Iterable[str]) -> str:
    listed = [repr(name[:80]) for name in names]
    more = f" and {len(listed) - 5} more" if len(listed) > 5 else ""
    return (", ".join(listed[:5]) or "none") + more
