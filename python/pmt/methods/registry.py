"""The methods by name, their trainers, and the modules that register more."""

import importlib
import importlib.util
import os
import re
import sys
import warnings
from collections.abc import Iterable
from dataclasses import replace
from importlib.metadata import entry_points
from pathlib import Path
from typing import Any

from pmt._util.checks import check_type, checked_names, checked_word, kind_of
from pmt.methods.catalog import BACKPROP, UNTRAINED, ZEROTH_ORDER, Kind, Method
from pmt.train.extensions import Estimator, Optimizer
from pmt.train.option_fields import warn_without_effect
from pmt.train.options import Preset
from pmt.train.options import preset as preset_options
from pmt.train.run.config import register_options
from pmt.train.run.folder import RunFolder
from pmt.train.schedule import RunOptions
from pmt.train.trainer import Trainer
from pmt.train.zo_trainer import ZOTrainer

METHODS: dict[str, Method] = {**UNTRAINED, **ZEROTH_ORDER, **BACKPROP}

# Kinds of trainers, as run folders name them.
KINDS = {method.kind.name: method.kind for method in METHODS.values()}
for _kind in KINDS.values():
    register_options(_kind.name, _kind.options_class)
# Names that no method of a user's own replaces.
_OWN = frozenset({*METHODS, *KINDS})


def register(
    name: str,
    summary: str,
    *,
    source: str = "registered by the user",
    estimator: Estimator | None = None,
    optimizer: Optimizer | None = None,
    trainer: type[Trainer] | None = None,
    preset: Preset = "default",
    **options: Any,
) -> Method:
    """Register a method: :func:`trainer`, ``pmt train --method``, sweeps and reports then have it.

    Register it where the module is imported, so that a process that resumes a run or works for a
    sweep does it too: name the module in the entry-point group ``pmt.methods`` of its package, in
    the environment variable ``PMT_PLUGINS``, or by ``--plugin``.

    Parameters
    ----------
    name : str
        Lower-case letters, digits and underscores. A method of the user's own may be registered
        again.
    summary : str
        Its principle, in a line.
    source : str
        Publication of the method.
    estimator : Estimator, optional
        Gradients of zeroth-order training, see :class:`pmt.ZOTrainer`.
    optimizer : Optimizer, optional
        Updates of zeroth-order training, in the same unit.
    trainer : type, optional
        Another class than :class:`pmt.ZOTrainer`: a subclass of it or of
        ``pmt.train.trainer.Trainer`` whose ``name`` is the method's.
    preset : {"default", "paper", "released"}
        Preset of zeroth-order training that ``options`` start from.
    **options
        Options that differ.

    Returns
    -------
    Method
        What :data:`METHODS` now holds.

    Raises
    ------
    ValueError, TypeError
        If the name is taken or unfit, or the options do not make a trainer.

    Examples
    --------
    >>> import pmt
    >>> short = pmt.methods.register("short", "the default, with few queries", queries=2)
    >>> pmt.methods.trainer("short").options.queries
    2
    """
    if not isinstance(name, str) or not re.fullmatch("[a-z][a-z0-9_]*", name):
        raise ValueError(f"name={name!r} must be lower-case letters, digits and underscores")
    if name in _OWN:
        raise ValueError(f"name={name!r} is a method or trainer of pmt; choose another")
    kind = _kind_of(name, trainer, estimator, optimizer, preset)
    made = Method(summary, source, kind, options, preset)
    if kind.name == ZOTrainer.name:
        preset_options(preset, **options)
    else:
        kind.trainer_class()(threads=1, **options)
        KINDS[name] = kind
        register_options(name, kind.options_class)
    METHODS[name] = made
    return made


def _kind_of(
    name: str,
    trainer: type[Trainer] | None,
    estimator: Estimator | None,
    optimizer: Optimizer | None,
    preset: Preset,
) -> Kind:
    """Return the kind of a user's method: one of its own unless it has only options."""
    if trainer is not None:
        if not isinstance(trainer, type) or not issubclass(trainer, Trainer):
            raise TypeError(f"trainer is {kind_of(trainer)}: must be a subclass of pmt's Trainer")
        if estimator is not None or optimizer is not None or preset != "default":
            raise ValueError(
                f"trainer={trainer.__name__} goes without estimator, optimizer and preset: they "
                "are pmt.ZOTrainer's"
            )
        if getattr(trainer, "name", None) != name:
            raise ValueError(
                f"trainer={trainer.__name__} must have the class attribute name = {name!r}, which "
                "run folders hold"
            )
        return Kind(name, trainer)
    if estimator is None and optimizer is None:
        return KINDS[ZOTrainer.name]
    return Kind(name, _extended_trainer(name, estimator, optimizer, preset))


