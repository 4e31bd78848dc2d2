"""PyTorch on the dequantized network: forwards, and a straightforward MeZO step.

As in the published algorithm, the perturbation is drawn again from its seed wherever it is needed:
to add it, to subtract it twice, to add it once more, and for the update.
"""

from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt

from pmt.baselines.backprop.networks import FloatNetwork, tensor_of, torch
from pmt.model import Model
from pmt_lab.benchmark.rivals import Array, Rival

_EPSILON = 1e-3
_LEARNING_RATE = 1e-6


class TorchFloat(Rival):
    """The float forward in inference mode; it reads the int8 images, as pmt does."""

    def __init__(self, model: Model) -> None:
        self.title = f"PyTorch {torch.__version__}, float32"
        self.network = FloatNetwork(model)

    def _prepared(self, images: npt.NDArray[np.int8]) -> Any:
        return tensor_of(images)

    def _forward(self, shape: tuple[int, ...], threads: int) -> Callable[[Any], Array]:
        def run(part: Any) -> Array:
            torch.set_num_threads(threads)
            with torch.inference_mode():
                made: Array = self.network(part).numpy()
            return made

        return run


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
        self.network = FloatNetwork(model)
        self.title = f"MeZO in PyTorch {torch.__version__}"
        self.images = tensor_of(images)
        self.labels = tensor_of(labels)
        self.parameters = list(self.network.parameters())
        self.threads = threads
        self.seed = 0

    def __call__(self) -> float:
        """Train one step; return the projected gradient."""
        torch.set_num_threads(self.threads)
        self.seed += 1
        with torch.inference_mode():
            self._perturb(_EPSILON)
            plus = self._loss()
            self._perturb(-2 * _EPSILON)
            minus = self._loss()
            self._perturb(_EPSILON)
            gradient = (plus - minus) / (2 * _EPSILON)
            self._perturb(-_LEARNING_RATE * gradient)
        return gradient

    def _perturb(self, scale: float) -> None:
        generator = torch.Generator().manual_seed(self.seed)
        for parameter in self.parameters:
            z = torch.randn(parameter.shape, generator=generator)
            parameter.add_(z, alpha=scale)

    def _loss(self) -> float:
        logits = self.network(self.images)
        return float(torch.nn.functional.cross_entropy(logits, self.labels))
