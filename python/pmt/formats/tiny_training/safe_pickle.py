"""A pickle reader that can make dicts, lists, tuples, numbers, strings and small-dtype arrays only.

Pickle is a program. This reader checks the program's instructions first and then runs it with
stand-ins for the four functions a NumPy array needs, so that no code of the file's choice is run.
"""

from __future__ import annotations

import io
import math
import pickle
import pickletools
from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt

# Far above the 6,000 of a 50-layer network; bounds time, memory and the depth of nested tuples.
MAX_INSTRUCTIONS = 100_000

_INSTRUCTIONS = frozenset(
    [
        "PROTO",
        "FRAME",
        "STOP",
        "MARK",
        "GLOBAL",
        "STACK_GLOBAL",
        "REDUCE",
        "BUILD",
        "BINGET",
        "LONG_BINGET",
        "BINPUT",
        "LONG_BINPUT",
        "MEMOIZE",
        "EMPTY_DICT",
        "SETITEM",
        "SETITEMS",
        "EMPTY_LIST",
        "APPEND",
        "APPENDS",
        "EMPTY_TUPLE",
        "TUPLE",
        "TUPLE1",
        "TUPLE2",
        "TUPLE3",
        "NONE",
        "NEWTRUE",
        "NEWFALSE",
        "BININT",
        "BININT1",
        "BININT2",
        "LONG1",
        "BINFLOAT",
        "BINUNICODE",
        "SHORT_BINUNICODE",
        "BINBYTES",
        "SHORT_BINBYTES",
    ]
)
_DTYPES = {"i1": "i1", "u1": "u1", "i4": "<i4", "i8": "<i8", "f4": "<f4", "f8": "<f8"}


class PickledArray:
    """Stand-in for an array while the pickle is read; :attr:`array` is the result."""

    def __init__(self) -> None:
        self.array: npt.NDArray[Any] | None = None

    def __setstate__(self, state: Any) -> None:
        _version, shape, dtype, fortran, data = state
        if not isinstance(dtype, _Dtype) or not isinstance(data, bytes):
            raise pickle.UnpicklingError("an array's state is not (shape, dtype, bytes)")
        if not isinstance(shape, tuple) or not all(type(n) is int and n >= 0 for n in shape):
            raise pickle.UnpicklingError("an array's shape is not a tuple of sizes")
        expected = math.prod(shape) * np.dtype(dtype.name).itemsize
        if len(shape) > 8 or len(data) != expected:
            raise pickle.UnpicklingError(
                f"an array of shape {shape} has {len(data)} bytes instead of {expected}"
            )
        flat = np.frombuffer(data, dtype.name)
        self.array = np.array(flat.reshape(shape[::-1]).T if fortran else flat.reshape(shape))


class _Dtype:
    """Stand-in for ``numpy.dtype``: one of a few little-endian numbers."""

    def __init__(self, name: Any, *_flags: Any) -> None:
        if not isinstance(name, str) or name not in _DTYPES:
            raise pickle.UnpicklingError(f"array dtype {str(name)[:40]!r} is not allowed")
        self.name = _DTYPES[name]

    def __setstate__(self, state: Any) -> None:
        if not isinstance(state, tuple) or len(state) < 2 or state[1] not in ("<", "|"):
            raise pickle.UnpicklingError("an array is not little-endian")


class _Callable:
    """What the pickle gets instead of a function: it can call it, but never change it."""

    __slots__ = ("_function",)

    def __init__(self, function: Callable[..., Any]) -> None:
        self._function = function

    def __call__(self, *arguments: Any) -> Any:
        return self._function(*arguments)

    def __setstate__(self, state: Any) -> None:
        raise pickle.UnpicklingError("it tries to change a function")


def _not_called(*_arguments: Any) -> None:
    raise pickle.UnpicklingError("numpy.ndarray may only be reconstructed")


def _reconstruct(kind: Any, *_placeholder: Any) -> PickledArray:
    if kind is not _NDARRAY:
        raise pickle.UnpicklingError("only numpy.ndarray may be reconstructed")
    return PickledArray()


def _encode(text: Any, encoding: Any = None) -> bytes:
    if not isinstance(text, str) or encoding != "latin1":
        raise pickle.UnpicklingError("_codecs.encode is allowed for latin1 text only")
    return text.encode("latin1")


_NDARRAY = _Callable(_not_called)
_GLOBALS: dict[tuple[str, str], _Callable] = {
    ("numpy", "ndarray"): _NDARRAY,
    ("numpy", "dtype"): _Callable(_Dtype),
    ("numpy.core.multiarray", "_reconstruct"): _Callable(_reconstruct),
    ("numpy._core.multiarray", "_reconstruct"): _Callable(_reconstruct),
    ("_codecs", "encode"): _Callable(_encode),
}


class _Unpickler(pickle.Unpickler):
    def find_class(self, module: str, name: str) -> Any:
        try:
            return _GLOBALS[module, name]
        except KeyError:
            raise pickle.UnpicklingError(f"it asks for {module}.{name}") from None


def loads(data: bytes, *, source: str) -> Any:
    """Read a pickle without running anything it brings along.

    Parameters
    ----------
    data : bytes
        The pickle.
    source : str
        Where it comes from, for the error message.

    Returns
    -------
    object
        Dicts, lists, tuples, str, bytes, int, float, bool, None, and :class:`PickledArray`.

    Raises
    ------
    ValueError
        If the pickle is damaged or asks for anything else.
    """
    try:
        _check_instructions(data)
        return _Unpickler(io.BytesIO(data)).load()
    except MemoryError:
        raise ValueError(f"{source}: refused, its pickle asks for too much memory") from None
    except Exception as error:  # a damaged pickle raises nearly anything
        raise ValueError(
            f"{source}: refused, its pickle is damaged or holds more than dicts and NumPy arrays: "
            f"{error}"
        ) from None


def _check_instructions(data: bytes) -> None:
    for count, (instruction, argument, _position) in enumerate(pickletools.genops(data)):
        if count >= MAX_INSTRUCTIONS:
            raise pickle.UnpicklingError(f"more than {MAX_INSTRUCTIONS} instructions")
        name = instruction.name
        if name not in _INSTRUCTIONS:
            raise pickle.UnpicklingError(f"instruction {name} is not allowed")
        # The unpickler allocates its memo up to the largest index before it looks at anything.
        if name in ("BINPUT", "LONG_BINPUT") and int(argument or 0) > MAX_INSTRUCTIONS:
            raise pickle.UnpicklingError(f"memo index {argument} is absurd")
