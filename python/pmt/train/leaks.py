"""Images that stand on both sides of a run: copies, and images to measure that were trained on."""

import warnings
from collections.abc import Sequence
from typing import Any

from pmt._util.text import counted
from pmt.callbacks import EarlyStopping
from pmt.datasets import Dataset
from pmt.protocol.copies import MOST_SHARED, count_shared, first_of_copies

_SOME_SHARED = 0.01  # of the images to measure
_STACK = 3  # the caller of fit, from a function that fit calls
_TRAINED_ON = (
    "a choice on images that were trained on favors what fits them; hold other images out, or "
    "leave held_out out, and a share of data is"
)
_CHOSEN_ON = (
    "what is measured on images that the state was chosen on is too good; give others as valid, or "
    "leave it out"
)


def check_apart(
    data: Dataset, valid: Dataset | None, held_out: Dataset | None, callbacks: Sequence[Any] = ()
) -> None:
    """Check that training images, those to choose on and those to measure are different ones.

    A ValueError says that more than a tenth of ``held_out`` is among ``data``, or among ``valid``:
    the best state would be chosen on images that it was trained on, or measured on those that chose
    it. A UserWarning says that there are fewer of them, that images of ``valid`` are among
    ``data``, or that early stopping, one of the run's callbacks, watches ``valid``.
    """
    if held_out is not None and valid is not None:
        _check_shared(held_out, "valid", valid, _CHOSEN_ON)
    # Without their labels, images may be adapted to and measured: that is test-time adaptation.
    if data.has_class_labels:
        if held_out is not None:
            _check_shared(held_out, "data", data, _TRAINED_ON)
        _warn_of_shared(data, valid)
    for callback in callbacks:
        if isinstance(callback, EarlyStopping) and callback.monitor.startswith("valid"):
            warnings.warn(
                f"early stopping watches {callback.monitor!r}: valid then chooses the end of the "
                "run, and what is measured on it is too good; watch 'held_out_loss'",
                stacklevel=_STACK,
            )


def _check_shared(held_out: Dataset, name: str, other: Dataset, why: str) -> None:
    shared = count_shared(held_out, other)
    if not shared:
        return
    message = f"{_also(shared, held_out, 'held_out')} in {name} (equal pixels): {why}"
    if shared > MOST_SHARED * len(held_out):
        raise ValueError(message)
    warnings.warn(message, stacklevel=_STACK + 1)


def _warn_of_shared(data: Dataset, valid: Dataset | None) -> None:
    shared = 0 if valid is None else count_shared(valid, data)
    if valid is not None and shared > _SOME_SHARED * len(valid):
        warnings.warn(
            f"{_also(shared, valid, 'valid')} in data (equal pixels): what is measured on images "
            "that were trained on says nothing of others",
            stacklevel=_STACK + 1,
        )


def _also(shared: int, data: Dataset, name: str) -> str:
    where = f"of {len(data):,} in {name}"
    return counted(shared, f"image {where} is also", f"images {where} are also")


def warning_of_copies(data: Dataset) -> str | None:
    """Return a warning where training images have equal pixels."""
    copies = len(data) - len(first_of_copies(data))
    if not copies:
        return None
    where = f"of {len(data):,} in {data.name!r}"
    return (
        f"{counted(copies, f'training image {where} has', f'training images {where} have')} the "
        "same pixels as others: copies stay on one side of what is held out; groups= keeps near "
        "copies together, such as augmented images or frames of a video"
    )
