"""Training by sparse back-propagation, and the choice of the updated parts."""

import json
from abc import abstractmethod
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from pmt._util.checks import check_type
from pmt._util.parsing import parse_json
from pmt._util.text import did_you_mean
from pmt.baselines.backprop.cost import backward_work
from pmt.baselines.backprop.options import BackpropOptions
from pmt.baselines.backprop.scheme import UpdateScheme
from pmt.baselines.backprop.trainer import BackpropTrainer
from pmt.baselines.sparse_update.channels import (
    Budgets,
    channel_potentials,
    chosen_scheme,
    inspected_layers,
    select_scheme,
)
from pmt.baselines.sparse_update.contribution import UpdateMemory, analyze, scheme_memory
from pmt.baselines.sparse_update.options import (
    PUBLISHED,
    MCUTrainOptions,
    TinyTrainOptions,
    published_scheme,
)
from pmt.datasets import Dataset
from pmt.datasets.dataset import DataLike, paired
from pmt.errors import OptionError
from pmt.model import Model
from pmt.protocol import DataSource, SplitChoice
from pmt.train.costs.work import Cost
from pmt.train.run.folder import RunFolder
from pmt.train.run.result import RunResult


class _SparseTrainer(BackpropTrainer):
    """Trains parts that are chosen once, before the first step, and kept with the run's options."""

    options: MCUTrainOptions | TinyTrainOptions
    options_class: type[MCUTrainOptions] | type[TinyTrainOptions]
    file_option: ClassVar[str]  # takes the name of a scheme's file, too

    def __init__(self, options: Any = None, *, threads: int = 0, **changes: Any) -> None:
        base = options if options is not None else self.options_class()
        given = changes.get(self.file_option)
        if given is not None and given != getattr(base, self.file_option, None):
            changes[self.file_option] = _inline(given)
        super().__init__(base, threads=threads, **changes)

    def presets(self) -> dict[str, Any]:
        """Return the options of a trainer without arguments; it has no presets."""
        return {"": type(self.options)()}

    def scheme(self, model: Model) -> UpdateScheme:
        """Return the scheme of a run on ``model``, with its channels."""
        return UpdateScheme.from_json(parse_json(self.options.chosen, "chosen"), model)

    @abstractmethod
    def choose(self, model: Model, data: Dataset) -> UpdateScheme:
        """Return the scheme of a run on ``model`` and ``data``."""

    def fit(
        self,
        model: Model,
        data: DataLike | npt.ArrayLike,
        labels: npt.ArrayLike | None = None,
        **arguments: Any,
    ) -> RunResult:
        """Choose the scheme, by the prepared model, and train; see :meth:`pmt.ZOTrainer.fit`.

        The choice becomes part of the run folder's options, and a run that is resumed keeps it.
        """
        data = paired(data, labels, "data")
        if self.options.chosen:
            return super().fit(model, data, **arguments)
        text = self._begun(arguments.get("out"))
        if text is None:
            prepared, data = model.copy(), Dataset.of(data)
            self.preparation.apply(prepared, data)
            text = self.choose(prepared, data).text(model)
        bound = type(self)(self.options, threads=self.threads, chosen=text)
        return bound.fit(model, data, **arguments)

    def _begun(self, out: str | Path | RunFolder | None) -> str | None:
        """Return the choice of a run that has begun with the same options."""
        folder = RunFolder.of(out, "out") if out is not None else None
        if folder is None or not folder.exists() or folder.trainer() != self.name:
            return None
        there = folder.read_config(type(self.options))[0]
        return str(there.chosen) if there.replace(chosen="") == self.options else None


class MCUTrainTrainer(_SparseTrainer):
    """Trains a fixed part of a network: biases of its last layers, some channels of some layers.

    MCUTrain's sparse update (Lin et al. 2022, arXiv:2206.15472).

    Parameters
    ----------
    options : MCUTrainOptions, optional
        All options; by default those of :class:`pmt.baselines.sparse_update.MCUTrainOptions`.
    threads : int
        Torch's threads, see :class:`pmt.backprop.BackpropTrainer`.
    **changes
        Options that differ. ``scheme`` may also be the name of a JSON file, as
        :meth:`pmt.baselines.sparse_update.UpdateScheme.save` writes it.

    Raises
    ------
    ValueError, TypeError
        If an option is unknown or outside its range.
    OSError
        If the scheme's file cannot be read.
    """

    name = "mcutrain"
    options: MCUTrainOptions
    options_class = MCUTrainOptions
    file_option = "scheme"

    def scheme(self, model: Model) -> UpdateScheme:
        """Return the scheme of a run on ``model``; by its present weights where none has begun."""
        return super().scheme(model) if self.options.chosen else self.choose(model)

    def choose(self, model: Model, data: Dataset | None = None) -> UpdateScheme:
        """Return the scheme with the channels of the largest weights."""
        return chosen_scheme(model, named_scheme(model, self.options.scheme))


