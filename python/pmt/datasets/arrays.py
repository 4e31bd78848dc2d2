"""Arrays of a data set: checks of images, labels, class names and indices; arrays in files."""

import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np
import numpy.typing as npt

from pmt import _core
from pmt._util.arrays import Array, FloatArray
from pmt._util.checks import checked_array, checked_names, refuse_mask, warn_of_argument
from pmt._util.text import counted
from pmt.datasets.files import damaged
from pmt.errors import FileError, OptionError, OptionWarning

PIXELS = np.dtype(np.uint8)
# A network's inputs that are not pixels: int8 as it reads them, float32 before quantization.
FEATURES = (np.dtype(np.int8), np.dtype(np.float32))
NO_LABEL = -1  # as the core has it
IMAGE_CHANNELS = (1, 3, 4)
SMALLEST_SIDE = 8  # of an image whose channels may stand first


def checked_indices(indices: npt.ArrayLike, count: int) -> npt.NDArray[np.integer]:
    """Return `indices` of a data set of `count` images, at least one, or raise an error."""
    chosen = checked_array("indices", indices)
    if chosen.size == 0:
        raise ValueError("indices is empty: a data set holds at least one image")
    if chosen.dtype.kind not in "iu":
        raise TypeError(
            f"indices is {chosen.dtype}: must be integers; "
            "turn a Boolean mask into them with numpy.flatnonzero(mask)"
        )
    if chosen.ndim != 1:
        raise ValueError(f"indices has shape {chosen.shape}: must be one-dimensional")
    if chosen.min() < 0 or chosen.max() >= count:
        worst = chosen.min() if chosen.min() < 0 else chosen.max()
        raise ValueError(f"indices holds {worst}: must be 0 to {count - 1}")
    return chosen


def checked_groups(groups: npt.ArrayLike, count: int) -> npt.NDArray[np.str_]:
    """Return the groups of `count` images, integers or text, as text (N,), or raise an error."""
    found = checked_array("groups", groups)
    if found.dtype == object and all(isinstance(group, str) for group in found.flat):
        found = found.astype(np.str_)
    if found.dtype.kind not in "iuU":
        raise TypeError(f"groups is {found.dtype}: must be integers or text, the same for a group")
    if found.shape != (count,):
        raise ValueError(f"groups has shape {found.shape}: must be ({count},), one an image")
    return found.astype(np.str_)


def checked_images(images: object) -> Array:
    """Return pixels (uint8) or inputs (int8, float32) of shape (N, H, W, C), or raise an error."""
    refuse_mask("images", images)
    if not isinstance(images, np.ndarray) or images.dtype not in (PIXELS, *FEATURES):
        found = images.dtype if isinstance(images, np.ndarray) else type(images).__name__
        raise TypeError(
            f"images is {found}: must be a uint8 array of pixels 0..255, or an int8 or float32 "
            "array of a network's inputs; Dataset.from_arrays(x, y) converts other arrays"
        )
    if images.ndim != 4 or 0 in images.shape:
        raise ValueError(
            f"images has shape {images.shape}: must be (N, H, W, C) with at least one image; "
            "put the channels last, and give gray images a last axis with images[..., None]"
        )
    if images.dtype.kind == "f" and not all_finite(images):
        raise ValueError(
            "images holds a value that is not finite: remove or replace it, for instance with "
            "numpy.nan_to_num(images)"
        )
    return images


