"""Activations of a ``.tflite`` file as LiteRT's reference kernels compute them."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from pmt.formats.tflite.importer import Lowered, lower
from pmt.net.graph import Graph, Tensor
from pmt.research.benchmark.differences import Int8Array

__all__ = ["LiteRTActivations", "default_outputs", "litert_activations"]


_FLOAT_STEPS = 2**20


@dataclass(frozen=True)
class LiteRTActivations:
    """An imported file and what LiteRT computes with it.

    ``values`` are by tensor of the graph, int8 (N, height, width, channels).
    """

    lowered: Lowered
    values: dict[int, Int8Array]

    @property
    def images(self) -> Int8Array:
        """Inputs of the graph."""
        return self.values[self.lowered.graph.input]

    @property
    def logits(self) -> Int8Array:
        """The int8 logits, shape (N, classes)."""
        output = self.values[self.lowered.graph.output]
        return output.reshape(len(output), -1)


def litert_activations(path: Path, images: Int8Array) -> LiteRTActivations:
    """Run a file on int8 images and keep every activation that the imported graph has.

    Parameters
    ----------
    path : pathlib.Path
        A full-integer ``.tflite`` file.
    images : ndarray of int8, shape (N, height, width, channels)
        Inputs of the imported graph. A float input is given their real values, a uint8 input
        the pixels ``value + 128``.

    Raises
    ------
    ImportError
        If the package ai-edge-litert is missing.
    ValueError
        If the file cannot be imported.
    """
    lowered = lower(path)
    interpreter = _interpreter(path, reference=True)
    collected: dict[int, list[npt.NDArray[Any]]] = {i: [] for i in lowered.file_tensors}
    source = lowered.graph.tensors[lowered.graph.input]
    entry = interpreter.get_input_details()[0]
    for image in images:
        interpreter.set_tensor(entry["index"], _file_input(entry, source, image))
        interpreter.invoke()
        for index, tensor in lowered.file_tensors.items():
            collected[index].append(interpreter.get_tensor(tensor))
    values = {}
    for index, arrays in collected.items():
        t = lowered.graph.tensors[index]
        values[index] = np.stack(arrays).reshape(len(images), t.height, t.width, t.channels)
    return LiteRTActivations(lowered, values)


def default_outputs(path: Path, graph: Graph, images: Int8Array) -> npt.NDArray[Any]:
    """Return a file's outputs, shape (N, classes), by LiteRT's default kernels (XNNPACK).

    They are integers: float outputs are given in steps of 2^-20.
    """
    interpreter = _interpreter(path, reference=False)
    entry, end = interpreter.get_input_details()[0], interpreter.get_output_details()[0]
    outputs = []
    for image in images:
        interpreter.set_tensor(
            entry["index"], _file_input(entry, graph.tensors[graph.input], image)
        )
        interpreter.invoke()
        outputs.append(interpreter.get_tensor(end["index"]).ravel())
    stacked = np.stack(outputs)
    is_float = stacked.dtype.kind == "f"
    return np.rint(stacked * _FLOAT_STEPS).astype(np.int64) if is_float else stacked


def _interpreter(path: Path, *, reference: bool) -> Any:
    try:
        from ai_edge_litert.interpreter import Interpreter, OpResolverType
    except ImportError:
        raise ImportError(
            "comparing with LiteRT needs the package ai-edge-litert: "
            'pip install "poor-mans-training[bench]"'
        ) from None
    kernels = OpResolverType.BUILTIN_REF if reference else OpResolverType.AUTO
    interpreter = Interpreter(
        model_path=str(path),
        num_threads=1,
        experimental_op_resolver_type=kernels,
        experimental_preserve_all_tensors=reference,
    )
    interpreter.allocate_tensors()
    return interpreter


def _file_input(entry: Any, source: Tensor, image: Int8Array) -> npt.NDArray[Any]:
    """Return an image as the file's own input: its type, and channels first if it has them so."""
    shape = tuple(int(n) for n in entry["shape"])
    height, width, channels = image.shape
    if shape == (1, channels, height, width) != (1, height, width, channels):
        image = image.transpose(2, 0, 1)
    if entry["dtype"] == np.float32:
        real = (image.astype(np.float32) - source.zero_point) * np.float32(source.scale)
        return real.astype(np.float32).reshape(shape)
    if entry["dtype"] == np.uint8:
        return (image.astype(np.int16) + 128).astype(np.uint8).reshape(shape)
    return image.reshape(shape)
