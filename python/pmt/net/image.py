"""The ``.pmt`` image: a graph as the one flat block of bytes that the core reads in place.

The layout is defined by ``cpp/core/image/image_format.hpp``; this is its writer and a reader for
tools.
"""

import json
import math
import reprlib
import struct
import zlib
from itertools import pairwise
from typing import Any, get_args

import numpy as np

from pmt._util.arrays import Array
from pmt._util.parsing import parse_json
from pmt.net.graph import Graph, Op, Tensor, check_graph, is_layer, weight_shape
from pmt.net.input_stage import FILTERS, NOISE_MODELS, Filter, InputStage
from pmt.net.ops import OpKind
from pmt.net.pixels import PixelFormula, pixel_table

MAGIC = b"PMTI"
VERSION = 1
_VERSION_WITH_STAGE = 2
ALIGNMENT = 16
_NONE = 0xFFFFFFFF  # no tensor, no offset
_MAX_BYTES = 2**31 - 1
_IMPORT_AGAIN = "import the model again"

_HEADER = struct.Struct("<4s3I14I2I4f4f2I2I")
_STAGE_FIELDS = slice(28, 30)  # of the header
_STAGE = struct.Struct("<2i2I")
_FILTER = struct.Struct("<I2iI")
_TENSOR = struct.Struct("<3ifiI")
_OP = struct.Struct("<2I2II10i3I")
_BLOCK = struct.Struct("<3I")
_CRC_FROM = 16
_SECTIONS = ("tensors", "ops", "blocks", "block_layers", "names", "metadata", "data")
_RECORD_BYTES = (_TENSOR.size, _OP.size, _BLOCK.size, 4, 1, 1, 1)

_KINDS: tuple[OpKind, ...] = get_args(OpKind)


