"""A loaded int8 network: inspect it, run it, evaluate it, save it."""

from __future__ import annotations

import reprlib
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from pmt import _core, formats
from pmt._util import atomic_file
from pmt._util.did_you_mean import nearest
from pmt._util.printable import printable
from pmt._util.processes import thread_count
from pmt.datasets import Dataset
from pmt.model.argument_checks import check_dataset, check_images, kind_of
from pmt.net.graph import Graph
from pmt.net.image import build_image, read_graph, read_metadata

__all__ = ["Evaluation", "ImageScores", "Layer", "Model", "check_model"]


@dataclass(frozen=True)
class Evaluation:
    """Accuracy (0..1) and mean cross-entropy loss (nats) over ``n`` images."""

    accuracy: float
    loss: float
    n: int


@dataclass(frozen=True)
class ImageScores:
    """Scores of every image: two models are compared on the same images, pair by pair.

    Attributes
    ----------
    losses : ndarray of float64, shape (N,)
        Cross-entropy in nats, multiples of 2^-20.
    correct : ndarray of bool, shape (N,)
        Whether the largest logit is the label's.
    """

    losses: npt.NDArray[np.float64]
    correct: npt.NDArray[np.bool_]


def check_model(value: object) -> None:
    """Raise TypeError if the value is no model."""
    if not isinstance(value, Model):
        path = repr(value) if isinstance(value, str) else "path"
        raise TypeError(
            f"model is {kind_of(value)}: must be a pmt.Model; pmt.load({path}) reads one"
        )


@dataclass(frozen=True)
class Layer:
    """One layer with weights: ``index`` is its op index, ``macs`` are per image."""

    index: int
    name: str
    kind: str
    weights: int
    biases: int
    macs: int
    output_shape: tuple[int, int, int]
    dead_channels: int


