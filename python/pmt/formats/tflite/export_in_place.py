"""Writes trained weights into the .tflite file that the network was imported from.

The file's structure, operators, names, metadata and signatures stay as they are, byte by byte: only
the bytes of weights and biases that training has changed are replaced.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from pmt.formats import reading
from pmt.formats.tflite.file import FileOp, read_file
from pmt.net.graph import Graph, Op, Tensor, is_layer

_LAYER_OPERATORS = ("CONV_2D", "DEPTHWISE_CONV_2D", "FULLY_CONNECTED")
_SHOWN = 6  # problems in one message


def tflite_with_weights(graph: Graph, original: Path) -> bytes:
    """Return a .tflite file with a network's weights and biases in place of its own.

    The network was imported from the file and perhaps trained since. The bytes are as many as the
    file's, and equal to them where nothing was trained.

    Raises
    ------
    FileNotFoundError, ImportError
        If there is no such file, or the package tflite is missing.
    ValueError
        If the file cannot be imported, the network does not come from it, or the file has no place
        for what was trained: one message with every problem.
    """
    if original.suffix.lower() != ".tflite":
        raise ValueError(f"into={str(original)!r}: must be the .tflite file that was imported")
    imported = reading.read(original)
    problems = _differences(imported, graph)
    if problems:
        raise ValueError(
            f"into={str(original)!r}: the model was not imported from this file: "
            f"{_listed(problems)}; give the file it came from, or convert without --into"
        )
    patch = _Patch(original)
    for old, new in zip(imported.ops, graph.ops, strict=True):
        if is_layer(old):
            patch.layer(old, new)
    if patch.problems:
        raise ValueError(
            f"into={str(original)!r}: {_listed(patch.problems)}; convert without --into"
        )
    return bytes(patch.data)


def _differences(expected: Graph, found: Graph) -> list[str]:
    """Return all differences that training cannot have made, in the order of the ops."""
    if len(expected.ops) != len(found.ops):
        return [f"it has {len(expected.ops)} operations, the model {len(found.ops)}"]
    if len(expected.tensors) != len(found.tensors):
        return [f"it has {len(expected.tensors)} activations, the model {len(found.tensors)}"]
    problems = []
    for index, (a, b) in enumerate(zip(expected.tensors, found.tensors, strict=True)):
        if a.shape != b.shape:
            problems.append(f"activation {index} is {a.shape}, the model's {b.shape}")
        elif _quantization(a) != _quantization(b):
            problems.append(
                f"activation {index} has scale and zero point {_quantization(a)}, the model's "
                f"{_quantization(b)}"
            )
    for one, other in zip(expected.ops, found.ops, strict=True):
        problems += _op_differences(one, other)
    if (expected.input, expected.output) != (found.input, found.output):
        problems.append("input or output is another activation")
    return problems


def _op_differences(expected: Op, found: Op) -> list[str]:
    for name in (*expected.base_fields(), "clamp"):
        a, b = getattr(expected, name), getattr(found, name)
        if a != b:
            return [f"{expected.name!r} has {name} {a!r}, the model {b!r}"]
    if (expected.weights is None) != (found.weights is None):
        return [f"{expected.name!r} has weights on one side only"]
    if expected.weights is None or found.weights is None:
        return []
    if expected.weights.shape != found.weights.shape:
        shapes = (expected.weights.shape, found.weights.shape)
        return [f"{expected.name!r} has weights {shapes[0]}, the model {shapes[1]}"]
    if not np.array_equal(_scales(expected), _scales(found)):
        return [f"{expected.name!r} has other weight scales than the model"]
    return []


def _scales(op: Op) -> npt.NDArray[np.float32]:
    assert op.weight_scales is not None
    return op.weight_scales.astype(np.float32)


def _quantization(tensor: Tensor) -> tuple[float, int]:
    return (float(np.float32(tensor.scale)), tensor.zero_point)


class _Patch:
    """The file's bytes, and which of its buffers were written with what."""

    def __init__(self, original: Path) -> None:
        import tflite

        self.problems: list[str] = []
        self.data = bytearray(original.read_bytes())
        self._file = read_file(original)
        # Its arrays are views: what is written to them is written to the file.
        self._model: Any = tflite.Model.GetRootAs(self.data, 0)
        self._written: dict[int, tuple[str, bytes]] = {}
        self._unmatched = [op for op in self._file.ops if op.kind in _LAYER_OPERATORS]

    def layer(self, old: Op, new: Op) -> None:
        """Replace one layer's parameters; layers come in the order of the file."""
        assert old.weights is not None
        assert new.weights is not None
        before, after = _bias(old), _bias(new)
        operator = self._operator(old.weights)
        if operator is None:
            if not np.array_equal(old.weights, new.weights) or not np.array_equal(before, after):
                self.problems.append(
                    f"layer {new.name!r} was trained, and the file does not store it as it is here"
                )
            return
        self._replace(new.name, "weights", operator.inputs[1], old.weights, new.weights)
        bias = operator.inputs[2] if len(operator.inputs) > 2 else -1
        if bias >= 0:
            self._replace(new.name, "biases", bias, before, after)
        elif not np.array_equal(before, after):
            self.problems.append(f"layer {new.name!r} has trained biases, and none in the file")

    def _operator(self, weights: npt.NDArray[np.int8]) -> FileOp | None:
        """Return the next operator of these weights; importing may have made further layers."""
        for position, operator in enumerate(self._unmatched):
            stored = self._file.tensors[operator.inputs[1]].data
            if stored is not None and _little(stored) == _little(weights):
                del self._unmatched[: position + 1]
                return operator
        return None

    def _replace(
        self, layer: str, what: str, tensor: int, old: npt.NDArray[Any], new: npt.NDArray[Any]
    ) -> None:
        buffer = int(self._model.Subgraphs(0).Tensors(tensor).Buffer())
        before, after = _little(old), _little(new)
        other, content = self._written.setdefault(buffer, (layer, after))
        if content != after:
            self.problems.append(
                f"layers {other!r} and {layer!r} share their {what} in the file, and differ now"
            )
        elif before != after and other == layer:
            view = self._model.Buffers(buffer).DataAsNumpy()
            if view.tobytes() == before:
                view[:] = np.frombuffer(after, np.uint8)
            else:
                self.problems.append(f"layer {layer!r}: the file has other {what} than the model")


def _bias(op: Op) -> npt.NDArray[np.int32]:
    assert op.weight_scales is not None
    return np.zeros(len(op.weight_scales), np.int32) if op.bias is None else op.bias


def _little(values: npt.NDArray[Any]) -> bytes:
    return np.ascontiguousarray(values, values.dtype.newbyteorder("<")).tobytes()


def _listed(problems: list[str]) -> str:
    more = len(problems) - _SHOWN
    return "; ".join(problems[:_SHOWN]) + (f"; and {more} more" if more > 0 else "")
