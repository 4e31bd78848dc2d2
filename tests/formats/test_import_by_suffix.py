from __future__ import annotations

import os
from pathlib import Path

import pytest
from networks import smooth_network

import pmt
from pmt import formats
from pmt.cli import main
from pmt.model.loading import BUNDLED_MODELS
from pmt.net.image import build_image


def test_suffix_chooses_the_importer(tmp_path: Path, mcunet_path: Path, resnet8_path: Path) -> None:
    mcunet = formats.read(mcunet_path, classes=4)
    assert mcunet.tensors[mcunet.output].channels == 4
    resnet = formats.read(str(resnet8_path))
    assert resnet.tensors[resnet.output].channels == 10
    image = build_image(resnet)
    (tmp_path / "net.PMT").write_bytes(image)
    assert build_image(formats.read(tmp_path / "net.PMT")) == image


def test_unknown_suffix(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=r"suffix '\.h5' is unknown; readable are \.pmt, \.tflite"):
        formats.read(tmp_path / "net.h5")


@pytest.mark.parametrize("suffix", ["pmt", "tflite", "pkl"])
def test_missing_and_wrong_files(tmp_path: Path, suffix: str) -> None:
    path = tmp_path / f"net.{suffix}"
    with pytest.raises(FileNotFoundError, match="there is no such file"):
        formats.read(path)
    path.write_bytes(b"something else, longer than a header" * 10)
    with pytest.raises(ValueError, match=r"image: starts with|net\.\w+: is not a"):
        formats.read(path)


def test_image_takes_no_options(tmp_path: Path) -> None:
    path = tmp_path / "net.pmt"
    path.write_bytes(b"")
    with pytest.raises(TypeError, match=r"\['classes'\] are unknown for a \.pmt image"):
        formats.read(path, classes=3)


@pytest.mark.parametrize(
    ("name", "rest"),
    [
        ("fashion_mnist_dscnn", "the bundled model 'fashion_mnist_dscnn', which takes none"),
        ("net.pmt", "a .pmt image, which takes none"),
        ("run", "a .pmt image, which takes none"),
        ("card.img", "a card, which takes none"),
        ("net.onnx", "an .onnx file; it takes input_mean and input_std"),
        ("net.tflite", "a .tflite file; it takes input_mean and input_std"),
        ("net.pkl", "a tiny-training .pkl; it takes classes and resolution"),
    ],
)
def test_load_refuses_options_that_the_format_does_not_take(
    tmp_path: Path, name: str, rest: str
) -> None:
    path = name if name in BUNDLED_MODELS else tmp_path / name
    if name == "run":
        (tmp_path / "run").mkdir()
        smooth_network().save(tmp_path / "run" / "checkpoint.pmt")
    elif name in ("net.pmt", "net.onnx", "net.tflite"):
        smooth_network().save(tmp_path / name)
    elif name != path:
        (tmp_path / name).write_bytes(b"its options are looked at first")
    with pytest.raises(TypeError) as caught:
        pmt.load(path, foo=3, bar=None)
    assert str(caught.value) == f"options ['bar', 'foo'] are unknown for {rest}"


@pytest.mark.parametrize("suffix", ["onnx", "tflite"])
def test_a_file_whose_name_is_not_utf8_is_read(tmp_path: Path, suffix: str) -> None:
    path = tmp_path / os.fsdecode(b"caf\xe9\x1b." + suffix.encode())
    smooth_network().save(path)
    assert pmt.load(path).metadata["source"] == rf"{suffix} caf\udce9\x1b.{suffix}"


def test_a_bundled_model_keeps_its_classes(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["info", "fashion_mnist_dscnn", "--classes", "5"]) == 2
    assert capsys.readouterr().err == (
        "pmt: error: options ['classes'] are unknown for the bundled model 'fashion_mnist_dscnn', "
        "which takes none\n"
    )
