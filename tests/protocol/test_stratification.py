"""Images that are held out and folds: each class by its share, copies and groups on one side."""

import time

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pmt import _core
from pmt.datasets import Dataset
from pmt.protocol.splitting import balanced_order
from pmt.protocol.stratification import (
    folds,
    hold_out,
    share_classes,
    stratified_order,
    units_of,
)


def of_labels(*counts: int) -> np.ndarray:
    """Labels of a number of images of each class, mixed."""
    labels = np.repeat(np.arange(len(counts)), counts)
    return np.random.default_rng(0).permutation(labels)


def held_out(labels: np.ndarray, count: int, units: np.ndarray | None = None) -> list[int]:
    """Count the images of each class that are held out."""
    units = np.arange(len(labels)) if units is None else units
    found = hold_out(labels, count, stratified_order(labels, 1), units)
    return np.bincount(labels[found], minlength=labels.max() + 1).tolist()


def images(*numbers: int, groups: object = None) -> Dataset:
    pixels = np.array(numbers, np.uint8).reshape(-1, 1, 1, 1)
    return Dataset.from_arrays(pixels, np.zeros(len(numbers), np.int64), groups=groups)


@pytest.mark.parametrize(
    ("counts", "number", "expected"),
    [
        ((270, 30), 60, [54, 6]),
        ((270, 30), 30, [27, 3]),
        ((152, 8), 32, [31, 1]),
        ((10, 10), 10, [5, 5]),
        ((97, 3), 20, [20, 0]),
        ((10, 4), 7, [5, 2]),
        ((3, 3, 3), 3, [0, 0, 0]),
        ((100, 4), 90, [87, 3]),
    ],
)
def test_each_class_gives_its_share(counts, number, expected):
    assert held_out(of_labels(*counts), number) == expected


