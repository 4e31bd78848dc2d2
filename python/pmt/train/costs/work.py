"""Multiply-accumulates of a method, counted by what they are for."""

from __future__ import annotations

from dataclasses import asdict, dataclass

from pmt.train.cost import Cost

__all__ = ["Work"]


@dataclass(frozen=True)
class Work:
    """Multiply-accumulates that training takes for one image.

    Padding counts as pixels do; additions, signs, requantisation, and the update of the weights
    do not count, for any method.

    Attributes
    ----------
    forward : int
        The clean forward pass.
    queries : int
        Perturbed forwards, from the perturbed layer to the end.
    reforwards : int
        Forwards up to a layer whose gradient needs its input again (node perturbation, closed
        form).
    input_gradients : int
        Back-propagation through layers: as many as the layer's forward.
    weight_gradients : int
        Products of a layer's output gradient and its input: as many as the layer's forward, by
        the share of input channels that are trained.
    restarts : int
        What a device does again for lack of memory: queries begin with their stream, a gradient in
        groups of channels runs it again for each.
    forwards : int
        Perturbed forwards; each counts as one whatever its length.
    """

    forward: int
    queries: int = 0
    reforwards: int = 0
    input_gradients: int = 0
    weight_gradients: int = 0
    restarts: int = 0
    forwards: int = 0

    @property
    def macs(self) -> int:
        """Everything counted."""
        backward = self.input_gradients + self.weight_gradients
        return self.forward + self.queries + self.reforwards + self.restarts + backward

    @property
    def forward_macs(self) -> int:
        """What the paper counts: the clean forward and the queries."""
        return self.forward + self.queries

    def cost(self, images: int) -> Cost:
        """Return the cost of a step of so many images."""
        return Cost(images * self.forwards, images * self.macs)

    def to_json(self) -> dict[str, int]:
        """Return the figures for JSON."""
        return {**asdict(self), "macs": self.macs, "forward_macs": self.forward_macs}
