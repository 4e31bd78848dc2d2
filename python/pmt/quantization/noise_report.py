"""How much noise quantisation adds, layer by layer."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from pmt.graph import Graph, OpKind
from pmt.quantization.float_forward import float_activations, normalise
from pmt.quantization.float_graph import FloatGraph
from pmt.quantization.integer_forward import dequantised, integer_activations


@dataclass(frozen=True)
class OpNoise:
    """Noise in one op's output, against the float network, accumulated from the input on."""

    name: str
    kind: OpKind
    signal_to_noise: float
    """In dB: 10 log10 of mean square activation by mean square error; infinite without error."""


def signal_to_noise(
    float_graph: FloatGraph, graph: Graph, images: npt.NDArray[Any]
) -> list[OpNoise]:
    """Compare every activation of the int8 network with the float network's.

    Parameters
    ----------
    float_graph : FloatGraph
        The network before quantisation.
    graph : Graph
        What :func:`quantize` made of it.
    images : ndarray of uint8, shape (N, H, W, C)
        Pixels 0..255; 100 images are plenty.

    Returns
    -------
    list of OpNoise
        One per op, in execution order. ``format_noise`` makes a table of it.

    Raises
    ------
    ValueError
        The images do not fit, or the graphs have not the same ops.
    """
    if [op.name for op in float_graph.ops] != [op.name for op in graph.ops]:
        raise ValueError(
            f"graph has {len(graph.ops)} ops that are not the {len(float_graph.ops)} of "
            "float_graph: pass the graph that quantize() made of this float_graph"
        )
    exact = float_activations(float_graph, normalise(float_graph, images))
    quantised = integer_activations(graph, images)
    report = []
    for op in graph.ops:
        found = dequantised(graph.tensors[op.output], quantised[op.output])
        ratio = _decibel(exact[op.output], found - exact[op.output])
        report.append(OpNoise(op.name, op.kind, ratio))
    return report


def format_noise(report: list[OpNoise]) -> str:
    """Format a report as a table: op, kind, signal-to-noise ratio in dB."""
    width = max([2, *(len(op.name) for op in report)])
    lines = [f"{'op':{width}}  {'kind':16}  {'SNR/dB':>6}"]
    lines += [f"{op.name:{width}}  {op.kind:16}  {op.signal_to_noise:6.1f}" for op in report]
    return "\n".join(lines)


def _decibel(signal: npt.NDArray[np.float32], error: npt.NDArray[np.float32]) -> float:
    noise = float(np.mean(error.astype(np.float64) ** 2))
    power = float(np.mean(signal.astype(np.float64) ** 2))
    if noise == 0.0:
        return float("inf")
    return float(10.0 * np.log10(power / noise)) if power > 0.0 else float("-inf")
