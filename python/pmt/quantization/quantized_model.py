"""Quantization from files: a float ONNX network and calibration images become a model."""

import dataclasses
import math
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np

from pmt._util.arrays import FloatArray
from pmt._util.checks import (
    SplitName,
    check_type,
    checked_flag,
    checked_names,
    checked_path,
    kind_of,
)
from pmt._util.text import counted
from pmt.datasets import Dataset
from pmt.datasets.adapters import SampleReader
from pmt.datasets.layouts import chosen_indices, in_color
from pmt.errors import FileError, OptionError
from pmt.formats.reading import file_errors, require_file
from pmt.model import Model
from pmt.model.input_conversion import inputs_in_shape, warn_of_lost_columns
from pmt.model.loading import network_remedy
from pmt.model.scores import class_logits
from pmt.net.float_graph import FloatGraph, check_calibration
from pmt.net.graph import FEATURE_INPUTS, Graph
from pmt.net.pixels import Numbers, per_channel
from pmt.protocol import load_clean
from pmt.quantization import equalization
from pmt.quantization.equalization import Equalization
from pmt.quantization.float_forward import OpNoise, batch_size, float_logits, signal_to_noise, worst
from pmt.quantization.post_training import correct_biases, quantize_graph, quantize_with_ranges
from pmt.quantization.ranges import RangeMethod, activation_ranges, check_method

Stages = Callable[[str], Callable[[int, int], None]]

_REPORT_IMAGES = 64


@dataclass(frozen=True)
class Accuracies:
    """Accuracies (0..1) of both networks on ``n`` images, and on how many they agree, 0..1.

    None stands for an accuracy where the labels are of other classes than the logits.
    """

    n: int
    float_top1: float | None
    int8_top1: float | None
    agreement: float


@dataclass(frozen=True, repr=False)
class QuantizedModel:
    """An int8 model, how it was made, and its noise compared with that of the plainest way.

    Attributes
    ----------
    model : Model
        The model.
    floating : FloatGraph
        The float network as it was read.
    images : int
        Calibration images.
    ranges : str
        How the ranges of activations were measured.
    bias_correction : bool
        Whether the biases were corrected.
    equalized : Equalization or None
        Factors moved between layers.
    plain, noise : list of OpNoise
        Noise that int8 adds at every op, with minima and maxima only, and of the model.
    accuracies : dict of str to Accuracies
        Accuracies on the images of ``"calibration"`` and, if any, of the ``"test"``.
    """

    model: Model
    floating: FloatGraph
    images: int
    ranges: RangeMethod
    bias_correction: bool
    equalized: Equalization | None
    plain: list[OpNoise]
    noise: list[OpNoise]
    accuracies: dict[str, Accuracies]

    @property
    def float_bytes(self) -> int:
        """Bytes of the float32 weights and biases."""
        ops = self.floating.ops
        parameters = [array for op in ops for array in (op.weights, op.bias) if array is not None]
        return 4 * sum(array.size for array in parameters)

    @property
    def warnings(self) -> list[str]:
        """Remarks on layers of the float network that cannot be meant as they are."""
        return [
            f"layer {op.name} has no weight but zero; train it, or replace it"
            for op in self.floating.ops
            if op.weights is not None and not np.any(op.weights)
        ]

    def __repr__(self) -> str:
        least, size = worst(self.noise), len(self.model.image())
        return (
            f"<QuantizedModel {self.model.name}: {size:,} bytes, of {self.float_bytes:,} in "
            f"float32; output {self.noise[-1].signal_to_noise:.1f} dB, worst op {least.name} "
            f"{least.signal_to_noise:.1f} dB>"
        )

    def to_json(self) -> dict[str, Any]:
        """Return the figures for JSON; a ratio without noise is null."""
        least, moved = worst(self.noise), self.equalized
        return {
            "bytes": len(self.model.image()),
            "float_bytes": self.float_bytes,
            "images": self.images,
            "ranges": self.ranges,
            "equalized": None
            if moved is None
            else {"pairs": moved.pairs, "channels": moved.channels, "held": moved.held},
            "bias_correction": self.bias_correction,
            "layers": [
                {
                    "name": op.name,
                    "kind": op.kind,
                    "plain_db": _finite(plain.signal_to_noise),
                    "db": _finite(op.signal_to_noise),
                }
                for plain, op in zip(self.plain, self.noise, strict=True)
            ],
            "worst": {"name": least.name, "db": _finite(least.signal_to_noise)},
            "accuracy": {
                role: {
                    "n": found.n,
                    "float": found.float_top1,
                    "int8": found.int8_top1,
                    "agreement": found.agreement,
                }
                for role, found in self.accuracies.items()
            },
            "warnings": self.warnings,
        }


