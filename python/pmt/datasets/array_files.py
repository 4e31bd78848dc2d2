"""Arrays in files: .npz, .npy, and the idx files of MNIST.

Source of the idx format: http://yann.lecun.com/exdb/mnist, "File formats for this dataset".
"""

import gzip
import io
import math
import os
import warnings
import zipfile
import zlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import IO, Any

import numpy as np
import numpy.typing as npt

from pmt._util import atomic_file
from pmt._util.arrays import Array, Uint8Array
from pmt._util.checks import checked_path
from pmt._util.text import counted
from pmt.datasets.arrays import (
    check_spare_names,
    checked_class_names,
    checked_groups,
    checked_images,
    has_channels_first,
    names_for,
    with_four_axes,
)
from pmt.datasets.dataset import DataLike, Dataset
from pmt.datasets.files import damaged, largest_unpacked, missing, read_bytes, reading
from pmt.errors import FileError, OptionError

GROUPS = "groups"  # the array of an .npz file
_ZIP_EPOCH = (1980, 1, 1, 0, 0, 0)  # the earliest that a zip can hold


def write_npz(
    file: IO[bytes], arrays: Mapping[str, Array], *, compressed: bool = False, mode: int = 0o644
) -> None:
    """Write arrays as ``numpy.savez`` does, little-endian; `mode` is that of the files inside.

    Compressed bytes depend on the version of zlib.
    """
    with zipfile.ZipFile(file, "w") as archive:
        for name, values in arrays.items():
            entry = zipfile.ZipInfo(f"{name}.npy", _ZIP_EPOCH)
            entry.compress_type = zipfile.ZIP_DEFLATED if compressed else zipfile.ZIP_STORED
            entry.create_system = 3
            entry.external_attr = mode << 16
            content = io.BytesIO()
            little = np.ascontiguousarray(values, values.dtype.newbyteorder("<"))
            np.lib.format.write_array(content, little.reshape(values.shape), allow_pickle=False)
            archive.writestr(entry, content.getvalue())


def npz_bytes(arrays: Mapping[str, Array], *, mode: int = 0o644) -> bytes:
    """Return the bytes that :func:`write_npz` writes."""
    file = io.BytesIO()
    write_npz(file, arrays, mode=mode)
    return file.getvalue()


MAGIC = np.lib.format.MAGIC_PREFIX
REMEDY = "write it again, for instance with pmt.datasets.save_npz"


def map_npy(path: Path, remedy: str) -> Array:
    """Map an array into memory; only used parts are read. Pickled objects are refused."""
    with reading(path, remedy):
        with path.open("rb") as file:
            magic = file.read(len(MAGIC))
        size = path.stat().st_size
    if magic != MAGIC:
        raise damaged(path, "not a .npy file", remedy)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # remarks about headers that Python 2 wrote
            array = np.load(path, mmap_mode="r", allow_pickle=False)
        expected = int(array.offset) + int(array.nbytes)
    # A damaged header makes numpy raise nearly anything: all of it means the same to the user.
    except Exception as error:
        reason = " ".join(str(error).split())
        raise damaged(path, f"truncated or not a whole .npy array ({reason})", remedy) from None
    if expected != size:
        raise damaged(path, f"has {size} bytes where its header says {expected}", remedy)
    return np.asarray(array)


def write_npy(path: Path, shape: tuple[int, ...], parts: Iterable[Uint8Array]) -> None:
    """Write a uint8 array part by part, so that it need not fit into memory.

    Parts have shape (n, *shape[1:]) and ``shape[0]`` rows in sum. The file is there whole or not at
    all.
    """
    size = int(np.prod(shape))
    with atomic_file.writing(path, size) as file:
        header = {"descr": "|u1", "fortran_order": False, "shape": shape}
        np.lib.format.write_array_header_1_0(file, header)
        for part in parts:
            file.write(np.ascontiguousarray(part).data)


