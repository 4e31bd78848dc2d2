"""Trainers: options, the cost of a step, and runs."""

import inspect
import warnings
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import fields, replace
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt

from pmt._util import atomic_file
from pmt._util.arrays import Int64Array
from pmt._util.checks import check_type, checked_integer, checked_range
from pmt._util.processes import thread_count
from pmt._util.text import counted
from pmt.callbacks import CallbackLike
from pmt.datasets import Dataset
from pmt.datasets.arrays import checked_groups
from pmt.datasets.dataset import DataLike, paired
from pmt.errors import OptionWarning
from pmt.model import Model
from pmt.model.data_checks import seen_images, warning_of_seen
from pmt.model.input_conversion import check_inputs
from pmt.model.model import check_model
from pmt.train.costs.work import Cost
from pmt.train.extension_names import full_name, kept_names
from pmt.train.losses import reads_labels
from pmt.train.prepare.linear_head import head_macs, head_op
from pmt.train.prepare.preparation import Preparation
from pmt.train.run.folder import RunFolder
from pmt.train.run.keep_best import Images, held_out_indices
from pmt.train.run.loop import Run
from pmt.train.run.observers import Progress, check_progress, checked_callbacks
from pmt.train.run.result import RunResult
from pmt.train.schedule import RunOptions, Schedule
from pmt.train.stepper import Stepper
from pmt.train.training_data import (
    check_apart,
    checked_training_data,
    measured_images,
    warning_of_classes,
    warning_of_copies,
)

__all__ = ["Progress", "Trainer"]


_TrainerT = TypeVar("_TrainerT", bound="Trainer")
# Arguments that every trainer may take: the options as a whole, and the threads.
_COMMON = ("options", "preset", "threads")


