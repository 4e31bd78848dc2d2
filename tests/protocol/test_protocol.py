"""Splits of the protocols: sizes, balance, disjoint parts, seeds; and Wilson's interval."""

import re
from pathlib import Path

import numpy as np
import pytest
from cifar_files import write_binary, write_published
from hypothesis import given, settings
from hypothesis import strategies as st
from networks import residual_network

import pmt
from pmt import corruptions
from pmt.datasets import Dataset
from pmt.protocol import ImagePool, balanced_order, split, wilson_interval
from pmt.protocol.data_source import DataSource


def numbered(count: int, classes: int, *, first: int = 0, name: str = "numbered") -> Dataset:
    """Images whose first two pixels are their number, and labels in turn."""
    images = np.zeros((count, 2, 2, 1), np.uint8)
    images[:, 0, 0, 0] = (np.arange(count) + first) % 256
    images[:, 0, 1, 0] = (np.arange(count) + first) // 256
    labels = np.arange(count) % classes
    return Dataset(images, labels, tuple(f"class {c}" for c in range(classes)), name)


def numbers(data: Dataset | None) -> list[int]:
    assert data is not None
    return (data.images[:, 0, 0, 0] + 256 * data.images[:, 0, 1, 0].astype(int)).tolist()


def pool(count: int, classes: int = 3, first: int = 0) -> ImagePool:
    return ImagePool(clean=numbered(count, classes, first=first))


@settings(deadline=None, max_examples=50)
@given(st.lists(st.integers(0, 4), min_size=1, max_size=60), st.integers(0, 2**32 - 1))
def test_every_beginning_of_the_order_is_balanced(labels, seed):
    order = balanced_order(np.array(labels), seed)
    assert sorted(order.tolist()) == list(range(len(labels)))
    left = np.bincount(labels, minlength=5)
    taken = np.zeros(5, int)
    for index in order:
        taken[labels[index]] += 1
        left[labels[index]] -= 1
        with_images_left = taken[left > 0]
        if len(with_images_left):
            assert with_images_left.min() >= taken.max() - 1


def test_the_order_is_the_same_everywhere():
    assert balanced_order(np.array([0, 1, 0, 1, 2, 0]), 7).tolist() == [3, 4, 0, 2, 1, 5]
    assert balanced_order(np.array([0, 1, 0, 1, 2, 0]), 8).tolist() == [2, 3, 4, 0, 1, 5]


def test_default_adapts_on_training_images_and_tests_on_test_images():
    parts = split("default", pool(60), pool(30, first=100), images=18, held_out=6)
    train, held_out, test = (set(numbers(d)) for d in (parts.train, parts.held_out, parts.test))
    assert (len(train), len(held_out), len(test)) == (12, 6, 30)
    assert not train & held_out
    assert max(train | held_out) < 60 <= 100 <= min(test)
    assert np.bincount(parts.train.labels).tolist() == [4, 4, 4]
    assert np.bincount(parts.held_out.labels).tolist() == [2, 2, 2]
    assert parts.clean_test is None


def test_more_images_keep_those_chosen_and_the_held_out_ones():
    few = split("default", pool(60), pool(30, first=100), images=18, held_out=6)
    many = split("default", pool(60), pool(30, first=100), images=36, held_out=6)
    assert numbers(many.held_out) == numbers(few.held_out)
    assert set(numbers(few.train)) < set(numbers(many.train))
    other = split("default", pool(60), pool(30, first=100), images=18, held_out=6, seed=1)
    assert numbers(other.train) != numbers(few.train)


def test_nothing_is_held_out_and_test_images_are_limited_on_request():
    parts = split("default", pool(60), pool(30, first=100), images=9, held_out=0, test_images=6)
    assert parts.held_out is None
    assert np.bincount(parts.test.labels).tolist() == [2, 2, 2]
    assert numbers(parts.test) == sorted(numbers(parts.test))


def test_paper_parts_one_set_as_the_author_does():
    parts = split("paper", None, pool(450, classes=2))
    train, held_out, test = (set(numbers(d)) for d in (parts.train, parts.held_out, parts.test))
    assert (len(train), len(held_out), len(test)) == (200, 20, 180)
    assert len(train | held_out | test) == 400
    for data, each in ((parts.train, 100), (parts.held_out, 10), (parts.test, 90)):
        assert np.bincount(data.labels).tolist() == [each, each]


def test_paper_needs_200_images_of_each_class():
    with pytest.raises(
        ValueError,
        match="'numbered' has 199 images of class 'class 1': the protocol 'paper' needs 200 of "
        r"each \(100 to adapt, 10 to choose, 90 to test\); use the protocol 'default'",
    ):
        split("paper", None, pool(399, classes=2))


def test_images_are_corrupted_as_within_their_whole_pool():
    train, test = pmt.datasets.bundled("train"), pmt.datasets.bundled("test")
    pools = [
        ImagePool(clean=data, corruption="shot_noise", severity=3, seed=seed)
        for seed, data in enumerate((train, test))
    ]
    parts = split("default", *pools, images=60, held_out=10, test_images=20)
    chosen = np.sort(balanced_order(test.labels, 0)[:20])
    whole = corruptions.corrupt(test, "shot_noise", 3, seed=1)
    assert np.array_equal(parts.test.images, whole.images[chosen])
    assert np.array_equal(parts.clean_test.images, test.images[chosen])
    assert np.array_equal(parts.clean_test.labels, parts.test.labels)


