"""The range that a network's int8 output covers, when training has made its logits others."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from pmt import _core
from pmt._util.arrays import Array
from pmt.model import Model
from pmt.model.model import check_model
from pmt.quantization.ranges import Range, scale_and_zero_point


def cover_logits(model: Model, images: Array, *, threads: int = 0) -> Model:
    """Return a copy of a model whose int8 output holds the logits of these images.

    pmt reads the sums of a linear last layer, and programs that run a ``.tflite`` or ``.onnx`` file
    its int8 output, where a logit beyond the largest value is cut, and small ones are equal.
    Weights and logits stay as they are.

    Parameters
    ----------
    model : Model
        A model with a linear last layer.
    images : ndarray, shape (N, height, width, channels)
        Images as :meth:`pmt.Model.logits` takes them, best those that the model was trained on.
    threads : int
        Threads to use, 0 for all; the result does not depend on it.

    Returns
    -------
    Model
        A model with another scale and zero point of its output, where its own does not suffice.

    Raises
    ------
    ValueError, TypeError
        If the model's last layer is not linear, or the images do not fit.
    """
    check_model(model)
    if not model.core.has_linear_head:
        raise ValueError(
            "model: cover_logits() needs a linear last layer; the int8 output of this one is what "
            "pmt reads, too"
        )
    logits = model.logits(images, threads=threads)
    fitted = model.copy()
    fit_outputs(fitted, {model.core.output_tensor: (float(logits.min()), float(logits.max()))})
    return fitted


def fit_outputs(model: Model, ranges: Mapping[int, Range], *, narrow: bool = True) -> None:
    """Let tensors, by index, hold values from a lowest to a highest, in place.

    A tensor keeps a range that suffices, unless it may be made narrower and the values use less
    than a quarter of it. Another one has an eighth more room on the sides that change.
    """
    tensors = model.core.tensors()
    found = {
        i: _fitted(tensors[i], (min(low, 0.0), max(high, 0.0)), narrow)
        for i, (low, high) in ranges.items()
    }
    if not any(found.values()):
        return
    graph = model.to_graph()
    for index, bounds in found.items():
        if bounds is not None:
            scale, zero_point = scale_and_zero_point(*bounds)
            graph.tensors[index] = replace(
                graph.tensors[index],
                scale=float(np.clip(scale, *_core.TENSOR_SCALES)),
                zero_point=max(zero_point, -127),  # the core takes -128 for that of a ReLU
            )
    model.core = Model.from_graph(graph).core


def _fitted(tensor: Mapping[str, Any], values: Range, narrow: bool) -> Range | None:
    """Return the range that a tensor gets for values around zero; None where its own suffices."""
    scale, (low, high) = tensor["scale"], values
    lowest, highest = (scale * (end - tensor["zero_point"]) for end in (-128, 127))
    if narrow and 0 < 4 * (high - low) < highest - lowest:
        return 1.125 * low, 1.125 * high
    below, above = low < lowest - scale / 2, high > highest + scale / 2  # what rounding reaches
    if not below and not above:
        return None
    return 1.125 * low if below else lowest, 1.125 * high if above else highest
