"""A loaded int8 network: inspect it, run it, evaluate it, save it."""

from __future__ import annotations

import reprlib
from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from pmt import _core, formats
from pmt._util import atomic_file
from pmt._util.arrays import Array, FloatArray, Int8Array, Int64Array, Uint8Array
from pmt._util.checks import checked_path, kind_of
from pmt._util.processes import thread_count
from pmt._util.text import counted, html_table, printable, table
from pmt.datasets import Dataset
from pmt.datasets.arrays import as_inputs
from pmt.datasets.class_names import in_order_of
from pmt.datasets.dataset import DataLike, paired
from pmt.model.data_checks import check_labels, warn_of_other_classes, warn_of_unlike_classes
from pmt.model.features import features_graph
from pmt.model.input_conversion import (
    check_floats,
    check_inputs,
    check_range,
    image_shape,
    prepared_inputs,
)
from pmt.model.layers import Layers, block_rows, layer_rows
from pmt.model.scores import (
    Confusion,
    Evaluation,
    ImageScores,
    check_top,
    class_logits,
    most_probable,
    probabilities,
    raw_logits,
    scores_of_logits,
)
from pmt.net.graph import Graph, check_is_graph, ends_in_features
from pmt.net.image import build_image, read_graph, read_metadata, read_stage
from pmt.net.input_stage import InputStage

_SHOWN_LAYERS = 12  # rows of a table that is looked at; more are folded away


def check_model(value: object, argument: str = "model") -> None:
    """Raise TypeError if the value is not a model."""
    if not isinstance(value, Model):
        path = repr(value) if isinstance(value, str) else "path"
        raise TypeError(
            f"{argument} is {kind_of(value)}: must be a pmt.Model; pmt.load({path}) reads one"
        )


