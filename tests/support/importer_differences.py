"""Differences of an imported network's values from those of LiteRT, its format's own engine."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import emulator
import litert_engine
import numpy as np
import numpy.typing as npt

from pmt.formats.tflite.importer import lower
from pmt.model import Model
from pmt.net.graph import Graph, Tensor

Int8Array = npt.NDArray[np.int8]


@dataclass(frozen=True)
class LiteRTActivations:
    """An imported file and what LiteRT computes with it.

    ``values`` are by tensor of the graph, int8 (N, height, width, channels).
    """

    graph: Graph
    values: dict[int, Int8Array]

    @property
    def logits(self) -> Int8Array:
        """The int8 logits, shape (N, classes)."""
        output = self.values[self.graph.output]
        return output.reshape(len(output), -1)

    def steps_off(self) -> dict[str, npt.NDArray[np.int16]]:
        """How far each op is off in steps, by its name; each reads what LiteRT has there.

        An op whose output LiteRT does not have is left out, and its own values stand in.
        """
        values, found = dict(self.values), {}
        for op in self.graph.ops:
            output = emulator.run_op(self.graph, op, [values[index] for index in op.inputs])
            if op.output in values:
                found[op.name] = np.abs(output.astype(np.int16) - values[op.output])
            values.setdefault(op.output, output)
        return found

    def top_one(self, *, whole: bool) -> tuple[npt.NDArray[np.bool_], npt.NDArray[np.int64]]:
        """Whether each image has LiteRT's class, and by how many steps that is its best.

        The class is that of the ``whole`` network, or of the last op on LiteRT's activations.
        """
        op, images = self.graph.ops[-1], self.values[self.graph.input]
        if whole:
            model = Model.from_graph(self.graph)
            ours = model.core.logits(np.ascontiguousarray(images), threads=1)
        else:
            ours = emulator.run_op(self.graph, op, [self.values[index] for index in op.inputs])
        theirs = self.logits.astype(np.int64)
        ordered = np.sort(theirs, axis=1)
        same = ours.reshape(len(images), -1).argmax(axis=1) == theirs.argmax(axis=1)
        return same, ordered[:, -1] - ordered[:, -2]


def litert_activations(path: Path, images: Int8Array) -> LiteRTActivations:
    """Run a file on int8 images and keep every activation that the imported graph has.

    The images are inputs of the imported graph. A float input is given their real values, a uint8
    input the pixels ``value + 128``.
    """
    lowered = lower(path)
    graph, places = lowered.graph, lowered.file_tensors
    interpreter = litert_engine.interpreter(path.read_bytes(), reference=True)
    entry = interpreter.get_input_details()[0]
    rows = []
    for image in images:
        interpreter.set_tensor(entry["index"], _file_input(entry, graph.tensors[0], image))
        interpreter.invoke()
        rows.append({index: interpreter.get_tensor(place) for index, place in places.items()})
    values = {
        index: np.stack([row[index] for row in rows]).reshape(-1, *graph.tensors[index].shape)
        for index in places
    }
    return LiteRTActivations(graph, values)


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
