"""Results from logits: losses, labels and probabilities of every image, of files; confusion."""

from __future__ import annotations

import dataclasses
import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

import pmt.model  # by its path: its Model is made with this file
from pmt import _core
from pmt._util.arrays import Array, BoolArray, DoubleArray, FloatArray, Int64Array
from pmt._util.checks import (
    checked_array,
    checked_flag,
    checked_integer,
    checked_names,
    checked_range,
    kind_of,
)
from pmt._util.extras import data_frame
from pmt._util.optional_types import Axes, DataFrame
from pmt._util.plots import one_axes, plain_text
from pmt._util.processes import thread_count
from pmt._util.text import counted, html_table, table
from pmt.datasets import Dataset
from pmt.datasets.arrays import label_array
from pmt.datasets.unlabeled import find_files, read_in_blocks
from pmt.errors import OptionError
from pmt.model.input_conversion import check_floats, prepared_inputs

_AT_ONCE = 1 << 23  # bytes of images


@dataclass(frozen=True)
class Evaluation:
    """Accuracy (0..1) and mean cross-entropy loss (nats) over ``n`` images."""

    accuracy: float
    loss: float
    n: int

    def to_frame(self) -> DataFrame:
        """Return the figures as a pandas DataFrame of one row.

        Raises
        ------
        ImportError
            If pandas is missing.
        """
        return data_frame([dataclasses.asdict(self)], ["model"], "model")

    def __str__(self) -> str:
        return f"accuracy {self.accuracy:.3f}, loss {self.loss:.4f}, {counted(self.n, 'image')}"


@dataclass(frozen=True)
class ImageScores:
    """Scores of every image: two models are compared on the same images, pair by pair.

    Attributes
    ----------
    losses : ndarray of float64, shape (N,)
        Cross-entropy in nats, multiples of 2^-20.
    correct : ndarray of bool, shape (N,)
        Whether the largest logit is the label's.
    predicted : ndarray of int64, shape (N,)
        The class of the largest logit, the lower one of equals; empty where it is not known.
    """

    losses: DoubleArray
    correct: BoolArray
    predicted: Int64Array = field(default_factory=lambda: np.empty(0, np.int64))

    @property
    def evaluation(self) -> Evaluation:
        """Their means, as :meth:`pmt.Model.evaluate` gives them."""
        n = len(self.losses)
        return Evaluation(int(self.correct.sum()) / n, float(self.losses.sum()) / n, n)


def raw_logits(
    core: _core.Model, images: Array, threads: int = 0, *, int8_logits: bool = False
) -> FloatArray:
    """Return the logits of :meth:`pmt.Model.logits`, without its warnings."""
    count, parts, int8_logits = thread_count(threads), [], checked_flag("int8_logits", int8_logits)
    given = getattr(images, "shape", None)  # for an error, which is of a part
    for part in _parts(images):
        prepared = prepared_inputs(core, part, count, given=given)
        parts.append(core.logits(prepared, count, int8_logits))
    return parts[0] if len(parts) == 1 else np.concatenate(parts)