def build_image(graph: Graph) -> bytes:
    """Write a graph as a ``.pmt`` image; a layer without bias gets one of zeros.

    Equal graphs give equal bytes: metadata keys are sorted, padding is zero. A ValueError says that
    the graph contradicts itself, and where, its metadata is not JSON, or the image above 2 GiB.
    """
    check_graph(graph)
    names = _Names()
    tensors = b"".join(
        _TENSOR.pack(*t.shape, t.scale, t.zero_point, names.offset(t.name)) for t in graph.tensors
    )
    data = bytearray()
    ops = b"".join(_pack_op(graph, op, names, data) for op in graph.ops)
    blocks, members = bytearray(), bytearray()
    for name, layers in graph.blocks.items():
        blocks += _BLOCK.pack(names.offset(name), len(members) // 4, len(layers))
        members += struct.pack(f"<{len(layers)}I", *layers)
    payloads = (
        tensors,
        ops,
        bytes(blocks),
        bytes(members),
        bytes(names.blob),
        _metadata_json(graph.metadata),
        bytes(data),
    )
    return _assemble(graph, payloads)


def read_graph(image: bytes) -> Graph:
    """Read a whole ``.pmt`` image back into a graph: the inverse of :func:`build_image`.

    The weights are copies, the scales the stored float32 values. A ValueError says that the image
    is truncated, of another magic or version, its CRC-32 wrong, or that records contradict each
    other.
    """
    sections, header = _open(image)
    metadata = read_metadata(sections["metadata"])
    names = sections["names"]
    try:
        tensors = [
            Tensor(_name(names, name), *fields)
            for *fields, name in _TENSOR.iter_unpack(sections["tensors"])
        ]
        ops = [
            _unpack_op(record, names, tensors, sections["data"])
            for record in _OP.iter_unpack(sections["ops"])
        ]
        members = [index for (index,) in struct.iter_unpack("<I", sections["block_layers"])]
        blocks = {
            _name(names, name): members[first : first + count]
            for name, first, count in _BLOCK.iter_unpack(sections["blocks"])
        }
        channels = min(tensors[header[18]].channels, 4)
        graph = Graph(
            tensors=tensors,
            ops=ops,
            input=header[18],
            output=header[19],
            input_mean=tuple(header[20 : 20 + channels]),
            input_std=tuple(header[24 : 24 + channels]),
            blocks=blocks,
            metadata=metadata,
            stage=read_stage(sections["stage"]) if sections["stage"] else None,
        )
        check_graph(graph)
    except (struct.error, IndexError, ValueError) as error:
        raise ValueError(f"image: a record is wrong although the CRC-32 matches: {error}") from None
    return graph


def read_metadata(section: bytes) -> dict[str, Any]:
    """Read an image's metadata; a section without bytes holds none."""
    metadata = parse_json(section or b"{}", "image: metadata", _IMPORT_AGAIN)
    if not isinstance(metadata, dict):
        raise ValueError(
            f"image: metadata: must be an object of names and values, is {_shown(metadata)}; "
            f"{_IMPORT_AGAIN}"
        )
    return metadata


def _shown(value: Any) -> str:
    return f"{type(value).__name__} {reprlib.repr(value)}"


class _Names:
    """The section of NUL-terminated names; equal names are stored once."""

    def __init__(self) -> None:
        self.blob = bytearray()
        self._offsets: dict[str, int] = {}

    def offset(self, name: str) -> int:
        if "\0" in name:
            raise ValueError(f"name {name!r}: a NUL character cannot be stored, rename it")
        if name not in self._offsets:
            try:
                encoded = name.encode()
            except UnicodeEncodeError:
                raise ValueError(f"name {name!r}: is not UTF-8 text, rename it") from None
            self._offsets[name] = len(self.blob)
            self.blob += encoded + b"\0"
        return self._offsets[name]


def _metadata_json(metadata: dict[str, Any]) -> bytes:
    if not isinstance(metadata, dict):
        raise ValueError(f"metadata: must be a dict, is {_shown(metadata)}")
    try:
        text = json.dumps(
            metadata, sort_keys=True, ensure_ascii=False, separators=(",", ":"), allow_nan=False
        )
        # The reader's own bounds, so that every saved image can be loaded.
        parse_json(text, "metadata", "shorten or simplify the value")
        return text.encode()
    except (TypeError, ValueError, RecursionError) as error:
        raise ValueError(
            "metadata: must hold only what JSON can (str, int, finite float, bool, list, dict): "
            f"{error}"
        ) from None


def _append(data: bytearray, array: Array, dtype: str) -> int:
    """Append an array to the data section at the next aligned offset; return that offset."""
    offset = len(data)
    data += np.ascontiguousarray(array, dtype=dtype).tobytes()
    data += bytes(-len(data) % ALIGNMENT)
    return offset


def _pack_op(graph: Graph, op: Op, names: _Names, data: bytearray) -> bytes:
    offsets = (_NONE, _NONE, _NONE)
    if is_layer(op):
        assert op.weights is not None
        assert op.weight_scales is not None
        channels = graph.tensors[op.output].channels
        bias = np.zeros(channels, np.int32) if op.bias is None else op.bias
        offsets = (
            _append(data, op.weights, "i1"),
            _append(data, bias, "<i4"),
            _append(data, op.weight_scales, "<f4"),
        )
    inputs = (*op.inputs, _NONE)[:2]
    return _OP.pack(
        _KINDS.index(op.kind) + 1,
        names.offset(op.name),
        *inputs,
        op.output,
        *op.kernel,
        *op.stride,
        *op.padding,
        *op.clamp,
        *offsets,
    )


def _assemble(graph: Graph, payloads: tuple[bytes, ...]) -> bytes:
    body = bytearray()
    table: list[int] = []
    for payload, record_bytes in zip(payloads, _RECORD_BYTES, strict=True):
        table += [_HEADER.size + len(body), len(payload) // record_bytes]
        body += payload + bytes(-len(payload) % ALIGNMENT)
    stage = _pack_stage(graph)
    placed = (_HEADER.size + len(body), len(stage)) if stage else (0, 0)
    body += stage + bytes(-len(stage) % ALIGNMENT)
    total = _HEADER.size + len(body)
    version = _VERSION_WITH_STAGE if stage else VERSION
    if total > _MAX_BYTES:
        raise ValueError(f"graph: its image of {total} bytes passes the limit of {_MAX_BYTES}")

    def header(crc: int) -> bytes:
        mean = (*graph.input_mean, 0.0, 0.0, 0.0, 0.0)[:4]
        std = (*graph.input_std, 1.0, 1.0, 1.0, 1.0)[:4]
        fields = (*table, graph.input, graph.output, *mean, *std, *placed, 0, 0)
        return _HEADER.pack(MAGIC, version, total, crc, *fields)

    return header(zlib.crc32(header(0)[_CRC_FROM:] + body)) + bytes(body)


def _pack_stage(graph: Graph) -> bytes:
    """Write the input stage: its images' size, its filters, and the int8 value of each pixel."""
    if graph.stage is None:
        return b""
    source = graph.tensors[graph.input]
    filters = [
        _FILTER.pack(FILTERS.index(one.name) + 1, one.strength, NOISE_MODELS.index(one.noise), 0)
        for one in graph.stage.filters
    ]
    formula = PixelFormula(
        tuple(float(np.float32(value)) for value in graph.input_mean),
        tuple(float(np.float32(value)) for value in graph.input_std),
    )
    table = pixel_table(formula, float(np.float32(source.scale)), source.zero_point)
    return b"".join((_STAGE.pack(*graph.stage.size, len(filters), 0), *filters, table.tobytes()))


def read_stage(section: bytes) -> InputStage:
    """Read the section of an input stage."""
    height, width, count, _ = _STAGE.unpack_from(section)
    filters = []
    for index in range(count):
        kind, strength, noise, _ = _FILTER.unpack_from(section, _STAGE.size + index * _FILTER.size)
        if not 1 <= kind <= len(FILTERS) or not 0 <= noise < len(NOISE_MODELS):
            raise ValueError(f"filter {index} of the input stage has kind {kind}, noise {noise}")
        filters.append(Filter(FILTERS[kind - 1], strength, NOISE_MODELS[noise]))
    return InputStage((height, width), tuple(filters))


def _open(image: bytes) -> tuple[dict[str, bytes], tuple[Any, ...]]:
    """Check the envelope of an image and cut it into its sections."""
    if len(image) < _HEADER.size:
        raise ValueError(
            f"image: {len(image)} bytes are less than the header's {_HEADER.size}; "
            "the file is truncated or not a .pmt image"
        )
    header = _HEADER.unpack_from(image)
    magic, version, total, crc = header[:4]
    if magic != MAGIC:
        raise ValueError(f"image: starts with {magic!r}, not {MAGIC!r}; not a .pmt image")
    if version not in (VERSION, _VERSION_WITH_STAGE):
        raise ValueError(
            f"image: version {version}, this pmt reads {VERSION} and {_VERSION_WITH_STAGE}; "
            "export the model again with this pmt, or install the matching one"
        )
    if total != len(image):
        raise ValueError(
            f"image: the header says {total} bytes, there are {len(image)}; "
            "the file is truncated or has something appended"
        )
    found = zlib.crc32(memoryview(image)[_CRC_FROM:])
    if found != crc:
        raise ValueError(
            f"image: CRC-32 is {found:08x}, the header says {crc:08x}; the file is damaged"
        )
    sections = {}
    for i, (name, record_bytes) in enumerate(zip(_SECTIONS, _RECORD_BYTES, strict=True)):
        offset, count = header[4 + 2 * i : 6 + 2 * i]
        end = offset + count * record_bytes
        if offset < _HEADER.size or offset % ALIGNMENT or end > total:
            raise ValueError(f"image: section {name!r} at {offset}, {count} records, is misplaced")
        sections[name] = bytes(image[offset:end])
    offset, count = header[_STAGE_FIELDS]
    if (count > 0) != (version == _VERSION_WITH_STAGE):
        raise ValueError(
            f"image: an image of version {version} has {'an' if count else 'no'} input stage; "
            f"{_IMPORT_AGAIN}"
        )
    if count and (offset < _HEADER.size or offset % ALIGNMENT or offset + count > total):
        raise ValueError(f"image: section 'stage' at {offset}, {count} bytes, is misplaced")
    sections["stage"] = bytes(image[offset : offset + count])
    return sections, header


def _name(names: bytes, offset: int) -> str:
    name = names[offset : names.index(b"\0", offset)]
    try:
        return name.decode()
    except UnicodeDecodeError:
        raise ValueError(f"name {name!r} is not UTF-8 text; {_IMPORT_AGAIN}") from None


def _unpack_op(record: tuple[Any, ...], names: bytes, tensors: list[Tensor], data: bytes) -> Op:
    kind, name, first, second, output, *numbers = record
    if not 1 <= kind <= len(_KINDS):
        raise ValueError(f"op {_name(names, name)!r} has unknown kind {kind}")
    inputs = tuple(index for index in (first, second) if index != _NONE)
    kernel, stride, padding, clamp = (tuple(numbers[i:j]) for i, j in pairwise((0, 2, 4, 8, 10)))
    window: Any = {"kernel": kernel, "stride": stride, "padding": padding, "clamp": clamp}
    op = Op(_KINDS[kind - 1], _name(names, name), inputs, output, **window)
    if is_layer(op):
        channels = tensors[output].channels
        shape = weight_shape(op, tensors[first], channels)
        weights, bias, scales = numbers[10:]
        op.weights = _array(data, weights, "i1", shape).astype(np.int8)
        op.bias = _array(data, bias, "<i4", (channels,)).astype(np.int32)
        op.weight_scales = _array(data, scales, "<f4", (channels,)).astype(np.float32)
    return op


def _array(data: bytes, offset: int, dtype: str, shape: tuple[int, ...]) -> Array:
    count = math.prod(shape)
    if count < 1 or offset % ALIGNMENT or offset + count * np.dtype(dtype).itemsize > len(data):
        raise ValueError(f"an array of shape {shape} at {offset} does not fit the data section")
    return np.frombuffer(data, dtype, count, offset).reshape(shape)
