"""A restricted unpickler for plain containers and uint8 arrays, which runs no foreign code.

Whoever writes a pickle decides which Python functions its reader calls. Here the only callables
are stand-ins defined below: no numpy object is built from the file's own words, everything is
checked first, and any other name is refused.
"""

from __future__ import annotations

import io
import pickle
import pickletools
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from pmt.datasets.checks import damaged

_REMEDY = "do not open it with pickle.load; download the data set again from its source"
_MEMO_OPCODES = ("PUT", "BINPUT", "LONG_BINPUT")


def load_array_pickle(path: Path, data: bytes) -> Any:
    """Read a pickle of dicts, lists, tuples, text, bytes, numbers and uint8 arrays.

    Text written by Python 2 comes back as bytes. Arrays come back read-only.

    Parameters
    ----------
    path
        Where the bytes are from, for the error.
    data
        The pickle, any protocol.

    Raises
    ------
    ValueError
        The pickle is truncated, damaged, or asks for anything else.
    """
    try:
        _refuse_memory_bombs(data)
        return _materialise(_ArrayUnpickler(io.BytesIO(data), encoding="bytes").load(), 0)
    except _RefusedError as error:
        raise damaged(path, f"the pickle is refused: {error}", _REMEDY) from None
    # A damaged pickle makes pickle raise nearly anything: all of it means the same to the user.
    except Exception as error:
        reason = f"{type(error).__name__}: {error}"
        raise damaged(path, f"not a readable pickle ({reason})", _REMEDY) from None


class _RefusedError(Exception):
    """The pickle asks for something that a data set does not need."""


class _ArrayUnpickler(pickle.Unpickler):
    """Resolves names to stand-ins made for this one load, so that a pickle cannot alter them."""

    def __init__(self, file: io.BytesIO, *, encoding: str) -> None:
        super().__init__(file, encoding=encoding)
        self._stand_ins = _stand_ins()

    def find_class(self, module: str, name: str) -> Any:
        try:
            return self._stand_ins[module.replace("numpy._core.", "numpy.core."), name]
        except KeyError:
            raise _RefusedError(f"it asks for {module}.{name}") from None


class _Array:
    """An array in the making: becomes real only after its state has been checked."""

    value: npt.NDArray[np.uint8] | None = None


def _stand_ins() -> dict[tuple[str, str], Any]:
    class Dtype:
        def __init__(self, code: object, align: object = False, copy: object = True) -> None:
            self.code = _text(code)
            if self.code not in ("u1", "|u1"):
                raise _RefusedError(f"it holds an array of dtype {self.code!r} instead of uint8")

        def __setstate__(self, state: object) -> None:
            """Ignore byte order and alignment: a single byte has none."""

    class Array(_Array):
        def __setstate__(self, state: Any) -> None:
            _version, shape, dtype, is_fortran, data = state
            if not isinstance(dtype, Dtype):
                raise _RefusedError("it holds an array without a dtype")
            self.value = _checked_array(shape, data, bool(is_fortran))

    def reconstruct(kind: object, shape: object, code: object) -> Array:
        return Array()

    def from_buffer(data: object, dtype: object, shape: object, order: object) -> Array:
        if not isinstance(dtype, Dtype):
            raise _RefusedError("it holds an array without a dtype")
        array = Array()
        array.value = _checked_array(shape, data, order == "F")
        return array

    def encode(text: object, encoding: object) -> bytes:
        if not isinstance(text, str) or _text(encoding) != "latin1":
            raise _RefusedError("it encodes text with another codec than latin1")
        return text.encode("latin1")

    stand_ins: dict[tuple[str, str], type | Callable[..., Any]] = {
        ("numpy", "ndarray"): type("ndarray", (), {"__slots__": ()}),
        ("numpy", "dtype"): Dtype,
        ("numpy.core.multiarray", "_reconstruct"): reconstruct,
        ("numpy.core.numeric", "_frombuffer"): from_buffer,
        ("_codecs", "encode"): encode,
    }
    return stand_ins


def _checked_array(shape: object, data: object, is_fortran: bool) -> npt.NDArray[np.uint8]:
    if not isinstance(data, bytes | bytearray):
        raise _RefusedError("it holds an array without its bytes")
    if not isinstance(shape, tuple) or not all(type(n) is int and n >= 0 for n in shape):
        raise _RefusedError(f"it holds an array of shape {shape!r}")
    size = 1
    for extent in shape:
        size *= extent
    if size != len(data) or len(shape) > 8:
        raise _RefusedError(f"it holds an array of shape {shape} with {len(data)} bytes")
    return np.frombuffer(bytes(data), np.uint8).reshape(shape, order="F" if is_fortran else "C")


def _text(value: object) -> object:
    return value.decode("latin1") if isinstance(value, bytes) else value


def _refuse_memory_bombs(data: bytes) -> None:
    """Refuse memo numbers that no writer gives: pickle's C code would allocate up to them."""
    for count, (opcode, argument, _) in enumerate(pickletools.genops(data)):
        if opcode.name in _MEMO_OPCODES and isinstance(argument, int) and argument > count:
            raise _RefusedError(f"it numbers an object {argument}")


def _materialise(value: Any, depth: int) -> Any:
    """Put the checked arrays in the place of their stand-ins, in a dict and one level below."""
    if isinstance(value, _Array):
        if value.value is None:
            raise _RefusedError("it holds an array without its state")
        return value.value
    if isinstance(value, dict) and depth == 0:
        return {_text(key): _materialise(item, depth + 1) for key, item in value.items()}
    return value
