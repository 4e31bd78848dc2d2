"""Writing corrupted images as CIFAR-10-C publishes them, one array a corruption."""

import errno
import os
import shutil
from collections.abc import Callable, Iterator, Sequence

import numpy as np

from pmt._util import atomic_file
from pmt._util.arrays import Int64Array
from pmt._util.checks import SplitName, check_callable, check_type, checked_path, checked_word
from pmt._util.places import check_folder_place
from pmt.corruptions.apply import corrupt, split_seed
from pmt.corruptions.catalog import CONSTANTS, SEVERITIES, Constants, Images
from pmt.datasets.array_files import map_npy, write_npy
from pmt.datasets.corrupted_arrays import LABELS, REMEDY, CorruptionManifest, read_manifest
from pmt.datasets.dataset import Dataset, checksum
from pmt.errors import ExistingFileError

# Bounds the memory and sets the pace of the progress: about a thousand CIFAR images.
VALUES_A_PART = 1 << 22


class ArrayWriter:
    """A folder that gets ``labels.npy`` and one ``NAME.npy`` per corruption.

    Each array has shape (5 N, H, W, C): all images at severity 1, then all at severity 2, up to
    5. Every file is there whole or not at all. ``manifest.json`` notes what the arrays are made
    from, so that another data set or seed never mixes in; without it the folder is exactly as
    CIFAR-10-C is published.

    Parameters
    ----------
    dataset : Dataset
        The clean images.
    folder : str or pathlib.Path
        Created if it is missing; otherwise empty, or from an earlier writer of the same.
    split : {"train", "test"}
        "train" or "test"; see :func:`pmt.corruptions.split_seed`.
    seed : int
        Integer, 0 or more.
    constants : {"cifar10", "imagenet"}
        "cifar10" or "imagenet"; see :func:`pmt.corruptions.corrupt`.
    indices : array_like of int, optional
        Index of every image in its whole data set, shape (N,); by default 0 to N - 1.

    Raises
    ------
    FileExistsError
        If the folder holds something else, or arrays of other images or of another seed.
    ValueError
        If an argument is out of range, or the manifest is damaged.
    OSError
        If the folder cannot be written.
    """

    def __init__(
        self,
        dataset: Dataset,
        folder: str | os.PathLike[str],
        *,
        split: SplitName = "test",
        seed: int = 0,
        constants: Constants = "cifar10",
        indices: Int64Array | None = None,
    ) -> None:
        check_type("dataset", dataset, Dataset, "a pmt.datasets.Dataset")
        self.dataset = dataset
        self.folder = checked_path("folder", folder)
        self.seed = split_seed(seed, split)
        self.indices = np.arange(len(dataset)) if indices is None else indices
        self._constants: Constants = constants
        self.manifest = CorruptionManifest(
            data=dataset.name,
            split=split,
            seed=int(seed),
            constants=checked_word("constants", constants, CONSTANTS),
            images=len(dataset),
            shape=dataset.images.shape[1:],
            data_crc32=checksum(dataset),
            class_names=dataset.class_names,
        )
        self._check_folder()

    @property
    def shape(self) -> tuple[int, ...]:
        """Shape of every array: (5 N, H, W, C)."""
        return (len(SEVERITIES) * len(self.dataset), *self.dataset.images.shape[1:])

    @property
    def size(self) -> int:
        """Bytes of every array, without its header."""
        return int(np.prod(self.shape))

    def is_whole(self, name: str) -> bool:
        """Whether the array of this corruption is there, with the right dtype and shape."""
        path = self.folder / f"{name}.npy"
        try:
            array = map_npy(path, REMEDY)
        except (ValueError, FileNotFoundError):
            return False
        return array.dtype == np.uint8 and array.shape == self.shape

    def check(self, names: Sequence[str]) -> None:
        """Find problems before the work begins: bad names, missing packages, a full disk.

        Raises
        ------
        ValueError, FileNotFoundError, ImportError
            As :func:`pmt.corruptions.corrupt` of one image; several problems at once.
        OSError
            If the disk does not have enough free space.
        """
        problems: dict[str, Exception] = {}
        for name in names:
            try:
                corrupt(self.dataset.images[:1], name, 1, constants=self._constants)
            except (ValueError, OSError, ImportError) as error:
                problems.setdefault(str(error), error)
        if problems:
            raise type(next(iter(problems.values())))("; ".join(problems))
        self._check_space(len(names) * self.size)

    def write(self, name: str, progress: Callable[[int], None] | None = None) -> None:
        """Make the array of one corruption, or make it again.

        Parameters
        ----------
        name : str
            One of :func:`pmt.corruptions.names`.
        progress : callable, optional
            Called with the number of images done, up to 5 N.

        Raises
        ------
        ValueError, FileNotFoundError, ImportError
            As :func:`pmt.corruptions.corrupt`.
        OSError
            If the disk is full; no partial file is left.
        """
        check_callable("progress", progress)
        self._begin()
        path = self.folder / f"{name}.npy"
        write_npy(path, self.shape, self._parts(name, progress))

    def _parts(self, name: str, progress: Callable[[int], None] | None) -> Iterator[Images]:
        images = self.dataset.images
        rows = max(1, VALUES_A_PART // int(np.prod(images.shape[1:])))
        done = 0
        for severity in SEVERITIES:
            for start in range(0, len(images), rows):
                part = slice(start, start + rows)
                corrupted = corrupt(
                    images[part],
                    name,
                    severity,
                    seed=self.seed,
                    indices=self.indices[part],
                    constants=self._constants,
                )
                yield corrupted
                done += len(corrupted)
                if progress is not None:
                    progress(done)

    def _begin(self) -> None:
        """Write the files that all arrays share; the manifest first, so that no array lacks one."""
        with atomic_file.explaining("the folder could not be made", self.folder):
            self.folder.mkdir(parents=True, exist_ok=True)
        if read_manifest(self.folder) is None:
            self.manifest.write(self.folder)
        labels = np.tile(self.dataset.labels, len(SEVERITIES))
        fits = len(self.dataset.class_names) <= 256
        shared = labels.astype(np.uint8) if fits else labels
        path = self.folder / LABELS
        with atomic_file.writing(path, shared.nbytes) as file:
            np.lib.format.write_array(file, shared, allow_pickle=False)

    def _check_folder(self) -> None:
        check_folder_place(self.folder, str(self.folder))
        if not self.folder.exists():
            return
        if not self.folder.is_dir():
            raise ExistingFileError(f"{self.folder}: is a file; choose another folder")
        manifest = read_manifest(self.folder)
        if manifest is not None:
            differences = manifest.differences(self.manifest)
            if differences:
                raise ExistingFileError(
                    f"{self.folder}: holds arrays of another data set or seed: "
                    f"{'; '.join(differences)}; choose another folder, or delete this one"
                )
        elif any(path.suffix != ".part" for path in self.folder.iterdir()):
            raise ExistingFileError(
                f"{self.folder}: is not empty and has no manifest.json, so `pmt corrupt` did not "
                "make it; choose another folder"
            )

    def _check_space(self, needed: int) -> None:
        existing = next(p for p in (self.folder, *self.folder.absolute().parents) if p.exists())
        free = shutil.disk_usage(existing).free
        if needed > free:
            raise OSError(
                errno.ENOSPC,
                f"the arrays take {needed / 1e6:,.0f} MB and {free / 1e6:,.0f} MB are free; free "
                "some space, choose another folder or fewer corruptions",
                str(self.folder),
            )
