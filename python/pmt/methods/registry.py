"""The methods by name, and their trainers, which are imported when one is made."""

from __future__ import annotations

import importlib
from typing import Any

from pmt.methods.backprop import BACKPROP
from pmt.methods.method import Method
from pmt.methods.zeroth_order import ZEROTH_ORDER
from pmt.options import preset
from pmt.run_folder import RunFolder, RunOptions
from pmt.training_run import Trainer

__all__ = ["METHODS", "method", "options_of", "resumed_trainer", "trainer"]

METHODS: dict[str, Method] = {
    "no_adaptation": Method(
        "the network as it is", "the lower bound of every comparison", kind="no_adaptation"
    ),
    **ZEROTH_ORDER,
    **BACKPROP,
}

# The trainer of each kind: module and class. Made as Class(options, threads=...).
_TRAINERS = {
    "zeroth_order": ("pmt.trainer", "ZOTrainer"),
    "no_adaptation": ("pmt.methods.no_adaptation", "NoAdaptation"),
    "backprop": ("pmt.backprop.trainer", "BackpropTrainer"),
    "mcutrain": ("pmt.sparse_update.trainer", "MCUTrainTrainer"),
    "tinytrain": ("pmt.sparse_update.trainer", "TinyTrainTrainer"),
}


def method(name: str) -> Method:
    """Return a method.

    Raises
    ------
    ValueError
        If there is none of that name.
    """
    if name not in METHODS:
        raise ValueError(f"method={name!r} is unknown; choose one of {', '.join(METHODS)}")
    return METHODS[name]


def trainer(name: str, *, threads: int = 0, **changes: Any) -> Trainer:
    """Return a trainer by the name of its method.

    Parameters
    ----------
    name : str
        One of :data:`METHODS`.
    threads : int
        Threads to use, 0 for all.
    **changes
        Options that differ from the method's.

    Returns
    -------
    Trainer
        With ``fit``, ``cost`` and ``options``.

    Raises
    ------
    ValueError, TypeError
        If the method or an option is unknown, or an option is outside its range.
    ImportError
        If the method needs a package that is not installed.

    Examples
    --------
    >>> import pmt
    >>> pmt.methods.trainer("bias_only", queries=20).options.train_weights
    False
    """
    chosen = method(name)
    return _made(chosen.kind, options_of(name, **changes), threads)


def options_of(name: str, **changes: Any) -> RunOptions:
    """Return a method's options, some of them changed; errors as of :func:`trainer`."""
    chosen = method(name)
    options = {**chosen.options, **changes}
    if chosen.kind == "zeroth_order":
        return preset(chosen.preset, **options)
    return _made(chosen.kind, None, 1, **options).options


def resumed_trainer(folder: RunFolder, *, threads: int = 0) -> Trainer:
    """Return the trainer of a run, with its options.

    Raises
    ------
    ValueError
        If the run's ``config.toml`` is damaged or its trainer unknown.
    ImportError
        If the trainer needs a package that is not installed.
    """
    return _made(folder.trainer(), folder.read_config()[0], threads)


def _made(kind: str, options: RunOptions | None, threads: int, **changes: Any) -> Trainer:
    module, name = _TRAINERS[kind]
    made: Trainer = getattr(importlib.import_module(module), name)(
        options, threads=threads, **changes
    )
    return made