def _finite(value: float) -> float | None:
    return value if math.isfinite(value) else None


def _silent(name: str) -> Callable[[int, int], None]:
    return lambda done, total: None


def quantize(
    model: str,
    calibrate: str,
    *,
    name: str = "",
    limit: int = 512,
    ranges: RangeMethod = "mse",
    equalize: bool = True,
    bias_correction: bool = True,
    input_mean: float | tuple[float, ...] | None = None,
    input_std: float | tuple[float, ...] | None = None,
    class_names: tuple[str, ...] | None = None,
    eval: str | None = None,
    eval_limit: int = 0,
    threads: int = 0,
    stages: Stages = _silent,
) -> QuantizedModel:
    """Quantize a float network (ONNX) to int8, calibrated on a data set.

    Parameters
    ----------
    model : str
        The float network, ``.onnx``, batch norm included.
    calibrate : str
        Data set in any layout of :func:`pmt.datasets.load`, or ``"bundled"``; its train split is
        resized to the network's input.
    name : str
        Name of the model.
    limit : int
        Calibrate on at most this many images, always the same ones; 0 takes all.
    ranges : str
        Ranges of activations, one of :data:`pmt.quantization.RANGE_METHODS`.
    equalize : bool
        Move scale factors between layers so that channels share a range evenly.
    bias_correction : bool
        Subtract the mean shift that int8 causes from the biases.
    input_mean, input_std : float or tuple of float, optional
        The network reads ``(pixel - mean) / std``, in units of a 0..255 pixel; by default the
        importer's.
    class_names : tuple of str, optional
        Names of the classes, in the order of the logits; by default those of the calibration data,
        if their number fits.
    eval : str, optional
        Data set on whose test split both networks are also measured.
    eval_limit : int
        At most this many of its images; 0 takes all.
    threads : int
        Threads of the int8 network, 0 for all.
    stages : callable, optional
        Called with the name of each stage; returns what is called as ``progress(done, total)``.

    Returns
    -------
    QuantizedModel
        Whose ``model.save(path)`` writes it.

    Raises
    ------
    FileNotFoundError, ValueError, ImportError
        If the network or the images cannot be read, do not go together, or an option is outside
        its range.
    """
    check_method(ranges)
    if not isinstance(model, (str, os.PathLike)):
        raise TypeError(
            f"model is {kind_of(model)}: must be the path of an .onnx file{network_remedy(model)}"
        )
    checked_path("model", model)
    if not isinstance(calibrate, (str, os.PathLike)):
        raise TypeError(
            f"calibrate is {kind_of(calibrate)}: must be the path of a data set; "
            "pmt.quantization.quantize_graph takes images"
        )
    checked_path("calibrate", calibrate)
    checked_flag("equalize", equalize)
    checked_flag("bias_correction", bias_correction)
    check_type("name", name, str, "text")
    given = given_options(input_mean, input_std)
    graph = read_float_network(model, given)
    data = _images("calibrate", calibrate, graph, split="train", limit=limit)
    graph = for_inputs(graph, data, given, calibrate)
    check_calibration(graph, data.images)
    names = names_of_logits(class_names, graph, data)
    roles = {"calibration": data}
    if eval is not None:
        checked_path("eval", eval)
        roles["test"] = _images("eval", eval, graph, split="test", limit=eval_limit)

    plain = quantize_graph(graph, data.images, progress=stages("plain ranges"))
    equalized = None
    if equalize:
        equalized = equalization.equalize(graph, data.images, progress=stages("peaks"))
    floating = graph if equalized is None else equalized.graph
    measured = activation_ranges(
        floating, data.images, method=ranges, progress=stages(f"ranges ({ranges})")
    )
    result = quantize_with_ranges(floating, measured)
    if bias_correction:
        result = correct_biases(floating, result, data.images, progress=stages("bias correction"))
    some = data.images[:_REPORT_IMAGES]
    noise_of_plain = signal_to_noise(graph, plain, some, progress=stages("noise, plain"))
    noise = signal_to_noise(floating, result, some, progress=stages("noise"))
    source = f"{Path(model).name}, quantized by pmt quantize"
    made = named_model(result, names, name or Path(model).stem, source, data)
    return QuantizedModel(
        model=made,
        floating=graph,
        images=len(data),
        ranges=ranges,
        bias_correction=bias_correction,
        equalized=equalized,
        plain=noise_of_plain,
        noise=noise,
        accuracies={
            role: _accuracies(graph, made, part, stages(f"accuracy, {role}"), threads=threads)
            for role, part in roles.items()
        },
    )