def read_npz(
    path: Path, class_names: Sequence[str] | None = None, groups: str | None = None
) -> Dataset:
    """Read one .npz file; pickled objects in it are refused.

    It holds `images`, uint8 (N, H, W, C), or (N, H, W) for gray ones, or float32 or int8 inputs
    that are not images, (N, H, W, C), (N, T, C) or (N, F); `labels`, integers (N,), and optionally
    `class_names` (K,), `name` and `groups`, integers or text (N,); the argument `groups` names
    another array to be them. The argument `class_names` replaces the file's;
    without either the names are "0", "1", ... In place of labels there may be `targets`, float
    (N,) or (N, ...).
    """
    with reading(path, "check the path"), path.open("rb") as file:
        return read_npz_stream(file, str(path), class_names, groups)


def read_npz_stream(
    file: IO[bytes], label: str, class_names: Sequence[str] | None = None, groups: str | None = None
) -> Dataset:
    """Read the same from an open binary file; `label` names it in errors."""
    arrays, names_there = _read_arrays(file, label, groups or GROUPS)
    for key in ("images", "targets" if "targets" in arrays else "labels"):
        if key not in arrays:
            raise _missing(label, key, names_there)
    given = arrays["name"].item() if "name" in arrays and arrays["name"].size == 1 else None
    name = given if isinstance(given, str) else Path(label).stem
    images = _checked_images(label, arrays["images"])
    found = _groups(label, arrays, names_there, groups, len(images))
    if "targets" in arrays and "labels" in arrays:
        raise damaged(label, "both 'labels' and 'targets'", "keep one of them")
    labels = arrays.get("labels", np.zeros(len(images), np.int64))
    if labels.dtype.kind not in "iu":
        remedy = "store class numbers, or float targets under the name 'targets'"
        raise damaged(label, f"labels is {labels.dtype}, not integer", remedy)
    if labels.shape != (len(images),):
        problem = f"labels has shape {labels.shape}: must be ({len(images)},), one label an image"
        raise damaged(label, problem, REMEDY)
    try:
        if "targets" in arrays:
            return replace(Dataset.with_targets(images, arrays["targets"], name=name), groups=found)
        own = None
        if "class_names" in arrays:
            own = checked_class_names(arrays["class_names"].tolist())
    except (TypeError, ValueError) as error:
        raise damaged(label, str(error), REMEDY) from None
    names = names_for(label, labels, class_names or own)
    check_spare_names(label, labels, class_names, own)
    return Dataset(images, labels.astype(np.int64), names, name, found)


def _groups(
    label: str,
    arrays: Mapping[str, Array],
    names_there: Sequence[str],
    wanted: str | None,
    count: int,
) -> npt.NDArray[np.str_] | None:
    key = wanted or GROUPS
    if key in arrays:
        try:
            return checked_groups(arrays[key], count)
        except (TypeError, ValueError) as error:
            raise damaged(label, f"array {key!r}: {error}", "write one group an image") from None
    if wanted is None:
        return None
    others = [
        name for name in names_there if name not in ("images", "labels", "class_names", "name")
    ]
    raise OptionError(
        "groups",
        f" {wanted!r}: {label} has no such array (others: {', '.join(others) or 'none'}); give the "
        "name of the one that says which group an image is of",
    )


def read_npz_images(path: Path) -> Uint8Array:
    """Read only the images of one .npz file, which need not hold labels."""
    with reading(path, "check the path"), path.open("rb") as file:
        arrays, names_there = _read_arrays(file, str(path), GROUPS)
    if "images" not in arrays:
        raise _missing(str(path), "images", names_there)
    return _checked_images(str(path), arrays["images"])


def _missing(label: str, key: str, found: Sequence[str]) -> ValueError:
    remedy = "name the arrays 'images' and 'labels', as pmt.datasets.save_npz does"
    return damaged(label, f"no array {key!r} (found: {', '.join(found) or 'none'})", remedy)