class Model(Layers):
    """An int8 network.

    Any number of threads may read a model at once. A call that trains, measures or changes it runs
    alone: while it runs, any other call on the model raises RuntimeError, and it is refused itself
    while the model is read. Give each thread its own :meth:`copy`.

    Parameters
    ----------
    image : bytes
        A ``.pmt`` image. :func:`pmt.load` reads one from a file of any supported format.

    Raises
    ------
    TypeError
        If ``image`` is not ``bytes``.
    ValueError
        If the image is damaged or inconsistent.
    """

    def __init__(self, image: bytes) -> None:
        if not isinstance(image, bytes):
            raise TypeError(
                f"image is {type(image).__name__}: must be the bytes of a .pmt image; "
                "pmt.load(path) reads a file"
            )
        self.core = _core.Model(image)
        self._check_texts()
        self._is_classifier = not ends_in_features(self.output_shape, self.metadata)

    def _check_texts(self) -> None:
        """Raise ValueError if names or metadata, which the core does not look at, are unusable."""
        try:
            names = [op["name"] for op in self.core.ops()]
            self.core.tensors(), self.core.blocks()
            _ = self.metadata
        except UnicodeDecodeError as error:
            raise ValueError(
                f"image: name or metadata {reprlib.repr(error.object)} is not UTF-8 text; "
                "import the model again"
            ) from None
        repeated = [name for name, count in Counter(names).items() if count > 1]
        if repeated:
            raise ValueError(
                f"image: {repeated[0]!r} is the name of several ops; import the model again"
            )

    @classmethod
    def from_graph(cls, graph: Graph) -> Model:
        """Build a model from a quantized graph."""
        check_is_graph(graph)
        return cls(build_image(graph))

    def to_graph(self) -> Graph:
        """Return the model, with its present weights, as a graph."""
        return read_graph(self.image())

    def image(self) -> bytes:
        """Return the ``.pmt`` image with the present weights."""
        return self.core.image()

    def copy(self) -> Model:
        """Return an independent copy; so do ``copy.copy`` and ``copy.deepcopy``."""
        return Model(self.image())

    __copy__ = copy

    def __deepcopy__(self, memo: dict[int, Any]) -> Model:
        return self.copy()

    def __reduce__(self) -> tuple[type[Model], tuple[bytes]]:
        """Pickle the image."""
        return Model, (self.image(),)

    def save(self, path: str | Path, *, into: str | Path | None = None) -> None:
        """Write the network; a file that exists is replaced in one step.

        Parameters
        ----------
        path : str or pathlib.Path
            ``.pmt``, or another format of :func:`pmt.formats.writing.write`: ``.tflite``,
            ``.onnx``, ``.npz``, ``.h``.
        into : str or pathlib.Path, optional
            The ``.tflite`` file that the model was imported from: ``path`` becomes a copy of it
            with the model's weights.

        Raises
        ------
        ValueError
            If the suffix is unknown, or the model does not come from ``into``.
        ImportError
            If the format's package is missing.
        OSError
            If the file cannot be written.
        """
        path = checked_path("path", path)
        if path.suffix == ".pmt" and into is None:
            atomic_file.write_bytes(path, self.image())
        else:
            formats.write(self.to_graph(), path, into=into)

    @property
    def metadata(self) -> dict[str, Any]:
        """Class names, source, license, and whatever else the model states."""
        return read_metadata(self.core.metadata().encode())

    @property
    def name(self) -> str:
        """The metadata's name, for people: control characters are escaped."""
        return printable(str(self.metadata.get("name", "int8 network")))

    @property
    def input_shape(self) -> tuple[int, int, int]:
        """Height, width and channels of the input."""
        return self.core.input_shape

    @property
    def image_shape(self) -> tuple[int, int, int]:
        """Height, width and channels of the images that the model takes.

        Those of its input stage, where it has one, else the network's :attr:`input_shape`.
        """
        return image_shape(self.core)

    @property
    def input_stage(self) -> InputStage | None:
        """Filters that images pass before the network, and their size; None without."""
        section = self.core.stage()
        return read_stage(section) if section else None

    def with_input_stage(self, stage: InputStage | None) -> Model:
        """Return a copy with another input stage, or with none.

        Parameters
        ----------
        stage : InputStage or None
            Filters for uint8 images of a size, which are resampled to the network's input: in the
            bytes of Pillow's bilinear filter, as :func:`pmt.datasets.load` does.

        Raises
        ------
        TypeError
            If `stage` is neither an input stage nor None.
        ValueError
            If the network's input has more than 4 channels.

        Examples
        --------
        >>> import pmt
        >>> model = pmt.load("cifar10_mcunet")
        >>> median = pmt.Filter("switching_median", 32)
        >>> model.with_input_stage(pmt.InputStage((32, 32), (median,))).image_shape
        (32, 32, 3)
        """
        if not isinstance(stage, InputStage | None):
            raise TypeError(f"stage is {kind_of(stage)}: must be a pmt.InputStage, or None")
        return Model.from_graph(replace(self.to_graph(), stage=stage))

    @property
    def output_shape(self) -> tuple[int, int, int]:
        """Height, width and channels of the output; (1, 1, classes) of a classifier."""
        tensor = self.core.tensors()[self.core.output_tensor]
        return tensor["height"], tensor["width"], tensor["channels"]

    @property
    def is_classifier(self) -> bool:
        """Whether the output is a logit for each class, and not features.

        Features have a height or width above 1, or the model was made by :meth:`features`.
        """
        return self._is_classifier

    @property
    def told_classes(self) -> int:
        """Number of classes that it tells apart: two by the sign of one output."""
        return max(self.classes, 2)

    @property
    def output_text(self) -> str:
        """The output in a few words: "10 classes", "8x8x16 features"."""
        height, width, channels = self.output_shape
        if self.is_classifier:
            return f"{channels} classes" if channels > 1 else "1 output"
        size = f"{height}x{width}x" if height * width > 1 else ""
        return f"{size}{channels} features"

    @property
    def classes(self) -> int:
        """Number of classes; of a model of features, the number of values in its output."""
        return self.core.classes

    @property
    def class_names(self) -> tuple[str, ...] | None:
        """Name of every class, as the metadata has them; None where it lacks one for each.

        Training a head for other classes gives the model their names, see
        :meth:`pmt.ZOTrainer.fit`.
        """
        names = self.metadata.get("class_names")
        if not isinstance(names, list) or len(names) != self.classes:
            return None
        return tuple(str(name) for name in names)

    @property
    def macs(self) -> int:
        """Multiply-accumulates of one forward pass of one image."""
        return sum(int(op["macs"]) for op in self.core.ops())

    def features(self, layer: str | int | None = None) -> Model:
        """Return a model that ends in the output of a layer: a feature map or an embedding.

        It has copies of the layers up to there, with their present weights, and no classes.

        Parameters
        ----------
        layer : str or int, optional
            Name or op index of a layer or another op, as `pmt info` lists them; by default the one
            whose output the last layer reads.

        Returns
        -------
        Model
            Its :attr:`blocks` are those of this model, less the layers that were cut off.

        Raises
        ------
        ValueError
            If there is no such op, or no layer with weights comes before its output.
        TypeError
            If ``layer`` is neither a string nor an integer.

        Examples
        --------
        >>> import pmt
        >>> model = pmt.load("fashion_mnist_dscnn")
        >>> model.features().output_text
        '128 features'
        >>> model.features("conv1").output_shape
        (14, 14, 16)
        """
        return Model.from_graph(features_graph(self.to_graph(), layer))

    def prepare(self, images: Array, *, threads: int = 0) -> Int8Array:
        """Turn pixels or other inputs into the network's int8 input.

        Parameters
        ----------
        images : ndarray of uint8, float32 or int8, shape (N, height, width, channels)
            uint8: pixels 0..255, of the model's :attr:`image_shape`; gray ones may lack the last
            axis where the model takes one channel. float32: inputs that are not pixels, in the real
            numbers that the network was trained on; not of a model with an :attr:`input_stage`,
            which takes pixels. int8: the network's own input, which stays as it is: behind an
            input stage, in :attr:`input_shape`.
            Axes of length 1 of inputs that are not pixels may be left out: (N, 49, 10) is read by
            a model of (49, 10, 1).
        threads : int
            Threads for an input stage, 0 for all; the result does not depend on it.

        Returns
        -------
        ndarray of int8, shape (N, height, width, channels)
            ``round_half_even(real / scale) + zero_point``, clipped to int8, where ``real`` is the
            input or, for pixels, ``(pixel - mean) / std`` with the model's stored mean and std;
            pixels pass the :attr:`input_stage` before.

        Raises
        ------
        TypeError
            If the dtype is another one, pixels are given to a model of more than 4 channels, or
            floats to one with an input stage.
        ValueError
            If the shape is not the model's, or a value is not finite.
        """
        return prepared_inputs(self.core, images, thread_count(threads))

    def check_classes(self, dataset: Dataset) -> None:
        """Raise ValueError if the data set has labels that the model has no class for, or none.

        Or if the model gives features and no classes. Warn where its named classes are fewer than
        the model's.
        """
        dataset = Dataset.of(dataset, "dataset")
        self._check_labels(dataset)
        warn_of_other_classes(dataset, self.classes, stacklevel=4)

    def check_scored(self, dataset: Dataset) -> None:
        """Check the classes of a data set that scores the model, as :meth:`check_classes` does.

        A model of one output tells label 0 from 1, by its sign.
        """
        dataset = Dataset.of(dataset, "dataset")
        if self.classes > 1 or not self.is_classifier:
            self._check_labels(dataset)
            warn_of_other_classes(dataset, self.classes, stacklevel=4)
        elif not dataset.has_class_labels or dataset.labels.max() > 1:
            found = (
                f"label {dataset.labels.max()}" if dataset.has_class_labels else "no class labels"
            )
            remedy = (
                "use another data set, or give the model a new last layer by classes=N (--classes)"
            )
            if dataset.has_targets:
                remedy = "compare its float targets with model.logits(images)"
            raise ValueError(
                f"data set {dataset.name!r} has {found}, and the model one output, which tells 0 "
                f"from 1; {remedy}"
            )

    def match_classes(self, dataset: Dataset) -> Dataset:
        """Return a data set whose labels are the model's classes, matched by their names.

        A folder of images counts its classes by the alphabet, a model in the order of its output.
        Case, a number before a name (`0_Shirt`), and what is neither a letter nor a digit do not
        matter: the folder `T-shirt_top` is the class `T-shirt/top`.

        Parameters
        ----------
        dataset : Dataset
            Images with class labels.

        Returns
        -------
        Dataset
            With the model's :attr:`class_names`, where they include all of its own; else as it was.
        """
        return in_order_of(Dataset.of(dataset, "dataset"), self.class_names)

    def check_gives_classes(self) -> None:
        """Raise ValueError if the model gives features and not logits of classes."""
        if not self.is_classifier:
            raise ValueError(
                f"the model gives {self.output_text} and no logits of classes; "
                "model.outputs(images) returns them"
            )

    def _check_labels(self, dataset: Dataset) -> None:
        self.check_gives_classes()
        check_labels(dataset, self.classes)

    def logits(self, images: Array, *, threads: int = 0, int8_logits: bool = False) -> FloatArray:
        """Run the network.

        Parameters
        ----------
        images : ndarray of uint8, float32 or int8, shape (N, height, width, channels)
            Pixels 0..255, or other inputs, see :meth:`prepare`.
        threads : int
            Threads to use; 0 takes all, but one in a worker of a process pool. The result does not
            depend on it.
        int8_logits : bool
            Scale the int8 output instead of the last layer's int32 accumulators.

        Returns
        -------
        ndarray of float32, shape (N, classes)
            Logits; of a model of features its output, in the order height, width, channels.

        Raises
        ------
        TypeError
            If ``threads`` is not an integer, or as :meth:`prepare`.
        ValueError
            If ``threads`` is below 0, or as :meth:`prepare`.

        Warns
        -----
        UserWarning
            If float inputs do not fit the range of the model's input, or look like pixels.
        """
        logits = raw_logits(self.core, images, threads, int8_logits=int8_logits)
        check_floats(self.core, images, "images")
        return logits

    def predict(
        self, images: Uint8Array | DataLike, *, top: int | None = None, threads: int = 0
    ) -> Int64Array:
        """Return the label of every image.

        Parameters
        ----------
        images : ndarray of uint8, shape (N, height, width, channels), Dataset or pair (x, y)
            Pixels 0..255, or what :meth:`evaluate` takes.
        top : int, optional
            Return this many labels for each image, 1 to the number of classes.
        threads : int
            As in :meth:`logits`.

        Returns
        -------
        ndarray of int64, shape (N,), or (N, top)
            The label with the largest logit; with ``top`` the most probable first. Of equal logits
            the lower label comes first. A model with one output tells 0 from 1, by its sign.
            :attr:`class_names` are in the order of the labels.

        Raises
        ------
        TypeError, ValueError
            As :meth:`prepare`, or if ``top`` is out of range, or the model gives features.

        Warns
        -----
        UserWarning
            As :meth:`logits`.
        """
        self.check_gives_classes()
        check_top(1 if top is None else top, self.told_classes)
        logits = self._class_logits(images, threads)
        if top is not None:
            return most_probable(logits, top)
        labels: Int64Array = logits.argmax(axis=1)
        return labels

    def predict_proba(self, images: Uint8Array | DataLike, *, threads: int = 0) -> FloatArray:
        """Return the probability of every class, for every image.

        Parameters
        ----------
        images : ndarray of uint8, shape (N, height, width, channels), Dataset or pair (x, y)
            Pixels 0..255, or what :meth:`evaluate` takes.
        threads : int
            As in :meth:`logits`.

        Returns
        -------
        ndarray of float32, shape (N, classes)
            Softmax of the logits; rows sum to 1. Of a model with one output (N, 2), for the labels
            0 and 1.

        Raises
        ------
        TypeError, ValueError
            As :meth:`prepare`, or if the model gives features.

        Warns
        -----
        UserWarning
            As :meth:`logits`.
        """
        self.check_gives_classes()
        return probabilities(self._class_logits(images, threads))

    def _class_logits(self, data: Any, threads: int) -> FloatArray:
        if isinstance(data, tuple) and len(data) == 2:
            data = Dataset.of(data, "images")
        inputs, name = (data.images, data.name) if isinstance(data, Dataset) else (data, "images")
        if isinstance(inputs, np.ndarray):
            inputs = as_inputs(name, inputs)
        logits = class_logits(raw_logits(self.core, inputs, threads))
        check_floats(self.core, inputs, name, stacklevel=4)
        return logits

    def outputs(self, images: Array, *, threads: int = 0) -> FloatArray:
        """Run the network, and return the output in its own shape.

        Parameters
        ----------
        images, threads
            As in :meth:`logits`.

        Returns
        -------
        ndarray of float32, shape (N, channels), or (N, height, width, channels)
            The second for a feature map, whose height or width is above 1.

        Raises
        ------
        TypeError, ValueError
            As :meth:`logits`.

        Warns
        -----
        UserWarning
            As :meth:`logits`.
        """
        height, width, channels = self.output_shape
        shape = (height, width, channels) if height * width > 1 else (channels,)
        logits = raw_logits(self.core, images, threads)
        check_floats(self.core, images, "images")
        return logits.reshape(len(images), *shape)

    def evaluate(
        self,
        dataset: DataLike | npt.ArrayLike,
        labels: npt.ArrayLike | None = None,
        *,
        threads: int = 0,
    ) -> Evaluation:
        """Measure accuracy and mean loss on a data set, or a tuple of arrays ``(x, y)``.

        Warns where the data set has fewer classes than the model, other ones, or the same in
        another order, and where float inputs do not fit the range of the model's input.

        Parameters
        ----------
        dataset : Dataset or tuple of two arrays, or images
            Images and labels. As arrays, images of shape (N, height, width, channels): uint8
            pixels 0..255, int8 inputs of the network (behind an input stage), or float inputs
            before quantization; and integer labels of shape (N,), 0 to the number of classes - 1.
        labels : array_like of int, optional
            The labels, (N,) or (N, 1), where ``dataset`` is the images alone.
        threads : int
            As in :meth:`logits`.

        Returns
        -------
        Evaluation
            Accuracy (0..1), mean cross-entropy loss in nats, and N; of a model with one output,
            binary cross-entropy, and whether a value above 0 says label 1.

        Raises
        ------
        TypeError
            If ``dataset`` is neither a data set nor a tuple of two arrays, an array has another
            dtype, pixels are given to a model of more than 4 channels or floats to one with an
            input stage, or ``threads`` is not an integer.
        ValueError
            If the model gives features, the images have another shape than the model's input, a
            value is not finite, a label has no class in the model, there are no class labels, or
            ``threads`` is below 0.
        """
        given = paired(dataset, labels, "dataset")
        dataset = self.match_classes(Dataset.of(given, "dataset"))
        self.check_scored(dataset)
        check_inputs(self.core, dataset, given)
        if self.classes > 1:
            warn_of_unlike_classes(dataset, self.class_names, stacklevel=3)
        check_range(self.core, dataset)
        logits = raw_logits(self.core, dataset.images, threads)
        return scores_of_logits(logits, dataset.labels).evaluation

    def score_images(
        self,
        dataset: DataLike | npt.ArrayLike,
        labels: npt.ArrayLike | None = None,
        *,
        threads: int = 0,
    ) -> ImageScores:
        """Measure the loss of every image; :meth:`evaluate` has their means.

        It does not warn of other classes, as :meth:`evaluate` does.

        Parameters
        ----------
        dataset, labels
            As in :meth:`evaluate`.
        threads : int
            As in :meth:`logits`.

        Returns
        -------
        ImageScores
            Losses (float64), correct (bool) and predicted labels (int64), each of shape (N,).

        Raises
        ------
        TypeError, ValueError
            As :meth:`evaluate`.

        Warns
        -----
        UserWarning
            As :meth:`logits`.
        """
        return self._scored(dataset, labels, threads)[1]

    def _scored(self, data: Any, labels: Any, threads: int) -> tuple[Dataset, ImageScores]:
        given = paired(data, labels, "dataset")
        dataset = self.match_classes(Dataset.of(given, "dataset"))
        if self.classes == 1:
            self.check_scored(dataset)
        else:
            self._check_labels(dataset)
        check_inputs(self.core, dataset, given)
        logits = raw_logits(self.core, dataset.images, threads)
        check_floats(self.core, dataset.images, dataset.name, stacklevel=4)
        return dataset, scores_of_logits(logits, dataset.labels)

    def confusion(
        self,
        dataset: DataLike | npt.ArrayLike,
        labels: npt.ArrayLike | None = None,
        *,
        threads: int = 0,
    ) -> Confusion:
        """Count which classes are taken for which on a data set.

        Parameters
        ----------
        dataset, labels
            As in :meth:`evaluate`. Class names of a data set are shown; where it has none but
            numbers, or fewer than the model has classes, the model's or numbers stand in.
        threads : int
            As in :meth:`logits`.

        Returns
        -------
        Confusion
            The matrix, and accuracy by class.

        Raises
        ------
        TypeError, ValueError
            As :meth:`evaluate`.

        Warns
        -----
        UserWarning
            As :meth:`logits`.
        """
        counted_data, scores = self._scored(dataset, labels, threads)
        return Confusion.of_predictions(counted_data, scores.predicted, self)

    def __repr__(self) -> str:
        height, width, channels = self.input_shape
        weights = sum(layer.weights for layer in self.layers)
        return (
            f"<pmt.Model {self.name}: {height}x{width}x{channels} -> {self.output_text}, "
            f"{counted(len(self.layers), 'layer')}, {weights:,} weights, {self.macs:,} MACs>"
        )

    def __str__(self) -> str:
        titles, rows = block_rows(self.layers, self.blocks)
        blocks = [table(titles, rows, left=titles[:1])] if rows else []
        return "\n".join([repr(self)[1:-1], *blocks])

    def _repr_html_(self) -> str:
        titles, rows = layer_rows(self.layers, self.blocks)
        if len(rows) <= _SHOWN_LAYERS:
            return html_table(repr(self)[1:-1], titles, rows)
        layers = html_table("", titles, rows)
        blocks = html_table(repr(self)[1:-1], *block_rows(self.layers, self.blocks))
        return (
            f"{blocks}<details><summary>{counted(len(rows), 'layer')}</summary>{layers}</details>"
        )
