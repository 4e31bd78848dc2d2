"""A trainer's parameters by name, as scikit-learn's tools read, change and copy them."""

from __future__ import annotations

import inspect
from dataclasses import fields
from typing import Any, TypeVar

__all__ = ["Parameters"]

_ParametersT = TypeVar("_ParametersT", bound="Parameters")
# Arguments that every trainer may take: the options as a whole, and the threads.
_COMMON = ("options", "preset", "threads")


class Parameters:
    """Base of trainers, whose parameters are the options, one by one, and what else they take.

    A trainer that takes more arguments than these keeps each in an attribute of its name.
    """

    options: Any
    threads: int

    def presets(self) -> dict[str, Any]:
        """Return options by the name of their preset, first those of a trainer without arguments.

        A trainer without presets has one of the name ``""``.
        """
        return {"": type(self.options)()}

    def option_objects(self) -> dict[str, Any]:
        """Return what was given instead of an option's word, by the option's name.

        For trainers that take an object among the options and keep its name in them.
        """
        return {}

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """Return all parameters, so that ``type(trainer)(**trainer.get_params())`` is a copy.

        Parameters
        ----------
        deep : bool
            For scikit-learn, whose estimators may hold others; it changes nothing here.

        Returns
        -------
        dict of str to value
            Every option, ``threads``, and other arguments of the trainer.
        """
        options = {field.name: getattr(self.options, field.name) for field in fields(self.options)}
        own = {name: getattr(self, name) for name in self._own()}
        # An argument of an option's name takes an object in its place, or None.
        replaced = {n: value for n, value in own.items() if n not in options or value is not None}
        return {**options, "threads": self.threads, **replaced, **self.option_objects()}

    def set_params(self: _ParametersT, **changes: Any) -> _ParametersT:
        """Change parameters; all of them or, where one is refused, none.

        Parameters
        ----------
        **changes
            Names and values as :meth:`get_params` returns them.

        Returns
        -------
        Trainer
            The trainer itself.

        Raises
        ------
        ValueError, TypeError
            If a name is unknown, or a value is outside its range.
        """
        made = type(self)(**{**self.get_params(), **changes})
        vars(self).clear()
        vars(self).update(vars(made))
        return self

    def __repr__(self) -> str:
        """Return the call that makes the trainer, with what differs from its nearest preset."""
        presets = self.presets()
        differences = {name: self._differences(options) for name, options in presets.items()}
        nearest = min(differences, key=lambda name: len(differences[name]))
        given: dict[str, Any] = {} if nearest == next(iter(presets)) else {"preset": nearest}
        given |= {**differences[nearest], **self.option_objects()}
        if self.threads:
            given["threads"] = self.threads
        for name, parameter in self._own().items():
            value = getattr(self, name, parameter.default)
            if value is not parameter.default:
                given[name] = value
        arguments = ", ".join(f"{name}={value!r}" for name, value in given.items())
        return f"{type(self).__name__}({arguments})"

    def _differences(self, options: Any) -> dict[str, Any]:
        return {
            field.name: getattr(self.options, field.name)
            for field in fields(self.options)
            if getattr(self.options, field.name) != getattr(options, field.name)
        }

    def _own(self) -> dict[str, inspect.Parameter]:
        """Return the arguments of the trainer that are not options."""
        variable = (inspect.Parameter.VAR_KEYWORD, inspect.Parameter.VAR_POSITIONAL)
        return {
            name: parameter
            for name, parameter in inspect.signature(type(self)).parameters.items()
            if name not in _COMMON and parameter.kind not in variable
        }
