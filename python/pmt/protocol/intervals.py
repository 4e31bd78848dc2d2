"""Wilson's interval of a share, and of the difference of two models on the same images."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from pmt._util.checks import checked_integer

__all__ = ["PairedMargin", "Z", "paired_margin", "wilson_interval", "wilson_of_share"]

Z = 1.959964  # 95 %


def wilson_interval(correct: int, count: int, *, z: float = Z) -> tuple[float, float]:
    """Return the interval that holds the true share with the confidence of ``z``.

    Parameters
    ----------
    correct : int
        Successes, 0 to ``count``.
    count : int
        Trials, 1 or more.
    z : float
        Quantile of the normal distribution; the default is that of 95 %.

    Returns
    -------
    tuple of float
        Lower and upper end, within 0..1. Unlike the share plus or minus z standard errors, it
        holds near 0 and 1 and for few trials.

    Raises
    ------
    TypeError
        If ``correct`` or ``count`` is not an integer.
    ValueError
        If they are out of range, or ``z`` is not positive.

    Notes
    -----
    E. B. Wilson, "Probable inference, the law of succession, and statistical inference", Journal
    of the American Statistical Association 22, 1927.

    Examples
    --------
    >>> low, high = wilson_interval(601, 900)
    >>> f"{low:.4f} {high:.4f}"
    '0.6363 0.6978'
    """
    correct, count = checked_integer("correct", correct), checked_integer("count", count)
    if count < 1:
        raise ValueError(f"count={count}: an interval needs at least one trial")
    if not 0 <= correct <= count:
        raise ValueError(f"correct={correct} must be 0 to count={count}")
    return wilson_of_share(correct / count, count, z=z)


def wilson_of_share(share: float, count: float, *, z: float = Z) -> tuple[float, float]:
    """Return the interval for a share of ``count`` trials, which need not be a whole number.

    Parameters
    ----------
    share : float
        Share of successes, 0..1.
    count : float
        Trials, above 0; fewer than were made where they depend on each other.
    z : float
        As :func:`wilson_interval`.

    Returns
    -------
    tuple of float
        As :func:`wilson_interval`.

    Raises
    ------
    ValueError
        If a number is out of range.
    """
    if not count > 0.0:
        raise ValueError(f"count={count}: an interval needs more than 0 trials")
    if not 0.0 <= share <= 1.0:
        raise ValueError(f"share={share} must be 0 to 1")
    if not z > 0.0:
        raise ValueError(f"z={z} must be above 0, for example 1.96 for 95 %")
    center = share + z**2 / (2 * count)
    spread = z * math.sqrt(share * (1 - share) / count + z**2 / (4 * count**2))
    scale = 1 + z**2 / count
    # Where nothing or everything is right, an end is the share itself, but for the last bit.
    low, high = (center - spread) / scale, (center + spread) / scale
    return (low if share > 0.0 else 0.0), (high if share < 1.0 else 1.0)


@dataclass(frozen=True)
class PairedMargin:
    """A mean difference of paired scores.

    Attributes
    ----------
    mean : float
        Mean of the scores' differences.
    standard_error : float
        Standard error of ``mean``.
    """

    mean: float
    standard_error: float

    @property
    def significant(self) -> bool:
        """Whether 0 lies outside the 95 % interval."""
        return abs(self.mean) > Z * self.standard_error

    @property
    def interval(self) -> tuple[float, float]:
        """Ends of the 95 % interval."""
        return self.mean - Z * self.standard_error, self.mean + Z * self.standard_error


def paired_margin(scores: npt.NDArray[np.float64], others: npt.NDArray[np.float64]) -> PairedMargin:
    """Compare scores of the same images, which cancels what makes images easy or hard.

    Parameters
    ----------
    scores, others : ndarray of float64, shape (S, N)
        One row for each of S repeats (seeds of training, in pairs); N images, N at least 2.

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
