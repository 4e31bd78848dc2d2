"""The MATLAB files (level 5) in which some data sets keep their annotations.

Damaged files can crash the usual reader, scipy.io.loadmat, with a segmentation fault, so the little
that annotations need is read here, every length checked first. Source of the format: "MAT-File
Format", The MathWorks, 2019.
"""

from __future__ import annotations

import math
import zlib
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from pmt.datasets.files import REMEDY, damaged, missing

# The largest of the annotation files has 185,758 bytes, and unpacks to some five million.
LARGEST = 1 << 20
LARGEST_UNPACKED = 1 << 26
HEADER = 128
DEEPEST = 8
INT8, UINT32, INT32, MATRIX, COMPRESSED = 1, 6, 5, 14, 15
NUMBERS = {
    1: "i1",
    2: "u1",
    3: "i2",
    4: "u2",
    5: "i4",
    6: "u4",
    7: "f4",
    9: "f8",
    12: "i8",
    13: "u8",
}
TEXTS = {1: "latin-1", 2: "latin-1", 4: "utf-16", 16: "utf-8", 17: "utf-16"}
CELL, STRUCT, CHAR, FIRST_NUMERIC, LAST_NUMERIC = 1, 2, 4, 6, 15
COMPLEX_FLAG = 0x0800
Struct = dict[str, list[Any]]


def read_mat(path: Path, *names: str) -> list[Any]:
    """Read variables of a .mat file, each as a flat sequence.

    A number array becomes float64 of shape (N,), a cell array a list, text a str, a struct array a
    dict that gives the list of values of each field. Files too large for annotations are refused.
    """
    if not path.is_file():
        raise missing(path, "no such file", "download the annotation files, too")
    if path.stat().st_size > LARGEST:
        problem = f"has {path.stat().st_size:,} bytes, too many for an annotation file"
        raise damaged(path, problem, REMEDY)
    try:
        content = _variables(path.read_bytes(), names)
    except (_DamageError, zlib.error, UnicodeDecodeError) as error:
        raise damaged(path, f"not a readable .mat file ({error})", REMEDY) from None
    for name in names:
        if name not in content:
            raise damaged(path, f"holds no variable {name!r}", REMEDY)
    return [content[name] for name in names]


def field(path: Path, struct: Any, name: str) -> list[Any]:
    """Return the values of one field of a struct array, or raise a ValueError."""
    if not isinstance(struct, dict) or name not in struct:
        raise damaged(path, f"its annotations have no field {name!r}", REMEDY)
    values: list[Any] = struct[name]
    return values


def whole_numbers(path: Path, what: str, values: Any) -> npt.NDArray[np.int64]:
    """Return numbers as int64, shape (N,), or raise a ValueError that names the variable."""
    if isinstance(values, list) and all(_is_number(value) for value in values):
        values = np.array([value[0] for value in values], np.float64)
    if not isinstance(values, np.ndarray):
        raise damaged(path, f"{what} holds something else than numbers", REMEDY)
    if not np.all(np.isfinite(values) & (values == np.rint(values)) & (abs(values) < 2**31)):
        raise damaged(path, f"{what} holds something else than whole numbers", REMEDY)
    return values.astype(np.int64)


def texts(path: Path, what: str, values: Any) -> list[str]:
    """Return the texts of a cell array or of a field, or raise a ValueError."""
    if isinstance(values, list) and all(isinstance(value, str) for value in values):
        return [value.strip() for value in values]
    raise damaged(path, f"{what} holds something else than texts", REMEDY)


class _DamageError(Exception):
    """The file is not as the format says."""


def _is_number(value: object) -> bool:
    return isinstance(value, np.ndarray) and value.size == 1


def _variables(data: bytes, wanted: Sequence[str]) -> dict[str, Any]:
    orders = {b"IM": "<", b"MI": ">"}
    if len(data) < HEADER or data[126:128] not in orders:
        raise _DamageError("it has no header of level 5")
    content = {}
    elements = _Elements(memoryview(data)[HEADER:], orders[data[126:128]])
    while elements:
        kind, body = elements.next()
        if kind == COMPRESSED:
            kind, body = _Elements(_unpacked(body), elements.order).next()
        if kind != MATRIX:
            raise _DamageError(f"an element of type {kind} in place of a variable")
        matrix = _Elements(body, elements.order)
        name, read_value = _matrix(matrix, 0)
        if name in wanted:
            content[name] = read_value()
    return content


