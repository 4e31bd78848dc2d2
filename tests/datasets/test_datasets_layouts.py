"""idx files, npz files and image folders, whole and damaged, and the detection of layouts."""

import gzip
import sys
import zipfile
from pathlib import Path

import numpy as np
import pytest
from problems import problem_of

from pmt.datasets import Dataset, load, save_npz

GRAY = np.arange(24, dtype=np.uint8).reshape(2, 3, 4)


def idx_images(images: np.ndarray) -> bytes:
    header = b"\x00\x00\x08\x03" + np.array(images.shape, ">u4").tobytes()
    return header + images.tobytes()


def idx_labels(labels: list[int]) -> bytes:
    return b"\x00\x00\x08\x01" + np.array([len(labels)], ">u4").tobytes() + bytes(labels)


def write_idx(folder: Path) -> Path:
    (folder / "train-images-idx3-ubyte.gz").write_bytes(gzip.compress(idx_images(GRAY)))
    (folder / "train-labels-idx1-ubyte.gz").write_bytes(gzip.compress(idx_labels([7, 2])))
    (folder / "t10k-images-idx3-ubyte").write_bytes(idx_images(GRAY[1:]))
    (folder / "t10k-labels-idx1-ubyte").write_bytes(idx_labels([4]))
    return folder


def test_idx_files_compressed_and_plain(tmp_path):
    train, test = load(write_idx(tmp_path)), load(tmp_path, split="test")
    np.testing.assert_array_equal(train.images, GRAY[..., None])
    assert train.labels.tolist() == [7, 2]
    assert train.class_names == tuple("0123456789")
    np.testing.assert_array_equal(test.images, GRAY[1:, ..., None])
    assert load(tmp_path, class_names=tuple("abcdefgh")).class_names == tuple("abcdefgh")


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("t10k-images-idx3-ubyte", idx_images(GRAY)[:-1], "has 23 bytes of data, its header says"),
        ("t10k-images-idx3-ubyte", idx_images(GRAY) + b"x", "has 25 bytes of data"),
        ("t10k-images-idx3-ubyte", b"\x00\x00\x08", "not an idx file of bytes with 3 dimensions"),
        ("t10k-images-idx3-ubyte", idx_labels([1]), "not an idx file of bytes with 3 dimensions"),
        ("t10k-images-idx3-ubyte", idx_images(GRAY[:0]), "holds nothing"),
        ("t10k-labels-idx1-ubyte", idx_labels([1, 2]), "2 labels for 1 image"),
    ],
)
def test_damaged_idx_files(tmp_path, name, content, message):
    (write_idx(tmp_path) / name).write_bytes(content)
    with pytest.raises(ValueError, match=rf"{message}"):
        load(tmp_path, split="test")


def test_damaged_gzip_missing_file_and_label_without_name(tmp_path):
    path = write_idx(tmp_path) / "train-images-idx3-ubyte.gz"
    whole = path.read_bytes()
    for damaged in (whole[:-9], b"no gzip", whole[:12] + b"\xff\xff" + whole[14:]):
        path.write_bytes(damaged)
        with pytest.raises(ValueError, match=r"ubyte\.gz: not a whole gzip file"):
            load(tmp_path)
    path.write_bytes(whole)
    with pytest.raises(ValueError, match="label 7 is out of range 0 to 1 of the 2 class names"):
        load(tmp_path, class_names=("a", "b"))
    (tmp_path / "train-labels-idx1-ubyte.gz").unlink()
    with pytest.raises(FileNotFoundError, match="train-labels-idx1-ubyte: no such file"):
        load(tmp_path)


def made() -> Dataset:
    images = np.random.default_rng(0).integers(0, 256, (5, 4, 6, 3)).astype(np.uint8)
    return Dataset(images=images, labels=np.arange(5) % 3, class_names=("ä", "b", "c"), name="made")


