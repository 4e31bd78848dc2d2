"""The images of a run: data sets of the caller's arguments, their classes, shared images."""

import warnings
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from pmt._util.arrays import Int64Array
from pmt._util.text import counted, listed
from pmt.callbacks import EarlyStopping
from pmt.datasets import Dataset
from pmt.datasets.dataset import DataLike
from pmt.model import Model
from pmt.model.data_checks import has_unlike_classes, is_named, unlike_classes
from pmt.model.input_conversion import check_range, warn_of_lost_columns
from pmt.protocol.stratification import MOST_SHARED, count_shared, first_of_copies
from pmt.train.losses import reads_labels

_FEWEST = 10  # images that say something about a data set's classes
_FEWEST_TO_CHOOSE = 20  # images of which a run holds some out to choose its best state
_STACK = 4  # the caller of fit


def checked_training_data(
    model: Model,
    data: DataLike,
    valid: DataLike | None,
    check: Callable[[Model, Dataset], None] = Model.check_classes,
    *,
    warns_of_missing: bool = True,
) -> tuple[Dataset, Dataset | None]:
    """Return the images to train on and to watch, checked against the model and each other.

    `check` raises a ValueError where training images lack the labels that the training needs.
    `warns_of_missing` says whether classes without images matter: the loss reads labels, and the
    caller holds out none. A TypeError tells of what is neither a data set nor a pair of arrays; a
    ValueError of a label that is missing or outside the model's classes, and where no class is in
    both, or they name it otherwise. A UserWarning comes where all targets are equal; training
    images are of one class only or of half the model's classes or fewer, or a class that the model
    knows has one of 20 or more, or none; more than half of `valid` is of classes that no training
    image has; or the inputs are outside of what the model's input can hold, or
    columns of them narrower than its steps.
    """
    images = model.match_classes(Dataset.of(data, "data"))
    check(model, images)
    check_range(model.core, images)
    warn_of_lost_columns(model.core, images)
    if images.has_class_labels:
        _warn_of_few_classes(model, images, warns_of_missing)
    if images.has_targets and len(images) > 1 and not np.ptp(images.labels, axis=0).any():
        warnings.warn(
            f"all {len(images):,} targets of data set {images.name!r} are equal: training teaches "
            "the model a constant; add images with other targets",
            stacklevel=_STACK,
        )
    if valid is None:
        return images, None
    watched = measured_images(model, valid, "valid")
    _check_names(images, watched)
    if images.has_class_labels:
        _check_common_classes(images, watched)
    return images, watched


def has_accuracy(model: Model) -> bool:
    """Whether a model tells classes apart by the largest of its outputs."""
    return model.is_classifier and model.classes > 1


def measured_images(model: Model, data: DataLike, argument: str) -> Dataset:
    """Return images to measure a run's states on, which need class labels whatever the loss.

    A TypeError says that they are neither a data set nor a pair of arrays; a ValueError that they
    have no class labels, or some outside the model's classes, or that it gives features.
    """
    images = model.match_classes(Dataset.of(data, argument))
    is_binary = model.is_classifier and model.classes == 1 and images.has_class_labels
    if not has_accuracy(model) and not is_binary:
        raise ValueError(
            f"{argument}: what is measured is accuracy and cross-entropy, and the model gives "
            f"{model.output_text}; leave {argument} out, and measure model.outputs(images)"
        )
    if not images.has_class_labels:
        found = "float targets" if images.has_targets else "no labels"
        raise ValueError(
            f"{argument}: data set {images.name!r} has {found}, and what is measured is accuracy "
            f"and cross-entropy; give images with class labels, or leave {argument} out"
        )
    model.check_scored(images)
    return images


def is_measured(model: Model, data: Dataset) -> bool:
    """Whether images have labels of the classes that a model tells apart: 0 and 1 by one output."""
    labeled = model.is_classifier and data.has_class_labels
    return labeled and (model.classes > 1 or int(data.labels.max()) < 2)