def input_array(x: npt.ArrayLike) -> Array:
    """Return `x` in the dtype and shape of a data set, by the rules of `Dataset.from_arrays`."""
    # A file's array stays in the file.
    array = as_inputs("x", x if isinstance(x, np.memmap) else checked_array("x", x))
    if array.dtype not in (PIXELS, *FEATURES):
        raise TypeError(
            f"x is {array.dtype}: must be uint8 (pixels 0..255), int8 (a network's own inputs) or "
            "float (inputs before quantization); convert it with .astype"
        )
    pixels = array.dtype == PIXELS
    fewest = 3 if pixels else 2
    if not fewest <= array.ndim <= 4 or 0 in array.shape:
        rule = "(N, H, W, C), or (N, H, W) where they are gray"
        if not pixels:
            rule = "(N, H, W, C), (N, T, C) for windows of T steps, or (N, F)"
        rows = "; of flat rows give x.reshape(-1, H, W, C)" if pixels and array.ndim == 2 else ""
        kind = "images" if pixels else f"{array.dtype} inputs"
        raise ValueError(
            f"x has shape {array.shape}: {kind} must be {rule}, and nothing empty{rows}"
        )
    array = with_four_axes(array)
    if has_channels_first(array):
        raise ValueError(
            f"x has shape {array.shape}: images must be (N, H, W, C), channels last; "
            "use x.transpose(0, 2, 3, 1)"
        )
    return array


def with_four_axes(array: Array) -> Array:
    """Return inputs as (N, H, W, C) where an axis is missing; others stay as they are."""
    if array.dtype == PIXELS:
        return array[..., None] if array.ndim == 3 else array
    if array.ndim not in (2, 3):
        return array
    # As importers read a network of windows, or of plain features.
    return array.reshape(len(array), *(1,) * (4 - array.ndim), *array.shape[1:])


def has_channels_first(array: Array) -> bool:
    """Whether an array of shape (N, ?, ?, ?) looks like (N, C, H, W)."""
    # One row of float inputs may be a window: (N, 1, T, C).
    channels = IMAGE_CHANNELS if array.dtype == PIXELS else (3,)
    _, first, *last = array.shape
    return first in channels and min(last) >= SMALLEST_SIDE


def label_array(y: npt.ArrayLike) -> Array:
    """Return `y` as integers of shape (N,), by the rules of `Dataset.from_arrays`."""
    array = checked_array("y", y)
    if array.ndim == 2 and array.shape[1] == 1:
        array = array[:, 0]  # as keras.datasets has them
    if array.ndim == 2:
        remedy = "y.argmax(axis=1) for one-hot labels"
        if array.dtype.kind == "f" and not (array == np.rint(array)).all():
            remedy = f"{_FLOAT_TARGETS} for float targets"
        raise ValueError(
            f"y has shape {array.shape}: must be (N,), the number of each image's class; "
            f"use {remedy}"
        )
    if array.dtype.kind not in "iu":
        raise TypeError(
            f"y is {array.dtype}: must be integers, the number of each image's class; "
            f"{_remedy_of_labels(np.asarray(y))}"
        )
    if array.ndim != 1:
        raise ValueError(
            f"y has shape {array.shape}: must be (N,), the number of each image's class"
        )
    return array


_FLOAT_TARGETS = "Dataset.with_targets(x, y)"


def _remedy_of_labels(array: Array) -> str:
    if array.dtype.kind == "b":
        return "give y.astype(int) for two classes"
    if array.dtype.kind == "f" and np.isnan(array).any():
        return f"y[{int(np.flatnonzero(np.isnan(array))[0])}] is NaN: leave out images without one"
    if array.dtype.kind == "f" and (array == np.rint(array)).all():
        return f"give y.astype(int), or for float targets use {_FLOAT_TARGETS}"
    if array.dtype.kind == "f":
        return f"for float targets use {_FLOAT_TARGETS}"
    if array.dtype == object and array.ndim == 0 and array.item() is None:
        return "for images without labels use Dataset.unlabeled(x)"
    return "number names with class_names, y = numpy.unique(names, return_inverse=True)"


