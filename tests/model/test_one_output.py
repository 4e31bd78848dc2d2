"""A model with one output: it tells label 0 from 1 by its sign."""

import re
from dataclasses import replace

import numpy as np
import pytest
from networks import pixels, residual_network

import pmt
from pmt.cli import main
from pmt.datasets import Dataset
from pmt.model.scores import predict, scores_of_logits


def one_output() -> pmt.Model:
    graph = residual_network().to_graph()
    head, target = graph.ops[-1], graph.tensors[graph.output]
    graph.ops[-1] = replace(
        head, weights=head.weights[:1], bias=head.bias[:1], weight_scales=head.weight_scales[:1]
    )
    graph.tensors[graph.output] = replace(target, channels=1)
    graph.metadata = {}
    model = pmt.Model.from_graph(graph)
    middle = np.median(model.logits(pixels(model, 40)))
    scale = graph.tensors[head.inputs[0]].scale * head.weight_scales[0]
    last = len(graph.ops) - 1
    bias = model.core.bias(last) - np.int32(np.rint(middle / scale))
    model.core.set_parameters(last, model.core.weights(last), bias)
    return model


def test_the_sign_is_the_class_and_the_loss_binary_cross_entropy():
    logits = np.array([[0.0], [2.0], [-1.0], [-3.0]], np.float32)
    scores = scores_of_logits(logits, np.array([0, 1, 1, 0]))
    assert scores.predicted.tolist() == [0, 1, 0, 0]
    assert scores.correct.tolist() == [True, True, False, True]
    np.testing.assert_allclose(scores.losses, [0.6931, 0.1269, 1.3133, 0.0486], atol=1e-4)


def test_it_is_evaluated_on_labels_0_and_1():
    model = one_output()
    images = pixels(model, 40)
    signs = (model.logits(images)[:, 0] > 0).astype(np.int64)
    assert 15 < signs.sum() < 25
    found = model.evaluate((images, signs))
    assert (found.accuracy, found.n) == (1.0, 40)
    assert model.evaluate((images, 1 - signs)).accuracy == 0.0
    matrix = model.confusion((images, signs)).matrix
    assert matrix.tolist() == [[40 - signs.sum(), 0], [0, signs.sum()]]


def test_other_labels_are_refused():
    model = one_output()
    images = pixels(model, 3)
    message = r"data set 'dataset' has label 2, and the model one output, which tells 0 from 1; use"
    with pytest.raises(ValueError, match=message):
        model.evaluate((images, [0, 1, 2]))
    with pytest.raises(ValueError, match="has no class labels, and the model one output"):
        model.evaluate(Dataset.with_targets(images, np.zeros((3, 1), np.float32)))


def test_it_predicts_labels_0_and_1(tmp_path):
    model = one_output()
    images = pixels(model, 40)
    logits = model.logits(images)[:, 0]
    assert model.predict(images).tolist() == (logits > 0).astype(int).tolist()
    shares = model.predict_proba(images)
    np.testing.assert_allclose(shares[:, 1], 1 / (1 + np.exp(-logits)), rtol=1e-5)
    np.savez(tmp_path / "images.npz", images=images)
    found = predict(model, [tmp_path / "images.npz"], top=2)
    assert found.labels[:, 0].tolist() == model.predict(images).tolist()
    assert {found.class_name(0), found.class_name(1)} == {"0", "1"}
    named = predict(model, [tmp_path / "images.npz"], class_names=("no", "yes"))
    assert named.class_name(1) == "yes"


def test_a_new_head_learns_a_number():
    """Brightness, from targets of shape (N, 1)."""
    train, test = pmt.datasets.bundled("train"), pmt.datasets.bundled("test")
    targets = {d.name: d.images.mean(axis=(1, 2, 3), dtype=float)[:, None] for d in (train, test)}
    model = pmt.load("fashion_mnist_dscnn", classes=1)
    trainer = pmt.ZOTrainer(loss="squared_error", layers="head", epochs=1)
    trainer.fit(model, Dataset.with_targets(train.images, targets[train.name] / 255))
    found, wanted = model.logits(test.images), targets[test.name] / 255
    assert found.shape == wanted.shape == (1000, 1)
    assert np.mean((found - wanted) ** 2) < 0.25 * wanted.var()
    with pytest.raises(ValueError, match=r"1; compare its float targets with model\.logits\("):
        model.evaluate(Dataset.with_targets(test.images, wanted))