def _warn_of_few_classes(model: Model, data: Dataset, warns_of_missing: bool) -> None:
    counts = np.bincount(data.labels, minlength=model.classes)
    if len(data) < _FEWEST or model.classes < 2:
        return
    message = _on_few_classes(data, counts)
    if message is None and warns_of_missing and len(data) >= _FEWEST_TO_CHOOSE:
        message = _on_missing_classes(model, data, counts)
    if message is not None:
        warnings.warn(message, stacklevel=_STACK)


def _on_few_classes(data: Dataset, counts: Int64Array) -> str | None:
    """Return a warning where images are of one class, or of half the model's classes or fewer."""
    found, classes, count = np.flatnonzero(counts), len(counts), len(data)
    if len(found) == 1:
        return (
            f"all {count:,} training images of {data.name!r} are of class "
            f"{_named(data, int(found[0]))}, and the model has {classes}: where files are sorted "
            f"by class, shuffle before you cut, data.shuffled(0).take({count})"
        )
    if not is_named(data) and len(found) <= classes // 2 and count >= 2 * classes:
        gapless = found[-1] == len(found) - 1
        number = "" if gapless else " for labels numpy.unique(y, return_inverse=True)[1]"
        return (
            f"data set {data.name!r} has images of {len(found)} of the model's {classes} classes "
            f"({listed(found.tolist())}): the model will forget the others; "
            f"give it a new last layer by classes={len(found)} (--classes){number}, or add images "
            "of all"
        )
    return None


def _on_missing_classes(model: Model, data: Dataset, counts: Int64Array) -> str | None:
    """Return a warning where classes that the model knows have one image or none."""
    few = np.flatnonzero(counts < 2)
    # Names of fewer classes than the model's have brought a warning of their own.
    is_told = is_named(data) and len(data.class_names) < len(counts)
    if not len(few) or is_told or _has_new_head(model, data):
        return None
    names = data.class_names if is_named(data) else range(len(counts))
    return (
        f"data set {data.name!r} has one image or none of {len(few)} of the model's {len(counts)} "
        f"classes ({listed([names[label] for label in few])}): training may unlearn them, and "
        "held-out images do not show it; add some images of each"
    )


def _has_new_head(model: Model, data: Dataset) -> bool:
    """Whether the model knows none of the classes: its head is untrained, or for other ones."""
    is_for_others = model.class_names is not None and learned_classes(model, data) is not None
    return is_for_others or not model.weights(model.layers[-1].index).any()


def _named(data: Dataset, label: int) -> str:
    return f"{label} ({data.class_names[label]!r})" if is_named(data) else str(label)


def _check_names(data: Dataset, valid: Dataset) -> None:
    if not is_named(data) or not is_named(valid):
        return
    for label, (name, other) in enumerate(zip(data.class_names, valid.class_names, strict=False)):
        if name != other:
            raise ValueError(
                f"class {label} is {name!r} in data ({data.name!r}) and {other!r} in valid "
                f"({valid.name!r}): load both with one class_names=[...]"
            )


def _check_common_classes(data: Dataset, valid: Dataset) -> None:
    trained = np.unique(data.labels)
    unknown = ~np.isin(valid.labels, trained)
    others = np.unique(valid.labels[unknown]).tolist()
    if unknown.all():
        raise ValueError(
            f"data has images of the classes {listed(trained.tolist())} and valid of "
            f"{listed(others)}, none in common: hold valid out of the same images, "
            "data.shuffled(0).split(0.9, seed=0)"
        )
    if len(valid) >= _FEWEST and unknown.mean() > 0.5:
        warnings.warn(
            f"{int(unknown.sum()):,} of {len(valid):,} images of valid are of classes that no "
            f"training image has: {listed(others)}; where files are sorted by class, shuffle "
            "before you part them, data.shuffled(0)",
            stacklevel=_STACK,
        )


