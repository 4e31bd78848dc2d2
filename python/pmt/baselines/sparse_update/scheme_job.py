"""The choice of what sparse back-propagation updates, from a data source."""

from __future__ import annotations

from dataclasses import dataclass, field
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
from pmt.protocol import DataSource, Split, SplitChoice

__all__ = ["METHODS", "ChosenScheme", "SchemeJob", "choose_scheme"]

METHODS = ("mcutrain", "tinytrain")


@dataclass(frozen=True)
class SchemeJob:
    """A choice of layers and channels within a budget of memory, see :func:`choose_scheme`.

    Parameters
    ----------
    model : Model
        The network.
    data : DataSource
        The images.
    method : {"mcutrain", "tinytrain"}
        Way to choose: by contribution analysis, or by potentials of channels.
    split : SplitChoice
        Images that are looked at and, with ``mcutrain``, those that choose.
    memory : int
        Budget for the memory that the update adds, in bytes.
    training : BackpropOptions
        Options of each training of ``mcutrain``.
    stride : int
        ``mcutrain`` tries only every ``stride``-th number of last layers for the biases.
    cache : str or pathlib.Path, optional
        JSON file that keeps every measurement of ``mcutrain``; an analysis continues from it.
    tinytrain : TinyTrainOptions
        Options of ``tinytrain``; its ``memory`` is that of the job.
    threads : int
        Threads to use, 0 for all.
    """

    model: Model
    data: DataSource
    method: str
    split: SplitChoice = field(default_factory=SplitChoice)
    memory: int = 100 * 1024
    training: BackpropOptions = field(
        default_factory=lambda: BackpropOptions(epochs=1, batch=64, learning_rate=0.01)
    )
    stride: int = 1
    cache: str | Path | None = None
    tinytrain: TinyTrainOptions = field(default_factory=TinyTrainOptions)
    threads: int = 0


@dataclass(frozen=True)
class ChosenScheme:
    """A scheme for a model, and the memory that it adds, in bytes."""

    model: Model
    scheme: UpdateScheme
    memory: UpdateMemory

    def to_json(self) -> dict[str, Any]:
        """Return the figures for JSON."""
        return {**self.scheme.to_json(self.model), "memory": self.memory.total}


def choose_scheme(job: SchemeJob) -> ChosenScheme:
    """Choose what MCUTrain or TinyTrain updates.

    Parameters
    ----------
    job : SchemeJob
        The network, the images and the budget.

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
    if job.method not in METHODS:
        near = did_you_mean(job.method, METHODS)
        raise OptionError("method", f" {job.method!r} is unknown{near}")
    images = job.split.of(job.data, job.model)
    choose = _by_contribution if job.method == "mcutrain" else _by_potential
    scheme = choose(job, images)
    return ChosenScheme(job.model, scheme, scheme_memory(job.model, scheme))


def _by_contribution(job: SchemeJob, images: Split) -> UpdateScheme:
    found = analyze(
        job.model,
        images.train,
        images.choosing(),
        options=job.training,
        stride=job.stride,
        cache=job.cache,
        threads=job.threads,
    )
    return chosen_scheme(job.model, found.scheme(job.model, job.memory))


def _by_potential(job: SchemeJob, images: Split) -> UpdateScheme:
    from pmt.baselines.sparse_update.trainer import tinytrain_scheme

    options = job.tinytrain.replace(memory=job.memory)
    return tinytrain_scheme(job.model, images.train, options, threads=thread_count(job.threads))
