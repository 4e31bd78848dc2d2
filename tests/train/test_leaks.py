"""Images that stand on both sides of a run: refused, or told."""

import re

import numpy as np
import pytest

import pmt
from pmt.callbacks import EarlyStopping
from pmt.datasets import Dataset
from pmt.train.run.keep_best import held_out_indices

TRAIN, TEST = pmt.datasets.bundled("train"), pmt.datasets.bundled("test")
SOME = TRAIN.take(100)
SHORT = {"layers": "head", "batch": 10, "epochs": 1, "queries": 2, "preparation": "none"}


def fit(data: Dataset = SOME, **arguments) -> pmt.RunResult:
    trainer = pmt.ZOTrainer(**SHORT, threads=1)
    return trainer.fit(pmt.load("fashion_mnist_dscnn"), data, progress=False, **arguments)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"held_out": TRAIN.take(100)}, "100 images of 100 in held_out are also in data"),
        ({"held_out": TRAIN[90:110]}, "10 images of 20 in held_out are also in data"),
        (
            {"held_out": TEST.take(50), "valid": TEST.take(80)},
            "50 images of 50 in held_out are also in valid",
        ),
    ],
)
def test_a_choice_that_would_be_false_is_refused(arguments, message):
    with pytest.raises(ValueError, match=f"^{re.escape(message)} \\(equal pixels\\): "):
        fit(**arguments)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"valid": TRAIN.take(100)}, "100 images of 100 in valid are also in data"),
        ({"held_out": TRAIN[99:129]}, "1 image of 30 in held_out is also in data"),
        (
            {"valid": TEST.take(50), "callbacks": [EarlyStopping(monitor="valid_loss")]},
            "early stopping watches 'valid_loss': valid then chooses the end of the run",
        ),
        ({"data": TRAIN.take(50) + TRAIN.take(50)}, "50 training images of 100 in"),
    ],
)
def test_what_may_mislead_is_told(arguments, message):
    with pytest.warns(UserWarning, match=re.escape(message)) as caught:
        fit(**arguments)
    assert len(caught) == 1
    assert caught[0].filename == __file__


def test_other_images_are_quiet():
    fit(valid=TEST.take(50), held_out=TEST[50:100])
    pmt.ZOTrainer(**SHORT, loss="entropy").fit(
        pmt.load("fashion_mnist_dscnn"),
        Dataset.unlabeled(TRAIN.take(40).images),
        valid=TRAIN.take(40),
        progress=False,
    )


def test_groups_are_held_out_whole():
    data = TRAIN.take(200)
    groups = np.arange(200) // 5
    with_groups = Dataset.from_arrays(data.images, data.labels, groups=groups)
    chosen = held_out_indices(pmt.TrainingOptions(), with_groups)
    assert len(chosen) == 40
    assert np.bincount(groups[chosen])[np.unique(groups[chosen])].tolist() == [5] * 8
    results = [fit(with_groups, callbacks=[]), fit(data, groups=groups)]
    losses = [[r["held_out_loss"] for r in result.epochs] for result in results]
    assert losses[0] == losses[1] != [r["held_out_loss"] for r in fit(data).epochs]
    with pytest.raises(ValueError, match=r"groups has shape \(3,\): must be \(200,\)"):
        fit(data, groups=[1, 2, 3])


def test_groups_follow_their_images():
    names = TRAIN.class_names
    data = Dataset.from_arrays(
        TRAIN.images[:4], TRAIN.labels[:4], class_names=names, groups=[5, 6, 7, 8]
    )
    assert data[1:3].groups.tolist() == ["6", "7"]
    assert data.subset([3, 0]).groups.tolist() == ["8", "5"]
    assert data.take(1).groups.tolist() == ["5"]
    assert (data + TRAIN.take(1)).groups.tolist() == ["5", "6", "7", "8", ""]
    assert TRAIN.groups is None


def test_a_rare_class_is_trained_on_and_the_run_says_so():
    rare, others = np.flatnonzero(TRAIN.labels == 3)[:3], np.flatnonzero(TRAIN.labels != 3)[:97]
    result = fit(TRAIN.subset(np.concatenate([rare, others])))
    assert result.notes[-1] == (
        "no image is held out of 1 class of 3 or fewer (Dress): what is chosen says nothing of them"
    )


def test_a_class_of_a_tenth_is_held_out_by_its_share():
    few, many = np.flatnonzero(TRAIN.labels == 6)[:30], np.flatnonzero(TRAIN.labels != 6)[:270]
    labels = np.repeat([1, 0], [30, 270])
    data = Dataset.from_arrays(TRAIN.images[np.concatenate([few, many])], labels)
    chosen = held_out_indices(pmt.TrainingOptions(), data)
    assert np.bincount(labels[chosen]).tolist() == [54, 6]


def test_copies_count_once_where_a_state_is_chosen():
    data = TRAIN.take(50) + TRAIN.take(50)
    chosen = held_out_indices(pmt.TrainingOptions(), data)
    assert len(chosen) == 20
    with pytest.warns(UserWarning, match="have the same pixels as others"):
        assert fit(data).held_out == 10
