"""The range that a network's int8 output covers, when training has made its logits larger."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy.typing as npt

from pmt.model import Model
from pmt.model.model import check_model
from pmt.quantization.ranges import scale_and_zero_point

Range = tuple[float, float]


def cover_logits(model: Model, images: npt.NDArray[Any], *, threads: int = 0) -> Model:
    """Return a copy of a model whose int8 output holds the logits of these images.

    pmt reads the sums of a linear last layer, and programs that run a ``.tflite`` or ``.onnx`` file
    its int8 output, where a logit beyond the largest value is cut. Weights and logits stay equal.

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
    wider = model.copy()
    widen_outputs(wider, {model.core.output_tensor: (float(logits.min()), float(logits.max()))})
    return wider


def widen_outputs(model: Model, ranges: Mapping[int, Range]) -> None:
    """Let tensors, by index, hold values from a lowest to a highest, in place.

    A tensor whose range suffices keeps it; one that grows has an eighth more room on that side.
    """
    graph = model.to_graph()
    changed = False
    for index, (low, high) in ranges.items():
        tensor = graph.tensors[index]
        ends = [tensor.scale * (end - tensor.zero_point) for end in (-128, 127)]
        step = tensor.scale / 2  # what rounding reaches
        if ends[0] - step <= low and high <= ends[1] + step:
            continue
        low = ends[0] if low >= ends[0] - step else 1.125 * low
        high = ends[1] if high <= ends[1] + step else 1.125 * high
        scale, zero_point = scale_and_zero_point(low, high)
        # The core takes a zero point of -128 for that of a ReLU.
        tensor = replace(tensor, scale=scale, zero_point=max(zero_point, -127))
        graph.tensors[index] = tensor
        changed = True
    if changed:
        model.core = Model.from_graph(graph).core
