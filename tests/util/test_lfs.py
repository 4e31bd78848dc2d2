"""Pointers of Git LFS: the commonest accident with a clone, told as what it is."""

from collections.abc import Callable
from pathlib import Path

import pytest
from onnx_networks import Network, onnx

import pmt
from pmt import datasets
from pmt.formats.onnx import float_importer

POINTER = (
    "version https://git-lfs.github.com/spec/v1\n"
    "oid sha256:0f235d3602308653fcdb50d73462080dec73f21473b4856f05f307d0eb24ca1a\nsize 47616\n"
)
TOLD = "is a Git LFS pointer, not the file itself; run `git lfs pull` in its repository"

READERS: dict[str, Callable[[Path], object]] = {
    **dict.fromkeys(("net.pmt", "net.tflite", "net.onnx", "net.pkl", "card.img"), pmt.load),
    "float.onnx": float_importer.read,
    "into.tflite": lambda path: pmt.load("fashion_mnist_dscnn").save(
        path.with_name("new.tflite"), into=path
    ),
    "data.npz": datasets.load,
}


@pytest.mark.parametrize("name", READERS)
def test_a_pointer_is_told(name, tmp_path):
    path = tmp_path / name
    path.write_text(POINTER)
    with pytest.raises(ValueError, match=r"Git LFS") as caught:
        READERS[name](path)
    place = path if name == "data.npz" else path.name
    assert str(caught.value) == f"{place}: {TOLD}"


def test_pointers_of_images_are_told(tmp_path):
    for split in ("train", "test"):
        (tmp_path / split / "cat").mkdir(parents=True)
        (tmp_path / split / "cat" / "1.png").write_text(POINTER)
    with pytest.raises(ValueError, match=r"Git LFS") as caught:
        datasets.load(tmp_path, split="train")
    assert str(caught.value) == f"{tmp_path / 'train/cat/1.png'}: {TOLD}"


def test_a_pointer_of_weights_outside_is_told(tmp_path):
    net = Network()
    model = net.model(net.head(net.conv("x", 3, 4), 4 * 36))
    options = {"save_as_external_data": True, "location": "net.data", "size_threshold": 0}
    onnx.save(model, tmp_path / "net.onnx", **options)
    (tmp_path / "net.data").write_text(POINTER)
    with pytest.raises(ValueError, match=r"its data file 'net.data' is a Git LFS pointer"):
        float_importer.read(tmp_path / "net.onnx")
