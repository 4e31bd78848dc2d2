"""Writes trained weights into the .tflite file that the network was imported from.

The file's structure, operators, names, metadata and signatures stay as they are, byte by byte: only
the bytes of weights, biases, their scales and the output's range that training has changed are
replaced.
"""

from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from pmt._util.arrays import FloatArray, Int32Array
from pmt._util.text import listed
from pmt.formats.tflite.file import FileModel, read_file
from pmt.formats.tflite.importer import RENAMING, Lowered, lower
from pmt.net.graph import Graph, Op, Tensor, is_layer

# Operators that read logits, and whose output's range does not depend on theirs.
_TAKE_ANY_RANGE = {"SOFTMAX", "LOG_SOFTMAX", "LOGISTIC", "TANH", "ARG_MAX", "DEQUANTIZE", "MEAN"}


def tflite_with_weights(graph: Graph, original: Path) -> bytes:
    """Return a .tflite file with a network's weights and biases in place of its own.

    The network was imported from the file and perhaps trained since. The bytes are as many as the
    file's, and equal where nothing was trained. A ValueError lists all reasons why the network does
    not come from the file, or has no place in it for what was trained.
    """
    if original.suffix.lower() != ".tflite":
        raise ValueError(f"into={str(original)!r}: must be the .tflite file that was imported")
    imported = lower(original)
    problems = list(_differences(imported.graph, graph))
    if problems:
        raise ValueError(
            f"into={str(original)!r}: the model was not imported from this file: "
            f"{listed(problems, '; ')}; give the file it came from, or convert without --into"
        )
    patch = _Patch(original, imported)
    for old, new in zip(imported.graph.ops, graph.ops, strict=True):
        if is_layer(old):
            patch.layer(old, new, graph.tensors[new.inputs[0]].scale)
    for index in _head_outputs(graph):
        if _quantization(imported.graph.tensors[index]) != _quantization(graph.tensors[index]):
            patch.output(index, graph.tensors[index])
    content = patch.written()
    if patch.problems:
        raise ValueError(
            f"into={str(original)!r}: {listed(patch.problems, '; ')}; convert without --into"
        )
    return content


def _differences(expected: Graph, found: Graph) -> Iterator[str]:
    """Yield all differences that training cannot have made, in the order of the ops."""
    for what, a, b in (
        ("operations", expected.ops, found.ops),
        ("activations", expected.tensors, found.tensors),
    ):
        if len(a) != len(b):
            yield f"it has {len(a)} {what}, the model {len(b)}"
            return
    outputs = _head_outputs(found)
    for index, (one, other) in enumerate(zip(expected.tensors, found.tensors, strict=True)):
        if one.shape != other.shape:
            yield f"activation {index} is {one.shape}, the model's {other.shape}"
        elif index not in outputs and _quantization(one) != _quantization(other):
            yield (
                f"activation {index} has scale and zero point {_quantization(one)}, the model's "
                f"{_quantization(other)}"
            )
    for op, its in zip(expected.ops, found.ops, strict=True):
        difference = _op_difference(op, its)
        if difference:
            yield f"{op.name!r} has {difference}"
    if (expected.input, expected.output) != (found.input, found.output):
        yield "input or output is another activation"


def _op_difference(expected: Op, found: Op) -> str:
    for name in (*expected.base_fields(), "clamp"):
        if name == "name" and not is_layer(expected):  # a file holds names of constants alone
            continue
        a, b = getattr(expected, name), getattr(found, name)
        if a != b:
            return f"{name} {a!r}, the model {b!r}"
    if (expected.weights is None) != (found.weights is None):
        return "weights on one side only"
    if expected.weights is None or found.weights is None:
        return ""
    if expected.weights.shape != found.weights.shape:
        return f"weights {expected.weights.shape}, the model {found.weights.shape}"
    return ""


def _head_outputs(graph: Graph) -> set[int]:
    """Return outputs whose range a solved head may change: also that before a final mean."""
    last = graph.ops[-1]
    return {graph.output, last.inputs[0]} if last.kind == "mean" else {graph.output}


def _quantization(tensor: Tensor) -> tuple[float, int]:
    return (float(np.float32(tensor.scale)), tensor.zero_point)


class _Replacement(NamedTuple):
    """New values of a layer's weights or biases, and the buffer of the old ones."""

    layer: str
    buffer: int
    before: bytes
    after: bytes