def given_options(input_mean: Numbers, input_std: Numbers) -> dict[str, Any]:
    """Return those of an importer's options of pixels that were given."""
    given = {"input_mean": input_mean, "input_std": input_std}
    return {option: value for option, value in given.items() if value is not None}


def real_inputs(data: Dataset, given: Mapping[str, Any]) -> FloatArray:
    """Return float32 inputs (N, H, W, C): those that are no pixels, else by the formula `given`."""
    inputs = data.images.astype(np.float32)
    if data.has_pixels:
        channels = inputs.shape[3]
        mean = per_channel("input_mean", given.get("input_mean"), channels, 0.0)
        std = per_channel("input_std", given.get("input_std"), channels, 255.0)
        with np.errstate(over="ignore"):
            inputs = ((inputs - mean) / std).astype(np.float32)
    return inputs


def named_model(graph: Graph, names: Sequence[str], name: str, source: str, data: Dataset) -> Model:
    """Return the model of a graph with its name, its source and, if any, names of its classes.

    A UserWarning says that it loses columns of the `data` that it was calibrated on.
    """
    classes = {"class_names": list(names)} if names else {}
    graph.metadata = {**graph.metadata, **classes, "name": name, "source": source}
    model = Model.from_graph(graph)
    warn_of_lost_columns(model.core, data)
    return model


def read_float_network(path: str, options: Mapping[str, Any]) -> FloatGraph:
    """Read a float network from .onnx, with options of the importer."""
    if Path(path).suffix.lower() != ".onnx":
        raise ValueError(
            f"{path}: a float network is read from .onnx; export it "
            "(torch.onnx.export), or use an int8 model as it is"
        )
    require_file(Path(path), "model")
    reader = import_module("pmt.formats.onnx.float_importer")
    with file_errors(Path(path)):
        graph: FloatGraph = reader.read(path, **options)
    return graph


@contextmanager
def errors_of(what: str, path: Path) -> Iterator[None]:
    """Name the object that was given in a FileError, instead of a temporary file made of it."""
    try:
        yield
    except FileError as error:
        message = error.message.replace(path.name, what)
        raise FileError(what, error.problems, message, error.rule) from None


