"""Statistics of a network on clean images, layer by layer: the reference that alignment restores.

For every layer but the last, mean and deviation of each channel before its activation. For layers
with a spatial window also the covariances of the layer's input at every distance inside it.
"""

import base64
import binascii
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np

from pmt import _core
from pmt._util.arrays import Array, FloatArray, Int8Array, Uint8Array
from pmt._util.checks import SplitName, check_callable, check_type, checked_range
from pmt._util.processes import thread_count
from pmt.model import Model
from pmt.model.input_conversion import check_floats
from pmt.model.model import check_model
from pmt.net.graph import STATISTICS_KEY
from pmt.protocol import DataSource
from pmt.protocol.data_source import check_source

DEFAULT_IMAGES = 256  # of a data source; some hundred are enough
_ROUNDS = 3  # each looks closer


class WindowStatistics(NamedTuple):
    """Statistics of the input of a layer with windows."""

    means: FloatArray  # (channels,), in int8 steps
    # (groups, values). A group holds the channels that the layer mixes: one channel of a
    # depthwise layer, all of a convolution. Every distance inside the window, every pair of the
    # group's channels, divided by the group's largest.
    covariances: FloatArray


@dataclass(frozen=True)
class CleanStatistics:
    """Statistics by layer name.

    Attributes
    ----------
    images : int
        Number of images that they were measured on.
    channels : dict
        float32, shape (2, channels): means and deviations in real units.
    windows : dict
        Those of layers with windows; none where they are not known.
    """

    images: int
    channels: dict[str, FloatArray]
    windows: dict[str, WindowStatistics] = field(default_factory=dict)


def measure_statistics(
    model: Model,
    images: Uint8Array,
    *,
    threads: int = 0,
    progress: Callable[[int, int], None] | None = None,
) -> CleanStatistics:
    """Measure a model's statistics.

    Parameters
    ----------
    model : Model
        The model; it does not change.
    images : ndarray of uint8, shape (N, height, width, channels)
        Pixels 0..255, of the model's input size.
    threads : int
        Threads to use; 0 takes all. The result does not depend on it.
    progress : callable, optional
        Called as ``progress(done, layers)`` after each layer.

    Returns
    -------
    CleanStatistics
        Those of every layer but the last.

    Raises
    ------
    TypeError, ValueError
        If there is no image, or as :meth:`pmt.Model.prepare`.
    """
    check_model(model)
    check_callable("progress", progress)
    core = _core.Statistics(model.core, prepared_images(model, images), thread_count(threads))
    layers = aligned_layers(model)
    windowed = window_layers(model)
    channels, windows = {}, {}
    for done, (index, name) in enumerate(layers.items()):
        if index in windowed:
            centers, _ = core.measure_windows(index, _zero_points(model, index))
            windows[name] = _normalized(*core.measure_windows(index, centers))
        channels[name] = core.measure(index, _first_guess(model, index), _ROUNDS)
        if progress is not None:
            progress(done + 1, len(layers))
    return CleanStatistics(len(images), channels, windows)


@dataclass(frozen=True)
class MeasuredModel:
    """A copy of a model with the statistics that were measured on ``images`` images."""

    model: Model
    statistics: CleanStatistics
    images: int

    @property
    def channels(self) -> int:
        """Channels of all layers that were measured."""
        return sum(values.shape[1] for values in self.statistics.channels.values())

    def to_json(self) -> dict[str, Any]:
        """Return the figures for JSON."""
        return {
            "images": self.images,
            "layers": len(self.statistics.channels),
            "channels": self.channels,
            "windows": len(self.statistics.windows),
        }


def statistics(model: Model, images: Array, *, threads: int = 0) -> Model:
    """Return a copy of a model with the statistics that :func:`pmt.align` needs.

    Parameters
    ----------
    model : Model
        The model; it is not changed.
    images : ndarray of uint8, float32 or int8, shape (N, height, width, channels)
        Clean images, as the model was trained on; some hundred.
    threads : int
        As in :func:`pmt.train.prepare.measure_statistics`.

    Raises
    ------
    TypeError, ValueError
        As :func:`pmt.train.prepare.measure_statistics`.

    Examples
    --------
    >>> import pmt
    >>> model = pmt.load("fashion_mnist_dscnn")
    >>> model = pmt.statistics(model, pmt.datasets.bundled("train").images[:256])
    """
    return with_statistics(model, measure_statistics(model, images, threads=threads))


def store_statistics(
    model: Model,
    data: DataSource,
    *,
    split: SplitName = "train",
    limit: int = DEFAULT_IMAGES,
    threads: int = 0,
    progress: Callable[[int, int], None] | None = None,
) -> MeasuredModel:
    """Measure a model's statistics on clean images, and store them in a copy of the model.

    Parameters
    ----------
    model : Model
        The model; it is not changed.
    data : DataSource
        Images as the model was trained on.
    split : {"train", "test"}
        Part of the data set.
    limit : int
        At most this many, always the same ones; 0 takes all.
    threads, progress
        As in :func:`measure_statistics`.

    Returns
    -------
    MeasuredModel
        Whose ``model.save(path)`` keeps the statistics.

    Raises
    ------
    FileNotFoundError, ValueError, ImportError
        As :meth:`pmt.protocol.DataSource.load`.
    """
    check_model(model)
    check_source(data)
    limit = checked_range("limit", limit, 0, 2**31 - 1)
    check_callable("progress", progress)
    clean = data.load(split, model, limit=limit)
    found = measure_statistics(model, clean.images, threads=threads, progress=progress)
    return MeasuredModel(with_statistics(model, found), found, len(clean))


