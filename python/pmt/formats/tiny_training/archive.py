"""The zip archive that ``torch.save`` writes, read without torch."""

from __future__ import annotations

import math
import struct
import zipfile
import zlib
from pathlib import Path
from typing import Any, NoReturn

import numpy as np
import numpy.typing as npt

from pmt._util.safe_pickle import PickledArray, array_globals, load
from pmt.formats.reading import require_file

MAX_MEMBER_BYTES = 64 * 2**20
MAX_RATIO = 100
_WIDER = {np.dtype(np.float32): np.dtype(np.float64), np.dtype(np.int32): np.dtype(np.int64)}
# RuntimeError: an encrypted member; ValueError: names that are not UTF-8.
_DAMAGE = (
    zipfile.BadZipFile,
    zlib.error,
    struct.error,
    EOFError,
    OSError,
    RuntimeError,
    ValueError,
)


# Far above the 6,000 of a 50-layer network; bounds time, memory and the depth of nested tuples.
MAX_INSTRUCTIONS = 100_000
_INSTRUCTIONS = {
    "PROTO", "FRAME", "STOP", "MARK", "GLOBAL", "STACK_GLOBAL", "REDUCE", "BUILD", "BINGET",
    "LONG_BINGET", "BINPUT", "LONG_BINPUT", "MEMOIZE", "EMPTY_DICT", "SETITEM", "SETITEMS",
    "EMPTY_LIST", "APPEND", "APPENDS", "EMPTY_TUPLE", "TUPLE", "TUPLE1", "TUPLE2", "TUPLE3", "NONE",
    "NEWTRUE", "NEWFALSE", "BININT", "BININT1", "BININT2", "LONG1", "BINFLOAT", "BINUNICODE",
    "SHORT_BINUNICODE", "BINBYTES", "SHORT_BINBYTES",
}  # fmt: skip
_DTYPES = {"i1": "i1", "u1": "u1", "i4": "<i4", "i8": "<i8", "f4": "<f4", "f8": "<f8"}


def read_pickle(path: Path) -> Any:
    """Return what ``data.pkl`` inside the archive holds, arrays as :class:`PickledArray`.

    ValueError is raised if it is not a sound zip archive with exactly one ``data.pkl``, the pickle
    would unpack to more than 64 MiB or to more than 100 times its packed size, is damaged, or asks
    for more than dicts, lists, tuples, text, numbers and arrays.
    """
    require_file(path)
    try:
        with zipfile.ZipFile(path) as archive:
            data = archive.read(_pickle_member(path, archive))
    except _DAMAGE as error:
        raise ValueError(f"{path.name}: is not a sound torch zip archive: {error}") from None
    try:
        return load(
            data,
            array_globals(_DTYPES),
            instructions=_INSTRUCTIONS,
            most_instructions=MAX_INSTRUCTIONS,
        )
    except MemoryError:
        raise ValueError(f"{path.name}: refused, its pickle asks for too much memory") from None
    except Exception as error:  # a damaged pickle raises nearly anything
        raise ValueError(
            f"{path.name}: refused, its pickle is damaged or holds more than dicts and NumPy "
            f"arrays: {error}"
        ) from None


def _pickle_member(path: Path, archive: zipfile.ZipFile) -> zipfile.ZipInfo:
    found = [m for m in archive.infolist() if m.filename.rpartition("/")[2] == "data.pkl"]
    if len(found) != 1:
        raise zipfile.BadZipFile(f"it has {len(found)} members named data.pkl, expected one")
    member = found[0]
    if member.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
        raise zipfile.BadZipFile(f"{member.filename} is packed by method {member.compress_type}")
    if member.file_size > MAX_MEMBER_BYTES:
        raise zipfile.BadZipFile(
            f"{member.filename} unpacks to {member.file_size} bytes, "
            f"more than the limit of {MAX_MEMBER_BYTES}"
        )
    if member.file_size > MAX_RATIO * max(member.compress_size, 1):
        raise zipfile.BadZipFile(
            f"{member.filename} unpacks {member.compress_size} bytes to {member.file_size}, "
            f"more than {MAX_RATIO} times as many"
        )
    held = path.stat().st_size
    if member.compress_size > held:
        raise zipfile.BadZipFile(
            f"{member.filename} claims {member.compress_size} bytes, the whole file has {held}"
        )
    return member


