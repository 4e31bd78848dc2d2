"""Quantization from memory: a float network of Keras and calibration images become a model."""

import contextlib
import io
import tempfile
import warnings
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from pmt import formats
from pmt._util.arrays import FloatArray
from pmt._util.checks import check_type, checked_flag, checked_range, kind_of
from pmt._util.extras import import_extra
from pmt._util.text import counted
from pmt.datasets import Dataset
from pmt.model import Model
from pmt.net.float_graph import FEWEST_IMAGES
from pmt.net.graph import FEATURE_INPUTS
from pmt.quantization.quantized_model import (
    calibration_inputs,
    errors_of,
    given_options,
    named_model,
    names_of_logits,
    real_inputs,
    refuse_formula,
)


def from_keras(
    model: Any,
    calibration: Any,
    *,
    name: str = "",
    limit: int = 512,
    features: bool = False,
    input_mean: float | tuple[float, ...] | None = None,
    input_std: float | tuple[float, ...] | None = None,
    class_names: Sequence[str] | None = None,
) -> Model:
    """Quantize a float network of Keras to int8, in one call.

    TensorFlow's converter writes a full-integer ``.tflite`` file of it in a temporary folder, whose
    ranges are minima and maxima over `calibration`, and :func:`pmt.load` reads that.

    Parameters
    ----------
    model : keras.Model
        The network, of Keras 3 on TensorFlow: one input of a fixed size, channels last, one output,
        the logits, probabilities or features. A softmax at the end is left out.
    calibration : Dataset or ndarray
        Some hundred typical inputs, at least 8, of the size that the network reads: a data set, or
        an array (N, H, W, C) of uint8, or of floats in 0..1 before any normalization.
    name, limit, features, class_names
        As :func:`pmt.from_torch`; the name is by default that of Keras.
    input_mean, input_std : float or tuple of float, optional
        The network reads ``(pixel - mean) / std``, in units of a 0..255 pixel, one number each or
        one per channel; by default ``pixel / 255``. One that begins with ``Rescaling``, such as
        most of ``keras.applications``, reads pixels: ``input_std=1``.

    Returns
    -------
    Model
        The int8 network, which takes what `calibration` holds: (N, H, W, C), uint8 or float32.

    Raises
    ------
    ImportError
        If keras, tensorflow or tflite is missing.
    TypeError
        If `model` is no model of Keras, or `calibration` holds neither images nor inputs.
    ValueError
        If Keras runs on another library, the network does not take the inputs, holds what the
        converter or pmt does not support (docs/guides/importers.md lists the operators), or an
        option is outside its range.
    """
    checked_flag("features", features)
    check_type("name", name, str, "text")
    limit = checked_range("limit", limit, 0, 2**31 - 1)
    keras = import_extra("keras", "pmt.from_keras needs the package keras", "keras")
    tensorflow = import_extra("tensorflow", "pmt.from_keras needs tensorflow", "keras")
    _check_network(keras, model)
    data = calibration_inputs(
        calibration, limit, features, (np.ndarray,), "or an array of images (N, H, W, C)"
    )
    given = given_options(input_mean, input_std)
    if data.has_pixels:
        given = {"input_mean": 0.0, "input_std": 255.0, **given}
    else:
        refuse_formula(given, "calibration")
    inputs = _float_inputs(data, model.input_shape[1:], given)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "model.tflite")
        path.write_bytes(_converted(tensorflow, model, inputs))
        with errors_of(f"model {model.name}", path):
            graph = formats.read(path, **given)
    if not data.has_pixels:
        graph.metadata.update(FEATURE_INPUTS)
    names = names_of_logits(class_names, graph, data)
    source = f"{model.name} of Keras, quantized by pmt.from_keras"
    return named_model(graph, names, name or model.name, source, data)


def _check_network(keras: Any, model: object) -> None:
    if not isinstance(model, keras.Model):
        remedy = "keras.saving.load_model(path) reads files"
        raise TypeError(f"model is {kind_of(model)}: must be a keras.Model; {remedy}")
    if keras.backend.backend() != "tensorflow":
        raise ValueError(
            f"model: Keras runs on {keras.backend.backend()}, and only TensorFlow has a converter; "
            "set KERAS_BACKEND=tensorflow before keras is imported, and load the network again"
        )
    shape = getattr(model, "input_shape", None)
    if not isinstance(shape, tuple) or len(shape) < 2 or None in shape[1:]:
        raise ValueError(
            f"model: {model.name} has the input shape {shape}: must be one input of a fixed size; "
            "build it with keras.Input(shape)"
        )


def _float_inputs(data: Dataset, shape: tuple[int, ...], formula: Mapping[str, Any]) -> FloatArray:
    """Return a network's inputs, float32 (N, *shape)."""
    found = data.images.shape[1:]
    if [n for n in found if n != 1] != [n for n in shape if n != 1]:
        raise ValueError(
            f"calibration has inputs of {'x'.join(map(str, found))} (height, width, channels), and "
            f"the network reads {'x'.join(map(str, shape))}; give such inputs, "
            ".resize(height, width) of a data set resizes images"
        )
    if len(data) < FEWEST_IMAGES:
        raise ValueError(
            f"calibration has {counted(len(data), 'input')}: must have {FEWEST_IMAGES} or more, "
            "better some hundred"
        )
    inputs = real_inputs(data, formula)
    if data.has_pixels and not np.isfinite(inputs).all():  # which the converter would not survive
        raise ValueError(
            f"input_mean={formula['input_mean']} and input_std={formula['input_std']} make "
            "inputs that are not finite: must be those of 0..255 pixels"
        )
    return inputs.reshape(len(data), *shape)


def _converted(tensorflow: Any, model: Any, inputs: FloatArray) -> bytes:
    """Return the .tflite file that TensorFlow's converter makes, int8 at both ends."""
    lite = tensorflow.lite

    def calibration() -> Iterator[list[FloatArray]]:
        yield from ([one[None]] for one in inputs)

    # It prints its own steps, and warns of them.
    with warnings.catch_warnings(), contextlib.redirect_stdout(io.StringIO()):
        warnings.simplefilter("ignore")
        try:
            converter = lite.TFLiteConverter.from_keras_model(model)
            converter.optimizations = [lite.Optimize.DEFAULT]
            converter.representative_dataset = calibration
            converter.target_spec.supported_ops = [lite.OpsSet.TFLITE_BUILTINS_INT8]
            converter.inference_input_type = tensorflow.int8
            converter.inference_output_type = tensorflow.int8
            return bytes(converter.convert())
        except Exception as error:  # of many kinds, some of them no public ones
            raise ValueError(
                f"model: TensorFlow's converter refuses {model.name} ({type(error).__name__}, see "
                "above); docs/guides/importers.md lists what a network may hold"
            ) from error