def calibration_inputs(
    calibration: Any,
    limit: int,
    features: bool,
    arrays: tuple[type, ...],
    kinds: str,
    channels_first: bool | None = None,
) -> Dataset:
    """Return the inputs that are calibrated on, at most `limit`, of a data set or an array.

    A TypeError tells of what is neither a Dataset nor one of the `arrays`, which `kinds` names.
    """
    if isinstance(calibration, arrays):
        if not getattr(calibration, "ndim", 1) or not len(calibration):  # type: ignore[arg-type]
            raise ValueError("calibration is empty: give some hundred typical inputs, at least 8")
        shape = tuple(getattr(calibration, "shape", ()))
        if not features and len(shape) == 2:
            raise ValueError(
                f"calibration has shape {shape}: images are (N, H, W, C); give "
                "features=True for inputs that are no images"
            )
        inputs = SampleReader("calibration", features, channels_first).batch(calibration)
        calibration = Dataset.unlabeled(inputs, "calibration")
    if not isinstance(calibration, Dataset):
        raise TypeError(
            f"calibration is {kind_of(calibration)}: must be a pmt.datasets.Dataset, {kinds}; "
            "pmt.datasets.load(path) reads files"
        )
    return calibration.subset(chosen_indices(len(calibration), limit))


def _images(option: str, path: str, graph: FloatGraph, *, split: SplitName, limit: int) -> Dataset:
    height, width, channels = graph.tensors[graph.input].shape
    data = load_clean(path, split=split, size=(height, width), limit=limit)
    if not data.has_pixels:
        inputs = inputs_in_shape(data.images, (height, width, channels))
        return dataclasses.replace(data, images=inputs)
    data = in_color(data, channels)
    if data.images.shape[3] != channels:
        raise OptionError(
            option,
            f" {path}: images have {counted(data.images.shape[3], 'channel')}, the network reads "
            f"{channels}; convert the images or use another network",
        )
    return data


def for_inputs(
    graph: FloatGraph, data: Dataset, given: Mapping[str, Any], source: str
) -> FloatGraph:
    """Return the network for a data set's inputs: without a formula where they are not pixels.

    None may be `given` then: OptionError.
    """
    if data.has_pixels:
        return graph
    refuse_formula(given, source)
    metadata = {**graph.metadata, **FEATURE_INPUTS}
    return dataclasses.replace(graph, input_mean=(), input_std=(), metadata=metadata)


def refuse_formula(given: Mapping[str, Any], source: str) -> None:
    """Raise OptionError if an option of pixels is `given`, as the inputs are none."""
    for option in given:
        raise OptionError(option, f": {source} holds inputs that are not pixels; leave it out")


def names_of_logits(
    given: Sequence[str] | None, graph: FloatGraph | Graph, data: Dataset
) -> tuple[str, ...]:
    """Return the names `given`, one for each logit; else those of the data, if their number fits.

    OptionError tells of more or fewer names than logits, or of one that is blank or there twice.
    """
    height, width, channels = graph.tensors[graph.output].shape
    classes = height * width * channels
    if given is None:
        return data.class_names if len(data.class_names) == classes else ()
    given = checked_names("class_names", given)
    if len(given) != classes or not all(given) or len(set(given)) != len(given):
        raise OptionError(
            "class_names",
            f" gives {len(given)} names for the {classes} logits of the network: "
            "give one each, none twice or blank",
        )
    return given


def _accuracies(
    graph: FloatGraph,
    model: Model,
    data: Dataset,
    progress: Callable[[int, int], None],
    *,
    threads: int,
) -> Accuracies:
    """Run both networks on all images, which have the network's input shape."""
    batch = batch_size(graph)
    found: list[tuple[int, int]] = []
    for first in range(0, len(data), batch):
        images = data.images[first : first + batch]
        floating = class_logits(float_logits(graph, images)).argmax(axis=1)
        int8 = model.predict(images, threads=threads)
        found += zip(floating.tolist(), int8.tolist(), strict=True)
        progress(first + len(images), len(data))
    guessed = np.array(found)
    agreement = float(np.mean(guessed[:, 0] == guessed[:, 1]))
    if len(data.class_names) != model.told_classes:
        return Accuracies(len(data), None, None, agreement)
    right = np.mean(guessed == data.labels[:, None], axis=0)
    return Accuracies(len(data), float(right[0]), float(right[1]), agreement)
