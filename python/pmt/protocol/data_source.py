"""The source of a model and of its images, as a run folder keeps it or by the name alone."""

from __future__ import annotations

import os
import warnings
from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from pmt import corruptions, datasets
from pmt._util.arrays import BoolArray, Int64Array
from pmt._util.checks import (
    SPLITS,
    SplitName,
    check_type,
    checked_path,
    checked_range,
    checked_size,
    checked_word,
    kind_of,
)
from pmt._util.text import counted, split_names
from pmt.corruptions.catalog import Constants
from pmt.datasets import Dataset
from pmt.datasets.array_files import has_idx
from pmt.datasets.cifar import Labels, has_cifar
from pmt.datasets.corrupted_arrays import find_corrupted, read_corrupted
from pmt.datasets.dataset import checksum
from pmt.datasets.downloading import named
from pmt.datasets.image_files import ImageFiles, common_size
from pmt.datasets.image_folder import FOLDER
from pmt.datasets.layouts import chosen_indices, find, fitted, in_color, read_found
from pmt.datasets.picture import Fit
from pmt.errors import OptionError
from pmt.model import Model
from pmt.model.data_checks import seen_images, warning_of_seen
from pmt.model.loading import BUNDLED_MODELS
from pmt.model.model import check_model

BUNDLED = "bundled"


@dataclass(frozen=True, kw_only=True)
class ImagePool:
    """Images of one split, corrupted when they are asked for.

    A corrupted image depends on its index in the pool, not on what else is taken.

    Parameters
    ----------
    clean : Dataset, optional
        The images without corruption; None where only corrupted ones are stored.
    stored : Dataset, optional
        Corrupted images from arrays such as CIFAR-10-C, index for index those of ``clean``; they
        are used instead of corrupting ``clean``.
    corruption : str
        One of :func:`pmt.corruptions.names`; empty where the images are used as they are.
    severity : int
        1..5; 0 without a corruption.
    seed : int
        Seed of the corruption, 0 or more. Train and test images take different ones.
    constants, overlays
        As :func:`pmt.corruptions.corrupt`.
    size : tuple of int, optional
        Height and width that images are resized to after the corruption.
    seen : ndarray of bool, optional
        Shape (N,): whether the network was trained on an image. Others are preferred to adapt and
        choose on.

    Raises
    ------
    ValueError
        If there are neither clean nor stored images, both differ in their labels, or stored ones
        come without the name of their corruption.
    """

    clean: Dataset | None = None
    stored: Dataset | None = None
    corruption: str = ""
    severity: int = 0
    seed: int = 0
    constants: Constants = "cifar10"
    overlays: str | os.PathLike[str] | None = None
    size: tuple[int, int] | None = None
    seen: BoolArray | None = None

    def __post_init__(self) -> None:
        """Check that clean and stored images are the same ones."""
        if self.clean is None and self.stored is None:
            raise ValueError("clean and stored are both None: a pool needs images")
        if self.stored is not None and not self.corruption:
            raise ValueError("stored images need corruption = NAME, the name of what they hold")
        if (
            self.clean is not None
            and self.stored is not None
            and not np.array_equal(self.clean.labels, self.stored.labels)
        ):
            raise ValueError(
                f"{self.stored.name!r} ({counted(len(self.stored), 'image')}) and "
                f"{self.clean.name!r} ({len(self.clean)}) have different labels: stored must hold "
                "the corrupted copies of clean, in the same order"
            )

    @property
    def images(self) -> Dataset:
        """All images at their own size: clean where there are any, else the stored ones."""
        found = self.clean if self.clean is not None else self.stored
        assert found is not None
        return found

    @property
    def labels(self) -> Int64Array:
        """Classes, int64 (N,)."""
        return self.images.labels

    def __len__(self) -> int:
        """Return the number of images."""
        return len(self.images)

    def unseen(self, count: int) -> Int64Array:
        """Return the indices of the images that the network was not trained on, ascending.

        All indices, with a warning, where there are some, but fewer than ``count``.
        """
        everything = np.arange(len(self))
        if self.seen is None or not self.seen.any():
            return everything
        unseen = np.flatnonzero(~self.seen)
        if len(unseen) >= count and len(unseen):
            return unseen
        warnings.warn(warning_of_seen(int(self.seen.sum()), len(self)), stacklevel=4)
        return everything

    def take(self, indices: npt.NDArray[np.integer]) -> Dataset:
        """Return the images at ``indices``, corrupted (where there is a corruption) and resized."""
        if self.stored is not None:
            return fitted(self.stored.subset(indices), Fit(self.size))
        part = self.images.subset(indices)
        if self.corruption:
            part = corruptions.corrupt(
                part,
                self.corruption,
                self.severity,
                seed=self.seed,
                indices=indices,
                constants=self.constants,
                overlays=self.overlays,
            )
        return fitted(part, Fit(self.size))

    def take_clean(self, indices: npt.NDArray[np.integer]) -> Dataset | None:
        """Return them without corruption; None where no clean images are known."""
        return None if self.clean is None else fitted(self.clean.subset(indices), Fit(self.size))


