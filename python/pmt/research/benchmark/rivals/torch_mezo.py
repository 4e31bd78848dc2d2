"""A straightforward MeZO step in PyTorch: two forwards of a network with all weights perturbed.

As in the published algorithm, the perturbation is drawn again from its seed wherever it is needed:
to add it, to subtract it twice, to add it once more, and for the update.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from pmt.model import Model
from pmt.research.benchmark.rivals.torch_forward import FloatNetwork

__all__ = ["MezoStep"]

_EPSILON = 1e-3
_LEARNING_RATE = 1e-6


class MezoStep:
    """A step on one batch; calling it trains a float copy of the network."""

    forwards_per_image = 2

    def __init__(
        self,
        model: Model,
        images: npt.NDArray[np.int8],
        labels: npt.NDArray[np.int64],
        threads: int,
    ) -> None:
        self.network = FloatNetwork(model.to_graph())
        self.torch = self.network.torch
        self.title = f"MeZO in PyTorch {self.torch.__version__}"
        self.images = self.network.real(images)
        self.labels = self.torch.from_numpy(labels)
        self.parameters = [p for pair in self.network.parameters.values() for p in pair]
        self.threads = threads
        self.seed = 0

    def __call__(self) -> float:
        """Train one step; return the projected gradient."""
        self.torch.set_num_threads(self.threads)
        self.seed += 1
        with self.torch.inference_mode():
            self._perturb(_EPSILON)
            plus = self._loss()
            self._perturb(-2 * _EPSILON)
            minus = self._loss()
            self._perturb(_EPSILON)
            gradient = (plus - minus) / (2 * _EPSILON)
            self._perturb(-_LEARNING_RATE * gradient)
        return gradient

    def _perturb(self, scale: float) -> None:
        generator = self.torch.Generator().manual_seed(self.seed)
        for parameter in self.parameters:
            z = self._normal(parameter, generator)
            parameter.add_(z, alpha=scale)

    def _normal(self, parameter: Any, generator: Any) -> Any:
        return self.torch.randn(parameter.shape, generator=generator)

    def _loss(self) -> float:
        logits = self.network(self.images)
        return float(self.torch.nn.functional.cross_entropy(logits, self.labels))