class _Patch:
    """The file's bytes, and the new contents of its buffers."""

    def __init__(self, original: Path, imported: Lowered) -> None:
        import tflite

        self.content = original.read_bytes()
        self.problems: list[str] = []
        self._places = imported.layers
        self._file, self._file_tensors = read_file(original), imported.file_tensors
        self._model: Any = tflite.Model.GetRootAs(self.content, 0)
        self._replacements: list[_Replacement] = []
        graph = self._model.Subgraphs(0)
        operators = [graph.Operators(i) for i in range(graph.OperatorsLength())]
        read = [op.Inputs(i) for op in operators for i in range(op.InputsLength())]
        found = (_scales_in(self._model, tensor) for tensor in read if tensor >= 0)
        self._uses = Counter(one._tab.Pos for one in found if one is not None)
        self._scales: dict[int, FloatArray] = {}  # new ones, by tensor
        self._zero_points: dict[int, int] = {}  # new ones of outputs
        self._readers = Counter(self._buffer(tensor) for tensor in read if tensor >= 0)
        entries = [self._model.Metadata(i) for i in range(self._model.MetadataLength())]
        self._readers.update(entry.Buffer() for entry in entries)

    def layer(self, old: Op, new: Op, input_scale: float) -> None:
        """Replace one layer's parameters."""
        assert old.weights is not None
        assert new.weights is not None
        place, before, after = self._places.get(old.name), _bias(old), _bias(new)
        trained_bias = not np.array_equal(before, after)
        if place is None or self._stored(place.weights) != _little(old.weights):
            # A layer that importing has made, or with the zeros of groups or dilation.
            rescaled = not np.array_equal(_scales(old), _scales(new))
            if trained_bias or rescaled or not np.array_equal(old.weights, new.weights):
                self.problems.append(
                    f"layer {new.name!r} was trained, and the file does not store it as it is here"
                )
            return
        self._replace(new.name, place.weights, old.weights, new.weights)
        if place.bias >= 0:
            self._replace(new.name, place.bias, before, after)
        elif trained_bias:
            self.problems.append(f"layer {new.name!r} has trained biases, and none in the file")
        if not np.array_equal(_scales(old), _scales(new)):
            self._rescale(place.weights, new, _scales(new))
            if place.bias >= 0:
                self._rescale(place.bias, new, np.float32(input_scale) * _scales(new))

    def output(self, index: int, new: Tensor) -> None:
        """Give an output of the head another range, where operators behind it take any."""
        tensors = range(self._model.Subgraphs(0).TensorsLength())
        tables = Counter(t._tab.Pos for t in (_scales_in(self._model, i) for i in tensors) if t)
        outputs, behind = _renamed(self._file, self._file_tensors.get(index, -1))
        own = [_scales_in(self._model, i) for i in outputs]
        alone = own and all(table and tables[table._tab.Pos] == 1 for table in own)
        if alone and behind <= _TAKE_ANY_RANGE:
            self._scales.update((i, np.array([new.scale], np.float32)) for i in outputs)
            self._zero_points.update((i, new.zero_point) for i in outputs)
        else:
            self.problems.append(
                "the head's output has a new range, which fits its logits, and operators behind it "
                "have the old one"
            )

    def _rescale(self, tensor: int, layer: Op, scales: FloatArray) -> None:
        """Give a constant the scales of its layer, which alone reads it."""
        stored = _scales_in(self._model, tensor)
        found = stored.ScaleLength()
        if self._uses[stored._tab.Pos] > 1:
            problem = "others that share its parameters have the old scales"
        elif found == 1 and len(np.unique(scales)) > 1:
            problem = "the file has one for all its channels"
        else:
            self._scales[tensor] = scales[:found]
            return
        self.problems.append(f"layer {layer.name!r} has new weight scales, and {problem}")

    def _buffer(self, tensor: int) -> int:
        return int(self._model.Subgraphs(0).Tensors(tensor).Buffer())

    def _stored(self, tensor: int) -> bytes:
        return bytes(self._model.Buffers(self._buffer(tensor)).DataAsNumpy())

    def _replace(self, layer: str, tensor: int, old: Any, new: Any) -> None:
        self._replacements.append(
            _Replacement(layer, self._buffer(tensor), _little(old), _little(new))
        )

    def written(self) -> bytes:
        """Return the file with all replacements, and note those of buffers that others read."""
        data = bytearray(self.content)
        model = type(self._model).GetRootAs(data, 0)  # its arrays are views of the data
        for tensor, scales in self._scales.items():
            _scales_in(model, tensor).ScaleAsNumpy()[:] = scales
        for tensor, zero_point in self._zero_points.items():
            _scales_in(model, tensor).ZeroPointAsNumpy()[:] = zero_point
        for new in self._replacements:
            group = [other for other in self._replacements if other.buffer == new.buffer]
            alike = all(other.after == new.after for other in group)
            if alike and len(group) == self._readers[new.buffer]:
                view = model.Buffers(new.buffer).DataAsNumpy()
                view[:] = np.frombuffer(new.after, np.uint8)
            elif new.before != new.after:
                self.problems.append(
                    f"layer {new.layer!r} was trained, and shares a constant of the file with "
                    "others that differ from it now"
                )
        return bytes(data)


def _renamed(file: FileModel, output: int) -> tuple[list[int], set[str]]:
    """Return the tensors that are an output in other shapes, and the kinds that read them."""
    found = [output] if output >= 0 else []
    for op in reversed(file.ops):
        if op.kind in RENAMING and found and op.outputs[0] == found[-1]:
            found.append(op.inputs[0])
    for op in file.ops:
        if op.kind in RENAMING and op.inputs[0] in found and op.outputs[0] not in found:
            found.append(op.outputs[0])
    behind = (op.kind for op in file.ops if set(op.inputs) & set(found))
    return found, {kind for kind in behind if kind not in RENAMING}


def _bias(op: Op) -> Int32Array:
    assert op.weight_scales is not None
    return np.zeros(len(op.weight_scales), np.int32) if op.bias is None else op.bias


def _scales_in(model: Any, tensor: int) -> Any:
    """Return the table of a file that holds the scales of a tensor; None where it has none."""
    return model.Subgraphs(0).Tensors(tensor).Quantization()


def _scales(op: Op) -> FloatArray:
    return np.asarray(op.weight_scales, np.float32)


def _little(values: Any) -> bytes:
    return np.ascontiguousarray(values, values.dtype.newbyteorder("<")).tobytes()
