"""Intervals of means: over test images, over seeds, and of differences."""

import math
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
from scipy import stats

from pmt.protocol import wilson_of_share

Right = tuple[int, npt.NDArray[np.bool_]]
_Z = float(stats.norm.ppf(0.975))


def student_t(freedom: int) -> float:
    """Return the 97.5 % quantile of Student's t, for 1 or more degrees of freedom."""
    return float(stats.t.ppf(0.975, freedom))


def effective_images(rights: Sequence[Right]) -> float:
    """Return how many independent images the same test images under several seeds are worth.

    An image that all seeds get right, or all wrong, tells no more than one seed does. With m the
    share of seeds that get an image right, p its mean and v its variance over N images, the
    variance of the mean accuracy is v / N, that of p (1 - p) v^-1 N independent images: from N,
    where seeds agree on every image, to N times the seeds.

    For each seed there are the CRC-32 of the images, and which of them are right. Seeds with other
    images count as independent.
    """
    total = 0.0
    for crc in sorted({crc for crc, _ in rights}):
        group = np.array([right for other, right in rights if other == crc], np.float64)
        seeds, images = group.shape
        share = float(group.mean())
        variance = float(group.mean(axis=0).var())
        binomial = share * (1.0 - share)
        if binomial == 0.0:
            total += images
        elif variance == 0.0:
            total += images * seeds
        else:
            total += min(max(images * binomial / variance, images), images * seeds)
    return total


def accuracy_interval(rights: Sequence[Right]) -> tuple[float, float]:
    """Return Wilson's 95 % interval of the mean accuracy, over the test images.

    It says how far other test images might move the mean of these trained models; what other seeds
    might do is the spread's to say.
    """
    count = sum(len(right) for _, right in rights)
    share = sum(int(right.sum()) for _, right in rights) / count
    return wilson_of_share(share, effective_images(rights))


def difference_interval(
    values: Sequence[float], rights: Sequence[tuple[Right, Right]] | None
) -> tuple[float, float] | None:
    """Return the 95 % interval of a mean difference, paired by seed and by test image.

    ``values`` are the differences of two methods by seed; ``rights`` says, for accuracies, which
    images each of the two gets right. The interval is the mean plus or minus ``sqrt((t s /
    sqrt(S))^2 + (1.96 u / sqrt(N))^2)``: s the standard deviation over S seeds with Student's t, u
    that over N images of the seeds' mean difference, less what of it is of single images under
    single seeds, e^2 / S: that is in s, too. e^2 is the residual mean square of images crossed with
    seeds. With one seed the first part is left out, without common test images the second; None
    where nothing is left.
    """
    mean = float(np.mean(values))
    parts = []
    if len(values) > 1:
        deviation = float(np.std(values, ddof=1))
        parts.append(student_t(len(values) - 1) * deviation / math.sqrt(len(values)))
    if rights and len({crc for pair in rights for crc, _ in pair}) == 1:
        each = [a.astype(np.float64) - b.astype(np.float64) for (_, a), (_, b) in rights]
        by_image = np.mean(each, axis=0)
        if len(by_image) > 1:
            variance = float(by_image.var(ddof=1)) - _residual(np.array(each)) / len(each)
            parts.append(_Z * math.sqrt(max(variance, 0.0) / len(by_image)))
    if not parts:
        return None
    half = math.hypot(*parts)
    return mean - half, mean + half


def _residual(differences: npt.NDArray[np.float64]) -> float:
    """Return the residual mean square of seeds (rows) crossed with images; 0 of one seed."""
    seeds, images = differences.shape
    if seeds == 1:
        return 0.0
    expected = differences.mean(axis=1, keepdims=True) + differences.mean(axis=0)
    residual = differences - expected + differences.mean()
    return float((residual**2).sum() / ((seeds - 1) * (images - 1)))