def _parts(images: Array) -> Iterator[Array]:
    """Yield images part by part, so that their int8 copies stay small."""
    if not isinstance(images, np.ndarray) or images.nbytes <= _AT_ONCE:
        yield images
        return
    rows = max(1, _AT_ONCE // images[:1].nbytes)
    for first in range(0, len(images), rows):
        yield images[first : first + rows]


def class_logits(logits: FloatArray) -> FloatArray:
    """Return a logit for each class: one alone, (N, 1), is that of label 1 against 0."""
    if logits.shape[1] > 1:
        return logits
    return np.concatenate([np.zeros_like(logits), logits], axis=1)


def scores_of_logits(logits: FloatArray, labels: Int64Array) -> ImageScores:
    """Score logits (N, classes) against labels (N,); one logit alone is that of label 1, not 0."""
    logits, labels = checked_array("logits", logits), label_array(labels)
    if logits.dtype != np.float32 or logits.ndim != 2:
        raise TypeError(
            f"logits is {kind_of(logits)} of shape {logits.shape}: must be float32 (N, classes), "
            "as model.logits(images) returns"
        )
    labels = np.ascontiguousarray(labels, np.int64)
    logits = np.ascontiguousarray(class_logits(logits))
    losses, _ = _core.cross_entropy(logits, labels)
    predicted = logits.argmax(axis=1)
    return ImageScores(losses / float(_core.LOSS_ONE), predicted == labels, predicted)


def check_top(top: int, classes: int) -> None:
    """Raise an error unless the best ``top`` of the classes can be asked for."""
    if not 1 <= checked_integer("top", top) <= classes:
        raise OptionError("top", f" {top}: must be 1 to {classes}, the number of classes")


def most_probable(logits: FloatArray, top: int) -> Int64Array:
    """Return the ``top`` labels of every row, largest logit first, of equal ones the lower."""
    return np.argsort(-logits, axis=1, kind="stable")[:, :top].astype(np.int64, copy=False)


def probabilities(logits: FloatArray) -> FloatArray:
    """Return the softmax of every row."""
    shifted = logits.astype(np.float64)
    shifted -= shifted.max(axis=1, keepdims=True)
    exponentials = np.exp(shifted)
    shares: DoubleArray = exponentials / exponentials.sum(axis=1, keepdims=True)
    return shares.astype(np.float32)


# A matrix of more classes is wider than a terminal; its most frequent errors are shown instead.
_SHOWN_CLASSES = 20
_SHOWN_ERRORS = 10
# Fields of a plot with more classes are too small for a number.
_NUMBERED_CLASSES = 20


@dataclass(frozen=True, eq=False, repr=False)
class Confusion:
    """Counts of images by their class and by the class that was predicted.

    Attributes
    ----------
    matrix : ndarray of int64, shape (classes, classes)
        Row: the label; column: the predicted class.
    class_names : tuple of str
        Name of every class.
    """

    matrix: Int64Array
    class_names: tuple[str, ...]

    @classmethod
    def of_predictions(
        cls, dataset: Dataset, predicted: Int64Array, model: pmt.model.Model
    ) -> Confusion:
        """Count the labels of a data set against a model's predictions, shape (N,)."""
        classes, dataset = model.told_classes, Dataset.of(dataset, "dataset")
        predicted = checked_array("predicted", predicted)
        if predicted.dtype.kind not in "iu" or predicted.shape != dataset.labels.shape:
            raise TypeError(
                f"predicted is {predicted.dtype} of shape {predicted.shape}: must be an integer "
                "for each image, as model.predict(images) returns"
            )
        if min(predicted.min(), 0) < 0 or predicted.max() >= classes:
            wrong = predicted.min() if predicted.min() < 0 else predicted.max()
            raise ValueError(f"predicted holds {wrong}: must be 0 to {classes - 1}")
        pairs = np.bincount(dataset.labels * classes + predicted, minlength=classes * classes)
        matrix = pairs.reshape(classes, classes).astype(np.int64)
        return cls(matrix, _class_names(dataset.class_names, model.class_names, classes))

    @property
    def images(self) -> Int64Array:
        """Images of every class, shape (classes,)."""
        return np.asarray(self.matrix.sum(axis=1), np.int64)

    @property
    def accuracy(self) -> float:
        """Share of images on the diagonal, 0..1."""
        return float(self.matrix.trace() / self.matrix.sum())

    @property
    def accuracy_by_class(self) -> DoubleArray:
        """Share of each class's images that are right, 0..1, shape (classes,); nan without any."""
        images = self.images
        shares = np.full(len(images), np.nan)
        np.divide(self.matrix.diagonal(), images, out=shares, where=images > 0)
        return shares

    def most_frequent_errors(self, count: int = _SHOWN_ERRORS) -> list[tuple[int, int, int]]:
        """Return the most frequent errors, at most ``count``: (label, predicted class, images)."""
        count = checked_range("count", count, 0, 2**31 - 1)
        errors = self._errors()
        order = np.argsort(-errors, axis=None, kind="stable")[:count]
        found = (np.unravel_index(i, errors.shape) for i in order)
        return [(int(a), int(b), int(errors[a, b])) for a, b in found if errors[a, b] > 0]

    def _errors(self) -> Int64Array:
        errors = self.matrix.copy()
        np.fill_diagonal(errors, 0)
        return errors

    def to_json(self) -> dict[str, Any]:
        """Return the figures for JSON; the accuracy of a class without images is null."""
        return {
            "class_names": list(self.class_names),
            "matrix": self.matrix.tolist(),
            "accuracy_by_class": [
                None if np.isnan(a) else float(a) for a in self.accuracy_by_class
            ],
        }

    def to_frame(self) -> DataFrame:
        """Return the matrix as a pandas DataFrame: a row a class, a column a predicted class.

        Raises
        ------
        ImportError
            If pandas is missing.
        """
        frame = data_frame(self.matrix, self.class_names, "class", self.class_names)
        frame.columns.name = "predicted"
        return frame

    def by_class(self) -> str:
        """Return a table of the classes: images, accuracy, and the class it is most taken for."""
        errors = self._errors()
        worst = errors.argmax(axis=1)
        rows = [
            [
                name,
                f"{self.images[i]:,}",
                _share(self.accuracy_by_class[i]),
                f"{self.class_names[worst[i]]} ({errors[i, worst[i]]:,})"
                if errors[i].any()
                else "",
            ]
            for i, name in enumerate(self.class_names)
        ]
        titles = ["class", "images", "accuracy", "most often taken for"]
        return table(titles, rows, left=("class", "most often taken for"))

    def _rows(self) -> tuple[list[str], list[list[str]]]:
        if len(self.class_names) > _SHOWN_CLASSES:
            rows = [
                [self.class_names[a], self.class_names[b], f"{n:,}"]
                for a, b, n in self.most_frequent_errors()
            ]
            return ["class", "predicted", "images"], rows
        columns = [str(i) for i in range(len(self.class_names))]
        rows = [
            [f"{i} {name}", *(f"{n:,}" for n in counts), _share(accuracy)]
            for i, (name, counts, accuracy) in enumerate(
                zip(self.class_names, self.matrix, self.accuracy_by_class, strict=True)
            )
        ]
        return ["class", *columns, "accuracy"], rows

    @property
    def _caption(self) -> str:
        shown = "rows: class, columns: predicted class"
        if len(self.class_names) > _SHOWN_CLASSES:
            shown = f"the most frequent errors among {len(self.class_names)} classes"
        return f"{counted(int(self.images.sum()), 'image')}, accuracy {self.accuracy:.4f}; {shown}"

    def __str__(self) -> str:
        titles, rows = self._rows()
        return f"{self._caption}\n{table(titles, rows, left=('class', 'predicted'))}"

    __repr__ = __str__

    def _repr_html_(self) -> str:
        return html_table(self._caption, *self._rows())

    @property
    def plot_inches(self) -> float:
        """Side of a plot on which the names of the classes are legible, in inches."""
        return 2.0 + 0.4 * min(len(self.class_names), _NUMBERED_CLASSES)

    def plot(self, ax: Axes | None = None) -> Axes:
        """Draw the matrix: a field's shade is its share of the row's images.

        Parameters
        ----------
        ax : matplotlib.axes.Axes, optional
            Axes to draw on; new ones by default.

        Returns
        -------
        matplotlib.axes.Axes
            The axes.

        Raises
        ------
        ImportError
            If matplotlib is missing.
        TypeError
            If ``ax`` is not an Axes.
        """
        classes = len(self.class_names)
        ax = one_axes(ax, self.plot_inches, self.plot_inches)
        shares = self.matrix / np.maximum(self.images, 1)[:, None]
        ax.imshow(shares, cmap="Blues", vmin=0, vmax=1)
        ax.set_xlabel("predicted class")
        ax.set_ylabel("class")
        if classes <= _NUMBERED_CLASSES:
            names = [plain_text(name) for name in self.class_names]
            ax.set_xticks(range(classes), names, rotation=90)
            ax.set_yticks(range(classes), names)
            for (row, column), count in np.ndenumerate(self.matrix):
                if count:
                    color = "white" if shares[row, column] > 0.5 else "black"
                    ax.text(column, row, f"{count}", color=color, ha="center", va="center")
        return ax


def _class_names(
    of_data: tuple[str, ...], of_model: tuple[str, ...] | None, classes: int
) -> tuple[str, ...]:
    numbers = tuple(map(str, range(classes)))
    if of_data == tuple(map(str, range(len(of_data)))):
        return numbers if of_model is None else of_model
    return (*of_data[:classes], *numbers[len(of_data) :])


def _share(share: float) -> str:
    return "-" if np.isnan(share) else f"{share:.4f}"


@dataclass(frozen=True)
class FilePredictions:
    """Predictions, in the order of the files.

    Attributes
    ----------
    files : list of str
        The file of each of N images; of an .npz file ``FILE[index]``.
    labels : ndarray of int64, shape (N, top)
        The most probable labels, the most probable first.
    probabilities : ndarray of float32, shape (N, top)
        Their probabilities.
    class_names : tuple of str or None
        Name of every class, if they are known.
    """

    files: list[str]
    labels: Int64Array
    probabilities: FloatArray
    class_names: tuple[str, ...] | None

    def class_name(self, label: int) -> str:
        """Return the name of a class, its label where it has none."""
        return str(label) if self.class_names is None else self.class_names[label]

    def to_json(self) -> dict[str, Any]:
        """Return the figures for JSON."""
        return {
            "predictions": [
                {
                    "file": file,
                    "classes": [
                        {
                            "label": int(label),
                            "name": None if self.class_names is None else self.class_names[label],
                            "probability": float(probability),
                        }
                        for label, probability in zip(row, shares, strict=True)
                    ],
                }
                for file, row, shares in zip(
                    self.files, self.labels, self.probabilities, strict=True
                )
            ]
        }


def predict(
    model: pmt.model.Model,
    files: Sequence[str | os.PathLike[str]],
    *,
    top: int = 1,
    class_names: Sequence[str] | None = None,
    threads: int = 0,
) -> FilePredictions:
    """Classify image files.

    Parameters
    ----------
    model : Model
        The network.
    files : sequence of str or pathlib.Path
        Image files, folders of them, and .npz files with an array ``images``. Images of another
        size than the model's input are resized, and a gray one is given to a model of three
        channels as three equal ones.
    top : int
        Classes for each image, 1 to the model's.
    class_names : sequence of str, optional
        Name of every class; by default the model's.
    threads : int
        Threads to use; 0 takes all. The result does not depend on it.

    Returns
    -------
    FilePredictions
        Labels and probabilities.

    Raises
    ------
    FileNotFoundError, ValueError, TypeError
        If a file is missing or damaged, an image has more channels than the model takes, ``top`` is
        out of range, there are not as many names as classes, or the model gives features.
    ImportError
        If Pillow is needed and not installed.
    """
    from pmt.model.model import check_model  # which imports this file

    check_model(model)
    model.check_gives_classes()
    classes = model.told_classes
    check_top(top, classes)
    if class_names is not None:
        class_names = checked_names("class_names", class_names)
    if class_names is not None and len(class_names) != classes:
        raise ValueError(
            f"the model has {classes} classes, the data set or list gives "
            f"{len(class_names)} class names; give one name a class"
        )
    names = model.class_names if class_names is None else tuple(class_names)
    if names is not None and len(names) < classes:  # the one name of one output
        names = None
    height, width, channels = model.image_shape
    found: list[str] = []
    labels, shares = [], []
    for block in read_in_blocks(find_files(files), (height, width), channels, threads=threads):
        logits = class_logits(raw_logits(model.core, block.images, threads))
        best = most_probable(logits, top)
        if not found:
            check_floats(model.core, block.images, block.names[0])
        found += block.names
        labels.append(best)
        shares.append(np.take_along_axis(probabilities(logits), best, axis=1))
    return FilePredictions(found, np.concatenate(labels), np.concatenate(shares), names)
