"""What a step trains on: its samples and its learning rate, functions of the seed and the step."""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt

from pmt.options import TrainingOptions

__all__ = ["Schedule"]


class Schedule:
    """Order of the samples and learning rate of every step.

    The same options and number of samples give the same schedule on every machine, so that a run
    can be resumed, or exported to a device, at any step.

    Parameters
    ----------
    options : TrainingOptions
        Epochs, batch, learning rate, seed.
    samples : int
        Size of the training set.

    Raises
    ------
    ValueError
        If there are fewer samples than a batch holds.
    """

    def __init__(self, options: TrainingOptions, samples: int) -> None:
        if samples < options.batch:
            raise ValueError(
                f"batch={options.batch} is larger than the training set of {samples} samples; "
                "use a smaller batch"
            )
        self.options = options
        self.samples = samples
        self.steps_per_epoch = samples // options.batch
        self.steps = self.steps_per_epoch * options.epochs
        self._epoch = -1
        self._order = np.empty(0, np.int64)

    def indices(self, step: int) -> npt.NDArray[np.int64]:
        """Return the samples of a step, int64 (batch,). Samples left over sit an epoch out."""
        epoch, position = divmod(step, self.steps_per_epoch)
        if epoch != self._epoch:
            # Only raw 64-bit draws: NumPy promises their stream, not that of its shuffles.
            seed = np.random.SeedSequence([self.options.seed, epoch])
            keys = np.random.PCG64(seed).random_raw(self.samples)
            self._order = np.argsort(keys, kind="stable").astype(np.int64)
            self._epoch = epoch
        start = position * self.options.batch
        return self._order[start : start + self.options.batch]

    def learning_rate(self, step: int) -> float:
        """Return a step's learning rate: a cosine from the first to the final one."""
        final = self.options.final_learning_rate
        fraction = final + (1.0 - final) * 0.5 * (1.0 + math.cos(math.pi * step / self.steps))
        # Six digits: libraries may differ in the last bit of a cosine.
        return float(f"{self.options.learning_rate * fraction:.6g}")
