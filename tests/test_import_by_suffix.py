from __future__ import annotations

from pathlib import Path

import pytest

from pmt import importers
from pmt.image import build_image


def test_suffix_chooses_the_importer(tmp_path: Path, mcunet_path: Path, resnet8_path: Path) -> None:
    mcunet = importers.read(mcunet_path, classes=4)
    assert mcunet.tensors[mcunet.output].channels == 4
    resnet = importers.read(str(resnet8_path))
    assert resnet.tensors[resnet.output].channels == 10
    image = build_image(resnet)
    (tmp_path / "net.PMT").write_bytes(image)
    assert build_image(importers.read(tmp_path / "net.PMT")) == image


def test_unknown_suffix(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=r"suffix '\.h5' is unknown; readable are \.pmt, \.tflite"):
        importers.read(tmp_path / "net.h5")


@pytest.mark.parametrize("suffix", ["pmt", "tflite", "pkl"])
def test_missing_and_wrong_files(tmp_path: Path, suffix: str) -> None:
    path = tmp_path / f"net.{suffix}"
    with pytest.raises(FileNotFoundError, match="there is no such file"):
        importers.read(path)
    path.write_bytes(b"something else, longer than a header" * 10)
    with pytest.raises(ValueError, match=r"image: starts with|net\.\w+: is not a"):
        importers.read(path)


def test_image_takes_no_options(tmp_path: Path) -> None:
    path = tmp_path / "net.pmt"
    path.write_bytes(b"")
    with pytest.raises(TypeError, match=r"\['classes'\] are unknown for a \.pmt image"):
        importers.read(path, classes=3)
