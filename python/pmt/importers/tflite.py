"""Importer of full-integer ``.tflite`` networks.

Layers round as TFLite's XNNPACK kernels do. TFLite's fixed-point reference kernels and its average
pool, which rounds halves away from zero, give values that differ by at most 1 a layer in less than
one per cent of them; the predicted class changes only where two logits are nearly equal.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from pmt.consistency import check_graph, is_layer
from pmt.graph import Graph, Op, Tensor
from pmt.importers.layer_blocks import consecutive_blocks
from pmt.importers.tflite_file import FileModel, FileOp, FileTensor, read_file
from pmt.importers.tflite_operators import CONVERTERS, Unsupported, activation_tensor, convert

# Generic last parts of the names that converters give to weights. "Conv2D" is an operator,
# "conv2d" the default name of a layer.
_WEIGHT_WORDS = frozenset(
    [
        "Conv2D",
        "DepthwiseConv2D",
        "MatMul",
        "BiasAdd",
        "ReadVariableOp",
        "resource",
        "depthwise",
        "kernel",
        "weights",
        "depthwise_kernel",
        "depthwise_weights",
    ]
)


def read(
    path: str | Path,
    *,
    input_mean: Sequence[float] | None = None,
    input_std: Sequence[float] | None = None,
    **unknown: Any,
) -> Graph:
    """Read a full-integer ``.tflite`` file (int8 activations and weights, int32 biases).

    Parameters
    ----------
    path : str or pathlib.Path
        The file.
    input_mean, input_std : sequence of float, optional
        Per channel, in units of a 0..255 pixel: real input = (pixel - mean) / std. Without them
        the int8 input is pixel - 128.

    Returns
    -------
    Graph
        QUANTIZE at the start and DEQUANTIZE and SOFTMAX at the end are dropped (listed under
        ``dropped_operators`` of the metadata): the output is the logits. Layers are named after
        their weights where those names are short and unique, else ``conv0``, ``depthwise0``,
        ``dense0``. Blocks: ``B1`` to ``B4`` (layers before the head in four consecutive groups),
        ``head`` (the last layer) and ``all``.

    Raises
    ------
    FileNotFoundError
        If there is no such file.
    ImportError
        If the package ``tflite`` is missing.
    ValueError
        If the file is damaged, or has operators or options that are not supported: one message
        with every one of them.
    TypeError
        If an option is unknown.
    """
    if unknown:
        raise TypeError(
            f"options {sorted(unknown)} are unknown for a .tflite file; "
            "it takes input_mean and input_std"
        )
    path = Path(path)
    graph = _Lowering(read_file(path), path.name).graph()
    channels = graph.tensors[graph.input].channels
    if input_mean is not None:
        graph.input_mean = _per_channel("input_mean", input_mean, channels)
    if input_std is not None:
        graph.input_std = _per_channel("input_std", input_std, channels)
    try:
        check_graph(graph)
    except ValueError as error:
        raise ValueError(f"{path.name}: contradicts itself: {error}") from None
    return graph


def _per_channel(name: str, values: Sequence[float], channels: int) -> tuple[float, ...]:
    result = tuple(float(value) for value in values)
    if len(result) != channels:
        raise ValueError(f"{name}={result}: needs one value for each of {channels} input channels")
    return result


class _Lowering:
    """Turns the operators of a file into a graph, collecting everything unsupported."""

    def __init__(self, model: FileModel, source: str) -> None:
        self._model = model
        self._source = source
        self._problems: list[str] = []
        self._dropped: list[str] = []
        self._tensors: list[Tensor] = []
        self._index: dict[int, int] = {}  # tensor of the file -> tensor of the graph
        self._names: Counter[str] = Counter()
        self._taken: set[str] = set()

    def graph(self) -> Graph:
        if len(self._model.inputs) != 1 or len(self._model.outputs) != 1:
            raise ValueError(
                f"{self._source}: has {len(self._model.inputs)} inputs and "
                f"{len(self._model.outputs)} outputs, one of each is supported"
            )
        numbered, first, last = self._strip_ends(list(enumerate(self._model.ops)))
        self._activation(first)
        ops: list[Op] = []
        for number, file_op in numbered:
            try:
                ops.append(self._lower(file_op))
            except Unsupported as problem:
                self._problems.append(f"op {number} {file_op.kind}: {problem}")
        if not self._problems and not any(is_layer(op) for op in ops):
            self._problems.append("there is no layer with weights")
        if not self._problems and last not in self._index:
            self._problems.append("no supported operator writes the output")
        if self._problems:
            raise ValueError(
                f"{self._source}: {len(self._problems)} things are not supported: "
                + "; ".join(self._problems)
            )
        return self._assemble(ops, self._index[last])

    def _strip_ends(
        self, numbered: list[tuple[int, FileOp]]
    ) -> tuple[list[tuple[int, FileOp]], int, int]:
        """Drop QUANTIZE at the start, SOFTMAX and DEQUANTIZE at the end."""
        first, last = self._model.inputs[0], self._model.outputs[0]

        def readers(tensor: int) -> int:
            return sum(op.inputs.count(tensor) for _, op in numbered)

        for number, op in list(numbered):
            starts = op.kind == "QUANTIZE" and op.inputs == (first,) and len(op.outputs) == 1
            if starts and readers(first) == 1:
                self._drop(number, op)
                numbered.remove((number, op))
                first = op.outputs[0]
        for number, op in reversed(list(numbered)):
            ends = op.kind in ("SOFTMAX", "DEQUANTIZE") and op.outputs == (last,)
            if ends and len(op.inputs) == 1 and readers(op.inputs[0]) == 1:
                self._drop(number, op)
                numbered.remove((number, op))
                last = op.inputs[0]
        return numbered, first, last

    def _drop(self, number: int, op: FileOp) -> None:
        self._dropped.append(f"op {number} {op.kind}")

    def _activation(self, index: int) -> None:
        try:
            self._tensors.append(activation_tensor(self._model.tensors[index]))
            self._index[index] = len(self._tensors) - 1
        except Unsupported as problem:
            self._problems.append(f"input: {problem}")

    def _lower(self, op: FileOp) -> Op:
        """Convert one operator; its output exists even if the conversion fails half-way."""
        if len(op.outputs) != 1 or op.outputs[0] < 0:
            raise Unsupported(f"{len(op.outputs)} outputs, one is supported")
        if op.outputs[0] in self._index:
            raise Unsupported(f"writes tensor {op.outputs[0]} a second time")
        if op.kind not in CONVERTERS:
            self._stand_in(op)
            raise Unsupported("this operator is unknown here")
        target = activation_tensor(self._model.tensors[op.outputs[0]])
        self._tensors.append(target)
        self._index[op.outputs[0]] = len(self._tensors) - 1
        inputs = [i for i in op.inputs if i >= 0]
        constants = [self._model.tensors[i] for i in inputs if self._is_constant(i)]
        activations = [i for i in inputs if not self._is_constant(i)]
        for index in activations:
            if index not in self._index:
                raise Unsupported(f"reads tensor {index}, which no supported operator wrote")
        sources = [self._tensors[self._index[i]] for i in activations]
        result = convert(op, self._name(op, constants), sources, target, constants)
        result.inputs = tuple(self._index[i] for i in activations)
        result.output = self._index[op.outputs[0]]
        return result

    def _stand_in(self, op: FileOp) -> None:
        """Let later operators read the output of an unsupported one: one problem, not two."""
        try:
            self._tensors.append(activation_tensor(self._model.tensors[op.outputs[0]]))
            self._index[op.outputs[0]] = len(self._tensors) - 1
        except Unsupported:
            pass

    def _is_constant(self, index: int) -> bool:
        return self._model.tensors[index].data is not None

    def _name(self, op: FileOp, constants: list[FileTensor]) -> str:
        stem = _STEMS[op.kind]
        if stem in ("conv", "depthwise", "dense") and constants:
            name = _short_name(constants[0].name)
            if name and name not in self._taken:
                self._taken.add(name)
                return name
        while True:
            name = f"{stem}{self._names[stem]}"
            self._names[stem] += 1
            if name not in self._taken:
                self._taken.add(name)
                return name

    def _assemble(self, ops: list[Op], output: int) -> Graph:
        layers = [i for i, op in enumerate(ops) if is_layer(op)]
        blocks = consecutive_blocks(layers[:-1])
        blocks["head"] = layers[-1:]
        blocks["all"] = layers
        source = self._tensors[0]
        channels = min(source.channels, 4)
        return Graph(
            tensors=self._tensors,
            ops=ops,
            input=0,
            output=output,
            # Makes (pixel - mean) / std / scale + zero_point exactly pixel - 128.
            input_mean=(128.0 + source.zero_point,) * channels,
            input_std=(1.0 / source.scale,) * channels,
            blocks=blocks,
            metadata={
                "source": f"tflite {self._source}",
                "dropped_operators": self._dropped,
            },
        )


_STEMS = {
    "CONV_2D": "conv",
    "DEPTHWISE_CONV_2D": "depthwise",
    "FULLY_CONNECTED": "dense",
    "ADD": "add",
    "AVERAGE_POOL_2D": "average_pool",
    "MAX_POOL_2D": "max_pool",
    "MEAN": "mean",
    "PAD": "pad",
    "RESHAPE": "reshape",
}


def _short_name(weights: str) -> str:
    """Return ``conv2d_1`` for weights named ``model/conv2d_1/Conv2D``, or nothing."""
    parts = [part for part in weights.partition(";")[0].split("/") if part]
    while parts and parts[-1] in _WEIGHT_WORDS and len(parts) > 1:
        parts.pop()
    name = parts[-1] if parts else ""
    plain = name.isascii() and name.replace("_", "").replace(".", "").isalnum()
    return name if plain and len(name) <= 32 else ""