@given(
    st.lists(st.integers(1, 40), min_size=1, max_size=6), st.floats(0.0, 0.5), st.integers(0, 99)
)
def test_a_class_keeps_at_least_as_many_images_as_it_gives(counts, share, seed):
    labels = of_labels(*counts)
    number = int(share * len(labels))
    found = hold_out(labels, number, stratified_order(labels, seed), np.arange(len(labels)))
    given_away = np.bincount(labels[found], minlength=len(counts))
    assert len(found) <= number
    assert (given_away <= np.array(counts) // 2).all()
    assert (given_away[np.array(counts) < 4] == 0).all()


@given(st.integers(1, 9), st.integers(1, 5), st.integers(0, 99))
def test_equally_large_classes_are_ordered_as_before(size, classes, seed):
    labels = of_labels(*[size] * classes)
    assert stratified_order(labels, seed).tolist() == balanced_order(labels, seed).tolist()


def test_equal_images_are_one_unit():
    units = units_of(images(7, 3, 7, 9)).tolist()
    assert units[0] == units[2]
    assert len(set(units)) == 3


def test_groups_join_images_and_images_join_groups():
    """Images 0 and 2 are equal, 2 and 3 of one group, 5 and 6 of none."""
    data = images(7, 3, 7, 9, 9, 1, 2, groups=["", "", "video", "video", "", "", ""])
    units = units_of(data).tolist()
    assert units[0] == units[2] == units[3] == units[4]
    assert len(set(units)) == 4


def test_copies_stay_on_one_side():
    labels = of_labels(60, 60)
    units = np.arange(120) // 2 * 2
    found = hold_out(labels, 24, stratified_order(labels, 0), units)
    assert len(found) == 24
    assert all(units[i] // 2 * 2 in found and units[i] + 1 in found for i in found)


def test_a_group_larger_than_what_is_asked_for_is_held_out_where_it_is_nearer_than_nothing():
    labels = np.zeros(50, np.int64)
    assert held_out(labels, 5, np.arange(50) // 10) == [10]
    assert held_out(labels, 4, np.arange(50) // 10) == [0]


def test_folds_have_a_share_of_every_class_and_rare_classes_are_in_none():
    labels = of_labels(90, 10, 3)
    parts = folds(labels, 10, np.arange(103))
    assert [np.bincount(labels[part], minlength=3).tolist() for part in parts] == [[9, 1, 0]] * 10


def test_folds_of_few_images_leave_out_classes_of_one():
    labels = of_labels(3, 2, 1)
    parts = folds(labels, 3, np.arange(6))
    counts = [np.bincount(labels[part], minlength=3).tolist() for part in parts]
    assert np.sum(counts, axis=0).tolist() == [3, 2, 0]
    assert max(np.max(counts, axis=0)) <= 2


def test_a_fold_holds_a_unit_whole():
    labels = np.zeros(40, np.int64)
    units = np.arange(40) // 4
    parts = folds(labels, 5, units)
    assert sum(len(set(units[part])) for part in parts) == 10
    assert sorted(np.concatenate(parts).tolist()) == list(range(40))


def test_folds_follow_no_pattern_of_the_order():
    """Images that three cameras took in turn."""
    parts = folds(np.arange(360) // 3 % 10, 3, np.arange(360))
    counts = np.array([np.bincount(part % 3, minlength=3) for part in parts])
    assert counts.sum(axis=0).tolist() == [120, 120, 120]
    assert abs(counts - 40).max() < 15


def test_groups_of_unequal_sizes_make_folds_of_like_sizes():
    units = np.repeat(np.arange(30), np.where(np.arange(30) % 3 == 0, 98, 1))
    sizes = [len(part) for part in folds(np.zeros(1000, np.int64), 3, units)]
    assert sorted(sizes) == [301, 302, 397]


@pytest.mark.parametrize(
    ("labels", "units", "shared"),
    [
        ([0, 1, 0, 1, 0, 1, 0, 1], range(8), [0, 1, 2, 3, 4, 5, 6, 7]),
        ([0, 0, 1, 2, 1, 2, 2, 1], range(8), [4, 1, 2, 3, 0, 5, 6, 7]),
        ([1, 2, 3, 4, 0, 0, 1, 2], range(8), [0, 1, 4, 3, 2, 5, 6, 7]),
        ([1, 2, 1, 1, 0, 0, 1, 2], range(8), [4, 1, 2, 3, 0, 5, 6, 7]),
        ([0, 1, 1, 1, 1, 1, 1, 1], range(8), [0, 1, 2, 3, 4, 5, 6, 7]),  # a class of one image
        ([0, 0, 1, 1, 1, 1, 1, 1], [0, 0, 1, 2, 3, 4, 5, 6], range(8)),  # and of one unit
        # A unit of two for one as large, or of three; not where that takes a class away.
        ([0, 0, 0, 1, 1, 1, 1, 2], [0, 0, 1, 2, 3, 3, 4, 5], [4, 5, 2, 3, 0, 1, 6, 7]),
        ([0, 0, 0, 0, 2, 2, 2, 1], [0, 0, 1, 1, 2, 2, 2, 3], [0, 1, 4, 5, 6, 2, 3, 7]),
        ([0, 0, 1, 1, 1, 1, 1, 1], [0, 1, 2, 2, 3, 3, 3, 3], range(8)),
    ],
)
def test_classes_of_two_units_are_in_both_halves(labels, units, shared):
    order = share_classes(np.arange(8), 4, 8, np.array(units), np.array(labels))
    assert order.tolist() == [*shared]


@given(
    labels=st.lists(st.integers(0, 4), min_size=2, max_size=30).map(lambda few: np.array(few * 4)),
    seed=st.integers(0, 99),
)
def test_images_are_exchanged_until_all_classes_are_in_both_halves(labels, seed):
    half = len(labels) // 2
    order = np.random.default_rng(seed).permutation(len(labels))
    shared = share_classes(order, half, 2 * half, np.arange(len(labels)), labels)
    assert sorted(shared) == list(range(len(labels)))
    assert {*labels[shared[:half]]} == {*labels[shared[half:]]} == {*labels}
    if {*labels[order[:half]]} == {*labels[order[half:]]}:
        assert (shared == order).all()


@pytest.mark.parametrize(("sizes", "shared"), [((2,), 1361), ((1, 2, 3, 4, 5), 1242)])
def test_many_classes_of_two_images_are_exchanged_soon(sizes, shared):
    labels = np.random.default_rng(0).permutation(np.arange(3000) // 2)
    units = np.repeat(np.arange(3000), np.resize(sizes, 3000))[:3000]
    start = time.process_time()
    order = share_classes(np.arange(3000), 1500, 3000, units, labels)
    assert time.process_time() - start < 4
    assert [len({*labels[half]}) for half in order.reshape(2, 1500)] == [shared, shared]


def test_units_begin_with_their_first_image():
    labels = np.zeros(3, np.int64)
    with pytest.raises(ValueError, match=r"firsts\[2\] must be the first sample of a unit, got 1"):
        _core.assign_folds(labels, np.array([0, 0, 1]), 3)
    with pytest.raises(ValueError, match=r"number must be 1\.\.16, got 17"):
        _core.assign_folds(labels, np.arange(3), 17)
