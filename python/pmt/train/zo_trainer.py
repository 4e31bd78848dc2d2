"""Zeroth-order training of a model."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from pmt import _core
from pmt._util.optional_types import Unpack
from pmt.datasets import Dataset
from pmt.datasets.dataset import DataLike
from pmt.model import Model
from pmt.model.model import check_model
from pmt.train.costs.work import Cost, zeroth_order_work
from pmt.train.engine import Engine
from pmt.train.extended_stepper import ExtendedStepper
from pmt.train.extension_names import kept_names
from pmt.train.extensions import Estimator, Optimizer, check_extensions
from pmt.train.losses import LossFunction, check_labels, check_output, function_name, is_function
from pmt.train.option_fields import warn_without_effect
from pmt.train.options import PRESETS, OptionArguments, Preset, TrainingOptions, check_options
from pmt.train.options import preset as _preset
from pmt.train.prepare.preparation import without_head
from pmt.train.stepper import CoreStepper, Stepper
from pmt.train.trainer import Trainer


class ZOTrainer(Trainer):
    """Trains layers of an int8 model with forward passes only.

    Parameters
    ----------
    options : TrainingOptions, optional
        All options; by default the preset's.
    preset : {"default", "paper", "released"}
        Preset where ``options`` is not given.
    threads : int
        Threads to use; 0 takes all, but one in a worker of a process pool. The result does not
        depend on it.
    estimator : Estimator, optional
        Gradients by a callable ``(engine, images, labels, step) -> {layer: gradient}`` of your own
        instead of the built-in queries, see :class:`pmt.train.extensions.Estimator`.
    optimizer : Optimizer, optional
        Updates by a callable ``(layer, gradient, learning_rate) -> update`` of
        your own, see :class:`pmt.train.extensions.Optimizer`. Every run works on copies of both,
        as they were given.
    **changes
        Options that differ from the preset, see :class:`pmt.TrainingOptions`. ``loss`` may be a
        callable, too: ``loss(logits, labels)`` gets float32 logits of shape (queries, samples,
        classes) and the samples' labels, int64 of shape (samples,), float32 targets of shape
        (samples, classes), or None, and returns the losses, shape (queries, samples), finite
        numbers of which -1024 to 1024 count. It is called by the training's threads, one at a
        time, for a block of queries of one sample; it must be a function of its arguments alone.
        What it raises, ``fit`` raises, with the weights as before the step. ``options.loss`` and
        run folders hold its name.

    Attributes
    ----------
    loss_function : callable or None
        The callable given as ``loss``.

    Raises
    ------
    ValueError, TypeError
        If an option is unknown or outside its range, or does not go with an estimator or optimizer
        of your own; or ``options`` name a callable as the loss that is not given.

    Examples
    --------
    >>> import pmt
    >>> model = pmt.load("fashion_mnist_dscnn")
    >>> data = pmt.corruptions.corrupt(pmt.datasets.bundled("train"), "gaussian_noise", 5)
    >>> trainer = pmt.ZOTrainer(layers="B1,head", epochs=1, queries=2, batch=100)
    >>> result = trainer.fit(model, data, progress=False)
    >>> len(result.epochs)
    1
    """

    name = "zeroth_order"
    options: TrainingOptions
    options_class = TrainingOptions

    def __init__(
        self,
        options: TrainingOptions | None = None,
        *,
        preset: Preset = "default",
        threads: int = 0,
        estimator: Estimator | None = None,
        optimizer: Optimizer | None = None,
        **changes: Unpack[OptionArguments],
    ) -> None:
        if options is not None:
            check_options(
                options,
                "options by name are given as they are, for example ZOTrainer(queries=4), and a "
                "preset as preset='paper'",
            )
        base = options if options is not None else _preset(preset)
        given: dict[str, Any] = {**changes}
        loss = changes.get("loss")
        self.loss_function: LossFunction | None = loss if callable(loss) else None
        if callable(loss):
            given["loss"] = function_name(loss)
        super().__init__(base, threads=threads, **given)
        if is_function(self.options.loss) and self.loss_function is None:
            name = self.options.loss.partition(":")[2]
            raise ValueError(
                f"loss={self.options.loss!r} is a Python callable, which no file holds; pass it: "
                f"pmt.ZOTrainer(..., loss={name})"
            )
        self.estimator = estimator
        self.optimizer = optimizer
        check_extensions(self.options, self.estimator, self.optimizer)
        warn_without_effect(self.options, given, base, self.extensions)
        self._costs: dict[tuple[object, ...], Cost] = {}  # of extended steps

    def extension_objects(self) -> dict[str, object]:
        """Return the user's own loss, estimator and optimizer."""
        given = {
            "loss": self.loss_function,
            "estimator": self.estimator,
            "optimizer": self.optimizer,
        }
        return {kind: one for kind, one in given.items() if one is not None}

    @property
    def _extends_steps(self) -> bool:
        return self.estimator is not None or self.optimizer is not None

    def presets(self) -> dict[str, TrainingOptions]:
        """Return the options of every preset."""
        return {name: _preset(name) for name in PRESETS}

    def option_objects(self) -> dict[str, Any]:
        """Return the callable that is the loss, if one is."""
        return {} if self.loss_function is None else {"loss": self.loss_function}

    def cost(self, model: Model, *, samples: int | None = None) -> Cost:
        """Count one step's work: clean forward, queries, node gradients with their forwards.

        Parameters
        ----------
        model : Model
            The model to train.
        samples : int, optional
            Batch size; the options' by default.

        Returns
        -------
        Cost
            See :class:`pmt.train.costs.work.Work`. With an estimator or optimizer of your own a
            step on blank images is taken, by copies of them and of the model.
        """
        check_model(model)
        images = self._images_of_step(samples)
        if self._extends_steps:
            return self._measured_cost(model, images)
        layers = model.select_layers(self.options.layers)
        return zeroth_order_work(model.core, self.options.to_core(), layers).cost(images)

    def _measured_cost(self, model: Model, images: int) -> Cost:
        key = (images, *self.extensions.values(), *(int(op["macs"]) for op in model.core.ops()))
        if key not in self._costs:
            engine, options = self._engine(model.copy()), self.options.replace(batch=images)
            stepper = ExtendedStepper(engine, options, self.estimator, self.optimizer)
            blank = np.zeros((images, *model.input_shape), np.int8)
            with kept_names(self.extension_objects().values()):
                taken = stepper.step(blank, np.zeros(images, np.int64), 0, options.learning_rate)
            self._costs[key] = Cost(taken["forwards"], taken["macs"])
        return self._costs[key]

    def _engine(self, model: Model) -> Engine:
        options = self.options
        return Engine(model, options.layers, seed=options.seed, threads=self.threads)

    def training_data(self, model: Model, data: DataLike) -> Dataset:
        """Return the data set; labels of a model with one output are targets, its values."""
        images = super().training_data(model, data)
        if model.classes != 1 or not images.has_class_labels:
            return images
        targets = images.labels.astype(np.float32)[:, None]
        return replace(images, labels=targets, class_names=("0",))

    def check_data(self, model: Model, data: Dataset) -> None:
        """Refuse labels that the model or the loss cannot use."""
        loss = self.options.loss
        check_output(loss, data, model)
        check_labels(loss, data, model)
        if data.has_class_labels:
            model.check_classes(data)
        elif not data.is_labeled and self.preparation.trains_head(model):
            raise ValueError(
                f"preparation={self.options.preparation!r} trains the head on labels, which "
                f"data set {data.name!r} lacks; use preparation="
                f"{without_head(self.options.preparation)!r}"
            )

    def stepper(self, model: Model, samples: int) -> Stepper:
        """Return the stepper of a run on ``model``, with this many training samples."""
        options = self.options
        if self._extends_steps:
            return ExtendedStepper(self._engine(model), options, self.estimator, self.optimizer)
        layers = model.select_layers(options.layers)
        core = _core.Trainer(
            model.core,
            options.to_core(),
            layers,
            options.batch,
            self.threads,
            loss=self.loss_function,
        )
        return CoreStepper(core, options, model)
