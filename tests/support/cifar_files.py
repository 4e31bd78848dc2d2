"""Small folders in the layouts of CIFAR-10, CIFAR-100 and CIFAR-10-C."""

import pickle
from pathlib import Path

import numpy as np

from pmt.datasets import CIFAR10_CLASSES, CIFAR100_CLASSES, CIFAR100_COARSE_CLASSES

# Pixel (row 0, column 1) is 1 in red, 101 in green, 201 in blue; the last red one is 50.
PLANES = np.zeros((3, 32, 32), np.uint8)
PLANES[:, 0, 1] = (1, 101, 201)
PLANES[0, 31, 31] = 50
RECORD = PLANES.tobytes()


def write_binary(folder: Path) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "data_batch_1.bin").write_bytes(b"\x03" + RECORD + b"\x00" + bytes(3072))
    (folder / "data_batch_2.bin").write_bytes(b"\x09" + RECORD)
    (folder / "test_batch.bin").write_bytes(b"\x05" + RECORD)
    (folder / "batches.meta.txt").write_text("\n".join(CIFAR10_CLASSES) + "\n\n")
    return folder


def write_python(folder: Path, protocol: int = 2) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    rows = np.stack([PLANES.reshape(-1), np.zeros(3072, np.uint8)])
    contents = {
        "data_batch_1": {b"data": rows, b"labels": [3, 0], b"filenames": [b"x", b"y"]},
        "test_batch": {"data": rows[:1], "labels": [5], "batch_label": "testing"},
        "batches.meta": {"label_names": list(CIFAR10_CLASSES), "num_vis": 3072},
    }
    for name, content in contents.items():
        (folder / name).write_bytes(pickle.dumps(content, protocol=protocol))
    return folder


def assert_the_record(image: np.ndarray) -> None:
    assert image[0, 1].tolist() == [1, 101, 201]
    assert image[31, 31].tolist() == [50, 0, 0]
    assert int(image.sum()) == 1 + 101 + 201 + 50


# trout (fine 91) is a fish (coarse 1), bicycle (8) one of vehicles_1 (18).
TROUT, BICYCLE = b"\x01\x5b" + RECORD, b"\x12\x08" + bytes(3072)


def write_binary_100(folder: Path) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "train.bin").write_bytes(TROUT + BICYCLE)
    (folder / "test.bin").write_bytes(BICYCLE)
    (folder / "fine_label_names.txt").write_text("\n".join(CIFAR100_CLASSES) + "\n\n")
    (folder / "coarse_label_names.txt").write_text("\n".join(CIFAR100_COARSE_CLASSES) + "\n")
    return folder


def write_published(folder: Path, labels: tuple[int, ...] = (3, 8, 0)) -> Path:
    """Write arrays as the archive has, for 3 images: pixel 10 * severity + image."""
    folder.mkdir(parents=True)
    count = len(labels)
    values = [10 * severity + image for severity in range(1, 6) for image in range(count)]
    images = np.zeros((5 * count, 32, 32, 3), np.uint8) + np.array(values, np.uint8).reshape(
        -1, 1, 1, 1
    )
    np.save(folder / "fog.npy", images)
    np.save(folder / "jpeg_compression.npy", 255 - images)
    np.save(folder / "labels.npy", np.tile(np.array(labels, np.uint8), 5))
    return folder
