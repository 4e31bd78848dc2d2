"""Finding CIFAR-10 or CIFAR-100 in a folder, in either layout, and reading it."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from pmt.datasets.cifar_binary import BINARY
from pmt.datasets.cifar_frame import CIFAR10, CIFAR100, Archive, Variety, is_in, read_cifar_files
from pmt.datasets.cifar_python import PYTHON
from pmt.datasets.damage import damaged
from pmt.datasets.dataset import Dataset

# In the order of preference: the binary layout is read faster.
FOLDERS = {
    "cifar-10-batches-bin": CIFAR10,
    "cifar-10-batches-py": CIFAR10,
    "cifar-100-binary": CIFAR100,
    "cifar-100-python": CIFAR100,
}


def has_cifar(path: Path) -> bool:
    """Whether a folder holds the files of CIFAR-10 or CIFAR-100, or an official folder of them."""
    return bool(_found(path))


def varieties(path: Path) -> set[str]:
    """Names of what :func:`has_cifar` sees: "cifar10", "cifar100", both or none."""
    return {variety.name for _, variety, _ in _found(path)}


def read_cifar(
    path: Path, split: str, class_names: Sequence[str] | None = None, labels: str = "fine"
) -> Dataset:
    """Read CIFAR-10 or CIFAR-100, binary or python.

    Parameters
    ----------
    path
        A folder for which :func:`has_cifar` is true.
    split
        "train" or "test".
    class_names
        Other names, 10, 100 or, for coarse labels, 20 of them.
    labels
        "fine" (the 10 or 100 classes) or "coarse" (the 20 superclasses of CIFAR-100).

    Raises
    ------
    FileNotFoundError
        No file for this split, or a gap in the numbers of the training files.
    ValueError
        The folder holds both data sets, or a file is damaged, or `labels` do not exist.
    """
    found = _found(path)
    if len({variety.name for _, variety, _ in found}) > 1:
        names = ", ".join(sorted({folder.name for folder, _, _ in found}))
        raise damaged(
            path, f"holds both CIFAR-10 and CIFAR-100 ({names})", "give the folder of one of them"
        )
    folder, variety, archive = found[0]
    return read_cifar_files(folder, split, class_names, labels, variety, archive)


def _found(path: Path) -> list[tuple[Path, Variety, Archive]]:
    inside = [path / name for name in FOLDERS if (path / name).is_dir()]
    return [
        (folder, variety, archive)
        for folder in inside or [path]
        for variety in (CIFAR10, CIFAR100)
        for archive in (BINARY, PYTHON)
        if is_in(folder, variety, archive)
    ]
