"""The bundled models and images: complete, consistent, and as good as their cards say."""

import re
from dataclasses import replace
from importlib import resources

import emulator
import numpy as np
import pytest

import pmt
from pmt import datasets
from pmt.datasets.picture import Fit, resized
from pmt.net.image import build_image, read_graph

DATA = resources.files("pmt") / "data"
CARD = (DATA / "CARD.md").read_text(encoding="utf-8")
ZOO = [name for name in pmt.model.loading.BUNDLED_MODELS if name.startswith("cifar10")]
LARGEST = 2_000_000  # bytes


@pytest.fixture(scope="module")
def image():
    return (DATA / "fashion_mnist_dscnn.pmt").read_bytes()


def card_accuracy(row: str) -> float:
    """The figure, 0..1, at the end of the row that starts so."""
    (figure,) = re.findall(rf"^\| {re.escape(row)} \| ([0-9.]+) \|$", CARD, re.MULTILINE)
    return float(figure) / 100


def test_the_image_is_what_build_image_makes_of_its_graph(image):
    assert build_image(read_graph(image)) == image


def test_the_model_is_small_and_has_the_blocks_that_the_presets_need(image):
    model = pmt.load("fashion_mnist_dscnn")
    assert len(image) == 38_368
    assert model.macs == 1_561_440
    assert model.input_shape == (28, 28, 1)
    assert model.classes == 10
    names = {layer.index: layer.name for layer in model.layers}
    blocks = {block: [names[i] for i in indices] for block, indices in model.blocks.items()}
    assert blocks == {
        "B1": ["conv1", "depthwise1", "pointwise1"],
        "B2": ["depthwise2", "pointwise2"],
        "B3": ["expand3", "depthwise3", "project3"],
        "B4": ["depthwise4", "pointwise4"],
        "head": ["head"],
        "all": list(names.values()),
    }
    assert not any(layer.dead_channels for layer in model.layers)


def test_the_model_exercises_every_op_of_a_depthwise_separable_network(image):
    graph = read_graph(image)
    assert {op.kind for op in graph.ops} == {
        "conv2d",
        "depthwise_conv2d",
        "add",
        "mean",
        "fully_connected",
    }
    # TFLite's SAME at stride 2 on an even side: the odd pixel is below and right.
    assert graph.ops[0].padding == (0, 0, 1, 1)


def test_the_int8_input_is_the_pixel_minus_128(image):
    pixels = np.arange(28 * 28, dtype=np.int64).reshape(1, 28, 28, 1) % 256
    found = pmt.load("fashion_mnist_dscnn").prepare(pixels.astype(np.uint8))
    assert np.array_equal(found, pixels - 128)


def test_the_metadata_says_where_the_model_comes_from():
    metadata = pmt.load("fashion_mnist_dscnn").metadata
    assert metadata["name"] == "fashion_mnist_dscnn"
    assert metadata["licence"] == "MIT"
    assert metadata["seed"] == 0
    assert metadata["command"] == "python scripts/make_bundled_model.py --epochs 14 --seed 0"
    assert metadata["class_names"] == list(pmt.datasets.FASHION_MNIST_CLASSES)
    assert metadata["float_accuracy"] >= 0.90
    assert metadata["float_accuracy"] - metadata["int8_accuracy"] < 0.01


@pytest.mark.parametrize("split", ["train", "test"])
def test_the_images_are_a_thousand_with_all_classes(split):
    data = pmt.datasets.bundled(split)
    assert data.images.shape == (1000, 28, 28, 1)
    assert np.bincount(data.labels).min() >= 80
    assert data.class_names == pmt.datasets.FASHION_MNIST_CLASSES
    assert data.images[:, 0, 0].mean() < 1.0  # the background is black


def test_the_images_of_the_two_splits_differ():
    train = {image.tobytes() for image in pmt.datasets.bundled("train").images}
    test = {image.tobytes() for image in pmt.datasets.bundled("test").images}
    assert not train & test


def test_the_image_files_are_small():
    sizes = [len((DATA / f"fashion_mnist_{s}.npz").read_bytes()) for s in ("train", "test")]
    assert sum(sizes) < 3_000_000


def test_the_emulator_finds_the_accuracy_of_the_card(image):
    graph = read_graph(image)
    data = pmt.datasets.bundled("test").take(200)
    inputs = emulator.quantize_pixels(graph, data.images)
    found = np.mean(emulator.logits(graph, inputs).argmax(axis=1) == data.labels)
    # Two standard errors of 200 images at 93 % are 3.6 points.
    assert found == pytest.approx(card_accuracy("int8 | the bundled 1,000"), abs=0.036)


def test_the_core_finds_the_accuracies_of_the_card():
    model = pmt.load("fashion_mnist_dscnn")
    data = pmt.datasets.bundled("test")
    clean = model.evaluate(data).accuracy
    assert clean == pytest.approx(card_accuracy("int8 | the bundled 1,000"), abs=1e-9)
    assert clean == model.metadata["int8_accuracy_bundled_test"]
    noisy = model.evaluate(pmt.corruptions.corrupt(data, "gaussian_noise", 5)).accuracy
    assert noisy == pytest.approx(card_accuracy("gaussian_noise"), abs=1e-9)
    assert noisy < clean - 0.1  # there is something to adapt to


def test_the_card_carries_the_license_and_the_file_sizes(image):
    assert "Copyright (c) 2017 Zalando SE" in CARD
    assert "Permission is hereby granted, free of charge" in CARD
    assert f"| `fashion_mnist_dscnn.pmt` | {len(image):,} |" in CARD


def card(name: str) -> str:
    return (DATA / f"{name}.md").read_text(encoding="utf-8")


@pytest.mark.parametrize("name", ZOO)
def test_image_and_metadata_are_complete(name):
    image = (DATA / f"{name}.pmt").read_bytes()
    assert len(image) < LARGEST
    assert build_image(read_graph(image)) == image
    model = pmt.load(name)
    assert model.classes == 10
    assert model.metadata["name"] == name
    assert model.metadata["class_names"] == list(datasets.CIFAR10_CLASSES)
    assert f"python scripts/make_zoo_model.py {name} " in model.metadata["command"]
    assert {"B1", "B2", "B3", "B4", "head", "all"} <= model.blocks.keys()
    assert f"{len(image):,} bytes" in " ".join(card(name).split())


def test_mcunet_is_the_network_of_the_paper():
    model = pmt.load("cifar10_mcunet")
    assert model.input_shape == (128, 128, 3)
    assert len(model.layers) == 43
    assert len(model.blocks["paper14"]) == 14
    assert model.macs == 22_455_104


@pytest.mark.parametrize("name", ZOO)
def test_accuracy_on_the_test_images_is_that_of_the_card(name, cifar10_dir):
    model, test = pmt.load(name), datasets.load(cifar10_dir, split="test")
    assert len(test) == 1_000
    images = resized(test.images, Fit(model.input_shape[:2]))
    accuracy = model.evaluate(replace(test, images=images)).accuracy
    (row,) = re.findall(r"^\| int8 \| first 1,000 of .*? \| ([0-9.]+) \|$", card(name), re.M)
    assert accuracy == pytest.approx(float(row) / 100, abs=1e-9)
    assert accuracy == model.metadata["int8_accuracy"]
