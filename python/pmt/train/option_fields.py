"""Declarations of options: the values and the effect of a field stand once, at the field."""

from __future__ import annotations

import dataclasses
import math
import textwrap
import warnings
from collections.abc import Callable, Container, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Protocol, TypeVar

from pmt import _core
from pmt._util.checks import checked_word, plain_number
from pmt._util.text import did_you_mean
from pmt.errors import OptionWarning

__all__ = [
    "CORE",
    "LARGEST_FLOAT",
    "Option",
    "Options",
    "Range",
    "Values",
    "Words",
    "declared_options",
    "document_options",
    "option",
    "refuse_unknown",
    "warn_without_effect",
]

_OptionsT = TypeVar("_OptionsT", bound="Options")


class Values(Protocol):
    """The values that an option may hold."""

    def check(self, name: str, value: object) -> Any:
        """Return the value, NumPy's as Python's own; or raise an error that names the option.

        The error has option, value and rule.
        """

    def shown(self, symbol: str) -> str:
        """Return the values for a help text, a number by its symbol; empty if there is no rule."""


@dataclass(frozen=True)
class Range:
    """Numbers from ``low`` to ``high``, whole ones where ``low`` is an int.

    Attributes
    ----------
    low, high : int or float
        The bounds.
    low_open, high_open : bool
        Whether a bound is left out.
    why : str
        Reason, for the error.
    """

    low: float
    high: float = math.inf
    low_open: bool = False
    high_open: bool = False
    why: str = ""

    def check(self, name: str, value: object) -> Any:
        """Return a number of the range; refuse any other, and values that are no number."""
        whole = isinstance(self.low, int)
        value = plain_number(value)
        if isinstance(value, bool) or not isinstance(value, (int,) if whole else (int, float)):
            kind = f"{'an int' if whole else 'a number'} ({self._rule('x', str)})"
            text = ", not text" if isinstance(value, str) else ""
            if isinstance(value, float) and value.is_integer():
                text = f"; give {int(value)}"
            raise TypeError(f"{name}={value!r} must be {kind}{text}")
        above = self.low < value if self.low_open else self.low <= value
        below = value < self.high if self.high_open else value <= self.high
        if not (above and below and (whole or math.isfinite(value))):
            reason = f" ({self.why})" if self.why else ""
            rule = self._rule("x", str)
            if LARGEST_FLOAT <= self.high < value < math.inf:
                rule = f"at most {LARGEST_FLOAT:.2g}, the largest float32"
            raise ValueError(f"{name}={value!r} must be {rule}{reason}")
        return value

    def shown(self, symbol: str) -> str:
        """Return the range."""
        return self._rule(symbol, _short)

    def _rule(self, symbol: str, number: Callable[[float], str]) -> str:
        low = number(self.low) if isinstance(self.low, int) else f"{self.low:g}"
        high = number(self.high) if isinstance(self.high, int) else f"{self.high:g}"
        if self.high >= LARGEST_FLOAT:
            return f"a finite number > {low}" if self.low_open else f"{low} or more"
        if self.low_open:
            return f"above {low}, {'below' if self.high_open else 'at most'} {high}"
        return f"{low} <= {symbol} < {high}" if self.high_open else f"{low}..{high}"


# Any finite float32 is one that the core takes.
LARGEST_FLOAT = 3.4028234663852886e38


def _short(number: float) -> str:
    """Return a number, large powers of ten and largest unsigned values as powers."""
    digits = len(str(number)) - 1
    if digits > 4 and number == 10**digits:
        return f"10^{digits}"
    bits = int(number).bit_length()
    return f"2^{bits}-1" if bits > 16 and number == 2**bits - 1 else str(number)


@dataclass(frozen=True)
class Words:
    """One of some words."""

    words: tuple[str, ...]

    def check(self, name: str, value: object) -> Any:
        """Return one of the words; refuse any other."""
        return checked_word(name, value, self.words)

    def shown(self, symbol: str) -> str:
        """Return the words."""
        return f"{', '.join(self.words[:-1])} or {self.words[-1]}"


@dataclass(frozen=True)
class _Anything:
    """Any value of a type."""

    kind: type
    rule: str

    def check(self, name: str, value: object) -> Any:
        value = plain_number(value)
        if not isinstance(value, self.kind):
            raise TypeError(f"{name}={value!r} must be {self.rule}")
        return value

    def shown(self, symbol: str) -> str:
        return ""


@dataclass(frozen=True)
class _Core:
    """The values that the core allows for its option of the same name."""

    def of(self, name: str) -> Range | Words:
        values = _core.option_values()[name]
        return Words(values) if isinstance(values[0], str) else Range(*values)


