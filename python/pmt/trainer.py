"""Zeroth-order training of a model."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from pmt import _core
from pmt.cost import Cost
from pmt.costs.zeroth_order_work import zeroth_order_work
from pmt.model import Model
from pmt.options import TrainingOptions, preset
from pmt.stepper import Stepper
from pmt.threads import thread_count
from pmt.training_run import Trainer

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

    def __init__(
        self,
        options: TrainingOptions | None = None,
        *,
        preset: str = "default",
        threads: int = 0,
        **changes: Any,
    ) -> None:
        base = options if options is not None else _preset(preset)
        self.options = base.replace(**changes)
        self.threads = thread_count(threads)

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
            See :class:`pmt.costs.work.Work`.
        """
        layers = model.select_layers(self.options.layers)
        work = zeroth_order_work(model.core, self.options.to_core(), layers)
        return work.cost(samples if samples is not None else self.options.batch)

    def stepper(self, model: Model) -> Stepper:
        """Return what takes the steps of a run on ``model``."""
        return _CoreStepper(self._core_trainer(model))

    def _core_trainer(self, model: Model) -> _core.Trainer:
        layers = model.select_layers(self.options.layers)
        return _core.Trainer(
            model.core, self.options.to_core(), layers, self.options.batch, self.threads
        )


class _CoreStepper(Stepper):
    """Steps of the core's trainer; Ctrl-C cancels one before it has changed a weight."""

    def __init__(self, core: _core.Trainer) -> None:
        self.core = core

    def step(
        self,
        images: npt.NDArray[np.int8],
        labels: npt.NDArray[np.int64],
        step: int,
        learning_rate: float,
    ) -> dict[str, Any]:
        try:
            return self.core.step(images, labels, step, learning_rate)
        finally:
            self.steps_taken = self.core.steps_begun

    def state(self) -> dict[str, npt.NDArray[Any]]:
        memories = self.core.memories()
        return {"update": memories} if memories.size else {}

    def load_state(self, state: Mapping[str, npt.NDArray[Any]]) -> None:
        if set(state) != set(self.state()):
            raise ValueError(f"the state holds {sorted(state)}, these options {list(self.state())}")
        if "update" in state:
            self.core.restore_memories(state["update"])


_preset = preset
