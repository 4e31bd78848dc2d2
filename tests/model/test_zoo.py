"""The CIFAR-10 models of the zoo: complete, small, and as good as their cards say."""

from __future__ import annotations

import re
from dataclasses import replace
from importlib import resources

import pytest

import pmt
from pmt import datasets
from pmt.datasets.picture import Fit, resized
from pmt.net.image import build_image, read_graph

DATA = resources.files("pmt") / "data"
ZOO = [name for name in pmt.model.loading.BUNDLED_MODELS if name.startswith("cifar10")]
LARGEST = 2_000_000  # bytes


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