def save_npz(dataset: DataLike, path: str | os.PathLike[str]) -> None:
    """Write a data set as .npz, the same bytes for the same data set.

    The file is written aside and renamed: a crash or a full disk leaves the old file, or none,
    never half of one. The compressed bytes depend on the version of zlib.

    Parameters
    ----------
    dataset : Dataset or tuple of two arrays
        The data set.
    path : str or pathlib.Path
        Name of the file, ending in ``.npz``; its folder must exist.

    Raises
    ------
    ValueError
        If `path` does not end in ``.npz``, or the images have neither labels nor targets.
    OSError
        If the file cannot be written, for instance on a full disk.
    """
    dataset, target = Dataset.of(dataset, "dataset"), checked_path("path", path)
    if target.suffix != ".npz":
        raise ValueError(f"path={str(target)!r} must end in .npz")
    if not dataset.is_labeled:
        raise ValueError(
            f"data set {dataset.name!r} has no labels, which such a file holds; save its arrays "
            "with numpy.savez"
        )
    arrays: dict[str, Array] = {"images": dataset.images}
    if dataset.has_targets:
        arrays["targets"] = dataset.labels
    else:
        arrays["labels"] = dataset.labels.astype("<i8")
        arrays["class_names"] = np.array(dataset.class_names).astype("<U")
    arrays["name"] = np.array([dataset.name]).astype("<U")
    if dataset.groups is not None:
        arrays[GROUPS] = dataset.groups.astype("<U")
    with atomic_file.writing(target, dataset.images.nbytes) as file:
        write_npz(file, arrays, compressed=True)


def _read_arrays(file: IO[bytes], label: str, groups: str) -> tuple[dict[str, Array], list[str]]:
    """Return the arrays of a data set, and the names of all that the file holds."""
    wanted = ("images", "labels", "targets", "class_names", "name", groups)
    start = file.read(len(MAGIC))
    if start and start[:2] != b"PK" and start != MAGIC:  # NumPy would advise to trust it
        raise damaged(label, "not a whole .npz file (it is no zip archive)", REMEDY)
    file.seek(0)
    try:
        archive = np.load(file, allow_pickle=False)
        if not isinstance(archive, np.ndarray):
            with archive:
                for entry in archive.zip.infolist():
                    if entry.file_size > largest_unpacked(entry.compress_size):
                        claim = f"{entry.compress_size} bytes to {entry.file_size}"
                        raise ValueError(f"{entry.filename} unpacks {claim}")
                there = [key for key in wanted if key in archive.files]
                return {key: _array(archive, key, label) for key in there}, archive.files
    except FileError:
        raise
    # A damaged archive makes zipfile and numpy raise nearly anything: it all means the same.
    except Exception as error:
        reason = f"{type(error).__name__}: {error}"
        raise damaged(label, f"not a whole .npz file ({reason})", REMEDY) from None
    raise damaged(label, "one bare array, not an .npz archive", REMEDY)


def _array(archive: Any, key: str, label: str) -> Array:
    if archive.files.count(key) > 1:
        raise damaged(label, f"two arrays {key!r}", "keep one of them")
    try:
        return np.asarray(archive[key])
    except ValueError as error:
        if "Object arrays" not in str(error):
            raise
        remedy = "store numbers, or texts as numpy.array(texts, dtype=str)"
        raise damaged(label, f"array {key!r} holds Python objects", remedy) from None


def _checked_images(label: str, images: Array) -> Array:
    try:
        images = checked_images(with_four_axes(images))
    except (TypeError, ValueError) as error:
        problem, _, rule = str(error).partition(": ")
        raise damaged(label, problem, rule or REMEDY) from None
    if has_channels_first(images):
        raise channels_first(label, f"images has shape {images.shape}")
    images.flags.writeable = False
    return images