def test_saved_npz_comes_back_whole_and_always_as_the_same_bytes(tmp_path):
    save_npz(made(), tmp_path / "one.npz")
    save_npz(made(), str(tmp_path / "two.npz"))
    back = load(tmp_path / "one.npz")
    np.testing.assert_array_equal(back.images, made().images)
    assert back.labels.tolist() == [0, 1, 2, 0, 1]
    assert (back.class_names, back.name) == (("ä", "b", "c"), "made")
    assert (tmp_path / "one.npz").read_bytes() == (tmp_path / "two.npz").read_bytes()
    with zipfile.ZipFile(tmp_path / "one.npz") as archive:
        assert {entry.date_time for entry in archive.infolist()} == {(1980, 1, 1, 0, 0, 0)}


def test_a_save_that_fails_leaves_the_old_file_and_nothing_else(tmp_path, monkeypatch):
    path = tmp_path / "data.npz"
    save_npz(made(), path)
    before = path.read_bytes()

    def full_disk(descriptor: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("os.fsync", full_disk)
    with pytest.raises(OSError, match="could not write") as caught:
        save_npz(made().take(1), path)
    assert caught.value.filename == str(path)
    assert caught.value.strerror == (
        "could not write 72 bytes (No space left on device); the file that was there is "
        "unchanged; free some space or choose another folder"
    )
    assert path.read_bytes() == before
    assert [entry.name for entry in tmp_path.iterdir()] == ["data.npz"]
    with pytest.raises(ValueError, match=r"must end in .npz"):
        save_npz(made(), tmp_path / "data.zip")


def test_npz_folder_with_splits_and_gray_images(tmp_path):
    np.savez(tmp_path / "train.npz", images=GRAY, labels=np.array([1, 0], np.uint8))
    train = load(tmp_path)
    assert train.images.shape == (2, 3, 4, 1)
    assert (train.class_names, train.name) == (("0", "1"), "train")
    with pytest.raises(FileNotFoundError, match=r"test.npz: no such file, so there is no test spl"):
        load(tmp_path, split="test")


@pytest.mark.parametrize(
    ("arrays", "message"),
    [
        ({"images": GRAY}, r"no array 'labels' \(found: images\)"),
        (
            {"x_train": GRAY, "y_train": [0, 1]},
            r"no array 'images' \(found: x_train, y_train\); name the arrays 'images' and "
            r"'labels', as pmt\.datasets\.save_npz does$",
        ),
        ({}, r"no array 'images' \(found: none\)"),
        (
            {"images": np.zeros((2, 3, 8, 8), np.uint8), "labels": [0, 1]},
            r"images has shape \(2, 3, 8, 8\), channels first; put the channels last: "
            r"images\.transpose\(0, 2, 3, 1\)$",
        ),
        (
            {"images": np.zeros((2, 1, 28, 28), np.uint8), "labels": [0, 1]},
            r"images has shape \(2, 1, 28, 28\), channels first; put the channels last: "
            r"images\.transpose\(0, 2, 3, 1\)$",
        ),
        ({"images": GRAY / 1.0, "labels": [0, 1]}, "images is float64; must be a uint8 array"),
        ({"images": GRAY[0], "labels": [0, 1]}, r"images has shape \(3, 4\)"),
        ({"images": GRAY, "labels": [0.0, 1.0]}, "labels is float64, not integer"),
        ({"images": GRAY, "labels": [0]}, r"labels has shape \(1,\): must be \(2,\)"),
        ({"images": GRAY, "labels": [0, -1]}, "label -1 is below 0; number the classes from 0$"),
        ({"images": GRAY, "labels": [0, 2], "class_names": ["a", "b"]}, "label 2 is out of range"),
        ({"images": GRAY, "labels": [0, 1], "class_names": ["a", "a"]}, "holds 'a' twice or blank"),
        (
            {"images": GRAY, "labels": [0, 1], "class_names": [1, 2]},
            "class_names holds 1: every name must be text",
        ),
        (
            {"images": np.array([{}, 1]), "labels": [0, 1]},
            r"array 'images' holds Python objects; store numbers, or texts as numpy.array\(",
        ),
    ],
)
def test_damaged_npz_arrays(tmp_path, arrays, message):
    np.savez(tmp_path / "data.npz", **arrays)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match=rf"data.npz: .*{message}"):
        load(tmp_path / "data.npz")