def target_array(y: npt.ArrayLike) -> FloatArray:
    """Return `y` as float32 of shape (N, K), by the rules of `Dataset.with_targets`."""
    array = checked_array("y", y)
    if array.dtype.kind not in "fiu":
        raise TypeError(f"y is {array.dtype}: targets must be real numbers; use .astype(float)")
    if array.ndim == 0 or 0 in array.shape:
        raise ValueError(
            f"y has shape {array.shape}: targets must be (N,) or (N, ...), and nothing empty"
        )
    return as_float32("y", array.reshape(len(array), -1))


def as_inputs(argument: str, array: Array) -> Array:
    """Return inputs as they are, but floats of another width as float32."""
    is_other = array.dtype in (np.float16, np.float64) and array.ndim
    return as_float32(argument, array) if is_other else array


def as_float32(argument: str, array: Array) -> FloatArray:
    """Return numbers as float32; a ValueError names one that is finite and too large for it."""
    with np.errstate(over="ignore"):
        narrow = array.astype(np.float32)
    if not all_finite(narrow):
        too_large = array[np.isfinite(array) & np.isinf(narrow)]
        if too_large.size:
            raise ValueError(
                f"{argument} holds {too_large[0]:g}: must lie in -3.4e38 to 3.4e38, as float32 "
                "does; scale the numbers, or correct this one"
            )
    return narrow


def has_labels(labels: Array) -> bool:
    """Whether there are labels or targets among those of some images of a data set."""
    return labels.ndim == 2 or bool(np.any(labels != NO_LABEL))


def are_missing(labels: object, images: int) -> bool:
    """Whether these are the labels of images without labels."""
    return (
        isinstance(labels, np.ndarray)
        and labels.dtype == np.int64
        and labels.shape == (images,)
        and not has_labels(labels)
    )


def _checked_targets(targets: FloatArray, images: int, classes: int) -> FloatArray:
    if targets.shape != (images, classes):
        raise ValueError(
            f"float targets have shape {targets.shape}: must be ({images}, {classes}), one "
            "for each image and class name"
        )
    if not all_finite(targets):
        raise ValueError("float targets hold a value that is not finite: each must be a number")
    return targets


def checked_labels(labels: object, images: int, classes: int) -> Array:
    """Return labels of ``images`` images, int64 classes or float32 targets, or raise an error."""
    refuse_mask("labels", labels)
    if isinstance(labels, np.ndarray) and labels.dtype == np.float32:
        return _checked_targets(labels, images, classes)
    if not isinstance(labels, np.ndarray) or labels.dtype.kind not in "iu":
        found = labels.dtype if isinstance(labels, np.ndarray) else type(labels).__name__
        raise TypeError(
            f"labels is {found}: must be an integer array, or float32 targets; "
            "Dataset.from_arrays and Dataset.with_targets convert some"
        )
    if labels.shape != (images,):
        remedy = "; use labels.ravel()" if labels.size == images else ""
        raise ValueError(
            f"labels has shape {labels.shape}: must be ({images},), one label an image{remedy}"
        )
    low, high = int(labels.min()), int(labels.max())
    if low < 0 or high >= classes:
        raise ValueError(
            f"labels holds {low if low < 0 else high}: must be 0 to {classes - 1} "
            f"with {classes} class names"
        )
    return labels.astype(np.int64, copy=False)


def checked_class_names(class_names: Sequence[str]) -> tuple[str, ...]:
    """Return names of classes, all different, or raise an error."""
    checked = checked_names("class_names", class_names)
    if not checked:
        raise ValueError("class_names is empty: at least one class is needed")
    seen = set()
    for name in checked:
        if not name.strip() or name in seen:
            raise OptionError(
                "class_names",
                f" holds {name!r} twice or blank: names must differ; give each class its own",
            )
        try:
            name.encode()
        except UnicodeEncodeError:
            text = f" holds {name!r}, which UTF-8 cannot write: give the class another name"
            raise OptionError("class_names", text) from None
        seen.add(name)
    return checked


