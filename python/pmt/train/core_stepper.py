"""Steps of the core's trainer, with the settings of layers that are measured between them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from pmt import _core
from pmt.model import Model
from pmt.train.costs.work import Work
from pmt.train.costs.zeroth_order_work import zeroth_order_work
from pmt.train.layer_settings import (
    describe_layers,
    settings_from_array,
    settings_in_force,
    settings_to_array,
)
from pmt.train.options import TrainingOptions
from pmt.train.stepper import Stepper

__all__ = ["CoreStepper"]


class CoreStepper(Stepper):
    """Steps of the core's trainer; Ctrl-C cancels one before it has changed a weight.

    Every ``calibration_steps`` steps the settings of the layers are measured on the step's own
    images. The settings are the state between two measurements: a run that is resumed has them
    from its checkpoint, or measures them again on the very weights.

    Parameters
    ----------
    core : _core.Trainer
        The core's trainer.
    options : TrainingOptions
        Its options.
    model : Model
        The model that it trains.
    layers : sequence of int
        Op indices, ascending.
    """

    def __init__(
        self, core: _core.Trainer, options: TrainingOptions, model: Model, layers: Sequence[int]
    ) -> None:
        self.core = core
        self.options = options
        self.model = model
        self.layers = layers
        self.work: Work | None = None  # of the settings in force

    def step(
        self,
        images: npt.NDArray[np.int8],
        labels: npt.NDArray[np.int64],
        step: int,
        learning_rate: float,
    ) -> dict[str, Any]:
        """Take one step, see :meth:`pmt.train.stepper.Stepper.step`."""
        work = self._measure(images, labels, step) if self.options.is_measured else {}
        try:
            return {**self.core.step(images, labels, step, learning_rate), **work}
        finally:
            self.steps_taken = self.core.steps_begun

    def _measure(
        self, images: npt.NDArray[np.int8], labels: npt.NDArray[np.int64], step: int
    ) -> dict[str, int]:
        """Bring the settings up to date; return the work of the step, with that of measuring."""
        forwards = macs = 0
        if step % self.options.calibration_steps == 0:
            probed = slice(self.options.probe_samples)
            measured = self.core.calibrate(images[probed], labels[probed], step)
            self._configure(measured["settings"])
            forwards, macs = measured["forwards"], measured["macs"]
        if self.work is None:
            settings = settings_in_force(self.core)
            core_options = self.options.to_core()
            self.work = zeroth_order_work(self.model.core, core_options, self.layers, settings)
        own = self.work.cost(len(images))
        return {"forwards": forwards + own.forwards, "macs": macs + own.macs}

    def _configure(self, settings: list[_core.LayerSettings]) -> None:
        self.core.configure(settings)
        self.work = None

    def state(self) -> dict[str, npt.NDArray[Any]]:
        """Return the settings in force, where they are measured, and the optimizer state."""
        state: dict[str, npt.NDArray[Any]] = {}
        if self.options.is_measured:
            state["layer_settings"] = settings_to_array(settings_in_force(self.core))
        values = self.core.optimizer_state()
        if values.size:
            state["update"] = values
        return state

    def load_state(self, state: Mapping[str, npt.NDArray[Any]]) -> None:
        """Go on with what :meth:`state` returned."""
        wanted = sorted(self.state())
        if sorted(state) != wanted:
            raise ValueError(f"state {sorted(state)} must be {wanted}")
        if "layer_settings" in state:
            self._configure(settings_from_array(state["layer_settings"], len(self.layers)))
        if "update" in state:
            self.core.restore_optimizer_state(state["update"])

    def describe(self) -> dict[str, Any]:
        """Return the layers' settings by name, where they are measured."""
        return {"layers": describe_layers(self.core.layers())} if self.options.is_measured else {}
