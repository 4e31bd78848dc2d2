"""The operators of a network's file, and their work."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pmt._util.extras import import_extra

__all__ = ["OperatorCount", "count_operators"]

_LAYERS = ("CONV_2D", "DEPTHWISE_CONV_2D", "FULLY_CONNECTED", "TRANSPOSE_CONV")
_BY_INPUT = ("TRANSPOSE_CONV", "ConvTranspose")  # their weights meet every position of the input


@dataclass(frozen=True)
class OperatorCount:
    """One kind of operator in a file.

    Attributes
    ----------
    kind : str
        Its name in the file's format.
    count : int
        Number of such operators.
    macs : int
        Multiply-accumulates of one image, of operators with constant weights.
    """

    kind: str
    count: int
    macs: int


def count_operators(path: str | Path) -> list[OperatorCount]:
    """Count the operators of a ``.tflite`` or ``.onnx`` file.

    Parameters
    ----------
    path : str or pathlib.Path
        The file.

    Returns
    -------
    list of OperatorCount
        By kind, that with the most multiply-accumulates first. Empty for other files.

    Raises
    ------
    FileNotFoundError, ImportError, ValueError
        If the file, or the package of its format, is missing, or it is damaged.
    """
    path = Path(path)
    readers = {".tflite": _tflite, ".onnx": _onnx}
    reader = readers.get(path.suffix.lower())
    found: dict[str, list[int]] = defaultdict(list)
    for kind, macs in reader(path) if reader else ():
        found[kind].append(macs)
    counts = [OperatorCount(kind, len(macs), sum(macs)) for kind, macs in found.items()]
    return sorted(counts, key=lambda one: (-one.macs, one.kind))


def _tflite(path: Path) -> Iterator[tuple[str, int]]:
    from pmt.formats.tflite.file import read_file

    model = read_file(path)
    for op in model.ops:
        weights = model.tensors[op.inputs[1]] if len(op.inputs) > 1 and op.inputs[1] >= 0 else None
        shape: tuple[int, ...] = (1,)
        if weights is not None and op.outputs and op.outputs[0] >= 0:
            shape = model.tensors[op.outputs[0]].shape
        if op.kind in _BY_INPUT and len(op.inputs) > 2:
            shape = model.tensors[op.inputs[2]].shape
        size = 0 if weights is None or weights.data is None else weights.data.size
        size *= op.kind in _LAYERS
        yield op.kind, size * abs(math.prod(shape[1:-1]))


def _onnx(path: Path) -> Iterator[tuple[str, int]]:
    onnx = import_extra("onnx", "reading .onnx needs the package onnx", "onnx")
    model = onnx.load(str(path))
    with suppress(Exception):  # at an ill-formed node: shapes after it stay unknown
        model = onnx.shape_inference.infer_shapes(model)
    graph = model.graph
    sizes = {one.name: list(one.dims) for one in graph.initializer}
    quantized = (node for node in graph.node if node.op_type == "DequantizeLinear")
    sizes |= {node.output[0]: sizes[node.input[0]] for node in quantized if node.input[0] in sizes}
    shapes = {
        one.name: [dim.dim_value or 1 for dim in one.type.tensor_type.shape.dim]
        for one in (*graph.input, *graph.value_info, *graph.output)
    }
    for node in graph.node:
        yield node.op_type, _macs(node, sizes, shapes)


def _macs(node: Any, sizes: dict[str, list[int]], shapes: dict[str, list[int]]) -> int:
    weights = next((sizes[name] for name in node.input[1:2] if name in sizes), None)
    shape = shapes.get(node.input[0] if node.op_type in _BY_INPUT else node.output[0])
    if weights is None or shape is None:
        return 0
    if node.op_type in ("Gemm", "MatMul"):
        return math.prod(weights) * math.prod(shape[1:-1])
    return math.prod(weights) * math.prod(shape[2:]) * (node.op_type in ("Conv", "ConvTranspose"))