CORE = _Core()


@dataclass(frozen=True)
class Option:
    """An option.

    Attributes
    ----------
    name : str
        Name of the field.
    default : str, int, float or bool
        Its value unless another is given.
    metavar : str
        Placeholder for a value on the command line.
    help : str
        Its effect; ``{name}`` stands for another option.
    values : Values
        Values that it may hold.
    """

    name: str
    default: Any
    metavar: str
    help: str
    values: Values

    def described(self, quoted: Callable[[str], str]) -> str:
        """Return the help, with the names of options as ``quoted`` makes them."""
        return self.help.format_map(_Quoted(quoted))


class _Quoted(dict[str, str]):
    def __init__(self, quoted: Callable[[str], str]) -> None:
        super().__init__()
        self.quoted = quoted

    def __missing__(self, name: str) -> str:
        return self.quoted(name)


def option(
    default: Any,
    metavar: str = "",
    help: str = "",
    values: Range | Words | _Core | None = None,
    *,
    why: str = "",
) -> Any:
    """Return a field for a subclass of :class:`Options`; see :class:`Option` for its parts.

    A bool as default makes it a flag. The help leaves out the values, which are added to it.
    ``values`` are ``CORE`` for what the core allows, and by default any of the type; ``why`` is
    the reason of a range, for the error.
    """
    return dataclasses.field(default=default, metadata={"option": (metavar, help, values, why)})


def declared_options(options: type[Options]) -> dict[str, Option]:
    """Return the options of a class by name, in their order."""
    fields = dataclasses.fields(options)
    return {field.name: _declared(field) for field in fields if "option" in field.metadata}


def _declared(field: dataclasses.Field[Any]) -> Option:
    metavar, help, values, why = field.metadata["option"]
    if isinstance(field.default, bool):
        allowed: Values = _Anything(bool, "True or False")
    elif values is None:
        allowed = _Anything(str, f"text: {help}" if help else "text")
    else:
        allowed = values.of(field.name) if isinstance(values, _Core) else values
        if why and isinstance(allowed, Range):
            allowed = dataclasses.replace(allowed, why=why)
    return Option(field.name, field.default, metavar, help, allowed)


@dataclass(frozen=True)
class Options:
    """Base of options: a frozen dataclass whose fields are :func:`option`."""

    def __post_init__(self) -> None:
        for name, values in self._values().items():
            # The dataclass is frozen, and what it holds is compared, written and read as Python's.
            object.__setattr__(self, name, values.check(name, getattr(self, name)))

    def _values(self) -> dict[str, Values]:
        """Return the values of each field; a class whose fields depend on others narrows them."""
        return {name: one.values for name, one in declared_options(type(self)).items()}

    def replace(self: _OptionsT, **changes: Any) -> _OptionsT:
        """Return a copy with some options changed.

        Raises
        ------
        TypeError
            If a value has another type than its option.
        ValueError
            If an option is unknown or its value is outside its range.
        """
        refuse_unknown(type(self), changes)
        return dataclasses.replace(self, **changes)


# Arguments of other libraries.
_ELSEWHERE = {
    "random_state": "seed",
    "max_iter": "epochs",
    "n_iter": "epochs",
    "n_jobs": "threads, of the trainer",
    "num_workers": "threads, of the trainer",
    "C": "chosen by folds where preparation has the head",
    "alpha": "chosen by folds where preparation has the head",
    "weight_decay": "no option: int8 weights do not grow; the head's is chosen by folds",
    "momentum": "examples/momentum.py, on pmt.Engine",
    "verbose": "progress, of fit",
    "callbacks": "callbacks, of fit",
    "patience": "pmt.callbacks.EarlyStopping(patience), among fit(callbacks=[...])",
    "budget": "macs",
    "device": "no option: training runs on the CPU",
    "shuffle": "no option: every epoch has another order, by seed",
}


def refuse_unknown(options: type[Any], names: Iterable[str]) -> None:
    """Raise a ValueError if a name is not an option of the class."""
    known = [field.name for field in dataclasses.fields(options)]
    for name in names:
        if name not in known:
            here = _ELSEWHERE.get(str(name))
            remedy = f"; here it is {here}" if here else did_you_mean(name, known)
            raise ValueError(f"option {name!r} is unknown{remedy}")