class Model:
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
        return cls(build_image(graph))

    def to_graph(self) -> Graph:
        """Return the model, with its present weights, as a graph."""
        return read_graph(self.image())

    def image(self) -> bytes:
        """Return the ``.pmt`` image with the present weights."""
        return self.core.image()

    def copy(self) -> Model:
        """Return an independent copy."""
        return Model(self.image())

    def save(self, path: str | Path, *, into: str | Path | None = None) -> None:
        """Write the network; a file that exists is replaced in one step.

        Parameters
        ----------
        path : str or pathlib.Path
            ``.pmt``, or another format of :func:`pmt.formats.write`: ``.tflite``, ``.onnx``,
            ``.npz``, ``.h``, ``.c``.
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
        if Path(path).suffix == ".pmt" and into is None:
            atomic_file.write_bytes(path, self.image())
        else:
            formats.write(self.to_graph(), path, into=into)

    @property
    def metadata(self) -> dict[str, Any]:
        """Class names, source, license, and all else that the model says of itself."""
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
    def classes(self) -> int:
        """Number of classes."""
        return self.core.classes

    @property
    def macs(self) -> int:
        """Multiply-accumulates of one forward pass of one image."""
        return sum(int(op["macs"]) for op in self.core.ops())

    @property
    def layers(self) -> list[Layer]:
        """Layers with weights, in order."""
        tensors = self.core.tensors()
        found = []
        for op in self.core.ops():
            if op["weights"] == 0:
                continue
            out = tensors[op["output"]]
            scales = self.core.weight_scales(op["index"])
            found.append(
                Layer(
                    index=op["index"],
                    name=op["name"],
                    kind=op["kind"],
                    weights=op["weights"],
                    biases=len(scales),
                    macs=op["macs"],
                    output_shape=(out["height"], out["width"], out["channels"]),
                    dead_channels=int((scales < 1e-6).sum()),
                )
            )
        return found

    @property
    def blocks(self) -> dict[str, list[int]]:
        """Named sets of layers (op indices), for example ``B1`` .. ``B4``, ``head``, ``all``."""
        return self.core.blocks()

    def select_layers(self, layers: str | int | Iterable[str | int]) -> list[int]:
        """Resolve names to op indices.

        Parameters
        ----------
        layers : str, int or iterable of these
            Names of blocks or layers, or op indices. A string may hold several, separated by
            commas: ``"B2,head"``.

        Returns
        -------
        list of int
            Op indices, ascending, each once.

        Raises
        ------
        ValueError
            If a name is unknown, an index is no layer, or nothing is selected.
        """
        if isinstance(layers, str):
            wanted: list[str | int] = [part.strip() for part in layers.split(",") if part.strip()]
        elif isinstance(layers, (int, np.integer)):
            wanted = [int(layers)]
        elif isinstance(layers, Iterable):
            wanted = list(layers)
        else:
            raise TypeError(f"layers={layers!r} must be names of blocks or layers, or op indices")
        by_name = {layer.name: layer.index for layer in self.layers}
        chosen: set[int] = set()
        for item in wanted:
            if isinstance(item, str) and item in self.blocks:
                chosen.update(self.blocks[item])
            elif isinstance(item, str) and item in by_name:
                chosen.add(by_name[item])
            elif isinstance(item, (int, np.integer)) and int(item) in by_name.values():
                chosen.add(int(item))
            else:
                raise ValueError(f"layers={layers!r}: {self._no_layer(item, by_name)}")
        if not chosen:
            raise ValueError(f"layers={layers!r} selects no layer; `pmt info` lists them")
        return sorted(chosen)

    def _no_layer(self, item: object, layers: Iterable[str]) -> str:
        near = nearest(str(item), [*self.blocks, *layers])
        if near is not None:
            return f"{item!r} is neither a block nor a layer; did you mean {near!r}?"
        return (
            f"{item!r} is neither a block ({', '.join(self.blocks)}) nor a layer; `pmt info` lists "
            "the layers"
        )

    def prepare(self, images: npt.NDArray[np.uint8]) -> npt.NDArray[np.int8]:
        """Turn pixels into the network's int8 input, as its stored preprocessing says.

        Parameters
        ----------
        images : ndarray of uint8, shape (N, height, width, channels)
            Pixels 0..255, of the model's input size.

        Returns
        -------
        ndarray of int8, same shape
            ``round_half_even((pixel - mean) / std / scale) + zero_point``, clipped to int8.

        Raises
        ------
        TypeError
            If the dtype is not uint8.
        ValueError
            If the shape is not the model's.
        """
        check_images(images, self.input_shape)
        tensor = self.core.tensors()[self.core.input_tensor]
        pixels = np.arange(256, dtype=np.float64)
        prepared = np.empty(images.shape, np.int8)
        for channel, (mean, std) in enumerate(
            zip(self.core.input_mean, self.core.input_std, strict=True)
        ):
            real = (pixels - mean) / std
            table = np.rint(real / tensor["scale"]) + tensor["zero_point"]
            prepared[..., channel] = np.clip(table, -128, 127).astype(np.int8)[images[..., channel]]
        return prepared

    def check_classes(self, dataset: Dataset) -> None:
        """Raise ValueError if the data set has labels that the model has no class for.

        A TypeError says that it is no data set.
        """
        check_dataset("data", dataset)
        largest = int(dataset.labels.max())
        if largest >= self.classes:
            remedy = f"a model of {largest + 1} classes"
            if str(self.metadata.get("source", "")).startswith("tiny-training"):
                remedy = f"import the model from its .pkl with classes={largest + 1}"
            raise ValueError(
                f"data set {dataset.name!r} has label {largest}, the model has {self.classes} "
                f"classes (0..{self.classes - 1}); use another data set, or {remedy}"
            )

    def logits(
        self, images: npt.NDArray[np.uint8], *, threads: int = 0, int8_logits: bool = False
    ) -> npt.NDArray[np.float32]:
        """Run the network.

        Parameters
        ----------
        images : ndarray of uint8, shape (N, height, width, channels)
            Pixels 0..255.
        threads : int
            Threads to use; 0 takes all, but one in a worker of a process pool. The result does not
            depend on it.
        int8_logits : bool
            Scale the int8 output instead of the last layer's int32 accumulators.

        Returns
        -------
        ndarray of float32, shape (N, classes)
            Logits.
        """
        prepared = self.prepare(images)
        return self.core.logits(prepared, threads=thread_count(threads), int8_logits=int8_logits)

    def evaluate(self, dataset: Dataset, *, threads: int = 0) -> Evaluation:
        """Measure accuracy and mean loss on a data set."""
        self.check_classes(dataset)
        logits = self.logits(dataset.images, threads=threads)
        losses, correct = _core.cross_entropy(logits, np.ascontiguousarray(dataset.labels))
        n = len(dataset)
        return Evaluation(correct / n, float(losses.sum(dtype=np.int64)) / _core.LOSS_ONE / n, n)

    def score_images(self, dataset: Dataset, *, threads: int = 0) -> ImageScores:
        """Measure the loss of every image; :meth:`evaluate` has their means."""
        self.check_classes(dataset)
        logits = self.logits(dataset.images, threads=threads)
        labels = np.ascontiguousarray(dataset.labels)
        losses, _ = _core.cross_entropy(logits, labels)
        return ImageScores(losses / float(_core.LOSS_ONE), logits.argmax(axis=1) == labels)

    def __repr__(self) -> str:
        height, width, channels = self.input_shape
        weights = sum(layer.weights for layer in self.layers)
        return (
            f"<pmt.Model {self.name}: {height}x{width}x{channels} -> {self.classes} classes, "
            f"{len(self.layers)} layers, {weights:,} weights, {self.macs:,} MACs>"
        )