def prepared_images(model: Model, images: Array) -> Int8Array:
    """Return a model's int8 input of images to measure, of which there must be one."""
    inputs = model.prepare(images)
    check_some(images)
    check_floats(model.core, images, "images", stacklevel=4)
    return inputs


def check_some(images: Array) -> None:
    """Raise ValueError if an array holds no image."""
    if not len(images):
        raise ValueError(
            f"images has shape {images.shape}: must hold at least one image; give some hundred"
        )


_STATISTICS = "what pmt.train.prepare.measure_statistics(model, images) returns"


def check_reference(reference: object) -> None:
    """Raise a TypeError if the value is neither statistics of clean images nor None."""
    check_type("reference", reference, (CleanStatistics, type(None)), f"{_STATISTICS}, or None")


def with_statistics(model: Model, statistics: CleanStatistics) -> Model:
    """Return a copy of a model that holds statistics."""
    check_model(model)
    check_type("statistics", statistics, CleanStatistics, _STATISTICS)
    graph = model.to_graph()
    graph.metadata = {
        **graph.metadata,
        STATISTICS_KEY: {
            "images": statistics.images,
            "layers": {name: _packed(values) for name, values in statistics.channels.items()},
            "windows": {
                name: {"means": _packed(of.means), "covariances": _packed(of.covariances, "<f2")}
                for name, of in statistics.windows.items()
            },
        },
    }
    return Model.from_graph(graph)


def without_statistics(model: Model) -> Model:
    """Return a copy of a model that holds no statistics: a device has no use for them."""
    check_model(model)
    graph = model.to_graph()
    graph.metadata = {k: v for k, v in graph.metadata.items() if k != STATISTICS_KEY}
    return Model.from_graph(graph)


def stored_statistics(model: Model) -> CleanStatistics | None:
    """Return a model's statistics, or None; ValueError if damaged, or not of its layers."""
    stored: dict[str, Any] | None = model.metadata.get(STATISTICS_KEY)
    if stored is None:
        return None
    names = aligned_layers(model)
    shapes = {names[index]: shape for index, shape in window_layers(model).items()}
    try:
        return CleanStatistics(
            int(stored["images"]),
            {
                name: _unpacked(text, "<f4").reshape(2, -1)
                for name, text in stored["layers"].items()
            },
            _unpacked_windows(stored.get("windows", {}), shapes),
        )
    except (KeyError, TypeError, AttributeError, ValueError, binascii.Error) as error:
        raise ValueError(f"the model's {STATISTICS_KEY} are damaged: {error}") from None


def aligned_layers(model: Model) -> dict[int, str]:
    """Return the layers by op index: all but the last, which has no batch norm."""
    return {layer.index: layer.name for layer in model.layers[:-1]}


def window_layers(model: Model) -> dict[int, tuple[int, int]]:
    """Return groups and covariances of a group of the layers with windows, by op index."""
    shapes = {index: _core.window_shape(model.core, index) for index in aligned_layers(model)}
    return {index: shape for index, shape in shapes.items() if shape[0] > 0}


def _zero_points(model: Model, index: int) -> FloatArray:
    source = model.core.tensors()[model.core.ops()[index]["inputs"][0]]
    return np.full(source["channels"], source["zero_point"], np.float32)


def _first_guess(model: Model, index: int) -> FloatArray:
    op = model.core.ops()[index]
    out = model.core.tensors()[op["output"]]
    guess = np.zeros((2, out["channels"]), np.float32)
    guess[1] = 32.0 * out["scale"]
    return guess


def _normalized(means: FloatArray, covariances: FloatArray) -> WindowStatistics:
    """Scale to the range of the half floats that are stored, and round to them."""
    largest = np.abs(covariances).max(axis=1, keepdims=True)
    scaled = covariances / np.where(largest > 0, largest, 1)
    return WindowStatistics(means, scaled.astype(np.float16).astype(np.float32))


def _packed(values: FloatArray, dtype: str = "<f4") -> str:
    return base64.b64encode(values.astype(dtype).tobytes()).decode()


def _unpacked(text: str, dtype: str) -> FloatArray:
    return np.frombuffer(base64.b64decode(text, validate=True), dtype).astype(np.float32)


def _unpacked_windows(
    stored: dict[str, dict[str, str]], shapes: dict[str, tuple[int, int]]
) -> dict[str, WindowStatistics]:
    windows = {}
    for name, of in stored.items():
        if name not in shapes:
            raise ValueError(f"{name!r} is not a layer with windows")
        covariances = _unpacked(of["covariances"], "<f2").reshape(shapes[name])
        windows[name] = WindowStatistics(_unpacked(of["means"], "<f4"), covariances)
    return windows