def test_truncated_and_flipped_npz_files(tmp_path):
    path = tmp_path / "data.npz"
    save_npz(made(), path)
    whole = path.read_bytes()
    for length in (0, 3, 100, len(whole) // 2, len(whole) - 1):
        path.write_bytes(whole[:length])
        with pytest.raises(ValueError, match=r"data.npz: "):
            load(path)
    generator = np.random.default_rng(0)
    for position in generator.integers(0, len(whole), 300):
        damaged = bytearray(whole)
        damaged[position] ^= 1 << int(generator.integers(8))
        path.write_bytes(damaged)
        problem = problem_of(load, path)
        assert problem is None or "data.npz: " in problem
    np.save(tmp_path / "bare.npy", GRAY)
    path.write_bytes((tmp_path / "bare.npy").read_bytes())
    with pytest.raises(ValueError, match="one bare array"):
        load(path)


def write_image(path: Path, color: int | tuple[int, int, int], size: int = 4) -> None:
    from PIL import Image

    path.parent.mkdir(parents=True, exist_ok=True)
    mode = "L" if isinstance(color, int) else "RGB"
    Image.new(mode, (size + 1, size), color).save(path)


def write_folder(root: Path) -> Path:
    write_image(root / "train" / "cat" / "1.png", (10, 20, 30))
    write_image(root / "train" / "dog" / "1.PNG", (40, 50, 60))
    write_image(root / "train" / "dog" / "2.bmp", 70)
    write_image(root / "test" / "dog" / "1.png", (1, 2, 3))
    (root / "train" / "dog" / "notes.txt").write_text("ignored")
    (root / "train" / ".hidden").mkdir()
    return root


def test_image_folder_with_splits(tmp_path):
    train, test = load(write_folder(tmp_path)), load(tmp_path, split="test")
    assert train.images.shape == (3, 4, 5, 3)
    assert train.images[:, 0, 0].tolist() == [[10, 20, 30], [40, 50, 60], [70, 70, 70]]
    assert train.labels.tolist() == [0, 1, 1]
    assert train.class_names == test.class_names == ("cat", "dog")
    # No cat in the test split: a dog must still be class 1.
    assert test.labels.tolist() == [1]


def test_image_folder_without_splits_of_gray_images(tmp_path):
    write_image(tmp_path / "a" / "x.png", 5)
    write_image(tmp_path / "b" / "x.png", 6)
    for split in ("train", "test"):
        dataset = load(tmp_path, split=split, class_names=("b", "a"))
        assert dataset.images.shape == (2, 4, 5, 1)
        assert dataset.images[:, 0, 0, 0].tolist() == [5, 6]
        assert dataset.labels.tolist() == [1, 0]


def test_sizes_must_agree_unless_one_is_given(tmp_path):
    write_folder(tmp_path)
    write_image(tmp_path / "train" / "dog" / "3.png", (9, 9, 9), size=8)
    with pytest.raises(ValueError, match=r"3.png: is 8x9 .* but 1.png is 4x5; give one size"):
        load(tmp_path)
    resized = load(tmp_path, size=(2, 6))
    assert resized.images.shape == (4, 2, 6, 3)
    assert resized.images[3].reshape(-1, 3).tolist() == [[9, 9, 9]] * 12


def test_size_applies_to_every_layout(tmp_path):
    assert load(write_idx(tmp_path), size=8).images.shape == (2, 8, 8, 1)
    for wrong in (0, (1, 2, 3)):
        with pytest.raises(ValueError, match="size="):
            load(tmp_path, size=wrong)  # type: ignore[arg-type]
    with pytest.raises(TypeError, match=r"size=1.5 must be an integer"):
        load(tmp_path, size=1.5)  # type: ignore[arg-type]
    np.savez(tmp_path / "many.npz", images=np.zeros((1, 9, 9, 5), np.uint8), labels=[0])
    message = "data set 'many' has 5 channels: images of at most 4 are resized; resample the arrays"
    with pytest.raises(ValueError, match=f"^{message} before$"):
        load(tmp_path / "many.npz", size=8)


def test_damaged_image_folders(tmp_path):
    from PIL import Image

    write_folder(tmp_path)
    (tmp_path / "train" / "emu").mkdir()
    with pytest.raises(ValueError, match="emu: the class folder holds no image"):
        load(tmp_path)
    broken = tmp_path / "train" / "emu" / "1.png"
    write_image(broken, (1, 2, 3), size=64)
    broken.write_bytes(broken.read_bytes()[:60])
    with pytest.raises(ValueError, match=r"1.png: cannot be decoded .*replace or remove"):
        load(tmp_path)
    Image.new("I;16", (5, 4)).save(broken)
    with pytest.raises(ValueError, match=r"1.png: has more than 8 bits per channel"):
        load(tmp_path)
    with pytest.raises(ValueError, match="class folder 'emu' is not in class_names"):
        load(tmp_path, class_names=("cat", "dog"))
    with pytest.raises(ValueError, match="no class folder 'fox', which class_names lists"):
        load(tmp_path, class_names=("cat", "dog", "emu", "fox"))


def test_missing_split_folder(tmp_path):
    write_image(tmp_path / "train" / "a" / "x.png", 5)
    with pytest.raises(FileNotFoundError, match="test: no such folder, so there is no test split"):
        load(tmp_path, split="test")
    (tmp_path / "test").mkdir()
    with pytest.raises(ValueError, match="test: no class folders in it"):
        load(tmp_path, split="test")


def test_without_pillow_the_error_names_the_extra(tmp_path, monkeypatch):
    write_folder(tmp_path)
    monkeypatch.setitem(sys.modules, "PIL", None)
    with pytest.raises(ModuleNotFoundError, match=r'pip install "poor-mans-training\[data\]"'):
        load(tmp_path)


def test_unknown_paths_splits_and_layouts(tmp_path):
    with pytest.raises(FileNotFoundError, match="nowhere: no such file or folder"):
        load(tmp_path / "nowhere")
    with pytest.raises(ValueError, match="no data set found in this folder; give one of: CIFAR-10"):
        load(tmp_path)
    (tmp_path / "data.csv").write_text("1,2")
    with pytest.raises(ValueError, match=r"data.csv: a file, but not .npz"):
        load(tmp_path / "data.csv")
    with pytest.raises(ValueError, match="split='valid' is unknown; choose one of train, test"):
        load(tmp_path, split="valid")
    with pytest.raises(TypeError, match="class_names='ab'"):
        load(tmp_path, class_names="ab")


@pytest.mark.parametrize(
    ("folders", "train", "test"),
    [
        (("train", "val"), "train", "val"),
        (("Train", "Validation"), "Train", "Validation"),
        (("training", "valid"), "training", "valid"),
        (("train", "val", "Test"), "train", "Test"),
    ],
)
def test_folders_of_splits_by_their_usual_names(tmp_path, folders, train, test):
    for number, name in enumerate(folders):
        for kind in ("cat", "dog"):
            write_image(tmp_path / name / kind / "0.png", number)
    found = [int(load(tmp_path, split=split).images[0, 0, 0, 0]) for split in ("train", "test")]
    assert found == [folders.index(train), folders.index(test)]


def test_a_class_may_be_named_as_a_split_is(tmp_path):
    for number, name in enumerate(("invalid", "valid")):
        write_image(tmp_path / name / "0.png", number)
    assert load(tmp_path).class_names == ("invalid", "valid")
    assert len(load(tmp_path, split="test")) == 2


def test_images_of_kinds_that_are_not_read_are_counted(tmp_path):
    write_image(tmp_path / "cat" / "0.png", 0)
    for name in ("1.heic", "2.AVIF"):
        (tmp_path / "cat" / name).write_bytes(b"")
    message = r"2 images of a kind that is not read \(\.avif, \.heic\) are left out; convert them"
    with pytest.warns(UserWarning, match=message):
        assert len(load(tmp_path)) == 1
    (tmp_path / "dog").mkdir()
    (tmp_path / "dog" / "3.heic").write_bytes(b"")
    with pytest.raises(ValueError, match=r"holds no image that is read, but 3\.heic; convert"):
        load(tmp_path)
