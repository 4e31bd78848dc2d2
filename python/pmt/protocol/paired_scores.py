"""Two models on the same images: how much better one is, and how sure that is."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

__all__ = ["PairedMargin", "paired_margin"]

_Z = 1.959964  # 95 %


@dataclass(frozen=True)
class PairedMargin:
    """A mean difference of paired scores.

    Attributes
    ----------
    mean : float
        Of the scores' differences.
    standard_error : float
        Of ``mean``.
    """

    mean: float
    standard_error: float

    @property
    def significant(self) -> bool:
        """Whether 0 lies outside the 95 % interval."""
        return abs(self.mean) > _Z * self.standard_error

    @property
    def interval(self) -> tuple[float, float]:
        """Ends of the 95 % interval."""
        return self.mean - _Z * self.standard_error, self.mean + _Z * self.standard_error


def paired_margin(scores: npt.NDArray[np.float64], others: npt.NDArray[np.float64]) -> PairedMargin:
    """Compare scores of the same images, which cancels what makes images easy or hard.

    Parameters
    ----------
    scores, others : ndarray of float64, shape (S, N)
        Of S repeats (seeds of training, in pairs) and N images, N at least 2.

    Returns
    -------
    PairedMargin
        Mean of ``others - scores``. Its variance is that of the images' means over N, plus, where
        there are several repeats, that of the repeats' means over S. With one repeat the chance in
        training is not in it.

    Raises
    ------
    ValueError
        If the shapes differ or there are fewer than two images.
    """
    if scores.shape != others.shape or scores.ndim != 2 or scores.shape[1] < 2:
        raise ValueError(
            f"scores {scores.shape} and others {others.shape} must both be (repeats, images) with "
            "2 images or more"
        )
    differences = np.asarray(others, np.float64) - np.asarray(scores, np.float64)
    repeats, images = differences.shape
    variance = float(differences.mean(axis=0).var(ddof=1)) / images
    if repeats > 1:
        variance += float(differences.mean(axis=1).var(ddof=1)) / repeats
    return PairedMargin(float(differences.mean()), math.sqrt(variance))
