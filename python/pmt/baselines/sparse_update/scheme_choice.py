"""The choice of what sparse back-propagation updates, from a data source."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pmt._util.checks import OptionError
from pmt._util.did_you_mean import did_you_mean
from pmt._util.processes import thread_count
from pmt.baselines.backprop.options import BackpropOptions
from pmt.baselines.backprop.scheme import UpdateScheme
from pmt.baselines.sparse_update.channels import chosen_scheme
from pmt.baselines.sparse_update.contribution import UpdateMemory, analyze, scheme_memory
from pmt.baselines.sparse_update.options import TinyTrainOptions
from pmt.model import Model
from pmt.protocol import DataSource, SplitChoice

__all__ = ["METHODS", "ChosenScheme", "choose_scheme"]

METHODS = ("mcutrain", "tinytrain")


@dataclass(frozen=True)
class ChosenScheme:
    """A scheme for a model, and the memory that it adds, in bytes."""

    model: Model
    scheme: UpdateScheme
    memory: UpdateMemory

    def to_json(self) -> dict[str, Any]:
        """Return the figures for JSON."""
        return {**self.scheme.to_json(self.model), "memory": self.memory.total}


def choose_scheme(
    model: Model,
    data: DataSource,
    method: str,
    *,
    split: SplitChoice | None = None,
    memory: int = 100 * 1024,
    training: BackpropOptions | None = None,
    stride: int = 1,
    cache: str | Path | None = None,
    tinytrain: TinyTrainOptions | None = None,
    threads: int = 0,
) -> ChosenScheme:
    """Choose the layers and channels that MCUTrain or TinyTrain updates, within a budget.

    Parameters
    ----------
    model : Model
        The network.
    data : DataSource
        The images.
    method : {"mcutrain", "tinytrain"}
        Way to choose: by contribution analysis, or by potentials of channels.
    split : SplitChoice, optional
        Images that are looked at and, with ``mcutrain``, those that choose.
    memory : int
        Budget for the memory that the update adds, in bytes.
    training : BackpropOptions, optional
        Options of each training of ``mcutrain``; by default an epoch of batches of 64 images with
        a learning rate of 0.01.
    stride : int
        ``mcutrain`` tries only every ``stride``-th number of last layers for the biases.
    cache : str or pathlib.Path, optional
        JSON file that keeps every measurement of ``mcutrain``; an analysis continues from it.
    tinytrain : TinyTrainOptions, optional
        Options of ``tinytrain``; its ``memory`` is that of the budget.
    threads : int
        Threads to use, 0 for all.

    Returns
    -------
    ChosenScheme
        The scheme; ``scheme.save(path, model)`` writes it.

    Raises
    ------
    ValueError, FileNotFoundError
        If the method is unknown, an option is outside its range, the data cannot be read, or
        ``mcutrain`` has no held-out images.
    ImportError
        If torch is missing, which all but potentials by forward passes need.
    """
    if method not in METHODS:
        near = did_you_mean(method, METHODS)
        raise OptionError("method", f" {method!r} is unknown{near}")
    images = (split or SplitChoice()).of(data, model)
    if method == "mcutrain":
        options = training or BackpropOptions(epochs=1, batch=64, learning_rate=0.01)
        found = analyze(
            model,
            images.train,
            images.choosing(),
            options=options,
            stride=stride,
            cache=cache,
            threads=threads,
        )
        scheme = chosen_scheme(model, found.scheme(model, memory))
    else:
        from pmt.baselines.sparse_update.trainer import tinytrain_scheme

        chosen = (tinytrain or TinyTrainOptions()).replace(memory=memory)
        scheme = tinytrain_scheme(model, images.train, chosen, threads=thread_count(threads))
    return ChosenScheme(model, scheme, scheme_memory(model, scheme))