class TinyTrainTrainer(_SparseTrainer):
    """Trains the layers and channels that matter most to the data, within budgets.

    TinyTrain's task-adaptive sparse update (Kwon et al. 2024, arXiv:2307.09988).

    Parameters
    ----------
    options : TinyTrainOptions, optional
        All options; by default those of :class:`pmt.baselines.sparse_update.TinyTrainOptions`.
    threads : int
        Torch's threads, see :class:`pmt.backprop.BackpropTrainer`.
    **changes
        Options that differ. ``chosen`` may also be the name of a JSON file, like ``scheme`` of
        :class:`MCUTrainTrainer`; errors are the same, too.
    """

    name = "tinytrain"
    options: TinyTrainOptions
    options_class = TinyTrainOptions
    file_option = "chosen"

    def scheme(self, model: Model) -> UpdateScheme:
        """Return the scheme of a run on ``model``, once it is chosen.

        Raises
        ------
        ValueError
            If it is not: the choice takes data, see :meth:`choose`.
        """
        if not self.options.chosen:
            raise ValueError(
                "TinyTrain chooses by the data; give the scheme that `pmt scheme` made of it"
            )
        return named_scheme(model, self.options.chosen)

    def choose(self, model: Model, data: Dataset) -> UpdateScheme:
        """Return the scheme of a run, see :func:`tinytrain_scheme`."""
        return tinytrain_scheme(model, data, self.options)

    def cost(self, model: Model, *, samples: int | None = None) -> Cost:
        """Count one step's work; before the choice is made, the most that the budget allows."""
        if self.options.chosen:
            return super().cost(model, samples=samples)
        backward = int(self.options.backward_macs * full_backward_macs(model))
        return Cost(0, self._images_of_step(samples) * (model.macs + backward))


def tinytrain_scheme(model: Model, data: Dataset, options: TinyTrainOptions) -> UpdateScheme:
    """Choose layers and channels by the potential of activations.

    Parameters
    ----------
    model : Model
        The network, as it is before training.
    data : Dataset
        Training images; the first ``options.scored_images`` are used.
    options : TinyTrainOptions
        Budgets, and which layers are scored.

    Returns
    -------
    UpdateScheme
        With its channels chosen.

    Raises
    ------
    ImportError
        If torch is missing.
    ValueError
        If data and model do not fit, or nothing fits the budgets.
    """
    data = model.match_classes(data)
    model.check_classes(data)
    images = model.prepare(data.images[: options.scored_images])
    labels = np.ascontiguousarray(data.labels[: options.scored_images])
    layers = inspected_layers(model, options.inspect)
    potentials = channel_potentials(model, images, labels, layers)
    macs = int(options.backward_macs * full_backward_macs(model))
    return select_scheme(model, potentials, Budgets(options.memory, macs))


def full_backward_macs(model: Model) -> int:
    """Return the multiply-accumulates of a backward pass that trains everything, for one image."""
    work = backward_work(model, UpdateScheme.whole([x.index for x in model.layers], model))
    return work.input_gradients + work.weight_gradients


def _inline(scheme: str) -> str:
    """Return a published name or JSON as it is, and the contents of a file."""
    check_type("scheme", scheme, str, "the name of a published scheme or of a file, or JSON")
    if scheme in PUBLISHED or scheme.startswith("{"):
        return scheme
    if not Path(scheme).is_file():
        known = ", ".join(PUBLISHED)
        raise ValueError(f"scheme={scheme!r} is neither a file nor one of {known}")
    return json.dumps(parse_json(Path(scheme).read_bytes(), scheme), separators=(",", ":"))


def named_scheme(model: Model, scheme: str) -> UpdateScheme:
    """Return a scheme by a published name, a file's name, or from JSON."""
    inline = _inline(scheme)
    if inline in PUBLISHED:
        return published_scheme(model, inline)
    return UpdateScheme.from_json(parse_json(inline, "scheme"), model)


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
        Torch's threads, 0 for all.

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
        If torch is missing.
    """
    if method not in METHODS:
        near = did_you_mean(method, METHODS)
        raise OptionError("method", f" {method!r} is unknown{near}")
    if split is not None:
        check_type("split", split, SplitChoice, "a pmt.protocol.SplitChoice, or None")
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
        chosen = (tinytrain or TinyTrainOptions()).replace(memory=memory)
        scheme = tinytrain_scheme(model, images.train, chosen)
    return ChosenScheme(model, scheme, scheme_memory(model, scheme))
