"""Names of a user's estimators, optimizers and losses, by which run folders tell them apart."""

import ast
import functools
import inspect
import sys
import textwrap
from collections.abc import Callable, MutableMapping, MutableSequence, MutableSet
from contextlib import suppress
from hashlib import sha256
from types import CellType, CodeType, FunctionType, MethodType, ModuleType
from typing import Any

import numpy as np

_PLAIN = (type(None), bool, int, float, complex, str, bytes)
_FILLED = (np.ndarray, MutableMapping, MutableSequence, MutableSet)


def name_of(extension: object) -> str:
    """Return the name of a function, or of an object's class."""
    named = extension if hasattr(extension, "__qualname__") else type(extension)
    return str(named.__qualname__)


def full_name(extension: object) -> str:
    """Return the name, and eight digits that stand for the parameters and the code.

    They are the same in every process. Code counts without comments, docstrings and layout, and
    only that of the class, with its bases, or of the function: none that it calls elsewhere. What a
    function closes over is a parameter, but not what its own code changes: a number that it names
    ``nonlocal``, or an array, list, dict or set that it calls a method of in a statement of its own
    (``log.append(loss)``) or assigns into. These differ after a run, which could not be resumed.
    """
    text = repr((_written(extension), _code_of_class(type(extension))))
    return f"{name_of(extension)} {sha256(text.encode()).hexdigest()[:8]}"


def _written(value: Any, above: tuple[int, ...] = ()) -> object:
    """Return a value as nested tuples of plain values, in an order of their own."""
    if type(value) in _PLAIN:
        return value
    if id(value) in above:
        return ("as above", above.index(id(value)))
    inner = functools.partial(_written, above=(*above, id(value)))
    if isinstance(value, np.ndarray | np.generic) and not value.dtype.hasobject:
        return (str(value.dtype), value.shape, sha256(value.tobytes()).hexdigest())
    if isinstance(value, type | ModuleType):
        return value.__name__
    if isinstance(value, FunctionType):
        parts = (value.__defaults__, value.__kwdefaults__, _closure(value))
        return (value.__name__, _code(value.__code__, inner), *map(inner, parts))
    if isinstance(value, MethodType | classmethod | staticmethod):
        return (inner(value.__func__), inner(getattr(value, "__self__", None)))
    name = type(value).__qualname__
    if isinstance(value, dict):
        pairs = ((inner(key), inner(one)) for key, one in value.items())
        return (name, *sorted(pairs, key=repr))
    if isinstance(value, list | tuple):
        return (name, *map(inner, value))
    if isinstance(value, set | frozenset):
        return (name, *sorted(map(inner, value), key=repr))
    return (name, *map(inner, _parts(value)))


def _parts(value: Any) -> list[object]:
    """Return the contents of an object, as pickles hold them; its attributes where they fail."""
    try:
        for holder in ("cell_contents", "fget", "__wrapped__"):  # a closure's, a property's
            if hasattr(value, holder):
                return [getattr(value, holder)]
        reduced = value.__reduce_ex__(4)
    except Exception:  # an empty cell, a handle, a lock; the method may be the user's own
        return [getattr(value, "__dict__", None)]
    if isinstance(reduced, str):
        return [reduced]
    _, arguments, state, items, pairs = (*reduced, None, None, None)[:5]
    if isinstance(state, dict):
        kind = type(value)
        state = {
            name: one
            for name, one in state.items()
            if not isinstance(getattr(kind, name, None), functools.cached_property)
        }
    return [arguments, state, list(items or ()), list(pairs or ())]


def _code_of_class(kind: type) -> object:
    """Return the methods and attributes of a class and its bases, without the standard library."""
    return [
        (name, _written(value))
        for one in kind.__mro__
        if one.__module__.partition(".")[0] not in sys.stdlib_module_names
        for name, value in sorted(vars(one).items())
        if isinstance(value, FunctionType) or not name.startswith("__")
    ]


def _closure(function: FunctionType) -> tuple[CellType, ...] | None:
    """Return the variables that a function closes over, but those that its own code changes."""
    if function.__closure__ is None:
        return None
    named, filled = _changed(function.__code__)
    return tuple(
        cell
        for name, cell in zip(function.__code__.co_freevars, function.__closure__, strict=True)
        if name not in named and not (name in filled and isinstance(_parts(cell)[0], _FILLED))
    )


def _changed(code: CodeType) -> tuple[set[str], set[str]]:
    """Return the variables that a function's code binds outside of it, and those it fills."""
    named: set[str] = set()
    filled: set[str] = set()
    tree = None
    with suppress(OSError, TypeError):  # without its source nothing is known
        tree = _tree(code)
    for node in () if tree is None else ast.walk(tree):
        if isinstance(node, ast.Nonlocal):
            named.update(node.names)
        place: ast.AST | None = None
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Call):
            place = node.value
        elif isinstance(node, ast.Subscript) and not isinstance(node.ctx, ast.Load):
            place = node
        while isinstance(place, ast.Attribute | ast.Subscript | ast.Call):
            place = place.func if isinstance(place, ast.Call) else place.value
        if isinstance(place, ast.Name):
            filled.add(place.id)
    return named, filled


def _tree(code: CodeType) -> ast.Module | None:
    """Return the source of a function; None of a lambda in the middle of a call."""
    with suppress(SyntaxError):
        return ast.parse(textwrap.dedent(inspect.getsource(code)))
    return None


def _code(code: CodeType, inner: Callable[[object], object]) -> object:
    """Return the code of a function: its source; the instructions of a lambda or without one."""
    tree = None
    with suppress(OSError, TypeError):
        tree = _tree(code)
    if tree is not None and code.co_name != "<lambda>":
        return ast.unparse(_Bare().visit(tree))
    return (code.co_code, code.co_names, *(inner(one) for one in code.co_consts))


class _Bare(ast.NodeTransformer):
    """Leaves out docstrings."""

    def visit_Expr(self, node: ast.Expr) -> ast.Expr | None:
        return None if isinstance(node.value, ast.Constant) else node
