"""Images of a split that can be had clean or corrupted, and only those that are wanted."""

from __future__ import annotations

import os
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from pmt.corruptions.apply import corrupt
from pmt.datasets import Dataset
from pmt.datasets.layouts import fitted
from pmt.datasets.picture import Fit

__all__ = ["ImagePool"]


@dataclass(frozen=True, kw_only=True)
class ImagePool:
    """Images of one split, corrupted when they are asked for.

    A corrupted image depends on its index in the pool, not on what else is taken.

    Parameters
    ----------
    clean : Dataset, optional
        The images without corruption; None where only corrupted ones are stored.
    stored : Dataset, optional
        Corrupted images from arrays such as CIFAR-10-C, index for index those of ``clean``; they
        are used instead of corrupting ``clean``.
    corruption : str
        One of :func:`pmt.corruptions.names`; empty where the images are used as they are.
    severity : int
        1..5; 0 without a corruption.
    seed : int
        Seed of the corruption, 0 or more. Train and test images take different ones.
    constants, overlays
        As :func:`pmt.corruptions.corrupt`.
    size : tuple of int, optional
        Height and width that images are resized to after the corruption.

    Raises
    ------
    ValueError
        If there are neither clean nor stored images, both differ in their labels, or stored ones
        come without the name of their corruption.
    """

    clean: Dataset | None = None
    stored: Dataset | None = None
    corruption: str = ""
    severity: int = 0
    seed: int = 0
    constants: str = "cifar10"
    overlays: str | os.PathLike[str] | None = None
    size: tuple[int, int] | None = None

    def __post_init__(self) -> None:
        """Check that clean and stored images are the same ones."""
        if self.clean is None and self.stored is None:
            raise ValueError("clean and stored are both None: a pool needs images")
        if self.stored is not None and not self.corruption:
            raise ValueError("stored images need corruption = NAME, the name of what they hold")
        if (
            self.clean is not None
            and self.stored is not None
            and not np.array_equal(self.clean.labels, self.stored.labels)
        ):
            raise ValueError(
                f"{self.stored.name!r} ({len(self.stored)} images) and {self.clean.name!r} "
                f"({len(self.clean)}) have different labels: stored must hold the corrupted copies "
                "of clean, in the same order"
            )

    @property
    def images(self) -> Dataset:
        """All images at their own size: clean where there are any, else the stored ones."""
        found = self.clean if self.clean is not None else self.stored
        assert found is not None
        return found

    @property
    def labels(self) -> npt.NDArray[np.int64]:
        """Classes, int64 (N,)."""
        return self.images.labels

    def __len__(self) -> int:
        """Return the number of images."""
        return len(self.images)

    def take(self, indices: npt.NDArray[np.integer]) -> Dataset:
        """Return the images at ``indices``, corrupted (where there is a corruption) and resized."""
        if self.stored is not None:
            return fitted(self.stored.subset(indices), Fit(self.size))
        part = self.images.subset(indices)
        if self.corruption:
            part = corrupt(
                part,
                self.corruption,
                self.severity,
                seed=self.seed,
                indices=indices,
                constants=self.constants,
                overlays=self.overlays,
            )
        return fitted(part, Fit(self.size))

    def take_clean(self, indices: npt.NDArray[np.integer]) -> Dataset | None:
        """Return them without corruption; None where no clean images are known."""
        return None if self.clean is None else fitted(self.clean.subset(indices), Fit(self.size))