def learned_classes(model: Model, data: Dataset) -> tuple[str, ...] | None:
    """Return the names of a data set's classes, where a model that learned them lacks them.

    None where the data set does not name each of the model's classes, or the model has the same
    names.
    """
    names = data.class_names
    if not data.has_class_labels or not is_named(data) or len(names) != model.classes:
        return None
    return None if set(names) == set(model.class_names or ()) else names


def learns_classes(model: Model, options: Any) -> bool:
    """Whether a run of such options trains the model's last layer."""
    layers = getattr(options, "layers", None)
    return layers is not None and model.layers[-1].index in model.select_layers(layers)


def note_on_classes(model: Model, data: Dataset, options: Any) -> list[str]:
    """Return, as one line or none, that training gives the model other classes."""
    is_new = has_unlike_classes(data, model.class_names) and learned_classes(model, data)
    if not is_new or not learns_classes(model, options):
        return []
    return [
        f"{unlike_classes(data, model.class_names)}: where its trained head is kept, the model "
        "takes their names"
    ]


def warning_of_classes(model: Model, data: Dataset, options: Any) -> str | None:
    """Return a warning where a run teaches layers below a head that stays, of other classes or new.

    None where the loss reads no labels: it does not matter what their names are.
    """
    layers = getattr(options, "layers", None)
    if layers is None or learns_classes(model, options):
        return None
    if not reads_labels(getattr(options, "loss", "")):
        return None
    if not data.has_class_labels:
        return None
    last = model.layers[-1]
    if not model.core.weights(last.index).any():
        return (
            f"layers={layers!r} leaves the last layer {last.name!r}, whose weights are all 0, as "
            "it is: every image gets the same scores; add the last layer"
        )
    if not has_unlike_classes(data, model.class_names):
        return None
    return (
        f"{unlike_classes(data, model.class_names)}, and layers={layers!r} leaves its head as it "
        "is; add the last layer, or give the model's names as class_names (--class-names) where "
        "the classes are the same"
    )


def with_classes(model: Model, names: tuple[str, ...]) -> Model:
    """Return a copy of a model with such class names."""
    graph = model.to_graph()
    graph.metadata = {**graph.metadata, "class_names": list(names)}
    return Model.from_graph(graph)


_SOME_SHARED = 0.01  # of the images to measure
_STACK_APART = 3  # the caller of fit, of check_apart
_TRAINED_ON = "a choice on images that were trained on favors what fits them; hold other images out"
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
            why = f"{_TRAINED_ON}, or leave held_out out, and a share of data is"
            _check_shared(held_out, "data", data, why)
        _warn_of_shared(data, valid)
    for callback in callbacks:
        if isinstance(callback, EarlyStopping) and callback.monitor.startswith("valid"):
            warnings.warn(
                f"early stopping watches {callback.monitor!r}: valid then chooses the end of the "
                "run, and what is measured on it is too good; watch 'held_out_loss'",
                stacklevel=_STACK_APART,
            )


def check_choosing(train: Dataset, held_out: Dataset) -> None:
    """Check, as :func:`check_apart` does, that a block is not chosen on images that train."""
    if train.has_class_labels:
        _check_shared(held_out, "train", train, _TRAINED_ON)


def _check_shared(held_out: Dataset, name: str, other: Dataset, why: str) -> None:
    shared = count_shared(held_out, other)
    if not shared:
        return
    message = f"{_also(shared, held_out, 'held_out')} in {name} (equal pixels): {why}"
    if shared > MOST_SHARED * len(held_out):
        raise ValueError(message)
    warnings.warn(message, stacklevel=_STACK_APART + 1)


def _warn_of_shared(data: Dataset, valid: Dataset | None) -> None:
    shared = 0 if valid is None else count_shared(valid, data)
    if valid is not None and shared > _SOME_SHARED * len(valid):
        warnings.warn(
            f"{_also(shared, valid, 'valid')} in data (equal pixels): what is measured on images "
            "that were trained on says nothing of others",
            stacklevel=_STACK_APART + 1,
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
