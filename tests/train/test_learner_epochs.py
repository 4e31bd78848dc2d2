"""Epochs of a learner are those of `fit`."""

import pytest

import pmt
from pmt import corruptions, datasets
from pmt.datasets import Dataset
from pmt.errors import OptionError


def of_ten_classes(data):
    return pmt.load("fashion_mnist_dscnn"), data, "cross_entropy"


def of_one_output(data):
    """Labels 0 and 1: the five later classes are 1."""
    model, loss = pmt.load("fashion_mnist_dscnn", classes=1), "binary_cross_entropy"
    clean = datasets.bundled("train").take(200)
    pmt.ZOTrainer(layers="head", epochs=1, loss=loss).fit(model, (clean.images, clean.labels // 5))
    return model, Dataset.from_arrays(data.images, data.labels // 5), loss


@pytest.mark.parametrize(
    ("task", "noise", "final"),
    [
        (of_ten_classes, "impulse_noise", 0.0),
        (of_ten_classes, "impulse_noise", 0.5),
        (of_one_output, "gaussian_noise", 0.0),
    ],
)
def test_epochs_of_a_learner_are_those_of_fit_to_the_byte(task, noise, final):
    noisy = corruptions.corrupt(datasets.bundled("train").take(120), noise, 5, seed=0)
    model, data, loss = task(noisy)
    options = pmt.preset("default", layers="B2,head", batch=4, queries=4, epochs=2, seed=3)
    options = options.replace(
        preparation="none", keep_best=False, final_learning_rate=final, loss=loss
    )
    learner = pmt.Learner(model, samples=120, held_out=20, options=options)
    learner.observe(data.images[:100], data.labels[:100], role="train")
    learner.observe(data.images[100:], data.labels[100:], role="hold_out")
    assert learner.learn("epochs") == "trained"
    learner.commit()
    learned, fitted = learner.model().core, model.copy()
    pmt.ZOTrainer(options).fit(fitted, data.take(100), progress=False)
    changed = 0
    for index in [layer.index for layer in model.layers]:
        assert learned.weights(index).tolist() == fitted.core.weights(index).tolist()
        assert learned.bias(index).tolist() == fitted.core.bias(index).tolist()
        changed += (learned.weights(index) != model.core.weights(index)).sum()
    assert changed > 200


def test_more_epochs_than_a_learner_can_count_are_refused():
    options = pmt.preset("default", layers="B2", epochs=2**19)
    message = r"^epochs=524288: with samples=4096 these are 2\^31 or more; take fewer$"
    with pytest.raises(OptionError, match=message):
        pmt.Learner(pmt.load("fashion_mnist_dscnn"), samples=4096, options=options)


def test_a_learner_chooses_the_block_as_select_does(tmp_path):
    data = corruptions.corrupt(datasets.bundled("train").take(160), "impulse_noise", 5, seed=0)
    model = pmt.load("fashion_mnist_dscnn")
    options = pmt.preset("default", batch=4, queries=4, epochs=2, seed=3, preparation="none")
    blocks, place = ["B2", "B1", "B4+head"], tmp_path / "states"
    room = {"samples": 160, "held_out": 60, "options": options}
    learner = pmt.Learner(model, **room, select=blocks, storage=place)
    assert learner.trials == {}
    assert learner.selected is None
    learner.observe(data.images[:100], data.labels[:100], role="train")
    learner.observe(data.images[100:], data.labels[100:], role="hold_out")
    assert learner.learn("epochs") == "trained"
    train, held_out = data.take(100), data.images[100:]
    judges = (held_out, data.labels[100:])
    chosen = pmt.select(model, train, judges, options=options, candidates=blocks, progress=False)
    assert list(learner.trials) == blocks
    for candidate in chosen.candidates:
        trial = learner.trials[candidate.name]
        assert (trial.samples, trial.accuracy) == (60, candidate.accuracy)
        assert trial.loss == pytest.approx(candidate.loss, abs=1e-5)
    assert learner.selected == chosen.best.name == "B1"
    alone = pmt.Learner(model, **{**room, "options": options.replace(layers="B1")})
    alone.observe(data.images[:100], data.labels[:100], role="train")
    alone.observe(held_out, data.labels[100:], role="hold_out")
    alone.learn("epochs")
    assert learner.scores == alone.scores
    learner.commit()
    alone.commit()
    assert learner.checksum == alone.checksum
    learner.confirm()
    del learner
    again = pmt.Learner(model, **room, select=blocks, storage=place)
    assert (again.in_force, again.selected) == ("trained", "B1")
    assert again.checksum == alone.checksum
    with pytest.raises(ValueError, match="holds states of another model, of other layers to train"):
        pmt.Learner(model, **room, select=["B2", "B4+head"], storage=place)


def test_a_choice_of_blocks_is_checked():
    model, options = pmt.load("fashion_mnist_dscnn"), pmt.preset("default")
    message = r"^select says .*: give options, too, for example pmt.TrainingOptions\(epochs=1\)$"
    with pytest.raises(OptionError, match=message):
        pmt.Learner(model, select=["B1", "B2"])
    with pytest.raises(OptionError, match=r"^select='B1': a choice needs two or more different"):
        pmt.Learner(model, select=["B1"], options=options)
    with pytest.raises(ValueError, match="'B7'"):
        pmt.Learner(model, select=["B1", "B7"], options=options)