@dataclass(frozen=True)
class DataSource:
    """A data set, corrupted or not: ``severity`` 0 where it is not.

    Where the folder holds arrays of corrupted images, those stand for the corrupted split, see
    :func:`pmt.datasets.corrupted_arrays.find_corrupted`; elsewhere the clean images are corrupted.
    """

    data: str
    corruption: str = ""
    severity: int = 0
    corruption_seed: int = 0
    labels: Labels = "fine"
    constants: Constants = "cifar10"
    class_names: str = ""  # separated by commas, as on a command line
    groups: str = ""  # as those of pmt.datasets.load

    @classmethod
    def from_config(cls, source: Mapping[str, Any]) -> DataSource:
        """Read the source that a run folder holds."""
        check_type("source", source, Mapping, "a dict, as to_config() returns")
        return cls(**{name: source[name] for name in cls.__dataclass_fields__ if name in source})

    def to_config(self) -> dict[str, Any]:
        """Return it as a run folder keeps it."""
        optional = ("class_names", "groups")
        return {name: v for name, v in asdict(self).items() if v or name not in optional}

    @property
    def _names(self) -> tuple[str, ...] | None:
        return split_names(self.class_names) if self.class_names else None

    def _groups(self, split: SplitName) -> str | None:
        """Return the groups of a split: no test images are held out, but their folders are read."""
        return self.groups if self.groups and (split == "train" or self.groups == FOLDER) else None

    def description(self, split: SplitName) -> str:
        """The data set and its corruption in a few words."""
        if not self.corruption:
            return self.data
        stored = self.stored(split)
        if stored is None:
            return f"{self.data}, {self.corruption} severity {self.severity}"
        return f"{stored}, {self.corruption} severity {self.severity}, stored arrays"

    def stored(self, split: SplitName) -> Path | None:
        """Folder of the arrays that hold this split corrupted; None where it is to be made."""
        if not self.corruption or self.data == BUNDLED:
            return None
        return find_corrupted(Path(self.data), split)

    def own_size(self, split: SplitName) -> tuple[int, int] | None:
        """Return height and width of a split's images as they are on disk.

        None where they differ, or are not pixels. Errors are those of :func:`pmt.datasets.load`.
        """
        if self.data == BUNDLED:
            return datasets.bundled(split).images.shape[1:3]
        folder = self.stored(split)
        if folder is not None:
            stored = read_corrupted(folder, self.corruption, self.severity, labels=self.labels)
            return stored.images.shape[1:3]
        found = find(self.data, split, None, self.labels, self._groups(split))
        if isinstance(found, ImageFiles):
            return common_size(found.paths)
        return found.images.shape[1:3] if found.has_pixels else None

    def load(self, split: SplitName, model: Model, *, limit: int = 0) -> Dataset:
        """Read a split, corrupt it, and resize it to the model's input.

        Images are corrupted at their own size, as CIFAR-10-C is, where they all have one.

        Parameters
        ----------
        split : {"train", "test"}
            The test split's corruption seed is the train split's plus 1.
        model : Model
            Model whose input size and channels the images must have in the end.
        limit : int
            At most this many images, chosen evenly at random; 0 takes all. They are the same for
            every run, and corrupted as within the whole split.

        Returns
        -------
        Dataset
            The images.

        Raises
        ------
        FileNotFoundError, ValueError, ImportError
            As :func:`pmt.datasets.load`; or if the model takes another number of channels. Gray
            images get three equal ones where it takes three.
        """
        check_model(model)
        limit = checked_range("limit", limit, 0)
        checked_word("split", split, SPLITS)
        return self._prepared(self._read(split, model, limit), split, model, limit)

    def load_splits(
        self, model: Model, *, limit: int = 0, valid_limit: int = 0
    ) -> tuple[Dataset, Dataset | None]:
        """Read the train and the test split; no test split where the data has only one part."""
        check_model(model)
        limit = checked_range("limit", limit, 0)
        valid_limit = checked_range("valid_limit", valid_limit, 0)
        train, test = self._read("train", model), self._read("test", model)
        only_one = len(train) == len(test) and checksum(train) == checksum(test)
        valid = None if only_one else self._prepared(test, "test", model, valid_limit)
        return self._prepared(train, "train", model, limit), valid

    def pool(self, split: SplitName, model: Model) -> ImagePool:
        """Return a split's images for :func:`pmt.protocol.split`, which takes some of them.

        They are those of :meth:`load`, and clean ones in addition where the data has both.

        Parameters
        ----------
        split : {"train", "test"}
            The test split's corruption seed is the train split's plus 1.
        model : Model
            Model whose input size and channels the images must have in the end.

        Raises
        ------
        FileNotFoundError, ValueError, ImportError
            As :meth:`load`.
        """
        check_model(model)
        folder = self.stored(split)
        stored = clean = None
        if folder is not None:
            stored = read_corrupted(
                folder, self.corruption, self.severity, class_names=self._names, labels=self.labels
            )
        if folder is None or has_cifar(Path(self.data)):
            clean = self._read_clean(split, model)
        return self._pool(split, model, clean, stored)

    def _pool(
        self, split: SplitName, model: Model, clean: Dataset | None, stored: Dataset | None
    ) -> ImagePool:
        clean, stored = (
            None if data is None else self._in_channels(data, model) for data in (clean, stored)
        )
        return ImagePool(
            clean=None if clean is None else model.match_classes(clean),
            stored=None if stored is None else model.match_classes(stored),
            corruption=self.corruption,
            severity=self.severity,
            seed=corruptions.split_seed(self.corruption_seed, split),
            constants=self.constants,
            size=model.image_shape[:2],
            seen=self._seen(clean if clean is not None else stored, split, model),
        )

    def _seen(self, data: Dataset | None, split: SplitName, model: Model) -> BoolArray | None:
        return None if split != "train" or data is None else seen_images(model.metadata, data)

    def _in_channels(self, data: Dataset, model: Model) -> Dataset:
        """Return the data in the model's channels: gray images get three equal ones."""
        if not data.has_pixels:
            self._check_inputs(data, model)
            return data
        taken = model.input_shape[2]
        data = in_color(data, taken)
        channels = data.images.shape[3]
        if channels != taken:
            remedy = "convert them to gray" if taken == 1 else "convert them"
            raise ValueError(
                f"{self.data}: images have {counted(channels, 'channel')}, the model takes "
                f"{taken}; {remedy}, or use another model"
            )
        return data

    def _check_inputs(self, data: Dataset, model: Model) -> None:
        """Check the shape of inputs that are not pixels, which have no corruptions."""
        if self.corruption:
            raise ValueError(
                f"corruption={self.corruption!r}: {self.data} holds {data.images.dtype} inputs, "
                "and only images of uint8 pixels are corrupted; leave the option out, or store "
                "what was corrupted"
            )
        try:
            model.prepare(data.images[:1])
        except (TypeError, ValueError) as error:
            raise type(error)(f"{self.data}: {error}") from None

    def _prepared(self, data: Dataset, split: SplitName, model: Model, limit: int) -> Dataset:
        both = (data, None) if self.stored(split) is None else (None, data)
        pool = self._pool(split, model, *both)
        indices = pool.unseen(max(limit, 1))
        return pool.take(indices[chosen_indices(len(indices), limit)])

    def _read(self, split: SplitName, model: Model, limit: int = 0) -> Dataset:
        if not self.corruption and self.data != BUNDLED and not self._has_arrays():
            return read_found(self._found(split), Fit(model.image_shape[:2]), limit)
        stored = self.stored(split)
        if self.groups and (stored is not None or self.data == BUNDLED):
            raise OptionError("groups", f" {self.groups!r}: {self.data} has none; leave it out")
        if stored is not None:
            return read_corrupted(
                stored, self.corruption, self.severity, class_names=self._names, labels=self.labels
            )
        return self._read_clean(split, model)

    def _found(self, split: SplitName) -> Dataset | ImageFiles:
        return find(self.data, split, self._names, self.labels, self._groups(split))

    def _bundled(self, split: SplitName) -> Dataset:
        data, names = datasets.bundled(split), self._names
        if self.labels != "fine":
            raise ValueError(
                f"labels={self.labels!r}: the bundled images are not of CIFAR-100; leave it out"
            )
        if names is not None and len(names) != len(data.class_names):
            raise OptionError(
                "class_names",
                f" gives {counted(len(names), 'name')} for the {len(data.class_names)} classes of "
                "the bundled images: give one name a class, or leave it out",
            )
        return data if names is None else replace(data, class_names=names)

    def _has_arrays(self) -> bool:
        folder = Path(self.data)
        return has_cifar(folder) or has_idx(folder)

    def _read_clean(self, split: SplitName, model: Model) -> Dataset:
        if self.data == BUNDLED:
            return self._bundled(split)
        found = self._found(split)
        if isinstance(found, ImageFiles):
            alike = common_size(found.paths) is not None
            return found.read(size=None if alike else model.image_shape[:2])
        return found


