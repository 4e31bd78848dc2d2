"""Intervals of means: formulas against simulation and against published quantiles."""

import math

import numpy as np
import pytest

from pmt.protocol import wilson_interval
from pmt_lab.report.intervals import (
    accuracy_interval,
    difference_interval,
    effective_images,
    student_t,
)


def rights(*rows: str, crc: int = 1) -> list[tuple[int, np.ndarray]]:
    return [(crc, np.array([sign == "1" for sign in row])) for row in rows]


@pytest.mark.parametrize(
    ("freedom", "quantile"),
    [(1, 12.706), (2, 4.303), (10, 2.228), (20, 2.086), (21, 2.080), (30, 2.042), (120, 1.980)],
)
def test_quantiles_of_student(freedom, quantile):
    assert student_t(freedom) == pytest.approx(quantile, abs=6e-4)


def test_seeds_that_agree_add_no_images():
    assert effective_images(rights("110100", "110100", "110100")) == 6


def test_seeds_that_disagree_evenly_count_in_full():
    assert effective_images(rights("111000", "000111")) == 12


def test_seeds_that_agree_on_most():
    # Shares 1, 1, 1/2, 0: mean 5/8, variance 11/64; 4 * (5/8 * 3/8) / (11/64) = 60/11.
    assert effective_images(rights("1110", "1100")) == pytest.approx(60 / 11)


def test_all_right_or_all_wrong():
    assert effective_images(rights("1111", "1111")) == 4
    assert effective_images(rights("0000")) == 4


def test_seeds_with_other_images_are_independent():
    assert effective_images(rights("1100", crc=1) + rights("1010", crc=2)) == 8


def test_one_seed_has_wilsons_interval():
    assert accuracy_interval(rights("1110100110")) == wilson_interval(6, 10)


def test_the_interval_holds_the_truth_as_often_as_it_says():
    """Images that are right with a probability of their own; seeds are drawn, then images."""
    generator = np.random.Generator(np.random.PCG64(1))
    held, tries, images = 0, 400, 60
    hardness = generator.beta(0.6, 0.4, 100_000)
    for _ in range(tries):
        chosen = generator.choice(hardness, images)
        drawn = [(1, generator.random(images) < chosen) for _ in range(3)]
        low, high = accuracy_interval(drawn)
        held += low <= float(hardness.mean()) <= high
    assert 0.92 <= held / tries <= 0.98


def test_a_difference_holds_both_uncertainties():
    a, b = rights("1111100", "1111010"), rights("1100100", "1110000")
    pairs = list(zip(a, b, strict=True))
    values = [2 / 7, 2 / 7]
    # No spread over seeds: images alone. Shares of the difference: 0 0 1/2 1 0 1/2 0.
    by_image = np.array([0, 0, 0.5, 1, 0, 0.5, 0])
    # The two images whose difference one seed alone has are half of each seed's, up and down.
    residual = 4 * 0.5**2 / (1 * 6)
    half = 1.959964 * math.sqrt((by_image.var(ddof=1) - residual / 2) / 7)
    low, high = difference_interval(values, pairs)
    assert (low, high) == pytest.approx((2 / 7 - half, 2 / 7 + half))
    # Losses have no images: Student's t over seeds alone.
    low, high = difference_interval([0.1, 0.2, 0.3], None)
    half = 4.302653 * 0.1 / math.sqrt(3)
    assert (low, high) == pytest.approx((0.2 - half, 0.2 + half))


def test_one_loss_has_no_interval():
    assert difference_interval([0.1], None) is None


def test_pairs_with_other_images_are_paired_by_seed_alone():
    pairs = list(zip(rights("110", crc=1), rights("100", crc=2), strict=True))
    assert difference_interval([1 / 3], pairs) is None


@pytest.mark.parametrize("images", [100, 400])
@pytest.mark.parametrize("seeds", [2, 3, 5, 10])
@pytest.mark.parametrize("spread", [0.0, 0.1, 0.5])
def test_a_difference_holds_the_truth_as_often_as_it_says(images, seeds, spread):
    """Two methods of the same accuracy, whose images and seeds each have effects of their own."""
    generator = np.random.Generator(np.random.PCG64([images, seeds, round(10 * spread)]))
    tries, held = 1000, 0
    for _ in range(tries):
        hardness = generator.normal(1.5, 1.5, images)
        favored = generator.normal(0, 0.25, images)  # by one of the methods
        of_seeds = generator.normal(0, spread, (seeds, 2, 1))
        logits = hardness + np.stack([favored, -favored]) + of_seeds
        right = generator.random((seeds, 2, images)) < 1 / (1 + np.exp(-logits))
        values = right.mean(axis=2) @ [1.0, -1.0]
        ends = difference_interval(values.tolist(), [((1, a), (1, b)) for a, b in right])
        assert ends is not None
        held += ends[0] - 1e-12 <= 0 <= ends[1] + 1e-12
    assert 0.93 <= held / tries <= 0.975
