"""Data sets: labelled uint8 images in memory, and the layouts they are read from."""

from __future__ import annotations

from pmt.datasets.bundle import bundled
from pmt.datasets.class_names import (
    CIFAR10_CLASSES,
    CIFAR100_CLASSES,
    CIFAR100_COARSE_CLASSES,
    FASHION_MNIST_CLASSES,
)
from pmt.datasets.corrupted_arrays import load_corrupted
from pmt.datasets.dataset import Dataset
from pmt.datasets.layouts import load
from pmt.datasets.npz import save_npz

__all__ = [
    "CIFAR10_CLASSES",
    "CIFAR100_CLASSES",
    "CIFAR100_COARSE_CLASSES",
    "FASHION_MNIST_CLASSES",
    "Dataset",
    "bundled",
    "load",
    "load_corrupted",
    "save_npz",
]
