"""Differences of an imported network's values from those of LiteRT, its format's own engine.

Every op is run by the core on the other engine's own inputs, so that what is counted is the op's
own difference and not what came before it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from pmt.formats.tflite.importer import Lowered, lower
from pmt.model import Model
from pmt.net.graph import Graph, Op, Tensor, graph_of_activations

Int8Array = npt.NDArray[np.int8]
IntArray = npt.NDArray[np.int64]


@dataclass(frozen=True)
class OpDifference:
    """One op: how many of its int8 outputs differ, and by how many steps at most."""

    name: str
    operator: str
    values: int
    differing: int
    largest: int


@dataclass(frozen=True)
class TopOne:
    """Predicted classes of one network in two engines.

    ``tied`` counts images whose two largest outputs are equal in the other engine; of the rest,
    ``equal`` have the same class. ``widest`` is the largest margin between the two, in steps of
    the other engine's output, where the class differs.
    """

    images: int
    tied: int
    equal: int
    widest: int


def compare_ops(
    graph: Graph, reference: Mapping[int, Int8Array], operators: Mapping[int, str]
) -> list[OpDifference]:
    """Compare every op whose output the other engine has too.

    ``reference`` holds the other engine's activations by tensor of the graph, the input among them;
    the core's own values stand in for those that importing added. ``operators`` says what the other
    format calls the operator that writes a tensor.
    """
    values = dict(reference)
    found = []
    for op in graph.ops:
        output = run_op(graph, op, [values[index] for index in op.inputs])
        if op.output not in reference:
            values[op.output] = output
            continue
        steps = np.abs(output.astype(np.int16) - reference[op.output])
        operator = operators.get(op.output, op.kind)
        count = int(np.count_nonzero(steps))
        found.append(OpDifference(op.name, operator, steps.size, count, int(steps.max())))
    return found


def head_classes(graph: Graph, reference: Mapping[int, Int8Array]) -> IntArray:
    """Return the classes that the last op alone predicts from the other engine's activations."""
    last = graph.ops[-1]
    output = run_op(graph, last, [reference[index] for index in last.inputs])
    return np.asarray(output.reshape(len(output), -1).argmax(axis=1), np.int64)


def network_classes(graph: Graph, images: Int8Array) -> IntArray:
    """Return the classes that the whole network predicts from int8 inputs (N, H, W, C)."""
    logits = Model.from_graph(graph).core.logits(np.ascontiguousarray(images), threads=1)
    return np.asarray(logits.argmax(axis=1), np.int64)


def compare_top_one(predicted: IntArray, outputs: npt.NDArray[np.integer]) -> TopOne:
    """Compare predicted classes with the other engine's integer outputs (N, classes)."""
    wide = outputs.astype(np.int64)
    ordered = np.sort(wide, axis=1)
    margin = ordered[:, -1] - ordered[:, -2]
    same = predicted == wide.argmax(axis=1)
    return TopOne(
        images=len(outputs),
        tied=int(np.count_nonzero(margin == 0)),
        equal=int(np.count_nonzero((margin > 0) & same)),
        widest=int(margin[~same].max(initial=0)),
    )


def run_op(graph: Graph, op: Op, inputs: list[Int8Array]) -> Int8Array:
    """Run an op of a graph as the core does, on int8 activations (N, height, width, channels)."""
    sources = [graph.tensors[index] for index in op.inputs]
    target = graph.tensors[op.output]
    if len(sources) == 1:
        tensors, ops, images = [sources[0], target], [replace(op, inputs=(0,), output=1)], inputs[0]
    else:
        tensors, ops = _two_inputs(op, sources, target)
        wide = [np.pad(x, [(0, 0)] * 3 + [(0, tensors[0].channels - x.shape[3])]) for x in inputs]
        images = np.stack(wide, axis=2).reshape(len(inputs[0]), *_size(tensors[0]))
    core = Model.from_graph(graph_of_activations(tensors, ops)).core
    return np.stack([core.activations(image)[-1] for image in np.ascontiguousarray(images)])


def _two_inputs(op: Op, sources: list[Tensor], target: Tensor) -> tuple[list[Tensor], list[Op]]:
    """Return a network with one input, the two activations row by row in turns.

    Two exact convolutions take the even and the odd rows and give them their quantization.
    """
    first, channels = sources[0], max(source.channels for source in sources)
    both = Tensor("both", 2 * first.height, first.width, channels, 1.0, 0)
    ops = [_select_rows(i, source, channels) for i, source in enumerate(sources)]
    return [both, *sources, target], [*ops, replace(op, inputs=(1, 2), output=3)]


def _select_rows(parity: int, tensor: Tensor, channels: int) -> Op:
    weights = np.zeros((tensor.channels, 2, 1, channels), np.int8)
    weights[:, parity, 0, : tensor.channels] = np.eye(tensor.channels, dtype=np.int8)
    return Op(
        "conv2d",
        f"rows {parity}",
        (0,),
        1 + parity,
        kernel=(2, 1),
        stride=(2, 1),
        weights=weights,
        bias=np.full(tensor.channels, -tensor.zero_point, np.int32),
        weight_scales=np.full(tensor.channels, tensor.scale, np.float32),
    )


def _size(tensor: Tensor) -> tuple[int, int, int]:
    return tensor.height, tensor.width, tensor.channels


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

    The images are inputs of the imported graph. A float input is given their real values, a uint8
    input the pixels ``value + 128``.
    """
    lowered = lower(path)
    interpreter = _interpreter(path)
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


def _interpreter(path: Path) -> Any:
    """Return LiteRT with its reference kernels, whose every tensor can be read."""
    from ai_edge_litert.interpreter import Interpreter, OpResolverType

    interpreter = Interpreter(
        model_path=str(path),
        num_threads=1,
        experimental_op_resolver_type=OpResolverType.BUILTIN_REF,
        experimental_preserve_all_tensors=True,
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
