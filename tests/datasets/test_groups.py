"""Groups of near copies, from a file's array or from folders, up to what is held out."""

from pathlib import Path

import numpy as np
import pytest
from PIL import Image

import pmt
from pmt.cli import main
from pmt.datasets import Dataset, load, save_npz
from pmt.protocol.data_source import DataSource
from pmt.train.run.keep_best import held_out_indices

IMAGES = np.arange(12 * 28 * 28, dtype=np.int64).reshape(12, 28, 28, 1).astype(np.uint8)
LABELS = np.arange(12) % 2


def write(path: Path, **arrays: object) -> Path:
    np.savez(path, images=IMAGES, labels=LABELS, **arrays)
    return path


def test_an_array_of_the_file(tmp_path):
    path = write(tmp_path / "a.npz", groups=np.arange(12) // 3, subject=list("aabbccddeeff"))
    assert load(path).groups.tolist() == [str(n) for n in (0, 0, 0, 1, 1, 1, 2, 2, 2, 3, 3, 3)]
    assert load(path, groups="subject").groups.tolist() == list("aabbccddeeff")
    assert load(path, groups="subject", limit=3).groups.shape == (3,)
    assert load(write(tmp_path / "b.npz")).groups is None


def test_they_are_written_and_read_again(tmp_path):
    data = Dataset.from_arrays(IMAGES, LABELS, groups=["", *"aabbccddeef"])
    save_npz(data, tmp_path / "a.npz")
    assert load(tmp_path / "a.npz").groups.tolist() == ["", *"aabbccddeef"]
    targets = Dataset.with_targets(IMAGES, np.zeros((12, 2), np.float32))
    save_npz(targets, tmp_path / "b.npz")
    assert load(tmp_path / "b.npz").groups is None
    with np.load(tmp_path / "b.npz") as file:
        np.savez(tmp_path / "c.npz", **file, groups=np.arange(12))
    assert load(tmp_path / "c.npz").groups.tolist() == [str(n) for n in range(12)]


@pytest.mark.parametrize(
    ("arrays", "groups", "message"),
    [
        (
            {"subject": np.zeros(12, int)},
            "person",
            r"groups 'person': .*a\.npz has no such array \(others: subject\); give the name",
        ),
        ({"groups": np.zeros(5, int)}, None, r"array 'groups': groups has shape \(5,\): must be "),
        ({"groups": np.zeros(12)}, None, r"array 'groups': groups is float64: must be integers or"),
        ({}, "folder", r"groups 'folder': .*a\.npz has no such array \(others: none\)"),
    ],
)
def test_arrays_that_are_none(arrays, groups, message, tmp_path):
    with pytest.raises(ValueError, match=message):
        load(write(tmp_path / "a.npz", **arrays), groups=groups)


def image_folder(root: Path) -> Path:
    for number, place in enumerate(
        ("cat/video1", "cat/video1", "cat/video2", "cat", "dog/video1", "dog/video3", "dog")
    ):
        (root / place).mkdir(parents=True, exist_ok=True)
        Image.fromarray(IMAGES[number, :, :, 0]).save(root / place / f"{number}.png")
    return root


def test_folders_in_the_folders_of_classes(tmp_path):
    data = load(image_folder(tmp_path / "data"), groups="folder")
    assert data.groups.tolist() == ["", "video1", "video1", "video2", "", "video1", "video3"]
    assert data.labels.tolist() == [0, 0, 0, 0, 1, 1, 1]
    flat = load(tmp_path / "data")
    assert (len(flat), flat.groups) == (2, None)


def test_folders_without_an_image_of_their_own(tmp_path):
    root = image_folder(tmp_path / "data")
    (root / "dog" / "6.png").unlink()
    with pytest.raises(ValueError, match="are groups of its images, give 'folder' as groups"):
        load(root)
    assert load(root, groups="folder").groups.tolist()[-2:] == ["video1", "video3"]


def test_other_layouts_have_none(tmp_path, cifar10_dir):
    for name in ("folder", "subject"):
        with pytest.raises(ValueError, match=rf"groups '{name}': .* has none; they are an array"):
            load(cifar10_dir, groups=name)
    root = image_folder(tmp_path / "data")
    with pytest.raises(ValueError, match=r"groups 'subject': .*data has none"):
        load(root, groups="subject")
    model = pmt.load("fashion_mnist_dscnn")
    with pytest.raises(ValueError, match="groups 'subject': bundled has none; leave it out"):
        DataSource("bundled", groups="subject").load("train", model)


def source_of(run: Path) -> dict[str, object]:
    return pmt.RunFolder(run).config().source


def test_the_command_line_holds_whole_groups_out(tmp_path, capsys):
    rng = np.random.default_rng(0)
    images = rng.integers(0, 256, (120, 28, 28, 1)).astype(np.uint8)
    labels, subject = np.arange(120) % 10, np.arange(120) // 20
    path = tmp_path / "data.npz"
    np.savez(path, images=images, labels=labels, subject=subject)
    out = tmp_path / "run"
    command = ["train", "fashion_mnist_dscnn", "--data", str(path), "--layers", "head", "--out"]
    options = ["--epochs", "1", "--queries", "2", "--preparation", "none", "--threads", "1"]
    assert main([*command, str(out), *options, "--groups", "subject"]) == 0
    assert source_of(out)["groups"] == "subject"
    source = DataSource.from_config(source_of(out))
    data = source.load("train", pmt.load("fashion_mnist_dscnn"))
    chosen = held_out_indices(pmt.TrainingOptions(), data)
    assert np.bincount(subject[chosen]).max() == 20
    capsys.readouterr()
    assert main([*command, str(tmp_path / "other"), *options, "--groups", "person"]) == 2
    assert "error: --groups 'person': " in capsys.readouterr().err
