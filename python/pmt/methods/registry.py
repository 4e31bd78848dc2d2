"""The methods by name, and their trainers, which are imported when one is made."""

from __future__ import annotations

import importlib
from functools import partial
from typing import Any, NamedTuple

from pmt.methods.baselines import BACKPROP
from pmt.methods.method import Method
from pmt.methods.zeroth_order import ZEROTH_ORDER
from pmt.train.options import preset
from pmt.train.run_config import register_options
from pmt.train.run_folder import RunFolder, RunOptions
from pmt.train.training_run import Trainer

__all__ = ["METHODS", "method", "options_of", "resumed_trainer", "trainer"]

METHODS: dict[str, Method] = {
    "no_adaptation": Method(
        "the network as it is", "the lower bound of every comparison", kind="no_adaptation"
    ),
    **ZEROTH_ORDER,
    **BACKPROP,
}


class _Kind(NamedTuple):
    """Where a kind of trainer is, made as ``Class(options, threads=...)``, and its options."""

    module: str
    trainer: str
    options_module: str
    options: str


_KINDS = {
    "zeroth_order": _Kind("pmt.train.trainer", "ZOTrainer", "pmt.train.options", "TrainingOptions"),
    "no_adaptation": _Kind(
        "pmt.methods.baselines", "NoAdaptation",
        "pmt.methods.baselines", "NoAdaptationOptions",
    ),
    "backprop": _Kind(
        "pmt.baselines.backprop.trainer", "BackpropTrainer",
        "pmt.baselines.backprop.options", "BackpropOptions",
    ),
    "mcutrain": _Kind(
        "pmt.baselines.sparse_update.trainer", "MCUTrainTrainer",
        "pmt.baselines.sparse_update.options", "MCUTrainOptions",
    ),
    "tinytrain": _Kind(
        "pmt.baselines.sparse_update.trainer", "TinyTrainTrainer",
        "pmt.baselines.sparse_update.options", "TinyTrainOptions",
    ),
}  # fmt: skip


def _imported(module: str, name: str) -> Any:
    return getattr(importlib.import_module(module), name)


for _name, _kind in _KINDS.items():
    register_options(_name, partial(_imported, _kind.options_module, _kind.options))


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
    found = _KINDS[kind]
    made: Trainer = _imported(found.module, found.trainer)(options, threads=threads, **changes)
    return made