def test_the_two_pools_must_differ_in_images_and_noise():
    one = pool(30)
    with pytest.raises(ValueError, match=r"train and test are the same images .* protocol 'paper'"):
        split("default", one, one, images=9, held_out=3)
    noisy = [
        ImagePool(clean=numbered(n, 3), corruption="fog", severity=1, seed=4) for n in (30, 60)
    ]
    with pytest.raises(ValueError, match="both corrupted with seed = 4"):
        split("default", *noisy, images=9, held_out=3)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"images": 61}, "images=61 must be 1 to 60"),
        ({"images": 0}, "images=0 must be 1 to 60"),
        ({"held_out": 9}, "held_out=9 must be 0 to 8"),
        ({"test_images": 31}, "test_images=31 must be 0 to 30"),
        ({"test_images": -1}, "test_images=-1 must be 0 to 30"),
        ({"seed": -1}, "seed=-1 must be 0 or more"),
    ],
)
def test_numbers_out_of_range(changes, message):
    options = {"images": 9, "held_out": 3, **changes}
    with pytest.raises(ValueError, match=message):
        split("default", pool(60), pool(30, first=100), **options)


def test_unknown_protocols_and_missing_training_images():
    with pytest.raises(ValueError, match="name='fair' is unknown; choose one of default, paper"):
        split("fair", pool(60), pool(30))
    with pytest.raises(ValueError, match='train = None: the protocol "default" adapts on'):
        split("default", None, pool(30))


def test_a_pool_needs_images_and_stored_ones_must_fit():
    with pytest.raises(ValueError, match="clean and stored are both None"):
        ImagePool()
    with pytest.raises(ValueError, match="stored images need corruption = NAME"):
        ImagePool(stored=numbered(3, 3))
    with pytest.raises(ValueError, match=r"'numbered' \(4 images\) and 'numbered' \(3\) have diff"):
        ImagePool(clean=numbered(3, 3), stored=numbered(4, 3), corruption="fog", severity=1)


def test_a_source_gives_pools_of_stored_and_of_made_images(tmp_path):
    model = pmt.load("cifar10_mcunet")
    folder = tmp_path / "cifar"
    write_binary(folder)
    record = (folder / "test_batch.bin").read_bytes()
    (folder / "test_batch.bin").write_bytes(record + b"\x02" + record[1:])
    clean = pmt.datasets.load(folder, split="test")
    write_published(folder / "CIFAR-10-C", tuple(clean.labels.tolist()))
    source = DataSource(str(folder), "fog", 5)
    train, test = source.pool("train", model), source.pool("test", model)
    assert (train.seed, test.seed) == (0, 1)
    assert train.stored is None
    some = test.take(np.array([1]))
    assert some.images.shape == (1, 128, 128, 3)
    assert int(some.images[0, 0, 0, 0]) == 51  # severity 5, image 1
    assert test.take_clean(np.array([1])).images.shape == (1, 128, 128, 3)
    alone = DataSource(str(folder / "CIFAR-10-C"), "fog", 5).pool("test", model)
    assert alone.take_clean(np.array([1])) is None


def test_gray_images_get_the_three_channels_of_a_model_before_they_are_corrupted():
    model, gray = residual_network(), pmt.datasets.bundled("test")
    color = DataSource("bundled").load("test", model, limit=3).images
    assert color.shape == (3, 8, 8, 3)
    assert (color == color[..., :1]).all()
    noisy = DataSource("bundled", "gaussian_noise", 5).load("test", model, limit=3).images
    assert (noisy[..., 0] != noisy[..., 1]).any()
    assert gray.images.shape[3] == 1


@pytest.mark.parametrize(
    ("correct", "count", "interval"),
    [(0, 10, (0.0, 0.2775)), (10, 10, (0.7225, 1.0)), (601, 900, (0.6363, 0.6978))],
)
def test_wilson_interval(correct, count, interval):
    assert wilson_interval(correct, count) == pytest.approx(interval, abs=5e-5)


@given(st.integers(1, 10**6).flatmap(lambda n: st.tuples(st.integers(0, n), st.just(n))))
def test_wilson_interval_holds_the_share_and_mirrors(case):
    correct, count = case
    low, high = wilson_interval(correct, count)
    assert 0.0 <= low <= correct / count <= high <= 1.0
    mirrored = wilson_interval(count - correct, count)
    assert mirrored == pytest.approx((1.0 - high, 1.0 - low), abs=1e-12)


def test_wilson_interval_refuses_what_is_no_share():
    with pytest.raises(ValueError, match="count=0"):
        wilson_interval(0, 0)
    with pytest.raises(ValueError, match=r"correct=4 must be 0\.\.3"):
        wilson_interval(4, 3)
    with pytest.raises(ValueError, match="z=0"):
        wilson_interval(1, 2, z=0)


def test_the_example_of_the_documents_runs(capsys):
    text = (Path(__file__).parents[2] / "docs" / "concepts" / "protocol.md").read_text()
    (program,) = re.findall(r"```python\n(.*?)```", text, re.DOTALL)
    exec(program, {})
    assert re.fullmatch(r"0\.\d{3} \(0\.\d{3}\.\.0\.\d{3}\)\n", capsys.readouterr().out)
