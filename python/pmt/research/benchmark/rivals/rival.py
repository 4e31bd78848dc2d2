"""What the benchmark asks of another engine."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

import numpy as np
import numpy.typing as npt

__all__ = ["Rival", "missing"]


class Rival(Protocol):
    """An engine with a network.

    ``title`` says what runs, with its version; ``takes_batches`` whether several images at once.
    """

    title: str
    takes_batches: bool

    def runner(
        self, images: npt.NDArray[np.int8], batch: int, threads: int
    ) -> Callable[[], npt.NDArray[np.generic]]:
        """Prepare a forward of images, ``batch`` at once.

        The images are brought into the engine's own layout and type here, not in the call. The
        call returns one row of outputs an image.
        """
        ...

    def int8_outputs(self, outputs: npt.NDArray[np.generic]) -> npt.NDArray[np.generic] | None:
        """Turn outputs into the network's int8 outputs; None where they are something else."""
        ...


def missing(package: str) -> ImportError:
    """Return the error for a package that is not installed."""
    extra = "torch" if package == "torch" else "bench"
    return ImportError(
        f'--against needs the package {package}: pip install "poor-mans-training[{extra}]"'
    )
