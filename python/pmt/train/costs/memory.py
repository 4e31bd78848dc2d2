"""Memory of a method on a device, by part."""

from __future__ import annotations

from dataclasses import asdict, dataclass, fields

__all__ = ["PARTS", "Memory", "Moment"]


@dataclass(frozen=True)
class Moment:
    """Live bytes at one moment of a pass."""

    activations: int = 0
    input: int = 0
    saved_activations: int = 0
    masks: int = 0
    activation_gradients: int = 0
    weight_gradients: int = 0

    @property
    def total(self) -> int:
        """Sum of the parts."""
        return sum(getattr(self, field.name) for field in fields(self))


@dataclass(frozen=True)
class Memory:
    """Bytes of every part at the moment of the peak.

    Attributes
    ----------
    frozen : int
        Weights and biases that do not change: flash.
    weights, biases : int
        Those that do: SRAM.
    activations : int
        Activations of the forward pass (zeroth order: of the main pass and of a query).
    input : int
        The image, where it is still needed at the peak.
    saved_activations : int
        Inputs of layers, kept for their weight gradients.
    masks : int
        A bit for each output that tells whether it stood at a clamp.
    activation_gradients : int
        Gradients of activations that are alive at once.
    weight_gradients : int
        Gradients of weights and biases, or the sums that become them.
    optimizer : int
        Momentum, second moments, shadow weights.
    tables : int
        Losses of queries, and the states of their random numbers.
    buffers : int
        Working memory of kernels, perturbed weights, bookkeeping: counted for zeroth-order
        training only, where it is known exactly.
    """

    frozen: int = 0
    weights: int = 0
    biases: int = 0
    activations: int = 0
    input: int = 0
    saved_activations: int = 0
    masks: int = 0
    activation_gradients: int = 0
    weight_gradients: int = 0
    optimizer: int = 0
    tables: int = 0
    buffers: int = 0

    @property
    def flash(self) -> int:
        """Bytes that never change."""
        return self.frozen

    @property
    def sram(self) -> int:
        """Peak of everything else."""
        return sum(getattr(self, part) for part in PARTS)

    def to_json(self) -> dict[str, int]:
        """Return the figures for JSON."""
        return {**asdict(self), "sram": self.sram}


# Parts of SRAM with their names, in the order of tables and plots.
PARTS = {
    "weights": "trainable weights",
    "biases": "trainable biases",
    "activations": "activations",
    "input": "input",
    "saved_activations": "saved activations",
    "masks": "clamp masks",
    "activation_gradients": "activation gradients",
    "weight_gradients": "weight gradients",
    "optimizer": "optimizer state",
    "tables": "loss tables, seeds",
    "buffers": "working buffers",
}
