"""Zeroth-order training of a model."""

from __future__ import annotations

import math
from typing import Any

from pmt import _core
from pmt._util.checks import checked_integer
from pmt.model import Model
from pmt.model.model import check_model
from pmt.train.costs.work import Cost, probe_work, zeroth_order_work
from pmt.train.layer_settings import settings_in_force
from pmt.train.option_effects import warn_without_effect
from pmt.train.options import PRESETS, TrainingOptions
from pmt.train.options import preset as _preset
from pmt.train.stepper import CoreStepper
from pmt.train.training_run import Trainer

__all__ = ["Cost", "ZOTrainer"]


class ZOTrainer(Trainer):
    """Trains layers of an int8 model with forward passes alone.

    Parameters
    ----------
    options : TrainingOptions, optional
        All options; by default the preset's.
    preset : {"default", "paper"}
        Where ``options`` is not given.
    threads : int
        Threads to use; 0 takes all, but one in a worker of a process pool. The result does not
        depend on it.
    **changes
        Options that differ from the preset, see :class:`pmt.TrainingOptions`.

    Raises
    ------
    ValueError, TypeError
        If an option is unknown or outside its range.

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
        preset: str = "default",
        threads: int = 0,
        **changes: Any,
    ) -> None:
        if options is not None and not isinstance(options, TrainingOptions):
            raise TypeError(
                f"options is {type(options).__name__}: must be pmt.TrainingOptions; options by "
                "name are given as they are, for example ZOTrainer(queries=4), and a preset as "
                "preset='paper'"
            )
        base = options if options is not None else _preset(preset)
        super().__init__(base, threads=threads, **changes)
        warn_without_effect(self.options, changes, base)

    def presets(self) -> dict[str, TrainingOptions]:
        """Return the options of every preset."""
        return {name: _preset(name) for name in PRESETS}

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
            See :class:`pmt.train.costs.work.Work`. Where layers get settings from measurements,
            ``macs`` is an upper bound that spreads the probes over the steps, and ``forwards``
            that of uniform queries; a run records what it took.
        """
        check_model(model)
        layers = model.select_layers(self.options.layers)
        options = self.options.to_core()
        most = _most_expensive(_core.Trainer(model.core, options, layers, 1, 1), self.options)
        images = self.options.batch if samples is None else checked_integer("samples", samples)
        step = zeroth_order_work(model.core, options, layers, most).cost(images)
        probed = min(self.options.probe_samples, images)
        probes = probe_work(model.core, options, layers).cost(probed)
        every = self.options.calibration_steps
        return Cost(
            step.forwards + math.ceil(probes.forwards / every),
            step.macs + math.ceil(probes.macs / every),
        )

    def stepper(self, model: Model, samples: int) -> CoreStepper:
        """Return the stepper of a run on ``model``, with so many training samples."""
        options = self.options.for_samples(samples)
        layers = model.select_layers(options.layers)
        core = _core.Trainer(model.core, options.to_core(), layers, options.batch, self.threads)
        return CoreStepper(core, options, model, layers)


def _most_expensive(trainer: _core.Trainer, options: TrainingOptions) -> list[_core.LayerSettings]:
    """Return settings that cost as much as any that may be measured."""
    settings = settings_in_force(trainer)
    if options.rule != "measured":
        return settings
    return [
        _core.LayerSettings(
            queries=one.queries,
            mu_weight=one.mu_weight,
            mu_node=one.mu_node,
            # A weight perturbation's gradient needs no forward of its own.
            estimator=max(one.estimator, _core.Estimator.node_perturbation),
        )
        for one in settings
    ]
