"""A learner and `fit` make the same model of the same samples."""

import numpy as np
import pytest
from networks import network_with_statistics

import pmt
from pmt import corruptions, datasets
from pmt.datasets import Dataset
from pmt.train.prepare.linear_head import solve_head


@pytest.fixture(scope="module")
def model():
    return network_with_statistics()


def renamed(images: Dataset) -> Dataset:
    """Images under the label three on, so that any head is better than the old one."""
    return Dataset.from_arrays(images.images, (images.labels + 3) % 10)


def parameters(model: pmt.Model) -> list[bytes]:
    core = model.core
    return [
        part.tobytes()
        for layer in model.layers
        for part in (
            core.weights(layer.index),
            core.bias(layer.index),
            core.weight_scales(layer.index),
        )
    ]


@pytest.mark.parametrize("seed", range(9))
def test_the_head_of_a_learner_is_the_solved_head_to_the_byte(seed):
    """Random numbers of samples, copies among them, and for some seeds rare and absent classes."""
    rng = np.random.default_rng(seed)
    data = renamed(datasets.bundled("train"))
    samples = data.subset(rng.integers(0, 900, int(rng.integers(12, 220))))
    if seed % 3 == 0:
        rare = np.flatnonzero(samples.labels == 7)[:2]
        samples = samples.subset(np.r_[np.flatnonzero(samples.labels < 5), rare])
    model = pmt.load("fashion_mnist_dscnn")
    learner = pmt.Learner(model, samples=300, held_out=60)
    learner.observe(samples.images, samples.labels, role="train")
    learner.observe(data.images[900:960], data.labels[900:960], role="hold_out")
    assert learner.learn("head") == "head_alone"
    learner.commit()
    solve_head(model, samples)
    assert parameters(learner.model()) == parameters(model)


@pytest.mark.parametrize("seed", [1, 2])
def test_the_head_of_one_output_is_the_solved_head_to_the_byte(seed):
    """Its two classes are parted among the folds."""
    order = np.random.default_rng(seed).permutation(900)
    shirts = datasets.bundled("train").subset(order)
    labels = (shirts.labels > 4).astype(np.int64)
    model = pmt.load("fashion_mnist_dscnn", classes=1)
    learner = pmt.Learner(model, samples=160, held_out=60)
    learner.observe(shirts.images[:100], labels[:100], role="train")
    learner.observe(shirts.images[100:160], labels[100:160], role="hold_out")
    assert learner.learn("head") == "head_alone"
    learner.commit()
    targets = labels[:100, np.newaxis].astype(np.float32)
    data = Dataset.with_targets(shirts.images[:100], targets)
    solve_head(model, data, loss="binary_cross_entropy")
    assert parameters(learner.model()) == parameters(model)


@pytest.mark.parametrize(
    ("kind", "chosen"), [("contrast", "trained"), ("fog", "head"), ("brightness", "trained")]
)
def test_all_phases_of_a_learner_are_those_of_fit_to_the_byte(model, kind, chosen):
    """Alignment with windows, both heads, an epoch, and the choice among all of them."""
    train = corruptions.corrupt(datasets.bundled("train").take(60), kind, 5, seed=0)
    held_out = corruptions.corrupt(datasets.bundled("train")[600:660], kind, 5, seed=1)
    options = pmt.preset("default", layers="B4,head", batch=4, queries=8, epochs=1)
    options = options.replace(preparation="align+head")
    learner = pmt.Learner(model, windows=True, samples=120, held_out=60, options=options)
    learner.observe(train.images, train.labels, role="train")
    learner.observe(held_out.images, held_out.labels, role="hold_out")
    assert learner.learn() == chosen
    learner.commit()
    fitted = model.copy()
    result = pmt.ZOTrainer(options).fit(fitted, train, held_out=held_out, progress=False)
    records = {record["phase"]: record for record in result.phases}
    records |= {"original": records.pop("start"), "trained": result.epochs[0]}
    assert learner.scores.keys() == records.keys()
    for state, score in learner.scores.items():
        found = records[state]["held_out_loss"], records[state]["held_out_accuracy"]
        assert found == pytest.approx((score.loss, score.accuracy), abs=1e-12)
    assert parameters(learner.model()) == parameters(fitted)
