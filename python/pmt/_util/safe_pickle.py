"""A restricted unpickler: plain containers and NumPy arrays of chosen dtypes, no foreign code.

Whoever writes a pickle decides which Python functions its reader calls. Here the only callables are
stand-ins that the caller allows by name: no NumPy object is built from the file's own words,
everything is checked first, and any other name is refused.
"""

import io
import math
import pickle
import pickletools
from collections.abc import Callable, Collection, Mapping
from typing import Any

import numpy as np

from pmt._util.arrays import Array

_MEMO_INSTRUCTIONS = ("PUT", "BINPUT", "LONG_BINPUT")
_MAX_DIMENSIONS = 8


class RefusedError(Exception):
    """The pickle asks for something that is not allowed."""


class PickledArray:
    """Stand-in for an array while the pickle is read; :attr:`array` is the result, read-only.

    It stays None where the pickle never gives the array its state.
    """

    array: Array | None = None

    def __setstate__(self, state: Any) -> None:
        _version, shape, dtype, is_fortran, data = state
        self.array = _checked_array(shape, dtype, data, bool(is_fortran))


class _Dtype:
    """Stand-in for ``numpy.dtype``: a number of the allowed ones."""

    def __init__(self, dtype: np.dtype[Any]) -> None:
        self.dtype = dtype

    def __setstate__(self, state: Any) -> None:
        is_little = isinstance(state, tuple) and len(state) > 1 and _text(state[1]) in ("<", "|")
        if self.dtype.itemsize > 1 and not is_little:
            raise RefusedError("it holds an array that is not little-endian")


class _Callable:
    """A function for the pickle to call, but never to change."""

    __slots__ = ("_function",)

    def __init__(self, function: Callable[..., Any]) -> None:
        self._function = function

    def __call__(self, *arguments: Any) -> Any:
        return self._function(*arguments)

    def __setstate__(self, state: Any) -> None:
        raise RefusedError("it tries to change a function")


Globals = Mapping[tuple[str, str], _Callable]


def array_globals(dtypes: Mapping[str, str]) -> Globals:
    """Return the names that pickled arrays ask for, with stand-ins that make the arrays.

    `dtypes` maps the codes that a pickle may give, as "f4", to the dtypes they stand for. Every
    name begins with ``numpy.core``, also where the pickle says ``numpy._core``.
    """
    known = " or ".join(dict.fromkeys(np.dtype(dtype).name for dtype in dtypes.values()))

    def dtype_of(code: object, *_flags: object) -> _Dtype:
        code = _text(code)
        if not isinstance(code, str) or code not in dtypes:
            raise RefusedError(f"it holds an array of dtype {str(code)[:40]!r} instead of {known}")
        return _Dtype(np.dtype(dtypes[code]))

    return {
        ("numpy", "ndarray"): _NDARRAY,
        ("numpy", "dtype"): _Callable(dtype_of),
        ("numpy.core.multiarray", "_reconstruct"): _Callable(_reconstruct),
        ("numpy.core.numeric", "_frombuffer"): _Callable(_from_buffer),
        ("_codecs", "encode"): _Callable(_encode),
    }


def load(
    data: bytes,
    allowed: Globals,
    *,
    encoding: str = "ASCII",
    instructions: Collection[str] | None = None,
    most_instructions: int | None = None,
) -> Any:
    """Read a pickle without running anything it brings along.

    It gets what `allowed` gives for the names that it asks for; a RefusedError tells of any other
    name, and of other or more instructions than it may consist of, whose number bounds time and
    the depth of nested tuples. A damaged one raises nearly any exception. The `encoding` is that of
    text that Python 2 wrote. The result holds dicts, lists, tuples, text, bytes, numbers and
    :class:`PickledArray`.
    """
    for count, (instruction, argument, _) in enumerate(pickletools.genops(data)):
        name = instruction.name
        if most_instructions is not None and count >= most_instructions:
            raise RefusedError(f"it has more than {most_instructions} instructions")
        if instructions is not None and name not in instructions:
            raise RefusedError(f"instruction {name} is not allowed")
        # No writer counts ahead; pickle's C code would allocate its memo up to the number.
        if name in _MEMO_INSTRUCTIONS and isinstance(argument, int) and argument > count:
            raise RefusedError(f"it numbers an object {argument}")
    return _Unpickler(io.BytesIO(data), allowed, encoding).load()


class _Unpickler(pickle.Unpickler):
    def __init__(self, file: io.BytesIO, allowed: Globals, encoding: str) -> None:
        super().__init__(file, encoding=encoding)
        self._allowed = allowed

    def find_class(self, module: str, name: str) -> Any:
        try:
            return self._allowed[module.replace("numpy._core.", "numpy.core."), name]
        except KeyError:
            raise RefusedError(f"it asks for {module}.{name}") from None


def _not_called(*_arguments: object) -> None:
    raise RefusedError("numpy.ndarray may only be reconstructed")


_NDARRAY = _Callable(_not_called)


def _reconstruct(kind: object, *_placeholder: object) -> PickledArray:
    if kind is not _NDARRAY:
        raise RefusedError("only numpy.ndarray may be reconstructed")
    return PickledArray()


def _from_buffer(data: object, dtype: object, shape: object, order: object) -> PickledArray:
    array = PickledArray()
    array.array = _checked_array(shape, dtype, data, order == "F")
    return array


def _encode(text: object, encoding: object = None) -> bytes:
    if not isinstance(text, str) or _text(encoding) != "latin1":
        raise RefusedError("it encodes text with another codec than latin1")
    return text.encode("latin1")


def _checked_array(shape: object, dtype: object, data: object, is_fortran: bool) -> Array:
    if not isinstance(dtype, _Dtype):
        raise RefusedError("it holds an array without a dtype")
    if not isinstance(data, bytes | bytearray):
        raise RefusedError("it holds an array without its bytes")
    if not isinstance(shape, tuple) or not all(type(n) is int and n >= 0 for n in shape):
        raise RefusedError(f"it holds an array of shape {shape!r}")
    if len(shape) > _MAX_DIMENSIONS or math.prod(shape) * dtype.dtype.itemsize != len(data):
        raise RefusedError(f"it holds an array of shape {shape} with {len(data)} bytes")
    flat = np.frombuffer(bytes(data), dtype.dtype)
    return flat.reshape(shape, order="F" if is_fortran else "C")


def _text(value: object) -> object:
    """Text that Python 2 wrote may come as bytes."""
    return value.decode("latin1") if isinstance(value, bytes) else value
