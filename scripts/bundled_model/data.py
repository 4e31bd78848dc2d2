"""The official images: those to train on, those held out of training, and those to test with."""

import gzip
import hashlib
from pathlib import Path

import numpy as np

from pmt import datasets
from pmt.datasets import FASHION_MNIST_CLASSES, Dataset

DEBIAN_FOLDER = Path("/usr/share/datasets/fashion-mnist")
DOWNLOAD_ADDRESS = "http://fashion-mnist.s3-website.eu-central-1.amazonaws.com/"
# Checksums of the decompressed bytes: the package and the download differ in their gzip headers.
SHA256 = {
    "train-images-idx3-ubyte": "c59f468a2f672dc815687fe0f83887768d799fd8a3f3276145d20f83aa44d888",
    "train-labels-idx1-ubyte": "bad3541b69d912435c50bb6ba87bec294ff4f6a2e1246121d8633921760443d9",
    "t10k-images-idx3-ubyte": "5b4141f0afbad91edebe8549f8fcffe087ea10ca49f1dbef5c9a5cd8815ce37b",
    "t10k-labels-idx1-ubyte": "0402a96d92fd2663957122ceb108a494c5af83dab82d92729df917d7dec38c34",
}

Splits = tuple[Dataset, Dataset, Dataset]


def cifar10(folder: Path | None) -> Splits:
    """Return 45,000 images of CIFAR-10, the other 5,000 training images, and the test images."""
    if folder is None:
        raise SystemExit("add --data DIR, a folder with CIFAR-10 (pmt download cifar10)")
    train = datasets.load(folder, split="train")
    if len(train) != 50_000:
        raise SystemExit(f"{folder}: {len(train)} training images, but CIFAR-10 has 50,000")
    return _parted(train, 5_000, datasets.load(folder, split="test"))


def fashion_mnist(folder: Path | None) -> Splits:
    """Return 59,000 images of Fashion-MNIST, the other 1,000 training images, and 10,000 others.

    Without a folder of the four ``.gz`` files, the Debian package ``dataset-fashion-mnist`` is used
    where it is installed, a download through pooch otherwise. ValueError is raised if a file's
    content is not the official one.
    """
    train, test = (_fashion_mnist_split(prefix, folder) for prefix in ("train", "t10k"))
    return _parted(train, 1_000, test)


def _parted(train: Dataset, held_out: int, test: Dataset) -> Splits:
    count = len(train) - held_out
    return train.take(count), train.subset(np.arange(count, len(train))), test


def _fashion_mnist_split(prefix: str, folder: Path | None) -> Dataset:
    images, labels = (
        _content(f"{prefix}-{name}-ubyte", folder) for name in ("images-idx3", "labels-idx1")
    )
    return Dataset(
        np.frombuffer(images, np.uint8, offset=16).reshape(-1, 28, 28, 1),
        np.frombuffer(labels, np.uint8, offset=8),
        FASHION_MNIST_CLASSES,
        f"fashion_mnist_{prefix}",
    )


def _content(name: str, folder: Path | None) -> bytes:
    path = (folder or DEBIAN_FOLDER) / f"{name}.gz"
    if folder is None and not path.exists():
        path = _downloaded(f"{name}.gz")
    content = gzip.decompress(path.read_bytes())
    found = hashlib.sha256(content).hexdigest()
    if found != SHA256[name]:
        raise ValueError(
            f"{path}: decompressed SHA256 is {found}, expected {SHA256[name]}; "
            "install the Debian package dataset-fashion-mnist or download the file again"
        )
    return content


def _downloaded(file_name: str) -> Path:
    try:
        import pooch
    except ImportError as error:
        raise SystemExit(
            "Fashion-MNIST is not installed: run `apt-get install dataset-fashion-mnist`, "
            'or `pip install "poor-mans-training[data]"` to download it'
        ) from error
    return Path(pooch.retrieve(DOWNLOAD_ADDRESS + file_name, known_hash=None, fname=file_name))