def channels_first(label: str | Path, problem: str) -> ValueError:
    """Make the error for images of shape (N, C, H, W)."""
    remedy = "put the channels last: images.transpose(0, 2, 3, 1)"
    return damaged(label, f"{problem}, channels first", remedy)


PREFIXES = {"train": "train", "test": "t10k"}
UNSIGNED_BYTE = 0x08
_IDX_CLASSES = 10  # names at least, as MNIST has
IDX_REMEDY = "download the data set again"
IDX_CHUNK = 1 << 20


def has_idx(folder: Path) -> bool:
    """Whether the folder holds an idx file of images for any split."""
    return any(_find(folder, split, "images", 3) is not None for split in PREFIXES)


def read_idx(folder: Path, split: str, class_names: Sequence[str] | None = None) -> Dataset:
    """Read ``train-images-idx3-ubyte`` and its labels, or the ``t10k-`` pair, ``.gz`` or not.

    Without `class_names` the names are "0", "1", ..., at least ten.
    """
    image_path, images = _read_file(folder, split, "images", 3)
    label_path, labels = _read_file(folder, split, "labels", 1)
    if len(images) != len(labels):
        counts = f"{counted(len(labels), 'label')} for {counted(len(images), 'image')}"
        problem = f"{counts} in {image_path.name}"
        raise damaged(label_path, problem, f"{IDX_REMEDY}, both files")
    if class_names is not None and len(class_names) > _IDX_CLASSES:
        check_spare_names(label_path, labels, class_names, None)
    return Dataset(
        images=images[..., None],
        labels=labels.astype(np.int64),
        class_names=names_for(label_path, labels, class_names, at_least=_IDX_CLASSES),
        name=folder.name or "idx",
    )


def _find(folder: Path, split: str, kind: str, dimensions: int) -> Path | None:
    for dot in ("-", "."):
        for suffix in ("", ".gz"):
            path = folder / f"{PREFIXES[split]}-{kind}{dot}idx{dimensions}-ubyte{suffix}"
            if path.is_file():
                return path
    return None


def _read_file(folder: Path, split: str, kind: str, dimensions: int) -> tuple[Path, Uint8Array]:
    path = _find(folder, split, kind, dimensions)
    if path is None:
        expected = folder / f"{PREFIXES[split]}-{kind}-idx{dimensions}-ubyte"
        raise missing(expected, f"no such file, nor with .gz, for the {split} split", IDX_REMEDY)
    data = _decompressed(path) if path.suffix == ".gz" else read_bytes(path)
    return path, _parsed(path, data, dimensions)


def _decompressed(path: Path) -> bytes:
    data = bytearray()
    try:
        largest = largest_unpacked(path.stat().st_size)
        with gzip.open(path) as stream:
            while chunk := stream.read(IDX_CHUNK):
                data += chunk
                if len(data) > largest:
                    raise damaged(path, f"unpacks to more than {largest} bytes", IDX_REMEDY)
        return bytes(data)
    except (OSError, EOFError, zlib.error) as error:
        raise damaged(path, f"not a whole gzip file ({error})", IDX_REMEDY) from None


def _parsed(path: Path, data: bytes, dimensions: int) -> Uint8Array:
    start = 4 + 4 * dimensions
    if len(data) < start or data[:4] != bytes((0, 0, UNSIGNED_BYTE, dimensions)):
        raise damaged(path, f"not an idx file of bytes with {dimensions} dimensions", IDX_REMEDY)
    shape = tuple(int(extent) for extent in np.frombuffer(data, ">u4", dimensions, 4))
    size = math.prod(shape)
    if size == 0:
        raise damaged(path, f"holds nothing (shape {shape})", IDX_REMEDY)
    if len(data) - start != size:
        raise damaged(
            path,
            f"has {len(data) - start} bytes of data, its header says {size} (shape {shape})",
            IDX_REMEDY,
        )
    return np.frombuffer(data, np.uint8, offset=start).reshape(shape)
