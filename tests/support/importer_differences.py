"""Differences of an imported network's values from those of LiteRT, its format's own engine.

Every op is run on the other engine's own inputs, so that what is counted is the op's own
difference and not what came before it.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import emulator
import litert_engine
import numpy as np
import numpy.typing as npt

from pmt.formats.tflite.importer import Lowered, lower
from pmt.model import Model
from pmt.net.graph import Graph, Op, Tensor

Int8Array = npt.NDArray[np.int8]


@dataclass(frozen=True)
class OpDifference:
    """One op: how many of its int8 outputs differ, and by how many steps at most."""

    name: str
    kind: str
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


@dataclass(frozen=True)
class LiteRTActivations:
    """An imported file and what LiteRT computes with it.

    ``values`` are by tensor of the graph, int8 (N, height, width, channels).
    """

    lowered: Lowered
    values: dict[int, Int8Array]

    @property
    def graph(self) -> Graph:
        """The imported graph."""
        return self.lowered.graph

    @property
    def logits(self) -> Int8Array:
        """The int8 logits, shape (N, classes)."""
        output = self.values[self.graph.output]
        return output.reshape(len(output), -1)

    def differences(self) -> list[OpDifference]:
        """Compare every op whose output LiteRT has, too; own values stand in for the others."""
        values = dict(self.values)
        found = []
        for op in self.graph.ops:
            output = self._output(op, values)
            if op.output not in values:
                values[op.output] = output
                continue
            steps = np.abs(output.astype(np.int16) - values[op.output])
            count = int(np.count_nonzero(steps))
            found.append(OpDifference(op.name, op.kind, steps.size, count, int(steps.max())))
        return found

    def head_top_one(self) -> TopOne:
        """Compare the classes that the last op predicts from LiteRT's activations."""
        output = self._output(self.graph.ops[-1], self.values)
        return self._top_one(output.reshape(len(output), -1))

    def network_top_one(self) -> TopOne:
        """Compare the classes that the whole network predicts."""
        images = np.ascontiguousarray(self.values[self.graph.input])
        return self._top_one(Model.from_graph(self.graph).core.logits(images, threads=1))

    def _output(self, op: Op, values: dict[int, Int8Array]) -> Int8Array:
        return emulator.run_op(self.graph, op, [values[index] for index in op.inputs])

    def _top_one(self, outputs: npt.NDArray[Any]) -> TopOne:
        wide = self.logits.astype(np.int64)
        ordered = np.sort(wide, axis=1)
        margin = ordered[:, -1] - ordered[:, -2]
        same = outputs.argmax(axis=1) == wide.argmax(axis=1)
        return TopOne(
            images=len(wide),
            tied=int(np.count_nonzero(margin == 0)),
            equal=int(np.count_nonzero((margin > 0) & same)),
            widest=int(margin[~same].max(initial=0)),
        )


def litert_activations(path: Path, images: Int8Array) -> LiteRTActivations:
    """Run a file on int8 images and keep every activation that the imported graph has.

    The images are inputs of the imported graph. A float input is given their real values, a uint8
    input the pixels ``value + 128``.
    """
    lowered = lower(path)
    interpreter = litert_engine.interpreter(path.read_bytes(), reference=True)
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
        values[index] = np.stack(arrays).reshape(len(images), *lowered.graph.tensors[index].shape)
    return LiteRTActivations(lowered, values)


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
