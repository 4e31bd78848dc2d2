"""Names of a user's estimators, optimizers and losses, by which run folders tell them apart."""

import ast
import copyreg
import inspect
import sys
import textwrap
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from functools import cached_property, lru_cache, partial
from hashlib import sha256
from operator import methodcaller
from types import CellType, CodeType, FunctionType, MethodType, ModuleType
from typing import Any
from weakref import finalize

import numpy as np

_PLAIN = (type(None), bool, int, float, complex, str, bytes)
_PARTS = {
    FunctionType: ("__code__", "__defaults__", "__kwdefaults__", "__closure__"),
    CellType: ("cell_contents",),
    MethodType: ("__func__", "__self__"),
    property: ("fget", "fset", "fdel"),
    cached_property: ("func",),
    **dict.fromkeys((classmethod, staticmethod, type(lru_cache(len))), ("__wrapped__",)),
}
# Names by the identity of an object that a run uses; by it and the name that the object had after a
# run that changed it, as long as it lives: afterwards another one may get its identity.
_running: dict[int, str] = {}
_changed: dict[tuple[int, str], str] = {}
# The last of those whose end nothing would tell live on.
_held: dict[tuple[int, str], object] = {}
_MOST_HELD = 8


def name_of(extension: Any) -> str:
    """Return the name of a function, or of an object's class."""
    is_named = isinstance(extension, type) or inspect.isroutine(extension)
    return str((extension if is_named else type(extension)).__qualname__)


def full_name(extension: object) -> str:
    """Return the name, and eight digits that stand for the code and for all values that it holds.

    They are the same in every process. The code is that of the function, or of the class and its
    bases, without comments, docstrings and layout, and none that it calls elsewhere. The values are
    defaults, what a function closes over, and an object's attributes. What a run changes in them
    does not count, see :func:`kept_names`.
    """
    if id(extension) in _running:
        return _running[id(extension)]
    found = _found_name(extension)
    return _changed.get((id(_owner(extension)), found), found)


@contextmanager
def kept_names(extensions: Iterable[object]) -> Iterator[None]:
    """Let objects keep their names, whatever the run that is within changes in them.

    So a loss that counts its calls can resume its run. What others change afterwards counts.
    """
    began = [(one, full_name(one)) for one in extensions if id(one) not in _running]
    _running.update({id(one): name for one, name in began})
    try:
        yield
    finally:
        for one, name in began:
            del _running[id(one)]
            found = _found_name(one)
            if found != name:
                _keep_name(_owner(one), found, name)


def _owner(extension: object) -> object:
    """Return the object of a method, which each look-up makes anew; else the extension itself."""
    return extension.__self__ if isinstance(extension, MethodType) else extension


def _keep_name(owner: object, found: str, name: str) -> None:
    key = (id(owner), found)
    try:
        finalize(owner, _changed.pop, key, None).atexit = False
    except TypeError:  # an object of slots only, without weak references
        _held.pop(key, None)
        _held[key] = owner
        if len(_held) > _MOST_HELD:
            oldest = next(iter(_held))
            del _held[oldest], _changed[oldest]
    _changed[key] = name


def _found_name(extension: object) -> str:
    text = repr((_written(extension), _code_of_class(type(extension))))
    return f"{name_of(extension)} {sha256(text.encode()).hexdigest()[:8]}"


def _written(value: Any, above: tuple[int, ...] = ()) -> object:
    """Return a value as nested tuples of plain values, in an order of their own."""
    if type(value) in _PLAIN:
        return value
    if id(value) in above:
        return ("as above", above.index(id(value)))
    if type(value).__module__.startswith("torch") and hasattr(value, "detach"):
        value = value.detach().cpu().numpy()  # pickles of tensors hold addresses
    if isinstance(value, np.ndarray | np.generic) and not value.dtype.hasobject:
        return (str(value.dtype), value.shape, sha256(value.tobytes()).hexdigest())
    if isinstance(value, type | ModuleType):
        return value.__name__
    inner = partial(_written, above=(*above, id(value)))
    name = type(value).__qualname__
    if isinstance(value, dict | set | frozenset):
        items = value.items() if isinstance(value, dict) else value
        return (name, *sorted(map(inner, items), key=repr))
    return (name, *map(inner, value if isinstance(value, list | tuple) else _parts(value)))


def _parts(value: Any) -> list[object]:
    """Return the contents of an object, as pickles hold them; its attributes where they fail."""
    kind = type(value)
    try:
        if kind in _PARTS:
            return [getattr(value, part) for part in _PARTS[kind]]
        if kind is CodeType:
            return [_source(value) or (value.co_code, value.co_names, value.co_consts)]
        reduced = copyreg.dispatch_table.get(kind, methodcaller("__reduce_ex__", 4))(value)
    except Exception:  # an empty cell, a handle, a lock; the method may be the user's own
        return [getattr(value, "__dict__", None)]
    if isinstance(reduced, str):
        return [reduced]
    _, arguments, state, items, pairs = (*reduced, None, None, None)[:5]
    if isinstance(state, dict):
        cached = [n for n in state if isinstance(getattr(kind, str(n), None), cached_property)]
        state = {name: one for name, one in state.items() if name not in cached}
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


def _source(code: CodeType) -> str | None:
    """Return a function's source; None of a lambda, or where there is none."""
    if code.co_name != "<lambda>":
        with suppress(OSError, TypeError, SyntaxError):
            return ast.unparse(_Bare().visit(ast.parse(textwrap.dedent(inspect.getsource(code)))))
    return None


class _Bare(ast.NodeTransformer):
    """Leaves out docstrings."""

    def visit_Expr(self, node: ast.Expr) -> ast.Expr | None:
        return None if isinstance(node.value, ast.Constant) else node
