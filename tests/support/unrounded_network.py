"""The loss of an int8 network whose rounding errors are frozen, in NumPy and float64.

At the network's own parameters every activation has the int8 network's value. Away from them
rounding errors stay as they were, and a value that was clipped stays where it was: the derivative
of this function is the straight-through gradient, by definition and without torch.
"""

from dataclasses import replace

import emulator
import numpy as np

from pmt.net.graph import Graph, Op


class UnroundedNetwork:
    def __init__(self, graph: Graph, images: np.ndarray, labels: np.ndarray) -> None:
        self.graph = graph
        self.labels = labels
        self.int8 = emulator.run(graph, images)
        self.offsets: dict[int, np.ndarray] = {}
        self.inside: dict[int, np.ndarray] = {}
        exact = {index: values.astype(np.float64) for index, values in self.int8.items()}
        for op in graph.ops:
            real = self._real(op, exact)
            self.offsets[op.output] = exact[op.output] - real
            # Inside: what rounding gives is the int8 value. Next to a tie float32 may differ.
            rounded = np.abs(self.offsets[op.output]) < 0.5 - 1e-4
            self.inside[op.output] = rounded | (np.rint(real) == exact[op.output])

    def loss(self, index: int, weights: np.ndarray, bias: np.ndarray) -> np.ndarray:
        """Cross-entropy of every sample, with other parameters in layer ``index``."""
        known = {self.graph.input: self.int8[self.graph.input].astype(np.float64)}
        for place, op in enumerate(self.graph.ops):
            used = replace(op, weights=weights, bias=bias) if place == index else op
            if place == len(self.graph.ops) - 1 and not emulator.has_activation(self.graph):
                return self._cross_entropy(self._logits(used, known))
            real = self._real(used, known) + self.offsets[op.output]
            fixed = self.int8[op.output].astype(np.float64)
            known[op.output] = np.where(self.inside[op.output], real, fixed)
        target = self.graph.tensors[self.graph.output]
        real = (known[self.graph.output] - target.zero_point) * target.scale
        return self._cross_entropy(real.reshape(len(self.labels), -1))

    def _logits(self, op: Op, known: dict[int, np.ndarray]) -> np.ndarray:
        source = self.graph.tensors[op.inputs[0]]
        acc = emulator.accumulators(op, known[op.inputs[0]], source) + op.bias
        return (acc * (float(source.scale) * op.weight_scales)).reshape(len(self.labels), -1)

    def _cross_entropy(self, logits: np.ndarray) -> np.ndarray:
        shifted = logits - logits.max(axis=1, keepdims=True)
        chosen = np.take_along_axis(shifted, self.labels[:, None], axis=1)[:, 0]
        return np.log(np.exp(shifted).sum(axis=1)) - chosen

    def _real(self, op: Op, known: dict[int, np.ndarray]) -> np.ndarray:
        """The output in int8 units, neither rounded nor clipped."""
        if op.kind == "max_pool":
            return self._maximum(op, known[op.inputs[0]])
        sources = [known[i] for i in op.inputs]
        steps, zero_point = emulator.unrounded(self.graph, op, sources, np.float64)
        return steps + zero_point

    def _maximum(self, op: Op, x: np.ndarray) -> np.ndarray:
        # The first of equal values is the one that passes, as in torch.
        views = (emulator.padded_windows(op, v) for v in (self.int8[op.inputs[0]], x))
        fixed, moved = (view.reshape(*view.shape[:4], -1) for view in views)
        first = fixed.argmax(axis=-1)[..., None]
        return np.take_along_axis(moved, first, axis=-1)[..., 0]
