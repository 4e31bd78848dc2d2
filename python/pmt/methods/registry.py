"""The methods by name, and their trainers."""

from __future__ import annotations

from typing import Any

from pmt.methods.baselines import BACKPROP, UNTRAINED
from pmt.methods.method import Method
from pmt.methods.zeroth_order import ZEROTH_ORDER
from pmt.train.options import preset
from pmt.train.run_config import register_options
from pmt.train.run_folder import RunFolder, RunOptions
from pmt.train.training_run import Trainer

__all__ = ["METHODS", "method", "options_of", "resumed_trainer", "trainer"]

METHODS: dict[str, Method] = {
    **UNTRAINED,
    **ZEROTH_ORDER,
    **BACKPROP,
}

# Kinds of trainers, as run folders name them.
KINDS = {method.kind.name: method.kind for method in METHODS.values()}
for _kind in KINDS.values():
    register_options(_kind.name, _kind.options_class)


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
    made = method(name).kind.trainer_class()
    return made(options_of(name, **changes), threads=threads)


def options_of(name: str, **changes: Any) -> RunOptions:
    """Return a method's options, some of them changed; errors as of :func:`trainer`."""
    chosen = method(name)
    options = {**chosen.options, **changes}
    if chosen.kind.name == "zeroth_order":
        return preset(chosen.preset, **options)
    return chosen.kind.trainer_class()(threads=1, **options).options


def resumed_trainer(folder: RunFolder, *, threads: int = 0) -> Trainer:
    """Return the trainer of a run, with its options.

    Raises
    ------
    ValueError
        If the run's ``config.toml`` is damaged, its trainer unknown, or it trains with an estimator
        or optimizer of the user's own.
    ImportError
        If the trainer needs a package that is not installed.
    """
    config = folder.config()
    made = KINDS[folder.trainer()].trainer_class()(config.options, threads=threads)
    if dict(made.extensions) != dict(config.extensions):
        own = ", ".join(f"{kind}={name}" for kind, name in config.extensions.items())
        raise ValueError(
            f"{folder.path}: the run trains with {own}, which no folder can hold; go on with the "
            "call that began it, or register them as a method and train by its name"
        )
    return made