def document_options(options: type[_OptionsT]) -> type[_OptionsT]:
    """Write the class's own options into its docstring."""
    inherited = {field.name for base in options.__mro__[1:-1] for field in _fields(base)}
    lines = [options.__doc__ or "", "", "    Attributes", "    ----------"]
    for one in declared_options(options).values():
        if one.name in inherited:
            continue
        if isinstance(one.values, Words):
            kind = "{" + ", ".join(f'"{word}"' for word in one.values.words) + "}"
        else:
            kind = ", ".join(filter(None, [type(one.default).__name__, one.values.shown("x")]))
        lines.append(f"    {one.name} : {kind}")
        text = one.described("``{}``".format)
        lines += textwrap.wrap(
            f"{text[0].upper()}{text[1:]}.", 100, initial_indent=" " * 8, subsequent_indent=" " * 8
        )
    options.__doc__ = "\n".join([*lines, "    "])
    return options


def _fields(base: type) -> tuple[dataclasses.Field[Any], ...]:
    return dataclasses.fields(base) if dataclasses.is_dataclass(base) else ()


_Choices = dict[str, tuple[Any, ...]]

_BY_WEIGHT: _Choices = {"rule": ("weight", "by_dimension")}
# Options, and the choices under which they are read: any one of a row, and one of each row.
_READ_WITH: tuple[tuple[tuple[str, ...], _Choices], ...] = (
    (("mu_weight", "mu_bias", "sharing", "separate_biases"), _BY_WEIGHT),
    (("mu_node",), {"rule": ("node", "by_dimension", "pooled")}),
    (("nodes",), {"rule": ("node", "by_dimension")}),
    (("node_ratio", "node_dimension"), {"rule": ("by_dimension",)}),
    (("diversity",), {"loss": ("entropy",)}),
    (("bias_rate", "mu_bias", "separate_biases"), {"train_bias": (True,)}),
    (("held_out_share",), {"keep_best": (True,)}),
    (("epochs",), {"macs": (0,)}),
    (("cross_fit",), {"preparation": ("head", "align+head", "input+align+head")}),
)


_OF_QUERIES = (
    *("queries", "mu_weight", "mu_node", "mu_bias", "generator", "pairs", "scope", "baseline"),
    *("rule", "node_dimension", "node_ratio", "nodes", "sharing", "separate_biases", "head_rate"),
)
_OF_UPDATES = ("bias_rate", "quantization_aware_scaling", "rounding", "step")
# Options without effect beside an extension of the user's own.
_BESIDE: tuple[tuple[str, tuple[str, ...], str], ...] = (
    ("estimator", _OF_QUERIES, "an estimator of your own"),
    ("optimizer", ("head_rate", "gradient_norm_scaling"), "an optimizer of your own"),
    ("optimizer", _OF_UPDATES, "an optimizer of your own, but where it returns None"),
)


def warn_without_effect(
    options: object, given: Iterable[str], base: object, extensions: Container[str] = ()
) -> None:
    """Warn of options that a user gave, other than those of ``base``, that have no effect.

    A switch that is turned on asks for an effect even where it is on in ``base``, but not among all
    options at once, as ``get_params`` gives them. ``extensions`` are the kinds of the user's own:
    estimator, optimizer. Called by what the user calls: the warning names that line.
    """
    names = [*given]
    takes_all = {field.name for field in _fields(type(options))} <= {*names}
    for name in names:
        value = getattr(options, name, None)
        asks = value is True and not takes_all
        if value == getattr(base, name, None) and not asks:
            continue
        beside = [what for kind, those, what in _BESIDE if kind in extensions and name in those]
        if beside:
            warnings.warn(OptionWarning(name, f" has no effect with {beside[0]}"), stacklevel=3)
        if beside or value is False or value == "never":  # what is off asks for no effect
            continue
        for choices in (row for those, row in _READ_WITH if name in those):
            chosen = {option: getattr(options, option, None) for option in choices}
            if all(v is not None and v not in choices[o] for o, v in chosen.items()):
                warnings.warn(_warning(name, chosen, choices), stacklevel=3)


def _warning(name: str, chosen: Mapping[str, Any], choices: _Choices) -> OptionWarning:
    """Name the option, the choices made, and those with which it has an effect."""
    made = [part for option, value in chosen.items() for part in (option, f"={value!r}, ")]
    made[-1] = made[-1].removesuffix(", ") + "; it has one with "
    needed = [
        part for option, values in choices.items() for part in (option, f"={_any_of(values)} or ")
    ]
    needed[-1] = needed[-1].removesuffix(" or ")
    return OptionWarning(name, " has no effect with ", *made, *needed)


def _any_of(values: tuple[Any, ...]) -> str:
    *others, last = map(repr, values)
    return " or ".join(filter(None, [", ".join(others), last]))
