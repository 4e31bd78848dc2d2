"""CIFAR-10 and CIFAR-100 in their official layouts, binary and python.

Source of the formats: https://www.cs.toronto.edu/~kriz/cifar.html.

CIFAR-10 has one label byte; CIFAR-100 two, first the coarse one, then the fine one.
"""

import re
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Literal, NamedTuple, get_args

import numpy as np
import numpy.typing as npt

from pmt._util import safe_pickle
from pmt._util.arrays import Int64Array, Uint8Array
from pmt._util.text import counted
from pmt.datasets.arrays import check_spare_names, names_for
from pmt.datasets.catalog import CIFAR10_CLASSES, CIFAR100_CLASSES, CIFAR100_COARSE_CLASSES
from pmt.datasets.dataset import Dataset
from pmt.datasets.files import damaged, missing, read_bytes

PIXELS = 3 * 32 * 32
Labels = Literal["fine", "coarse"]
LABELS: tuple[Labels, ...] = get_args(Labels)


class LabelKind(NamedTuple):
    """One label of a record: where it stands in either layout, and the official class names."""

    word: str
    byte: int
    key: str
    class_names: tuple[str, ...]


class Variety(NamedTuple):
    """CIFAR-10 or CIFAR-100: its label kinds and its archives."""

    title: str
    kinds: dict[str, LabelKind]
    train_files: str
    test_file: str

    @property
    def name(self) -> str:
        """Name in reports: ``cifar10``."""
        return self.title.lower().replace("-", "")

    def remedy(self, archive: str) -> str:
        """Remedy for a damaged file of the "binary" or the "python" archive."""
        return f"download {self.title.lower()}-{archive}.tar.gz again"


CIFAR10 = Variety(
    "CIFAR-10",
    {"fine": LabelKind("label", 0, "labels", CIFAR10_CLASSES)},
    "data_batch_#",
    "test_batch",
)
CIFAR100 = Variety(
    "CIFAR-100",
    {
        "coarse": LabelKind("coarse label", 0, "coarse_labels", CIFAR100_COARSE_CLASSES),
        "fine": LabelKind("fine label", 1, "fine_labels", CIFAR100_CLASSES),
    },
    "train",
    "test",
)

Batch = tuple[Int64Array, Uint8Array]


class Archive(NamedTuple):
    """The binary or python layout: a file gives labels, int64 (N,), and planes, uint8 (N, 3072)."""

    name: str
    suffix: str
    read_batch: Callable[[Path, Variety, LabelKind], Batch]


def is_in(folder: Path, variety: Variety, archive: Archive) -> bool:
    """Whether a folder holds files of this variety in this layout."""
    train = variety.train_files.replace("#", "[0-9]*")
    return (folder / f"{variety.test_file}{archive.suffix}").is_file() or any(
        path.is_file() and path.suffix == archive.suffix
        for path in folder.glob(f"{train}{archive.suffix}")
    )


def check_labels(path: Path, labels: npt.NDArray[np.integer], kind: LabelKind, remedy: str) -> None:
    """Raise a ValueError that names the first label without a class."""
    last = len(kind.class_names) - 1
    wrong = np.flatnonzero((labels < 0) | (labels > last))
    if wrong.size:
        first = int(wrong[0])
        raise damaged(
            path,
            f"record {first} has {kind.word} {int(labels[first])}, out of range 0 to {last}",
            remedy,
        )


def _files(folder: Path, split: str, variety: Variety, archive: Archive) -> list[Path]:
    """List the files of one split, numbered training files 1, 2, 3, ... without a gap."""
    remedy = variety.remedy(archive.name)
    if split == "train" and "#" in variety.train_files:
        return _numbered_files(folder, variety.train_files, archive.suffix, remedy)
    stem = variety.test_file if split == "test" else variety.train_files
    path = folder / f"{stem}{archive.suffix}"
    if not path.is_file():
        raise missing(path, f"no such file, so there is no {split} split", remedy)
    return [path]


def _numbered_files(folder: Path, stem: str, suffix: str, remedy: str) -> list[Path]:
    pattern = re.compile(stem.replace("#", "([1-9][0-9]*)") + re.escape(suffix))
    matches = (pattern.fullmatch(path.name) for path in folder.iterdir())
    numbers = sorted(int(match[1]) for match in matches if match)
    files = [folder / f"{stem}{suffix}".replace("#", str(number)) for number in numbers]
    for expected in range(1, max(numbers, default=1) + 1):
        if expected not in numbers:
            path = folder / f"{stem}{suffix}".replace("#", str(expected))
            raise missing(path, "no such file, so the train split is not whole", remedy)
    return files


def _planes_to_images(planes: Uint8Array) -> Uint8Array:
    """Turn rows of 1,024 red, 1,024 green and 1,024 blue bytes into frozen (N, 32, 32, 3)."""
    images = np.ascontiguousarray(planes.reshape(-1, 3, 32, 32).transpose(0, 2, 3, 1))
    images.flags.writeable = False
    return images


