"""Profiles of methods: what each takes on one model, counted."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from pmt.costs.backward_memory import Arithmetic, backward_memory
from pmt.costs.backward_work import backward_work
from pmt.costs.memory import Memory
from pmt.costs.work import Work
from pmt.costs.zeroth_order_memory import zeroth_order_memory
from pmt.costs.zeroth_order_work import zeroth_order_work
from pmt.model import Model
from pmt.options import TrainingOptions
from pmt.sparse_update.scheme import UpdateScheme

__all__ = ["Profile", "profile_backward", "profile_zeroth_order"]


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
        Queries for each image and layer; 0 for back-propagation.
    work : Work
        Multiply-accumulates for one image.
    memory : Memory
        On a device, at the peak.
    """

    method: str
    layers: tuple[str, ...]
    weights: int
    biases: int
    batch: int
    queries: int
    work: Work
    memory: Memory

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


def profile_zeroth_order(model: Model, method: str, options: TrainingOptions) -> Profile:
    """Profile zeroth-order training with some options."""
    chosen = model.select_layers(options.layers)
    trained = [layer for layer in model.layers if layer.index in chosen]
    core = options.to_core()
    return Profile(
        method=method,
        layers=tuple(layer.name for layer in trained),
        weights=sum(layer.weights for layer in trained),
        biases=sum(layer.biases for layer in trained) if options.train_bias else 0,
        batch=options.batch,
        queries=options.queries,
        work=zeroth_order_work(model.core, core, chosen),
        memory=zeroth_order_memory(model, core, chosen, batch=options.batch),
    )


def profile_backward(
    model: Model, method: str, scheme: UpdateScheme, arithmetic: Arithmetic, *, batch: int = 1
) -> Profile:
    """Profile back-propagation by a scheme."""
    names = {layer.index: layer.name for layer in model.layers}
    return Profile(
        method=method,
        layers=tuple(names[update.op] for update in scheme.layers),
        weights=scheme.weights(model),
        biases=scheme.biases(model),
        batch=batch,
        queries=0,
        work=backward_work(model, scheme),
        memory=backward_memory(model, scheme, arithmetic, batch=batch),
    )