def check_spare_names(
    path: Path | str,
    labels: npt.NDArray[np.integer],
    class_names: Sequence[str] | None,
    own: Sequence[str] | None,
) -> None:
    """Refuse more names than the data set's own, or where it has none, warn of unused ones."""
    given = len(class_names or ())
    if own is not None and given > len(own):
        raise OptionError(
            "class_names",
            f" gives {counted(given, 'name')} for the {len(own)} classes of {path}: give one name "
            "a class, or leave it out",
        )
    largest = int(labels.max(initial=0))
    if own is None and given > largest + 1:
        spare = counted(given - largest - 1, "class", "classes")
        text = f" gives {counted(given, 'name')}, and the labels of {path} end at {largest}: "
        warn_of_argument(OptionWarning("class_names", f"{text}the last {spare} have no image"))


def names_for(
    path: Path | str,
    labels: npt.NDArray[np.integer],
    class_names: Sequence[str] | None,
    *,
    at_least: int = 1,
) -> tuple[str, ...]:
    """Return `class_names`, or the numbers "0", "1", ... as names; check that the labels fit.

    With numbers as names there are `at_least` classes or more; `path` names the labels' file in
    errors.
    """
    low, high = int(labels.min()), int(labels.max())
    if low < 0:
        raise damaged(path, f"label {low} is below 0", "number the classes from 0")
    if class_names is None:
        if high >= _core.MOST_CHANNELS:
            raise damaged(
                path,
                f"label {high} is above {_core.MOST_CHANNELS - 1}, the largest of any model",
                "number the classes from 0, without gaps",
            )
        return tuple(str(label) for label in range(max(at_least, high + 1)))
    class_names = checked_names("class_names", class_names)
    if high >= len(class_names):
        raise damaged(
            path,
            f"label {high} is out of range 0 to {len(class_names) - 1} of the "
            f"{len(class_names)} class names",
            "correct the label or give a name for every class",
        )
    return tuple(class_names)


def names_in_memory(
    place: str, labels: npt.NDArray[np.integer], class_names: Sequence[str] | None
) -> tuple[str, ...]:
    """Return the names of labels in memory as :func:`names_for`; a ValueError names their place."""
    try:
        return names_for(place, labels, class_names)
    except FileError as error:
        raise ValueError(str(error)) from None


_AT_ONCE = 1 << 22  # bytes that are read or copied at once
_HELD = 1 << 24  # bytes of chosen rows that are copied into memory; more go to a file


def is_mapped(array: Array) -> bool:
    """Whether an array lies in a file."""
    return isinstance(array, np.memmap) and getattr(array, "filename", None) is not None


def all_finite(array: Array) -> bool:
    """Whether no number is infinite or NaN; a file is read part by part."""
    return all(bool(np.isfinite(array[part]).all()) for part in _parts(array))


def chosen_rows(array: Array, indices: npt.NDArray[np.integer]) -> Array:
    """Return a read-only copy of some rows.

    Of an array in a file they are in memory where they are few, and otherwise in a file without a
    name, beside that file, which is gone with the array.
    """
    row_bytes = array[:1].nbytes
    if not is_mapped(array) or len(indices) * row_bytes <= _HELD:
        rows: Array = np.asarray(array)[indices]
        rows.flags.writeable = False
        return rows
    shape = (len(indices), *array.shape[1:])
    with tempfile.TemporaryFile(dir=Path(array.filename).parent) as file:  # type: ignore[attr-defined]
        for part in _parts(array, len(indices)):
            file.write(np.ascontiguousarray(array[indices[part]]).data)
        file.flush()
        mapped = np.memmap(file, array.dtype, "r", shape=shape)
    mapped.filename = array.filename  # type: ignore[attr-defined]
    return mapped


def _parts(array: Array, count: int | None = None) -> Iterator[slice]:
    rows = max(1, _AT_ONCE // max(1, array[:1].nbytes))
    for first in range(0, len(array) if count is None else count, rows):
        yield slice(first, first + rows)
