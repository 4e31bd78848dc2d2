"""The noise that quantization adds, layer by layer."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from pmt.model import Model
from pmt.net.float_graph import FloatGraph, check_same_ops
from pmt.net.graph import Graph, OpKind, Tensor
from pmt.quantization.float_forward import Progress, float_steps, image_batches, normalize


@dataclass(frozen=True)
class OpNoise:
    """Noise in one op's output, against the float network, accumulated from the input on."""

    name: str
    kind: OpKind
    signal_to_noise: float
    """In dB: 10 log10 of mean square activation by mean square error; infinite without error."""


def signal_to_noise(
    float_graph: FloatGraph,
    graph: Graph,
    images: npt.NDArray[Any],
    *,
    progress: Progress | None = None,
) -> list[OpNoise]:
    """Compare every activation of the int8 network with the float network's.

    Parameters
    ----------
    float_graph : FloatGraph
        The network before quantization; the equalized one, where it was equalized.
    graph : Graph
        Graph that :func:`quantize` made of it.
    images : ndarray of uint8, shape (N, H, W, C)
        Pixels 0..255; 100 images are plenty. They run in batches, so that memory is bounded.
    progress : callable, optional
        Called after every batch as ``progress(images_done, images_in_all)``.

    Returns
    -------
    list of OpNoise
        One per op, in execution order. ``format_noise`` makes a table of it.

    Raises
    ------
    ValueError
        If the images do not fit, or the graphs do not have the same ops.
    """
    check_same_ops(float_graph, graph)
    powers = np.zeros((len(graph.ops), 2))
    for part in image_batches(float_graph, images, progress):
        powers += _powers(float_graph, graph, part)
    return [
        OpNoise(op.name, op.kind, _decibel(signal, noise))
        for op, (signal, noise) in zip(graph.ops, powers, strict=True)
    ]


def worst(report: list[OpNoise]) -> OpNoise:
    """Return the op with the least ratio of signal to noise, the first of equals."""
    return min(report, key=lambda op: op.signal_to_noise)


def format_noise(report: list[OpNoise]) -> str:
    """Format a report as a table: op, kind, signal-to-noise ratio in dB."""
    width = max([2, *(len(op.name) for op in report)])
    lines = [f"{'op':{width}}  {'kind':16}  {'SNR/dB':>6}"]
    lines += [f"{op.name:{width}}  {op.kind:16}  {op.signal_to_noise:6.1f}" for op in report]
    return "\n".join(lines)


def integer_activations(graph: Graph, images: npt.NDArray[np.uint8]) -> list[npt.NDArray[np.int8]]:
    """Run the network and keep every activation.

    Parameters
    ----------
    graph : Graph
        The int8 network.
    images : ndarray of uint8, shape (N, H, W, C)
        Pixels 0..255.

    Returns
    -------
    list of ndarray of int8
        One per tensor of the graph, ``(N, H, W, C)`` each; the input is among them.
    """
    model = Model.from_graph(graph)
    per_image = [model.core.activations(image) for image in model.prepare(images)]
    return [np.stack(tensors) for tensors in zip(*per_image, strict=True)]


def _powers(
    float_graph: FloatGraph, graph: Graph, images: npt.NDArray[Any]
) -> npt.NDArray[np.float64]:
    """Sums of squares of signal and noise, ``(ops, 2)``."""
    inputs = normalize(float_graph, images)
    quantized = integer_activations(graph, images)
    powers = []
    for step in float_steps(float_graph, inputs):
        index = step.op.output
        noise = _dequantized(graph.tensors[index], quantized[index]) - step.output
        powers.append([_power(step.output), _power(noise)])
    return np.array(powers)


def _dequantized(tensor: Tensor, values: npt.NDArray[np.int8]) -> npt.NDArray[np.float32]:
    """Real values ``scale * (q - zero_point)`` of an activation."""
    real = (values.astype(np.float32) - np.float32(tensor.zero_point)) * np.float32(tensor.scale)
    return np.asarray(real, np.float32)


def _power(values: npt.NDArray[np.float32]) -> float:
    return float(np.sum(values.astype(np.float64) ** 2))


def _decibel(power: float, noise: float) -> float:
    if noise == 0.0:
        return float("inf")
    return float(10.0 * np.log10(power / noise)) if power > 0.0 else float("-inf")