def _extended_trainer(
    method: str, estimator: Estimator | None, optimizer: Optimizer | None, preset: Preset
) -> type[Trainer]:
    """Return a class of zeroth-order trainers that brings its estimator and optimizer."""

    class ExtendedTrainer(ZOTrainer):
        name = method

        def __init__(self, options: Any = None, *, threads: int = 0, **changes: Any) -> None:
            base = options if options is not None else preset_options(preset)
            super().__init__(
                base.replace(**changes), threads=threads, estimator=estimator, optimizer=optimizer
            )

    return ExtendedTrainer


def method(name: str) -> Method:
    """Return a method.

    Raises
    ------
    ValueError
        If there is none of that name.
    """
    if not isinstance(name, str) or name not in METHODS:
        load_plugins()
    return METHODS[checked_word("method", name, METHODS)]


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
    options = options_of(name, **changes)
    found: Trainer = made(options, threads=threads)
    warn_without_effect(options, changes, options_of(name), found.extensions)
    found.method_batch = options_of(name).batch
    return found


def options_of(name: str, **changes: Any) -> RunOptions:
    """Return a method's options, some of them changed; errors as in :func:`trainer`."""
    chosen = method(name)
    options = {**chosen.options, **changes}
    if chosen.kind.name == ZOTrainer.name:
        return preset_options(chosen.preset, **options)
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
    check_type("folder", folder, RunFolder, "a pmt.RunFolder")
    load_plugins()
    config = folder.config()
    made = KINDS[folder.trainer()].trainer_class()(config.options, threads=threads)
    if dict(made.extensions) != dict(config.extensions):
        own = ", ".join(f"{kind}={name}" for kind, name in config.extensions.items())
        if made.extensions:
            differences = config.differences(replace(config, extensions=made.extensions))
            raise ValueError(
                f"{folder.path}: the method {config.trainer!r} is not the one that began the run; "
                f"register that one, or begin anew in another folder: {'; '.join(differences)}"
            )
        raise ValueError(
            f"{folder.path}: the run trains with {own}, which no folder can hold; continue with "
            "the call that began it, or register them as a method and train by its name"
        )
    return made


GROUP = "pmt.methods"
VARIABLE = "PMT_PLUGINS"

_LOADED: set[str] = set()


def load_plugins(names: Iterable[str] = ()) -> None:
    """Import the modules that register methods, each once.

    They are those of the entry points in the group ``pmt.methods``, those that the environment
    variable ``PMT_PLUGINS`` names, separated by commas, and those given here, which are added to
    the variable, so that the worker processes of a sweep import them too.

    Parameters
    ----------
    names : iterable of str
        Importable modules, or paths of ``.py`` files.

    Raises
    ------
    ValueError
        If a name is empty.
    ImportError
        If a module that is named cannot be imported. An entry point that fails is left out with a
        warning.
    """
    for name in checked_names("names", names):
        if not name:
            raise ValueError("plugin='' names nothing; give a module or the path of a .py file")
        _add_to_environment(name)
    for point in entry_points(group=GROUP):
        key = f"{GROUP}: {point.name} = {point.value}"
        if key in _LOADED:
            continue
        _LOADED.add(key)
        try:
            point.load()
        except Exception as error:  # a package of others must not stop every command
            warnings.warn(f"entry point {key!r} is left out: {error}", RuntimeWarning, stacklevel=2)
    for name in _named():
        if name not in _LOADED:
            _import(name)
            _LOADED.add(name)


def _named() -> list[str]:
    return [name for name in os.environ.get(VARIABLE, "").split(",") if name]


def _add_to_environment(name: str) -> None:
    full = str(Path(name).absolute()) if name.endswith(".py") else name
    if full not in _named():
        os.environ[VARIABLE] = ",".join([*_named(), full])


def _import(name: str) -> None:
    try:
        if name.endswith(".py"):
            _import_file(Path(name))
        else:
            importlib.import_module(name)
    except (ImportError, OSError) as error:
        raise ImportError(
            f"plugin={name!r}: {error}; give an importable module or the path of a .py file"
        ) from error


def _import_file(path: Path) -> None:
    spec = importlib.util.spec_from_file_location(path.stem, path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules.setdefault(path.stem, module)
    spec.loader.exec_module(module)
