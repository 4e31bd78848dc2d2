"""Random views of training images."""

from __future__ import annotations

from typing import Any

import numpy as np

from pmt.datasets import Dataset
from pmt_lab.augmentation import center_crop, random_views


def dataset(images: Any, labels: list[int]) -> Dataset:
    return Dataset(images, np.array(labels), ("a", "b", "c"), name="views")


RANDOM = np.random.default_rng(1)
IMAGES = dataset(RANDOM.integers(0, 256, (3, 8, 8, 3), np.uint8), [2, 0, 1])


def test_views_follow_from_their_seed_and_are_all_others() -> None:
    views = random_views(IMAGES, 16, 4, seed=5)
    assert views.images.shape == (12, 16, 16, 3)
    np.testing.assert_array_equal(views.labels, [2, 0, 1] * 4)
    np.testing.assert_array_equal(views.images, random_views(IMAGES, 16, 4, seed=5).images)
    assert len({view.tobytes() for view in views.images}) == 12
    assert (random_views(IMAGES, 16, 4, seed=6).images != views.images).any()


def test_a_constant_image_changes_its_brightness_alone() -> None:
    gray = dataset(np.full((1, 8, 8, 3), 100, np.uint8), [0])
    views = random_views(gray, 4, 50, seed=1).images
    assert (views == views[:, :1, :1, :1]).all()  # constant again, and gray
    assert 58 <= views.min() < 70
    assert 130 < views.max() <= 142


def test_the_center_is_cut_from_the_enlarged_image() -> None:
    left = np.zeros((1, 10, 10, 3), np.uint8)
    left[:, :, 5:] = 200
    cut = center_crop(dataset(left, [0]), 4, 20).images
    assert cut.shape == (1, 4, 4, 3)
    np.testing.assert_array_equal(cut[0, :, 0], 0)
    assert cut[0, 0, 3].min() >= 190
    same = center_crop(IMAGES, 8, 8).images
    np.testing.assert_array_equal(same, IMAGES.images)
