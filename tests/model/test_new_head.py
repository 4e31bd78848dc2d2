"""Models with a new last layer, for other classes than the file has."""

from dataclasses import replace

import numpy as np
import pytest

import pmt
from pmt.cli import main
from pmt.datasets import Dataset
from pmt.net.graph import with_new_head

NAMES = ("sandal", "sneaker", "ankle boot")


@pytest.fixture(scope="module")
def shoes():
    """Three classes of the bundled images, under other names and numbers."""
    clothing = pmt.datasets.bundled("train")
    some = clothing[np.isin(clothing.labels, (5, 7, 9))]
    labels = np.searchsorted((5, 7, 9), some.labels)
    return Dataset.from_arrays(some.images, labels, class_names=NAMES, name="shoes")


def test_the_last_layer_is_new_and_the_others_stay():
    old, new = pmt.load("fashion_mnist_dscnn"), pmt.load("fashion_mnist_dscnn", classes=3)
    assert (new.classes, new.class_names) == (3, None)
    assert not new.weights("head").any()
    assert not new.bias("head").any()
    for layer in old.layers[:-1]:
        assert np.array_equal(new.weights(layer.name), old.weights(layer.name))
    assert new.blocks == old.blocks
    scales = {head.weight_scales.tobytes() for head in (new.to_graph().ops[-1],)}
    median = np.float32(np.median(old.to_graph().ops[-1].weight_scales))
    assert scales == {np.full(3, median, np.float32).tobytes()}
    assert new.logits(pmt.datasets.bundled("test").images[:2]).tolist() == [[0, 0, 0], [0, 0, 0]]


def test_training_gives_it_the_names_of_the_data(shoes):
    model = pmt.load("fashion_mnist_dscnn", classes=3)
    result = pmt.ZOTrainer(layers="head", epochs=1).fit(model, shoes, progress=False)
    assert model.class_names == NAMES
    assert result.phases[0]["held_out_loss"] == pytest.approx(np.log(3), abs=1e-4)
    assert model.evaluate(shoes).accuracy > 0.9


@pytest.mark.parametrize("name", ["cifar10_small", "cifar10_mcunet"])
def test_statistics_of_clean_images_stay(name):
    from pmt.train.prepare.clean_statistics import stored_statistics

    old, new = pmt.load(name), pmt.load(name, classes=4)
    assert list(stored_statistics(new).channels) == list(stored_statistics(old).channels)


def test_files_of_every_kind(tmp_path, resnet8_path, mcunet_path):
    pmt.load("fashion_mnist_dscnn").save(tmp_path / "net.pmt")
    for path in (tmp_path / "net.pmt", resnet8_path, mcunet_path):
        assert pmt.load(path, classes=7).classes == 7


@pytest.mark.parametrize(
    ("classes", "error", "message"),
    [
        (0, ValueError, r"^classes 0: must be 1\.\.65536$"),
        (2.5, TypeError, r"^classes=2\.5 must be an integer$"),
    ],
)
def test_a_number_out_of_range(classes, error, message):
    with pytest.raises(error, match=message):
        pmt.load("fashion_mnist_dscnn", classes=classes)


def test_features_have_no_classes_to_replace(tmp_path):
    pmt.load("fashion_mnist_dscnn").features().save(tmp_path / "features.pmt")
    with pytest.raises(ValueError, match=r"^classes 3: the network does not end in a layer that"):
        pmt.load(tmp_path / "features.pmt", classes=3)


def test_from_a_shell(tmp_path, shoes, capsys):
    pmt.datasets.save_npz(shoes, tmp_path / "shoes.npz")
    command = ["train", "fashion_mnist_dscnn", "--classes", "3", "--layers", "head"]
    data = ["--data", str(tmp_path / "shoes.npz"), "--epochs", "1", "--out", str(tmp_path / "run")]
    assert main([*command, *data]) == 0
    assert capsys.readouterr().err == ""
    assert pmt.load(tmp_path / "run").class_names == NAMES


def test_a_new_head_has_no_activation():
    graph = pmt.load("fashion_mnist_dscnn").to_graph()
    graph.tensors[graph.output] = replace(graph.tensors[graph.output], scale=0.25, zero_point=-128)
    graph.ops[-1].clamp = (-128, 60)
    new = with_new_head(graph, 3)
    assert (new.tensors[new.output].scale, new.tensors[new.output].zero_point) == (0.5, 0)
    assert new.ops[-1].clamp == (-128, 127)