class Node:
    """One dict of the archive and where it stands.

    Every method raises ``ValueError`` with the place, the key and the rule if the value is missing
    or is not what the method says.
    """

    def __init__(self, value: Any, place: str) -> None:
        self._place = place
        if not isinstance(value, dict):
            raise ValueError(f"{place}: is a {type(value).__name__}, expected a dict")
        self._values = value

    def fail(self, key: str, problem: str) -> NoReturn:
        """Raise the ``ValueError`` for a key of this node."""
        raise ValueError(f"{self._place}: {key!r} {problem}")

    def child(self, key: str) -> Node:
        """Return the dict under ``key``."""
        return Node(self._get(key), f"{self._place}, {key}")

    def children(self, key: str, limit: int) -> list[Node]:
        """Return the list of dicts under ``key``, at most ``limit`` of them."""
        values = self._get(key)
        if not isinstance(values, list) or not 1 <= len(values) <= limit:
            self.fail(key, f"must be a list of 1 to {limit} dicts")
        return [Node(value, f"{self._place}, {key}[{i}]") for i, value in enumerate(values)]

    def is_none(self, key: str) -> bool:
        """Whether the key is absent or ``None``."""
        return self._values.get(key) is None

    def require_none(self, key: str, reason: str) -> None:
        """Refuse any value under ``key``."""
        if not self.is_none(key):
            self.fail(key, f"is set: {reason}")

    def integer(self, key: str, low: int, high: int) -> int:
        """Return an integer in [low, high]."""
        value = self._get(key)
        if type(value) is not int or not low <= value <= high:
            self.fail(key, f"is {_short(value)}, expected an integer in [{low}, {high}]")
        return value

    def pair(self, key: str, limit: int) -> tuple[int, int]:
        """Return (height, width), two numbers of 1 to ``limit`` or one that stands for both."""
        value = self._get(key)
        both = (value, value) if type(value) is int else value
        if (
            not isinstance(both, tuple | list)
            or len(both) != 2
            or not all(type(n) is int and 1 <= n <= limit for n in both)
        ):
            self.fail(key, f"is {_short(value)}, expected one or two numbers from 1 to {limit}")
        return both[0], both[1]

    def quantization(self, prefix: str) -> tuple[float, int]:
        """Return (scale, zero point) stored under ``prefix_scale`` and ``prefix_zero``."""
        key = f"{prefix}_scale"
        scale = self._number(key)
        if type(scale) is not float or not math.isfinite(scale) or not 1e-30 < scale < 1e30:
            self.fail(key, f"is {_short(scale)}, expected a positive number")
        key = f"{prefix}_zero"
        zero = self._number(key)
        if type(zero) is not int or not -128 <= zero <= 127:
            self.fail(key, f"is {_short(zero)}, expected an integer in [-128, 127]")
        return scale, zero

    def _number(self, key: str) -> Any:
        """Return a value; an array of one number is that number."""
        value = self._get(key)
        array = value.array if isinstance(value, PickledArray) else None
        return array.item() if array is not None and array.size == 1 else value

    def check_activation(self, zero_point: int) -> None:
        """Refuse an activation that the int8 range of the output does not already contain."""
        activation = self._values.get("act")
        if activation is None or (activation in ("relu", "relu6") and zero_point == -128):
            return
        self.fail(
            "act",
            f"is {_short(activation)}, but activations are part of the int8 range in this format: "
            "use relu or relu6 with 'y_zero' -128, or none",
        )

    def has(self, key: str) -> bool:
        """Whether the key is there and not ``None``."""
        return not self.is_none(key)

    def array(self, key: str, dtype: Any, shape: tuple[int, ...]) -> npt.NDArray[Any]:
        """Return a copy of an array with exactly this dtype and shape.

        A float32 array may be stored as float64, int32 as int64; float32 must be positive.
        """
        value = self._get(key)
        array = value.array if isinstance(value, PickledArray) else None
        if array is None:
            self.fail(key, f"is a {type(value).__name__}, expected an array")
        wider = _WIDER.get(np.dtype(dtype))
        if array.dtype not in (np.dtype(dtype), wider) or array.shape != shape:
            self.fail(
                key,
                f"is {array.dtype} of shape {array.shape}, expected {np.dtype(dtype)} of {shape}",
            )
        if array.dtype == np.int64 and np.any(array != array.astype(np.int32)):
            self.fail(key, "holds values beyond int32")
        if dtype == np.float32:
            array = array.astype(np.float32)
            if not np.all(np.isfinite(array) & (array > 0)):
                self.fail(key, "must be positive and finite")
        return array.astype(dtype)

    def _get(self, key: str) -> Any:
        if key not in self._values:
            self.fail(key, "is missing; this is not a tiny-training network")
        return self._values[key]


def _short(value: Any) -> str:
    text = repr(value) if isinstance(value, int | float | str) else f"a {type(value).__name__}"
    return text[:60]
