"""Images that are to be corrupted are read once, at their own size if they have one."""

from importlib import import_module
from pathlib import Path

import numpy as np
import pytest
from networks import residual_network
from PIL import Image

from pmt.datasets.image_files import common_size
from pmt.protocol.data_source import DataSource

MODULE = import_module("pmt.datasets.image_files")


def write(path: Path, size: tuple[int, int], *, orientation: int = 1) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    exif = Image.Exif()
    exif[0x0112] = orientation
    pixels = np.arange(size[0] * size[1] * 3, dtype=np.uint8).reshape(*size[::-1], 3)
    Image.fromarray(pixels).save(path, exif=exif)
    return path


def folder_of(root: Path, *sizes: tuple[int, int]) -> Path:
    for number, size in enumerate(sizes):
        write(root / "train" / "a" / f"{number}.png", size)
        write(root / "train" / "b" / f"{number}.png", size)
    return root


@pytest.mark.parametrize(
    ("sizes", "read"), [([(12, 12), (12, 12)], (12, 12)), ([(12, 12), (9, 12)], (8, 8))]
)
def test_images_are_read_once_at_their_own_size_or_resized(tmp_path, monkeypatch, sizes, read):
    calls = []
    original = MODULE.decode_files

    def noted(folder, paths, fit, threads=0):
        calls.append(fit.size)
        return original(folder, paths, fit, threads)

    monkeypatch.setattr(MODULE, "decode_files", noted)
    source = DataSource(str(folder_of(tmp_path, *sizes)), "fog", 5)
    model = residual_network()
    assert source.pool("train", model).clean.images.shape[1:3] == read
    assert calls == [None if read == (12, 12) else (8, 8)]
    assert source.load("train", model).images.shape == (4, 8, 8, 3)


def test_the_error_of_the_only_read_is_told(tmp_path, monkeypatch):
    """A folder too large for the memory is no reason to corrupt smaller images than elsewhere."""
    monkeypatch.setattr(MODULE, "free_memory", lambda: 100)
    source = DataSource(str(folder_of(tmp_path, (12, 12))), "fog", 5)
    with pytest.raises(ValueError, match=r"2 images of 12x12x3 take 0.0 GB, 0.0 GB of memory"):
        source.load("train", residual_network())


def test_a_damaged_file_is_named_whatever_the_sizes_are(tmp_path):
    folder = folder_of(tmp_path, (12, 12), (12, 12))
    (folder / "train" / "b" / "1.png").write_bytes(b"broken")
    with pytest.raises(ValueError, match=r"train/b/1.png: cannot be decoded"):
        DataSource(str(folder), "fog", 5).load("train", residual_network())


def test_one_size_is_that_of_upright_images(tmp_path):
    lying = write(tmp_path / "a.jpg", (12, 8), orientation=6)
    standing = write(tmp_path / "b.jpg", (8, 12))
    assert common_size([lying, standing]) == (12, 8)
    assert common_size([write(tmp_path / "c.jpg", (12, 8)), standing]) is None
    assert common_size([]) is None
