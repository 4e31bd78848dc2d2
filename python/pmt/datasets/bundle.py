"""The images that come with the package: a sample of Fashion-MNIST."""

from __future__ import annotations

from importlib import resources

from pmt.datasets.class_names import FASHION_MNIST_CLASSES
from pmt.datasets.damage import missing
from pmt.datasets.dataset import Dataset
from pmt.datasets.image_folder import SPLITS
from pmt.datasets.npz import read_npz_stream


def bundled(split: str = "train") -> Dataset:
    """Read the bundled sample of Fashion-MNIST, 28 x 28 grey images in ten classes.

    Parameters
    ----------
    split
        "train" or "test".

    Returns
    -------
    Dataset
        About 1,000 images, uint8, shape (N, 28, 28, 1), with 0 as background.

    Raises
    ------
    ValueError
        Another `split`.
    FileNotFoundError
        The package was installed without its data.

    Notes
    -----
    Source: H. Xiao, K. Rasul and R. Vollgraf, "Fashion-MNIST", 2017, MIT licence.
    """
    if split not in SPLITS:
        raise ValueError(f"split = {split!r}: must be 'train' or 'test'")
    resource = resources.files("pmt").joinpath("data", f"fashion_mnist_{split}.npz")
    try:
        with resource.open("rb") as file:
            return read_npz_stream(file, f"fashion_mnist_{split}.npz", FASHION_MNIST_CLASSES)
    except FileNotFoundError:
        raise missing(
            str(resource), "the bundled images are not installed", "install the package again"
        ) from None
