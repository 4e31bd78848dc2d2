"""Data sets: labeled images or other inputs, their readers, and their downloads."""

from pmt.datasets.adapters import from_hugging_face, from_stream, from_torch
from pmt.datasets.array_files import save_npz
from pmt.datasets.catalog import (
    CATALOG,
    CIFAR10_CLASSES,
    CIFAR100_CLASSES,
    CIFAR100_COARSE_CLASSES,
    FASHION_MNIST_CLASSES,
    FLOWERS102_CLASSES,
)
from pmt.datasets.corrupted_arrays import load_corrupted
from pmt.datasets.dataset import Dataset, concatenate
from pmt.datasets.downloading import bundled, data_folder, download
from pmt.datasets.image_files import ImageFiles
from pmt.datasets.layouts import image_files, load
from pmt.datasets.simulated_motion import simulated_motion

__all__ = [
    "CATALOG",
    "CIFAR10_CLASSES",
    "CIFAR100_CLASSES",
    "CIFAR100_COARSE_CLASSES",
    "FASHION_MNIST_CLASSES",
    "FLOWERS102_CLASSES",
    "Dataset",
    "ImageFiles",
    "bundled",
    "concatenate",
    "data_folder",
    "download",
    "from_hugging_face",
    "from_stream",
    "from_torch",
    "image_files",
    "load",
    "load_corrupted",
    "save_npz",
    "simulated_motion",
]
