"""Checks of arguments that many share."""

import operator
import os
import sys
import warnings
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any, Literal, TypeGuard, get_args

import numpy as np

from pmt._util.arrays import Array
from pmt._util.text import did_you_mean, split_names
from pmt.errors import OptionError

SplitName = Literal["train", "test"]
SPLITS: tuple[SplitName, ...] = get_args(SplitName)
_LARGEST_SIDE = 2**16 - 1  # of an image


def kind_of(value: object) -> str:
    """Return a value in a word or two, for an error: itself where that is short, else its type."""
    if isinstance(value, np.ndarray):
        return f"an array of {value.dtype}"
    short = isinstance(value, (str, bool, int, float, type(None)))
    return repr(value) if short else type(value).__name__


def checked_path(argument: str, value: object) -> Path:
    """Return `value` as a path, or raise a TypeError or ValueError that names `argument`."""
    if not isinstance(value, (str, os.PathLike)):
        raise TypeError(f"{argument} is {kind_of(value)}: must be text or a path")
    text = str(os.fspath(value))
    if text == "":
        raise ValueError(f"{argument}='' names nothing; give the name of a file or folder")
    if "\0" in text:
        raise ValueError(f"{argument}={text!r}: no path may hold a zero byte; remove it")
    return Path(text)


def refuse_mask(argument: str, value: object) -> None:
    """Raise a TypeError if the value is a masked array: NumPy drops its mask without a word."""
    if np.ma.isMaskedArray(value):
        raise TypeError(f"{argument} is a masked array, whose mask counts for nothing; fill it")


def checked_array(argument: str, value: object) -> Array:
    """Return `value` as NumPy reads it, or raise a TypeError that names `argument`."""
    refuse_mask(argument, value)
    try:
        return np.asarray(value)
    except (TypeError, ValueError, RuntimeError) as error:
        calls = tensor_calls(value)
        rule = f"give {argument}{calls}" if calls else "must be an array, or rows of equal length"
        raise TypeError(
            f"{argument} is {kind_of(value)}, of which NumPy makes no array: {rule}"
        ) from error


def tensor_calls(value: object) -> str:
    """Return the calls that make a tensor of torch one that NumPy reads; empty where it does."""
    if not type(value).__module__.startswith("torch") or not hasattr(value, "requires_grad"):
        return ""
    tensor: Any = value
    calls = {
        ".detach()": tensor.requires_grad,
        ".cpu()": tensor.device.type != "cpu",
        ".to_dense()": tensor.layout is not getattr(sys.modules["torch"], "strided", None),
        ".float()": str(tensor.dtype) == "torch.bfloat16",
    }
    return "".join(call for call, is_needed in calls.items() if is_needed)


def warn_of_argument(warning: Warning) -> None:
    """Warn at the user's line: the last one before pmt was called, however deep the check is."""
    level, frame = 1, sys._getframe()
    while frame.f_back is not None and frame.f_globals.get("__name__", "").startswith("pmt."):
        level, frame = level + 1, frame.f_back
    warnings.warn(warning, stacklevel=level)


def check_type(argument: str, value: object, kind: type | tuple[type, ...], rule: str) -> None:
    """Raise a TypeError if `value` is of another type; `rule` follows "must be"."""
    if not isinstance(value, kind):
        raise TypeError(f"{argument} is {kind_of(value)}: must be {rule}")


def check_callable(argument: str, value: object) -> None:
    """Raise a TypeError if `value` is neither a callable nor None."""
    if value is not None and not callable(value):
        raise TypeError(f"{argument} is {kind_of(value)}: must be a callable, or None")


def checked_word(argument: str, value: object, words: Iterable[str]) -> str:
    """Return one of the words, or raise a ValueError that names the nearest one or all."""
    if not isinstance(value, str) or value not in words:
        raise ValueError(f"{argument}={value!r} is unknown{did_you_mean(str(value), words)}")
    return value


def is_iterable(value: object) -> TypeGuard[Iterable[Any]]:
    """Whether a value has items; an array without axes only looks as if it had."""
    return isinstance(value, Iterable) and getattr(value, "ndim", 1) != 0


def checked_names(argument: str, names: object) -> tuple[str, ...]:
    """Return a sequence of names as a tuple, or raise a TypeError that names `argument`."""
    if isinstance(names, str):
        raise TypeError(f"{argument}={names!r} must be a sequence of names, not one text")
    if not is_iterable(names) or isinstance(names, (set, frozenset)):  # whose order is by chance
        raise TypeError(f"{argument}={names!r} must be a sequence of names")
    checked = tuple(names)
    for name in checked:
        if not isinstance(name, str):
            raise TypeError(f"{argument} holds {name!r}: every name must be text")
    return checked


def plain_number(value: Any) -> Any:
    """Return the number of Python that a NumPy scalar or an array without axes holds.

    Other values are returned as they are, masked ones too, which count for nothing.
    """
    holds_one = isinstance(value, (np.generic, np.ndarray)) and value.ndim == 0
    return value.item() if holds_one and not np.ma.isMaskedArray(value) else value


def listed_names(argument: str, text: str) -> tuple[str, ...]:
    """Return the names between commas, or raise an OptionError where one is empty."""
    names = split_names(text)
    if "" in names:
        raise OptionError(argument, f"={text!r}: a name is empty; remove a comma, or name it")
    return names


def checked_integer(argument: str, value: object) -> int:
    """Return `value` as an int, or raise a TypeError that names `argument`."""
    refuse_mask(argument, value)
    value = plain_number(value)
    try:
        if isinstance(value, bool):
            raise TypeError
        return operator.index(value)  # type: ignore[arg-type]
    except TypeError:
        raise TypeError(f"{argument}={value!r} must be an integer") from None


def checked_range(argument: str, value: object, least: int, most: int | None = None) -> int:
    """Return `value` as an int of `least` to `most`, or raise a TypeError or ValueError."""
    checked = checked_integer(argument, value)
    if checked < least or (most is not None and checked > most):
        rule = f"{least} or more" if most is None else f"{least}..{most}"
        raise ValueError(f"{argument}={checked} must be {rule}")
    return checked


def checked_flag(argument: str, value: object) -> bool:
    """Return `value` as a bool, or raise a TypeError that names `argument`."""
    flag = plain_number(value)
    if not isinstance(flag, bool):
        raise TypeError(f"{argument}={value!r} must be True or False")
    return flag


def checked_size(size: int | tuple[int, int] | None) -> tuple[int, int] | None:
    """Return height and width, each at least 1, or None; `size` may be one side of a square."""
    if size is None:
        return None
    pair = size if isinstance(size, tuple) else (size, size)
    if len(pair) != 2:
        raise ValueError(f"size={size!r} must be one side or (height, width)")
    height, width = (checked_range("size", side, 1, _LARGEST_SIDE) for side in pair)
    return height, width


def checked_candidates(names: Sequence[str], argument: str = "candidates") -> tuple[str, ...]:
    """Return the names to choose from, or raise an OptionError unless they are two or more."""
    names = checked_names(argument, names)
    if len(set(names)) != len(names) or len(names) < 2:
        shown = ",".join(names)
        raise OptionError(argument, f"={shown!r}: a choice needs two or more different names")
    return names
