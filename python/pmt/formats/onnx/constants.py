"""Constant tensors of an ONNX file as arrays: sizes are checked before anything is allocated."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from pmt.formats.onnx.problems import Unsupported

__all__ = ["MAX_RANK", "ConstantReader"]

MAX_RANK = 8
# ONNX data type -> (name, bytes a value, the field that holds values which are not raw).
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


class ConstantReader:
    """Turns TensorProto messages into arrays; floats of any width become float32.

    Parameters
    ----------
    folder : pathlib.Path
        The model's folder: external data must lie inside it.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder.resolve()
        self._taken: dict[Path, int] = {}

    def array(self, tensor: Any) -> npt.NDArray[Any]:
        """Return the values of a TensorProto.

        Raises
        ------
        Unsupported
            If its type is not supported or its data contradict its shape.
        """
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
                f"{what} has its data in {place}, which is no file inside the model's folder",
                "put the data file beside the model, or export with the weights inside",
            )
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
