"""What ``pmt quantize`` prints, and its figures."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from pmt import datasets
from pmt.cli.output import stage, table
from pmt.datasets import Dataset
from pmt.datasets.layouts import chosen_indices
from pmt.datasets.picture import Fit, resized
from pmt.model import Model
from pmt.net.graph import Graph
from pmt.protocol.data_source import BUNDLED
from pmt.quantization import Equalization, FloatGraph, OpNoise, float_logits, worst
from pmt.quantization.float_forward import batch_size

__all__ = [
    "Accuracies",
    "Quantised",
    "calibration_images",
    "figures",
    "float_accuracy",
    "text",
]


def calibration_images(
    path: str, graph: FloatGraph, *, split: str, limit: int, argument: str
) -> Dataset:
    """Read a split, resized to the network's input.

    Parameters
    ----------
    path : str
        Data set in any layout of :func:`pmt.datasets.load`, or ``"bundled"``.
    graph : FloatGraph
        Whose input size and channels the images must have.
    split : {"train", "test"}
        Which part.
    limit : int
        At most so many images, chosen at random, always the same ones; 0 takes all.
    argument : str
        The command's argument that gave ``path``, for messages.

    Raises
    ------
    FileNotFoundError, ValueError, ImportError
        As :func:`pmt.datasets.load`; or if the network reads another number of channels.
    """
    height, width, channels = graph.tensors[graph.input].shape
    if path == BUNDLED:
        data = datasets.bundled(split)
        data = data.subset(chosen_indices(len(data), limit))
        data = replace(data, images=resized(data.images, Fit((height, width))))
    else:
        data = datasets.load(path, split=split, size=(height, width), limit=limit)
    if data.images.shape[3] != channels:
        raise ValueError(
            f"{argument} {path}: images have {data.images.shape[3]} channels, the network reads "
            f"{channels}; convert the images or use another network"
        )
    return data


@dataclass(frozen=True)
class Accuracies:
    """Fractions 0..1 of ``n`` images of ``name``; accuracies None where labels do not fit.

    ``agreement`` is the fraction to which both networks give the same class.
    """

    name: str
    n: int
    float_top1: float | None
    int8_top1: float | None
    agreement: float


def float_accuracy(
    graph: FloatGraph, model: Model, data: Dataset, role: str, *, threads: int
) -> Accuracies:
    """Run both networks on all images.

    Parameters
    ----------
    graph : FloatGraph
        The float network.
    model : Model
        The int8 one.
    data : Dataset
        Images of the network's input shape. Where it has other classes than the network has
        logits, accuracy is left out.
    role : str
        What the images are for, shown with the progress.
    threads : int
        Threads of the int8 network, 0 = all.
    """
    progress = stage(f"accuracy, {role}")
    batch = batch_size(graph)
    found: list[tuple[int, int]] = []
    for first in range(0, len(data), batch):
        images = data.images[first : first + batch]
        floating = float_logits(graph, images).argmax(axis=1)
        int8 = model.logits(images, threads=threads).argmax(axis=1)
        found += zip(floating.tolist(), int8.tolist(), strict=True)
        progress(first + len(images), len(data))
    guessed = np.array(found)
    agreement = float(np.mean(guessed[:, 0] == guessed[:, 1]))
    if len(data.class_names) != model.classes:
        return Accuracies(data.name, len(data), None, None, agreement)
    right = np.mean(guessed == data.labels[:, None], axis=0)
    return Accuracies(data.name, len(data), float(right[0]), float(right[1]), agreement)


@dataclass(frozen=True)
class Quantised:
    """An int8 graph, how it was made, and its noise beside that of the plainest way."""

    graph: Graph
    images: int
    data: str
    method: str
    percentile: float | None
    equalised: Equalization | None
    bias_correction: bool
    plain: list[OpNoise]
    noise: list[OpNoise]


def text(
    result: Quantised,
    model: Model,
    graph: FloatGraph,
    accuracies: Mapping[str, Accuracies],
    out: Path,
) -> str:
    """Lay out the report."""
    least = worst(result.noise)
    lines = [_noise_table(result), ""]
    lines += [f"warning: {message}" for message in _warnings(graph)]
    lines += [
        f"calibrated on {result.images:,} train images of {result.data}: {_method(result)}",
        f"worst op {least.name}: {least.signal_to_noise:.1f} dB; "
        f"output {result.noise[-1].signal_to_noise:.1f} dB, plain "
        f"{result.plain[-1].signal_to_noise:.1f} dB",
    ]
    lines += [_accuracy_line(role, found) for role, found in accuracies.items()]
    size = len(model.image())
    lines.append(
        f"{out}: {size:,} bytes, {_float_bytes(graph) / size:.1f} times less than the float32 "
        "weights"
    )
    return "\n".join(lines)


def figures(
    result: Quantised,
    model: Model,
    graph: FloatGraph,
    accuracies: Mapping[str, Accuracies],
    out: Path,
) -> dict[str, Any]:
    """Return the same for JSON; a ratio without noise is null."""
    least = worst(result.noise)
    return {
        "path": str(out),
        "bytes": len(model.image()),
        "float_bytes": _float_bytes(graph),
        "images": result.images,
        "ranges": result.method,
        "percentile": result.percentile,
        "equalised": None
        if result.equalised is None
        else {
            "pairs": result.equalised.pairs,
            "channels": result.equalised.channels,
            "held": result.equalised.held,
        },
        "bias_correction": result.bias_correction,
        "layers": [
            {
                "name": op.name,
                "kind": op.kind,
                "plain_db": _finite(plain.signal_to_noise),
                "db": _finite(op.signal_to_noise),
            }
            for plain, op in zip(result.plain, result.noise, strict=True)
        ],
        "worst": {"name": least.name, "db": _finite(least.signal_to_noise)},
        "accuracy": {
            role: {
                "n": found.n,
                "float": found.float_top1,
                "int8": found.int8_top1,
                "agreement": found.agreement,
            }
            for role, found in accuracies.items()
        },
        "warnings": _warnings(graph),
    }


def _noise_table(result: Quantised) -> str:
    rows = [
        [
            str(index),
            op.name,
            op.kind,
            f"{plain.signal_to_noise:.1f}",
            f"{op.signal_to_noise:.1f}",
        ]
        for index, (plain, op) in enumerate(zip(result.plain, result.noise, strict=True))
    ]
    return table(["op", "name", "kind", "plain dB", "dB"], rows, left=("name", "kind"))


def _method(result: Quantised) -> str:
    parts = [f"ranges {result.method}"]
    if result.equalised is not None:
        found = result.equalised
        held = f" ({found.held:,} held by a bounded activation)" if found.held else ""
        parts.append(f"{found.channels:,} channels equalised{held}")
    if result.bias_correction:
        parts.append("biases corrected")
    return ", ".join(parts)


def _accuracy_line(role: str, found: Accuracies) -> str:
    same = f"{found.agreement:.4f} the same class"
    images = f"{found.n:,} {role} images"
    if found.float_top1 is None or found.int8_top1 is None:
        return f"{images}: {same}; the labels are of other classes, so there is no accuracy"
    note = " (seen by the quantiser: not a test)" if role == "calibration" else ""
    return (
        f"{images}: accuracy float {found.float_top1:.4f}, int8 {found.int8_top1:.4f}, {same}{note}"
    )


def _warnings(graph: FloatGraph) -> list[str]:
    return [
        f"layer {op.name} has no weight but zero; train it, or replace it"
        for op in graph.ops
        if op.weights is not None and not np.any(op.weights)
    ]


def _float_bytes(graph: FloatGraph) -> int:
    parameters = [array for op in graph.ops for array in (op.weights, op.bias) if array is not None]
    return 4 * sum(array.size for array in parameters)


def _finite(value: float) -> float | None:
    return value if math.isfinite(value) else None
