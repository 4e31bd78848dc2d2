"""Profiles of methods: what each takes on one model, counted."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from pmt import _core
from pmt.baselines.backprop.backward_memory import Arithmetic, backward_memory
from pmt.baselines.backprop.backward_work import backward_work
from pmt.baselines.backprop.trainer import BackpropTrainer
from pmt.model import Model
from pmt.train.costs.arena import device_options
from pmt.train.costs.memory import Memory
from pmt.train.costs.restarts import device_restarts
from pmt.train.costs.work import Work
from pmt.train.costs.zeroth_order_memory import zeroth_order_memory
from pmt.train.costs.zeroth_order_work import zeroth_order_work
from pmt.train.options import TrainingOptions
from pmt.train.training_run import Trainer

__all__ = ["Profile", "profile"]


@dataclass(frozen=True)
class Profile:
    """What a method takes.

    Attributes
    ----------
    method : str
        Its name.
    layers : tuple of str
        Layers that it trains, at least in part.
    weights, biases : int
        Number of each that it trains.
    batch : int
        Images of a step.
    queries : int
        Queries for each image and layer; 0 for back-propagation, and where every coordinate is one.
    work : Work
        Multiply-accumulates for one image.
    memory : Memory
        On a device, at the peak.
    device : _core.DeviceMemory or None
        The core's plan of it; None for back-propagation.
    ops : tuple of int
        Op indices of the layers; for a plan.
    options : TrainingOptions or None
        Of the training; None for back-propagation.
    """

    method: str
    layers: tuple[str, ...]
    weights: int
    biases: int
    batch: int
    queries: int
    work: Work
    memory: Memory
    device: _core.DeviceMemory | None = None
    ops: tuple[int, ...] = ()
    options: TrainingOptions | None = None

    @property
    def step_macs(self) -> int:
        """Multiply-accumulates of a step."""
        return self.batch * self.work.macs

    def to_json(self) -> dict[str, Any]:
        """Return the figures for JSON."""
        return {
            "method": self.method,
            "layers": list(self.layers),
            "weights": self.weights,
            "biases": self.biases,
            "batch": self.batch,
            "queries": self.queries,
            "macs_per_image": self.work.to_json(),
            "macs_per_step": self.step_macs,
            "forwards_per_step": self.batch * self.work.forwards,
            "memory": self.memory.to_json(),
        }


def profile(model: Model, method: str, trainer: Trainer) -> Profile:
    """Count what a trainer takes.

    Parameters
    ----------
    model : Model
        The network.
    method : str
        What to call it.
    trainer : Trainer
        One whose options are those of zeroth-order training or of back-propagation.

    Returns
    -------
    Profile
        Work and memory.

    Raises
    ------
    ValueError
        If a layer is unknown, or what is trained is not decided before the data is seen.
    TypeError
        If the trainer is of another kind.
    """
    if isinstance(trainer.options, TrainingOptions):
        return _zeroth_order(model, method, trainer.options)
    if isinstance(trainer, BackpropTrainer):
        return _backward(model, method, trainer)
    raise TypeError(f"method {method}: a {type(trainer).__name__} has no profile")


def _zeroth_order(model: Model, method: str, options: TrainingOptions) -> Profile:
    chosen = model.select_layers(options.layers)
    trained = [layer for layer in model.layers if layer.index in chosen]
    core = device_options(options)
    memory = zeroth_order_memory(model, core, chosen, batch=options.batch)
    device = _core.DeviceMemory(model.core, core, list(chosen), options.batch)
    restarts = device_restarts(model.core, core, chosen, device, options.batch)
    return Profile(
        method=method,
        layers=tuple(layer.name for layer in trained),
        weights=sum(layer.weights for layer in trained),
        biases=sum(layer.biases for layer in trained) if options.train_bias else 0,
        batch=options.batch,
        queries=options.queries if options.directions != "coordinate" else 0,
        work=replace(zeroth_order_work(model.core, core, chosen), restarts=restarts),
        memory=memory,
        device=device,
        ops=tuple(chosen),
        options=options,
    )


def _backward(model: Model, method: str, trainer: BackpropTrainer) -> Profile:
    options, scheme = trainer.options, trainer.scheme(model)
    floats = options.arithmetic == "float32"
    arithmetic = Arithmetic(
        value=4 if floats else 1,
        state=4 if options.momentum > 0.0 else 0,
        shadow=4 if options.rounding == "shadow" and not floats else 0,
    )
    names = {layer.index: layer.name for layer in model.layers}
    return Profile(
        method=method,
        layers=tuple(names[update.op] for update in scheme.layers),
        weights=scheme.weights(model),
        biases=scheme.biases(model),
        batch=options.batch,
        queries=0,
        work=backward_work(model, scheme),
        memory=backward_memory(model, scheme, arithmetic, batch=options.batch),
    )
