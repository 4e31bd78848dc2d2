"""The facts about a method: the kind of trainer, its options, and where it is published."""

from __future__ import annotations

import importlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from pmt._util.text import html_table
from pmt.train.trainer import Trainer

__all__ = ["Kind", "Method"]


@dataclass(frozen=True)
class Kind:
    """A kind of trainer.

    Attributes
    ----------
    name : str
        As in a run folder's ``config.toml``.
    trainer : str or type
        Its class, or where that is, ``"module:Class"``; imported when it is needed.
    chooses_layers : bool
        Whether it chooses what it trains, instead of being told ``layers``.
    """

    name: str
    trainer: str | type[Trainer]
    chooses_layers: bool = False

    def trainer_class(self) -> type[Trainer]:
        """Return the class of the trainer, imported if need be."""
        if not isinstance(self.trainer, str):
            return self.trainer
        module, _, name = self.trainer.partition(":")
        found: type[Trainer] = getattr(importlib.import_module(module), name)
        return found

    def options_class(self) -> type[Any]:
        """Import the class of the trainer's options."""
        return self.trainer_class().options_class


_ZEROTH_ORDER = Kind("zeroth_order", "pmt.train.zo_trainer:ZOTrainer")


@dataclass(frozen=True, repr=False)
class Method:
    """A method.

    Attributes
    ----------
    summary : str
        Its principle, in a line.
    source : str
        Publication, and where in it.
    kind : Kind
        Kind of trainer.
    options : dict
        Options that differ from those of the kind (with ``preset``, from the preset's).
    preset : str
        For zeroth-order methods, the preset that ``options`` start from.
    """

    summary: str
    source: str
    kind: Kind = _ZEROTH_ORDER
    options: Mapping[str, Any] = field(default_factory=dict)
    preset: str = "default"

    def __repr__(self) -> str:
        settings = "; ".join(f"{name} {text}" for name, text in self._rows()[1:])
        return f"<Method {self.summary}; {settings}>"

    def __str__(self) -> str:
        rows = self._rows()
        width = max(len(name) for name, _ in rows)
        return "\n".join([self.summary, *(f"{name:<{width}}  {text}" for name, text in rows)])

    def _repr_html_(self) -> str:
        return html_table(self.summary, ["", ""], self._rows())

    def _rows(self) -> list[tuple[str, str]]:
        trainer = self.kind.name
        if trainer == _ZEROTH_ORDER.name:
            trainer += f", preset {self.preset}"
        options = ", ".join(f"{name}={value!r}" for name, value in self.options.items())
        rows = [("source", self.source), ("trainer", trainer)]
        return [*rows, ("options", options)] if options else rows

    @property
    def own_layers(self) -> bool:
        """Whether the layers that it trains are part of the method."""
        return self.kind.chooses_layers or "layers" in self.options

    @property
    def own_queries(self) -> bool:
        """Whether the number of queries is part of the method."""
        return "queries" in self.options