def _read_binary_batch(path: Path, variety: Variety, kind: LabelKind) -> Batch:
    remedy = variety.remedy("binary")
    record = len(variety.kinds) + PIXELS
    data = read_bytes(path)
    if not data or len(data) % record:
        raise damaged(
            path,
            f"has {len(data)} bytes, not a multiple of the record's {record}: truncated or not a "
            f"{variety.title} file",
            remedy,
        )
    records = np.frombuffer(data, np.uint8).reshape(-1, record)
    check_labels(path, records[:, kind.byte], kind, remedy)
    return records[:, kind.byte].astype(np.int64), records[:, len(variety.kinds) :]


BINARY = Archive("binary", ".bin", _read_binary_batch)


def _read_pickled_batch(path: Path, variety: Variety, kind: LabelKind) -> Batch:
    remedy = variety.remedy("python")
    batch = _read_dict(path, ("data", kind.key), remedy)
    planes, labels = batch["data"], batch[kind.key]
    is_planes = isinstance(planes, np.ndarray) and planes.ndim == 2 and planes.shape[1] == PIXELS
    if not is_planes or len(planes) == 0:
        found = getattr(planes, "shape", type(planes).__name__)
        raise damaged(path, f"data is {found}, not uint8 of shape (N, {PIXELS})", remedy)
    if not isinstance(labels, list) or not all(type(label) is int for label in labels):
        raise damaged(path, f"{kind.key} is not a list of integers", remedy)
    if len(labels) != len(planes):
        raise damaged(path, f"{len(labels)} {kind.key} for {counted(len(planes), 'image')}", remedy)
    # A label beyond int64 would overflow in numpy before its check: clip it to a wrong one.
    numbers = np.array([min(max(label, -1), 1 << 31) for label in labels], np.int64)
    check_labels(path, numbers, kind, remedy)
    return numbers, planes


def _read_dict(path: Path, keys: Sequence[str], remedy: str) -> dict[str, Any]:
    content = _unpickled(path)
    if not isinstance(content, dict) or any(key not in content for key in keys):
        wanted = " and ".join(repr(key) for key in keys)
        raise damaged(path, f"not a pickled dict with {wanted}", remedy)
    return content


_UINT8 = {"u1": "u1", "|u1": "u1"}
_PICKLE_REMEDY = "do not open it with pickle.load; download the data set again from its source"


def _unpickled(path: Path) -> Any:
    """Read a pickle with text as keys and arrays in place of their stand-ins."""
    data = read_bytes(path)
    try:
        content = safe_pickle.load(data, safe_pickle.array_globals(_UINT8), encoding="bytes")
        if not isinstance(content, dict):
            return content
        texts = (key.decode("latin1") if isinstance(key, bytes) else key for key in content)
        return dict(zip(texts, map(_materialized, content.values()), strict=True))
    except safe_pickle.RefusedError as error:
        raise damaged(path, f"the pickle is refused: {error}", _PICKLE_REMEDY) from None
    # A damaged pickle makes pickle raise nearly anything: all of it means the same to the user.
    except Exception as error:
        reason = f"{type(error).__name__}: {error}"
        raise damaged(path, f"not a readable pickle ({reason})", _PICKLE_REMEDY) from None


def _materialized(value: Any) -> Any:
    if not isinstance(value, safe_pickle.PickledArray):
        return value
    if value.array is None:
        raise safe_pickle.RefusedError("it holds an array without its state")
    return value.array


PYTHON = Archive("python", "", _read_pickled_batch)


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
    """Names of the data sets that :func:`has_cifar` sees: "cifar10", "cifar100", both or none."""
    return {variety.name for _, variety, _ in _found(path)}


def read_cifar(
    path: Path, split: str, class_names: Sequence[str] | None = None, labels: Labels = "fine"
) -> Dataset:
    """Read CIFAR-10 or CIFAR-100, binary or python.

    The folder is one for which :func:`has_cifar` is true; `labels` is "fine" (the 10 or 100
    classes) or "coarse" (the 20 superclasses of CIFAR-100). Files may hold fewer images than the
    official ones.
    """
    found = _found(path)
    if len({variety.name for _, variety, _ in found}) > 1:
        names = ", ".join(sorted({folder.name for folder, _, _ in found}))
        raise damaged(
            path, f"holds both CIFAR-10 and CIFAR-100 ({names})", "give the folder of one of them"
        )
    folder, variety, archive = found[0]
    if labels not in variety.kinds:
        raise ValueError(
            f"labels={labels!r}: {folder} holds {variety.title}, which has only fine labels; "
            "leave the option out"
        )
    kind = variety.kinds[labels]
    batches = [
        archive.read_batch(path, variety, kind) for path in _files(folder, split, variety, archive)
    ]
    numbers = np.concatenate([numbers for numbers, _ in batches])
    given = kind.class_names if class_names is None else class_names
    check_spare_names(folder, numbers, class_names, kind.class_names)
    return Dataset(
        images=_planes_to_images(np.concatenate([planes for _, planes in batches])),
        labels=numbers,
        class_names=names_for(folder, numbers, given),
        name=variety.name if labels == "fine" else f"{variety.name}-{labels}",
    )


def _found(path: Path) -> list[tuple[Path, Variety, Archive]]:
    inside = [path / name for name in FOLDERS if (path / name).is_dir()]
    return [
        (folder, variety, archive)
        for folder in inside or [path]
        for variety in (CIFAR10, CIFAR100)
        for archive in (BINARY, PYTHON)
        if is_in(folder, variety, archive)
    ]