class Trainer(ABC):
    """Base of trainers: options, a cost, and ``fit``.

    Its parameters are the options, one by one, and what else a trainer takes, which it keeps in
    attributes of these names.

    Parameters
    ----------
    options : dataclass, optional
        All options; by default those of ``options_class()``.
    threads : int
        Threads to use; 0 takes all, but one in a worker of a process pool.
    **changes
        Options that differ.

    Attributes
    ----------
    name : str
        Name of the kind of trainer, as in a run folder's ``config.toml``.
    options_class : type
        Class of the options: a frozen dataclass of str, int, float and bool.
    options : dataclass
        The options.
    threads : int
        Threads of the evaluation, and of the training where it uses the core.
    extensions : dict of str to str
        Names of the user's own loss, estimator and optimizer, as in ``config.toml``: each with
        eight digits that stand for its parameters and its code.
    """

    name: str
    options_class: type[Any]
    options: RunOptions
    threads: int
    method_batch: int | None = None  # of the method whose options it started from

    def __init__(self, options: Any = None, *, threads: int = 0, **changes: Any) -> None:
        base = options if options is not None else self.options_class()
        kind = self.options_class
        rule = f"{kind.__name__}; single options are given by name, learning_rate=0.1"
        check_type("options", base, kind, rule)
        self.options = base.replace(**changes)
        self.threads = thread_count(threads)

    @abstractmethod
    def cost(self, model: Model, *, samples: int | None = None) -> Cost:
        """Count one step's work, for the options' batch or another number of samples."""

    def _images_of_step(self, samples: int | None) -> int:
        """Return the images of a step: a number that is given, or the options' batch."""
        return self.options.batch if samples is None else checked_range("samples", samples, 1)

    @abstractmethod
    def stepper(self, model: Model, samples: int) -> Stepper:
        """Return the stepper of a run on ``model``, with this many training samples."""

    def training_data(self, model: Model, data: DataLike) -> Dataset:
        """Return the training data: the data set of the caller's arguments, with its labels."""
        return Dataset.of(data, "data")

    def check_data(self, model: Model, data: Dataset) -> None:
        """Raise a ValueError if the trainer cannot use the labels; by default they are classes."""
        model.check_classes(data)

    def extension_objects(self) -> Mapping[str, object]:
        """Return the user's own parts, by their argument."""
        return {}

    @property
    def extensions(self) -> Mapping[str, str]:
        """The names of the user's own parts, by their argument, with digits of each."""
        return {kind: full_name(one) for kind, one in self.extension_objects().items()}

    @property
    def trains_floats(self) -> bool:
        """Whether a float network is trained and measured, which no ``.pmt`` holds."""
        return False

    @property
    def chooses_state(self) -> bool:
        """Whether a run may end in another state than its last."""
        return not self.trains_floats

    def held_out_images(self, data: Dataset) -> int:
        """Return how many of its training images a run holds out, see :meth:`held_out_indices`."""
        return len(self.held_out_indices(data))

    def held_out_indices(self, data: Dataset) -> Int64Array:
        """Return which of its training images a run holds out to choose its best state.

        None where they have no class labels, by which states are compared.

        Raises
        ------
        ValueError
            If the others do not fill a batch.
        """
        data = Dataset.of(data, "data")
        if not self.chooses_state:
            return np.empty(0, np.int64)
        found = held_out_indices(self.options, data)
        samples, count = len(data), len(found)
        batch = self.options.batch
        if count > 0 and samples - count < batch:
            whole = ", or keep_best=False, which trains on all" if batch <= samples else ""
            raise ValueError(
                f"batch={batch} is larger than the {counted(samples - count, 'training image')} "
                f"left, {count} of {samples} {'is' if count == 1 else 'are'} held out to choose "
                f"the best state; use a smaller batch{whole}"
            )
        return found

    def fitted_to(self: _TrainerT, data: Dataset, held_out: Dataset | None = None) -> _TrainerT:
        """Return the trainer with batches that the images fill.

        Itself, but where the batch is a preset's or a method's and larger than the images of
        ``data`` that are trained on: then a copy, which takes them all at once. A batch that was
        given stays, and :meth:`fit` refuses it.

        Warns
        -----
        OptionWarning
            If the batch is smaller.
        """
        data = Dataset.of(data, "data")
        parts = held_out is None and self.chooses_state
        count = len(data) - (len(held_out_indices(self.options, data)) if parts else 0)
        cross_fit = getattr(self.options, "cross_fit", "never") == "always"
        count = count // 2 if cross_fit else count  # each half of an epoch has a step
        batch = self.options.batch
        usual = {options.batch for options in self.presets().values()} | {self.method_batch}
        if batch <= count or batch not in usual:
            return self
        where = " of a half, for cross_fit" if cross_fit else " left" if count < len(data) else ""
        left = f"the {counted(count, 'training image')}{where}"
        message = f" {batch}, the default, is larger than {left}: a step takes all of them"
        warnings.warn(OptionWarning("batch", message), stacklevel=3)
        return type(self)(**{**self.get_params(), "batch": count})

    @property
    def preparation(self) -> Preparation:
        """The preparation of a model before the first step."""
        return Preparation(self.options, threads=self.threads)

    def schedule(self, model: Model, samples: int, *, pixels: bool = True) -> Schedule:
        """Return the schedule of a run on this many samples: pixels of images, or other inputs.

        With ``macs`` and ``cross_fit="auto"`` the run takes fewer steps if it chooses such heads.
        """
        samples = checked_integer("samples", samples)
        macs = self.cost(model).macs if self.options.macs > 0 else None
        before = self.preparation.cost(model, samples, pixels=pixels).macs
        schedule = Schedule(self.options, samples, macs, before)
        if self.cross_fitting(model) == "always":
            schedule.spend_on_heads(head_macs(model, samples))
        return schedule

    def cross_fitting(self, model: Model) -> str:
        """Return the option cross_fit, or never if no head is solved or nothing else is trained."""
        option: str = getattr(self.options, "cross_fit", "never")
        if option == "never" or not self.preparation.trains_head(model):
            return "never"
        trained = model.select_layers(self.options.layers)
        return option if any(layer != head_op(model) for layer in trained) else "never"

    def schedule_on(self, model: Model, data: Dataset) -> Schedule:
        """Return the schedule of :meth:`fit` on a data set, of which a part may be held out."""
        data = Dataset.of(data, "data")
        trained = len(data) - self.held_out_images(data)
        return self.schedule(model, trained, pixels=data.has_pixels)

    def fit(
        self,
        model: Model,
        data: DataLike | npt.ArrayLike,
        labels: npt.ArrayLike | None = None,
        *,
        valid: DataLike | None = None,
        held_out: DataLike | None = None,
        groups: npt.ArrayLike | None = None,
        out: str | Path | RunFolder | None = None,
        source: dict[str, Any] | None = None,
        progress: Progress = True,
        callbacks: Sequence[CallbackLike] = (),
    ) -> RunResult:
        """Train the model in place.

        With the option ``keep_best``, the model ends in the state that is best on images held out
        of training. The states are the original model, aligned, with its head trained, and after
        each epoch; the best one has the least loss on the held-out images: of the loss that is
        trained, or cross-entropy where that reads no class labels. It replaces the original model
        only if it is clearly better: docs/concepts/run.md has the rule.

        A model whose head is trained on other classes than it names gets their names in the end,
        if the data set names as many as the model has.

        Parameters
        ----------
        model : Model
            The model; its weights change.
        data : Dataset or tuple of two arrays
            Training images and labels, see :meth:`pmt.datasets.Dataset.from_arrays`; where the
            loss does without class labels, also :meth:`pmt.datasets.Dataset.unlabeled` images, or
            some of :meth:`pmt.datasets.Dataset.with_targets`.
        labels : array_like of int, optional
            The labels, (N,) or (N, 1), where ``data`` is the images alone.
        valid : Dataset or tuple of two arrays, optional
            Images with class labels to watch: their accuracy and cross-entropy are measured before
            training, after every phase and every epoch. Nothing is chosen on them.
        held_out : Dataset or tuple of two arrays, optional
            Images with class labels to choose the best state on, which is then kept whatever
            ``keep_best`` says; by default a share of ``data``, of each class alike, and none
            where ``data`` has no class labels. Their accuracy is optimistic:
            measure on others.
        groups : array_like of int or str, optional
            Shape (N,): the group of each training image, in place of those of ``data``. Near
            copies, such as frames of a video or augmented images, are one group: all of it is
            trained on, or held out. Images with equal pixels are always kept together.
        out : str, pathlib.Path or RunFolder, optional
            Run folder. If it holds an unfinished run of the same options, data and model (as it
            was before training, or as the run saved it last), that run is resumed, bit for bit; a
            finished one is returned as it is. One process at a time works in a folder.
        source : dict, optional
            Origin of model and data, for the run folder's ``config.toml``.
        progress : bool or callable
            Show a progress line on a terminal or in a notebook; or call ``progress(step, record)``
            after each step.
        callbacks : sequence of callables
            Called with a :class:`pmt.callbacks.Event` after each phase, step and epoch. One that
            returns True or raises :class:`pmt.callbacks.StopTraining` ends the run, as if it were
            its last step; other errors of theirs end it as Ctrl-C does.

        Returns
        -------
        RunResult
            History and the trained model.

        Raises
        ------
        ValueError
            If data and model do not fit, or images to choose on are fewer than 4, or also trained
            on or measured.
        pmt.errors.OtherRunError
            If the run folder belongs to another run; the error says what differs.
        pmt.errors.FileError
            If a file of the run folder is damaged.
        pmt.errors.FolderBusyError
            If another process works in the run folder.
        pmt.errors.ModelBusyError
            If another call uses the model.
        OSError
            If the run folder cannot be written, or is removed while the run trains in it.
        KeyboardInterrupt
            On Ctrl-C, within a second. The checkpoint in ``out`` is of a whole step, mostly of the
            last one.

        Warns
        -----
        UserWarning
            If no best state is kept, and the run ends worse on ``valid`` than it began: with a
            lower accuracy, and a loss higher by more than one standard error. If the data have
            other classes than the model, the loss reads labels, and the head is not trained. If
            training images have equal pixels, the network has seen some before, some of ``valid``
            are among them, or early stopping watches ``valid``.
        """
        check_model(model)
        unseen = held_out is None and reads_labels(getattr(self.options, "loss", ""))
        given = paired(data, labels, "data")
        data, valid = checked_training_data(
            model,
            self.training_data(model, given),
            valid,
            self.check_data,
            warns_of_missing=unseen,
        )
        message = warning_of_classes(model, data, self.options)
        if message is not None:
            warnings.warn(message, stacklevel=2)
        if held_out is not None:
            held_out = measured_images(model, held_out, "held_out")
        if groups is not None:
            data = replace(data, groups=checked_groups(groups, len(data)))
        callbacks = checked_callbacks(callbacks)
        check_progress(progress)
        check_type("source", source, (dict, type(None)), "a dict that config.toml keeps, or None")
        check_apart(data, valid, held_out, callbacks)
        seen = int(seen_images(model.metadata, data).sum())
        if seen:
            warnings.warn(warning_of_seen(seen, len(data)), stacklevel=2)
        copies = warning_of_copies(data) if held_out is None and self.chooses_state else None
        if copies is not None:
            warnings.warn(copies, stacklevel=2)
        folder = RunFolder.of(out, "out") if out is not None else None
        trainer = self.fitted_to(data, held_out)
        if data.images.shape[3] == model.image_shape[2]:
            trainer.preparation.admit(model, data.pixel_size)
        check_inputs(model.core, data, given)  # before a folder is made
        images = Images.of(trainer, data, valid, held_out)
        with kept_names(trainer.extension_objects().values()):
            run = Run(trainer, model, images, folder, progress, callbacks)
            if folder is None:
                return run.execute(source or {})
            if not folder.exists():
                folder.check_free()
            above = folder.path.absolute().parent
            with atomic_file.explaining("the folder could not be made", above):
                above.mkdir(parents=True, exist_ok=True)
            with folder.lock.holding(f"out={str(folder.path)!r}"):
                folder.remove_strays()
                return run.execute(source or {})

    def presets(self) -> dict[str, Any]:
        """Return options by the name of their preset, first those of a trainer without arguments.

        A trainer without presets has one of the name ``""``.
        """
        return {"": type(self.options)()}

    def option_objects(self) -> dict[str, Any]:
        """Return objects that were given instead of an option's word, by the option's name.

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

    def set_params(self: _TrainerT, **changes: Any) -> _TrainerT:
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
        made.method_batch = self.method_batch
        vars(self).clear()
        vars(self).update(vars(made))
        return self

    def __repr__(self) -> str:
        """Return the call that makes the trainer, with its differences from the nearest preset."""
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
