"""Samples and learning rate of each step, as functions of the seed and the step."""

from bisect import bisect_right
from functools import partial
from typing import Any, ClassVar, Protocol

import numpy as np

from pmt import _core
from pmt._util.arrays import Int64Array
from pmt._util.text import counted
from pmt.datasets import Dataset
from pmt.protocol.stratification import share_classes
from pmt.train.option_fields import LARGEST_FLOAT, Range, option

LEARNING_RATES = Range(0.0, LARGEST_FLOAT, low_open=True)
SEEDS = Range(0, 2**32 - 1)

LAYERS = partial(
    option,
    metavar="SPEC",
    help="names of blocks or layers, separated by commas, for example B2,head",
)
EPOCHS = partial(
    option, metavar="N", help="passes over the training images", values=Range(1, 10**6)
)
MACS = partial(
    option,
    metavar="N",
    help="budget of multiply-accumulates, for example 2e12: training ends after the last whole "
    "step within it, not after {epochs}, and the learning rate's schedule spans it; 0 is none",
    values=Range(0, 10**18, why="0 is not a budget"),
)
BATCH = partial(option, metavar="N", help="images of a step", values=Range(1, 10**6))
FINAL_LEARNING_RATE = partial(
    option,
    metavar="F",
    help="end of the cosine schedule, as a fraction of {learning_rate}; 1 keeps the rate",
    values=Range(0.0, 1.0, why="a fraction of learning_rate"),
)


class RunOptions(Protocol):
    """The options that every trainer has, a frozen dataclass; see :class:`pmt.TrainingOptions`."""

    __dataclass_fields__: ClassVar[dict[str, Any]]

    @property
    def layers(self) -> str:
        """Names of the blocks or layers to train, separated by commas."""

    @property
    def batch(self) -> int:
        """Samples of a step."""

    @property
    def epochs(self) -> int:
        """Passes over the data."""

    @property
    def macs(self) -> int:
        """Budget of multiply-accumulates instead of epochs; 0 is none."""

    @property
    def learning_rate(self) -> float:
        """Largest learning rate."""

    @property
    def final_learning_rate(self) -> float:
        """Fraction of it at the end."""

    @property
    def seed(self) -> int:
        """Seed of the order, 0 to 2^32 - 1."""


class Schedule:
    """Order of the samples and learning rate of every step.

    The same options and number of samples give the same schedule on every machine, so that a run
    can be resumed, or exported to a device, at any step. ``step_macs``, a step's
    multiply-accumulates, is needed where ``options.macs`` is a budget, of which
    ``preparation_macs`` are spent before the first step: the run is as many whole steps as the
    budget holds, and its last epoch may be a part of one. A ValueError says that there are fewer
    samples than a batch holds, or that the budget is less than a step.
    """

    def __init__(
        self,
        options: RunOptions,
        samples: int,
        step_macs: int | None = None,
        preparation_macs: int = 0,
    ) -> None:
        if samples < options.batch:
            raise ValueError(
                f"batch={options.batch} is larger than the training set of "
                f"{counted(samples, 'sample')}; use a smaller batch"
            )
        self.options = options
        self.samples = samples
        self.steps_per_epoch = samples // options.batch
        self.steps = self.steps_per_epoch * options.epochs
        self.macs = options.macs - preparation_macs  # of all steps, where there is a budget
        self._step_macs = step_macs
        if options.macs > 0:
            self.steps = _steps_within(options.macs, step_macs, preparation_macs)
        self._epoch = -1
        self._order = np.empty(0, np.int64)
        self._leaders = np.arange(samples)  # the first sample of each sample's unit
        # Units and classes of the samples, of which each is to be in both halves.
        self._shared: tuple[Int64Array, Int64Array] | None = None

    @property
    def half(self) -> int:
        """Steps of the first half of an epoch, which is the longer one."""
        return -(-self.steps_per_epoch // 2)

    def steps_with_heads(self, head_macs: int) -> int:
        """Count the steps of the run if heads are solved that take so much work each.

        One is solved at the beginning of each half of an epoch, and one at its end.
        """
        if self.options.macs == 0:
            return self.steps

        def work(steps: int) -> int:
            return steps * (self._step_macs or 0) + self._heads(steps) * head_macs

        return bisect_right(range(1, self.steps + 1), self.macs, key=work)

    def spend_on_heads(self, head_macs: int) -> None:
        """Plan such heads; a ValueError says that the budget does not hold them and a step."""
        if self.options.macs > 0:
            spent = self.options.macs - self.macs
            _steps_within(self.options.macs, self._step_macs, spent + 2 * head_macs)
            self.steps = self.steps_with_heads(head_macs)
            self.macs -= self._heads(self.steps) * head_macs

    def _heads(self, steps: int) -> int:
        """Count the halves that steps begin, and the epochs, the last of which may be a part."""
        whole, left = divmod(steps, self.steps_per_epoch)
        return 3 * whole + 2 * (left > 0) + (left > self.half)

    def keep_together(self, units: Int64Array, data: Dataset) -> None:
        """Take the samples of a unit one after another, so that few units are in both halves.

        Classes are in both halves then, as far as they have two units.
        """
        _, first, number = np.unique(units, return_index=True, return_inverse=True)
        self._leaders = first[number.reshape(-1)]
        if data.has_class_labels:
            self._shared = units, data.labels

    def indices(self, step: int) -> Int64Array:
        """Return the samples of a step, int64 (batch,). The remainder is skipped."""
        epoch, position = divmod(step, self.steps_per_epoch)
        if epoch != self._epoch:
            ranks = np.argsort(_core.sample_order(self.options.seed, epoch, self.samples))
            self._order = np.argsort(ranks[self._leaders], kind="stable").astype(np.int64)
            if self._shared is not None:
                ends = (self.half * self.options.batch, self.steps_per_epoch * self.options.batch)
                self._order = share_classes(self._order, *ends, *self._shared)
            self._epoch = epoch
        start = position * self.options.batch
        return self._order[start : start + self.options.batch]

    def learning_rate(self, step: int) -> float:
        """Return a step's learning rate: a cosine from the first one to the final one."""
        first, final = self.options.learning_rate, self.options.final_learning_rate
        # The shortest decimal that is this float32.
        return float(str(np.float32(_core.learning_rate(first, final, self.steps, step))))

    def ends_epoch(self, steps: int) -> bool:
        """Whether an epoch, or the run, ends after a number of steps."""
        return steps == self.steps or (steps > 0 and steps % self.steps_per_epoch == 0)

    def epochs_after(self, steps: int) -> int | float:
        """Return how many epochs a number of steps is: an int if they are whole."""
        if steps % self.steps_per_epoch == 0:
            return steps // self.steps_per_epoch
        return round(steps / self.steps_per_epoch, 4)


def _steps_within(macs: int, step_macs: int | None, preparation_macs: int) -> int:
    if step_macs is None:
        raise ValueError(f"macs={macs} is a budget: a schedule needs step_macs, a step's cost")
    if step_macs < 1:
        raise ValueError(f"macs={macs}: a step of this trainer costs nothing; give epochs instead")
    least = preparation_macs + step_macs
    if macs < least:
        what = "the preparation and one step" if preparation_macs else "one step"
        raise ValueError(
            f"macs={macs} is less than the {least} multiply-accumulates of {what}; raise it, or "
            "use a smaller batch or fewer queries"
        )
    return (macs - preparation_macs) // step_macs
