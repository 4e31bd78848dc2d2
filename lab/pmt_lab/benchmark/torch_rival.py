"""PyTorch on the dequantized network."""

from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt

from pmt.baselines.backprop.networks import FloatNetwork, tensor_of, torch
from pmt.model import Model
from pmt_lab.benchmark.rivals import Array, Rival


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