def check_source(value: object, argument: str = "data") -> None:
    """Raise TypeError if the value is not a data source."""
    if not isinstance(value, DataSource):
        raise TypeError(
            f"{argument} is {kind_of(value)}: must be a pmt.protocol.DataSource, which names "
            "files; pmt.select takes data sets, pmt.statistics and pmt.align take arrays"
        )


def model_path(name: str) -> str:
    """Return a model's name as a run folder keeps it: valid from any working directory."""
    path = checked_path("name", name)
    return str(path) if str(path) in BUNDLED_MODELS else str(path.absolute())


def data_path(path: str) -> str:
    """Return a data set's path as a run folder keeps it: valid from any working directory."""
    checked_path("path", path)
    return path if path == BUNDLED else str(named(path).absolute())


def load_clean(
    data: str,
    *,
    split: SplitName = "test",
    size: int | tuple[int, int] | None = None,
    limit: int = 0,
    labels: Labels = "fine",
) -> Dataset:
    """Read a split of a data set.

    Parameters
    ----------
    data : str
        Data set in any layout of :func:`pmt.datasets.load`, or ``"bundled"``.
    split : {"train", "test"}
        Part of the data set.
    size : int or (int, int), optional
        Height and width in pixels that images are resized to; by default their own. Inputs that
        are not pixels stay as they are.
    limit : int
        At most this many images, chosen at random, always the same ones; 0 takes all.
    labels : {"fine", "coarse"}
        Labels of CIFAR-100.

    Returns
    -------
    Dataset
        The images.

    Raises
    ------
    FileNotFoundError, ValueError, ImportError
        As :func:`pmt.datasets.load`.
    """
    fit = Fit(checked_size(size))
    checked_path("data", data)
    found = datasets.bundled(split) if data == BUNDLED else find(data, split, labels=labels)
    return read_found(found, fit, limit)
