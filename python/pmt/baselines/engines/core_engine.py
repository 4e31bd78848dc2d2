"""The engine of this package, used as any other."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from pmt import _core
from pmt._util.threads import thread_count
from pmt.model import Model

__all__ = ["CoreEngine"]


class CoreEngine:
    """Runs a model by the core's forward pass.

    Parameters
    ----------
    model : Model
        The model; its weights are the engine's.
    int8_logits : bool
        Take the losses of the int8 output, not of the last layer's accumulators.
    threads : int
        Threads to use, 0 for all. The losses do not depend on it.
    """

    def __init__(self, model: Model, *, int8_logits: bool = False, threads: int = 0) -> None:
        self.model = model
        self.int8_logits = int8_logits
        self.threads = thread_count(threads)

    def parameters(self, layer: int) -> tuple[npt.NDArray[np.int8], npt.NDArray[np.int32]]:
        """Return copies of a layer's weights and biases, see :class:`Engine`."""
        return self.model.core.weights(layer), self.model.core.bias(layer)

    def set_parameters(
        self, layer: int, weights: npt.NDArray[np.int8], bias: npt.NDArray[np.int32]
    ) -> None:
        """Replace a layer's weights and biases, see :class:`Engine`."""
        self.model.core.set_parameters(layer, weights, bias)

    def losses(
        self, images: npt.NDArray[np.int8], labels: npt.NDArray[np.int64]
    ) -> tuple[npt.NDArray[np.int32], int]:
        """Run the model, see :class:`Engine`."""
        logits = self.model.core.logits(images, self.threads, self.int8_logits)
        return _core.cross_entropy(logits, labels)