def sides(split: str) -> Dataset:
    data = pmt.datasets.bundled(split)
    return Dataset.from_arrays(data.images, (data.labels >= 5).astype(int))


def test_a_new_head_learns_two_classes():
    model = pmt.load("fashion_mnist_dscnn", classes=1)
    trainer = pmt.ZOTrainer(loss="binary_cross_entropy", layers="head", epochs=1)
    trainer.fit(model, sides("train"))
    assert model.evaluate(sides("test")).accuracy > 0.9


def test_held_out_images_choose_the_state_of_two_classes():
    model = pmt.load("fashion_mnist_dscnn", classes=1)
    trainer = pmt.ZOTrainer(loss="binary_cross_entropy", layers="head", epochs=1)
    watched = sides("test").take(200)
    result = trainer.fit(model, sides("train"), valid=watched)
    assert result.held_out == 200
    assert "the best on the 200 held-out images" in result.verdict()
    start = result.phases[0]
    assert start["held_out_loss"] == pytest.approx(np.log(2), abs=1e-4)
    assert start["valid_accuracy"] == np.mean(watched.labels == 0)
    before, train = model.image(), sides("train")
    wrong = Dataset.from_arrays(train.images, 1 - train.labels)
    result = trainer.fit(model, wrong, held_out=watched)
    assert result.verdict().startswith("kept the original model: on the 200 held-out images")
    assert model.image() == before


def test_labels_that_one_output_does_not_tell_are_not_measured():
    model, data = pmt.load("fashion_mnist_dscnn", classes=1), pmt.datasets.bundled("test")
    trainer = pmt.ZOTrainer(loss="binary_cross_entropy", layers="head", epochs=1)
    with pytest.raises(ValueError, match="has label 9, and the model one output, which tells 0 fr"):
        trainer.fit(model, sides("train").take(100), held_out=data)


def test_cross_entropy_of_one_output_is_refused():
    model = pmt.load("fashion_mnist_dscnn", classes=1)
    message = "compares outputs with each other, and the model has one; use loss='binary_cross_ent"
    with pytest.raises(ValueError, match=message):
        pmt.ZOTrainer(layers="head", epochs=1).fit(model, sides("train"))


def test_two_classes_and_a_number_from_a_shell(tmp_path, capsys):
    some = sides("train").take(200)
    pmt.datasets.save_npz(some, tmp_path / "sides.npz")
    np.savez(tmp_path / "number.npz", images=some.images, targets=some.labels[:, None] / 2)
    new = ["train", "fashion_mnist_dscnn", "--classes", "1", "--layers", "head", "--epochs", "1"]
    for loss, data in (("binary_cross_entropy", "sides"), ("squared_error", "number")):
        run = ["--loss", loss, "--data", str(tmp_path / f"{data}.npz")]
        assert main([*new, *run, "--out", str(tmp_path / data)]) == 0
    assert main(["eval", str(tmp_path / "sides"), "--data", str(tmp_path / "sides.npz")]) == 0
    accuracy = re.search(r"accuracy (\d\.\d+)", capsys.readouterr().out)
    assert accuracy is not None
    assert float(accuracy[1]) > 0.9
    assert main([*new, "--data", str(tmp_path / "sides.npz"), "--out", str(tmp_path / "no")]) == 2
    assert "use --loss='binary_cross_entropy'" in capsys.readouterr().err


def test_a_learner_learns_labels_0_and_1():
    learner = pmt.Learner(pmt.load("fashion_mnist_dscnn", classes=1), samples=160)
    train, test = sides("train").take(160), sides("test")
    learner.observe(train.images, train.labels)
    assert learner.learn("head_alone") == "head_alone"
    original, head = learner.scores["original"], learner.scores["head_alone"]
    assert original.loss == pytest.approx(np.log(2), abs=1e-5)
    assert (head.samples, head.accuracy > 0.9, head.loss < 0.2) == (31, True, True)
    learner.commit()
    found = learner.predict(test.images).labels
    assert (found == test.labels).mean() == learner.model().evaluate(test).accuracy > 0.9
    with pytest.raises(ValueError, match=r"^labels must be 0\.\.1, or -1 for none, for this model"):
        learner.observe(train.images[:1], [2])