def _unpacked(body: memoryview) -> memoryview:
    unpacker = zlib.decompressobj()
    data = unpacker.decompress(body, LARGEST_UNPACKED)
    if unpacker.unconsumed_tail:
        raise _DamageError(f"it unpacks to more than {LARGEST_UNPACKED:,} bytes")
    if not unpacker.eof:
        raise _DamageError("it is truncated")
    return memoryview(data)


class _Elements:
    """The elements in a stretch of bytes: each a type, a length and that many bytes."""

    def __init__(self, data: memoryview, order: str) -> None:
        self.data = data
        self.order = order

    def __bool__(self) -> bool:
        return len(self.data) > 0

    def next(self) -> tuple[int, memoryview]:
        if len(self.data) < 8:
            raise _DamageError("it is truncated")
        kind, length = (int(n) for n in np.frombuffer(self.data[:8], f"{self.order}u4"))
        start, end = 8, 8 + length
        if kind >> 16:  # up to four bytes are kept within the tag
            kind, length = kind & 0xFFFF, kind >> 16
            start, end = 4, 4 + length
            if length > 4:
                raise _DamageError(f"an element of {length} bytes within its tag")
        if end > len(self.data):
            raise _DamageError("it is truncated")
        body = self.data[start:end]
        # All but compressed elements fill whole groups of eight bytes.
        self.data = self.data[end if kind == COMPRESSED else -(-end // 8) * 8 :]
        return kind, body

    def numbers(self, *kinds: int) -> npt.NDArray[Any]:
        kind, body = self.next()
        if kind not in (kinds or NUMBERS):
            raise _DamageError(f"an element of type {kind} in place of numbers")
        dtype = np.dtype(f"{self.order}{NUMBERS[kind]}")
        if len(body) % dtype.itemsize:
            raise _DamageError(f"{len(body)} bytes are not a multiple of {dtype.itemsize}")
        return np.frombuffer(body, dtype)


def _matrix(elements: _Elements, depth: int) -> tuple[str, Any]:
    """Return the name of a variable and a function that reads its value."""
    flags = elements.numbers(UINT32)
    extents = elements.numbers(INT32)
    name = bytes(elements.numbers(INT8)).decode("latin-1")
    if flags.size != 2 or extents.size < 2 or extents.min() < 0 or depth > DEEPEST:
        raise _DamageError("a variable without flags or shape, or nested too deeply")
    kind, count = int(flags[0]) & 0xFF, math.prod(extents.tolist())
    if int(flags[0]) & COMPLEX_FLAG:
        raise _DamageError("complex numbers")

    def read_value() -> Any:
        if kind == CELL:
            return [_nested(elements, depth) for _ in _counted(elements, count)]
        if kind == STRUCT:
            return _struct(elements, count, depth)
        if kind == CHAR:
            return _text(elements)
        if not FIRST_NUMERIC <= kind <= LAST_NUMERIC:
            raise _DamageError(f"a variable of class {kind}")
        values = elements.numbers()
        if values.size != count:
            raise _DamageError(f"{values.size} numbers for a shape of {count}")
        return values.astype(np.float64)

    return name, read_value


def _counted(elements: _Elements, count: int) -> range:
    if 8 * count > len(elements.data):
        raise _DamageError(f"{count} values in {len(elements.data)} bytes")
    return range(count)


def _nested(elements: _Elements, depth: int) -> Any:
    kind, body = elements.next()
    if kind != MATRIX:
        raise _DamageError(f"an element of type {kind} in place of a value")
    if not len(body):
        return np.zeros(0)
    _, read_value = _matrix(_Elements(body, elements.order), depth + 1)
    return read_value()


def _struct(elements: _Elements, count: int, depth: int) -> Struct:
    longest = elements.numbers(INT32)
    letters = bytes(elements.numbers(INT8))
    if longest.size != 1 or longest[0] < 1 or len(letters) % int(longest[0]):
        raise _DamageError("a struct without names of fields")
    step = int(longest[0])
    starts = range(0, len(letters), step)
    names = [letters[i : i + step].split(b"\0")[0].decode("latin-1") for i in starts]
    values: Struct = {name: [] for name in names}
    if names:
        _counted(elements, count * len(names))
        for _ in range(count):
            for name in names:
                values[name].append(_nested(elements, depth))
    return values


def _text(elements: _Elements) -> str:
    kind, body = elements.next()
    if kind not in TEXTS:
        raise _DamageError(f"an element of type {kind} in place of text")
    encoding = TEXTS[kind]
    if encoding == "utf-16":
        encoding += "-le" if elements.order == "<" else "-be"
    return bytes(body).decode(encoding)
