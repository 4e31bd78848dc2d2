"""Graphs drawn at random: every operation, window, padding and clamp that the format knows."""

from dataclasses import replace

import numpy as np

from pmt.model import Model
from pmt.net.graph import Graph, Op, Tensor

SEEDS = range(60)
CHANNELS = (1, 3, 8, 5)


class Drawing:
    """A graph in the making. ``plain``: only what our reader of .tflite knows.

    ``tflite``: only average pools that a .tflite file holds, VALID or SAME.
    """

    def __init__(self, seed: int, *, plain: bool, tflite: bool) -> None:
        self.rng = np.random.default_rng(seed)
        self.plain, self.tflite = plain, tflite
        size = tuple(int(n) for n in self.rng.integers(6, 12, 2))
        self.tensors = [Tensor("image", *size, int(self.rng.choice([1, 3])), 1 / 64, -7)]
        self.ops: list[Op] = []
        self.last = 0

    def graph(self, operations: int) -> Graph:
        kinds = [
            *(self.convolution, self.depthwise, self.pool, self.add),
            *(self.concatenation, self.pad, self.reshape),
        ]
        for _ in range(operations):
            kinds[self.rng.integers(len(kinds))]()
        if self.rng.random() < 0.3:  # a layer that reads a dense layer as an image
            self.dense(5)
            self.add()
            self.convolution()
        if self.rng.random() < 0.5:
            self.mean()
        self.dense(4)
        layers = [i for i, op in enumerate(self.ops) if op.weights is not None]
        channels = self.tensors[0].channels
        return Graph(
            self.tensors, self.ops, 0, self.last, (128.0,) * channels, (64.0,) * channels,
            {"head": layers[-1:], "all": layers}, {"name": "drawn"},
        )  # fmt: skip

    def tensor(self, *shape: int, like: Tensor | None = None) -> int:
        zero = int(self.rng.choice([-128, -20, 0, 9]))
        scale = float(np.float32(self.rng.uniform(0.01, 0.1)))
        if like is not None:
            scale, zero = like.scale, like.zero_point
        self.tensors.append(Tensor(f"t{len(self.tensors)}", *shape, scale, zero))
        return len(self.tensors) - 1

    def op(self, kind: str, to: int, *more: int, **settings) -> None:
        name = f"{kind}{len(self.ops)}"
        self.ops.append(Op(kind, name, (self.last, *more), to, **settings))
        self.last = to

    def clamp(self, out: int) -> tuple[int, int]:
        tensor = self.tensors[out]
        steps = {real: int(np.rint(np.float32(real) / np.float32(tensor.scale))) for real in (1, 6)}
        zero = tensor.zero_point
        choices = [(-128, 127), (zero, 127), (zero, min(127, zero + steps[6]))]
        choices.append((max(-128, zero - steps[1]), min(127, zero + steps[1])))
        if not self.plain:
            choices += [(-128, 40), (-90, 127), (-70, 61)]
        return choices[self.rng.integers(len(choices))]

    def window(self, *, pool: str = "") -> tuple[dict, tuple[int, int]]:
        source = self.tensors[self.last]
        size = (source.height, source.width)
        kernel = tuple(int(self.rng.integers(1, min(n, 4) + 1)) for n in size)
        stride = tuple(int(n) for n in self.rng.integers(1, 3, 2))
        sides = list(zip(size, kernel, stride, strict=True))
        totals = [max((-(-n // s) - 1) * s + k - n, 0) for n, k, s in sides]
        pads = [(total // 2, total - total // 2) for total in totals]
        lowest = pool == "max_pool" and source.zero_point == -128
        free = not (self.tflite and pool == "average_pool")
        if self.rng.random() < 0.5 and free and (not self.plain or not pool or lowest):
            pads = [tuple(int(n) for n in self.rng.integers(0, k, 2)) for k in kernel]
        elif self.rng.random() < 0.3:
            pads = [(0, 0), (0, 0)]
        out = tuple((n + sum(p) - k) // s + 1 for (n, k, s), p in zip(sides, pads, strict=True))
        padding = (pads[0][0], pads[1][0], pads[0][1], pads[1][1])
        return {"kernel": kernel, "stride": stride, "padding": padding}, out

    def parameters(self, out: int, shape: tuple[int, ...], taps: int) -> dict:
        count = self.tensors[out].channels
        ratio = self.tensors[out].scale / self.tensors[self.last].scale
        scales = 40 * ratio / (3000 * np.sqrt(taps)) * self.rng.uniform(0.5, 2, count)
        if self.rng.random() < 0.3:
            scales[:] = scales[0]
        return {
            "weights": self.rng.integers(-127, 128, shape).astype(np.int8),
            "bias": self.rng.integers(-3000, 3000, count).astype(np.int32),
            "weight_scales": scales.astype(np.float32),
            "clamp": self.clamp(out),
        }

    def convolution(self) -> None:
        window, size = self.window()
        out = self.tensor(*size, int(self.rng.choice(CHANNELS)))
        source = self.tensors[self.last].channels
        shape = (self.tensors[out].channels, *window["kernel"], source)
        taps = int(np.prod(shape[1:]))
        self.op("conv2d", out, **window, **self.parameters(out, shape, taps))

    def depthwise(self) -> None:
        window, size = self.window()
        source = self.tensors[self.last].channels
        out = self.tensor(*size, source * int(self.rng.choice([1, 1, 2])))
        shape = (*window["kernel"], self.tensors[out].channels)
        taps = int(np.prod(window["kernel"]))
        self.op("depthwise_conv2d", out, **window, **self.parameters(out, shape, taps))

    def pool(self) -> None:
        kind = str(self.rng.choice(["average_pool", "max_pool"]))
        source = self.tensors[self.last]
        window, size = self.window(pool=kind)
        out = self.tensor(*size, source.channels, like=source)
        self.op(kind, out, **window, clamp=self.clamp(out))

    def add(self) -> None:
        source = self.tensors[self.last]
        shape = (source.height, source.width, source.channels)
        equal = [i for i, t in enumerate(self.tensors) if (t.height, t.width, t.channels) == shape]
        out = self.tensor(*shape)
        self.op("add", out, int(self.rng.choice(equal)), clamp=self.clamp(out))

    def concatenation(self) -> None:
        source = self.tensors[self.last]
        other = int(self.rng.choice([i for i, t in enumerate(self.tensors) if self.joins(t)]))
        channels = source.channels + self.tensors[other].channels
        alike = source if self.plain or self.rng.random() < 0.5 else None
        out = self.tensor(source.height, source.width, channels, like=alike)
        self.op("concatenation", out, other, clamp=self.clamp(out))

    def joins(self, tensor: Tensor) -> bool:
        last = self.tensors[self.last]
        alike = not self.plain or last.is_quantized_as(tensor.scale, tensor.zero_point)
        return alike and (tensor.height, tensor.width) == (last.height, last.width)

    def mean(self) -> None:
        source = self.tensors[self.last]
        out = self.tensor(1, 1, source.channels, like=self.rng.choice([source, None]))
        clamp = (-128, 127) if self.plain else self.clamp(out)
        self.op("mean", out, clamp=clamp)

    def pad(self) -> None:
        source = self.tensors[self.last]
        top, left, bottom, right = (int(n) for n in self.rng.integers(0, 3, 4))
        shape = (source.height + top + bottom, source.width + left + right, source.channels)
        out = self.tensor(*shape, like=source)
        self.op("pad", out, padding=(top, left, bottom, right))

    def reshape(self) -> None:
        source = self.tensors[self.last]
        out = self.tensor(source.width, source.height, source.channels, like=source)
        self.op("reshape", out)

    def dense(self, classes: int) -> None:
        elements = self.tensors[self.last].elements
        out = self.tensor(1, 1, classes)
        self.op("fully_connected", out, **self.parameters(out, (classes, elements), elements))


def drawn_graph(seed: int, *, plain: bool = False, tflite: bool = False) -> Graph:
    """A graph of up to a dozen operations; equal seeds give equal graphs."""
    drawing = Drawing(seed, plain=plain, tflite=tflite)
    return drawing.graph(int(drawing.rng.integers(2, 9)))


def random_images(graph: Graph, count: int, seed: int = 0) -> np.ndarray:
    tensor = graph.tensors[graph.input]
    shape = (count, tensor.height, tensor.width, tensor.channels)
    return np.random.default_rng(seed).integers(-128, 128, shape).astype(np.int8)


def int8_outputs(model: Model, images: np.ndarray) -> np.ndarray:
    output = model.core.tensors()[model.core.output_tensor]
    logits = model.core.logits(images, int8_logits=True)
    return (np.rint(logits / np.float32(output["scale"])) + output["zero_point"]).astype(np.int8)


def alone(graph: Graph, op: Op) -> Graph:
    """A graph of one op that reads one tensor."""
    source, target = graph.tensors[op.inputs[0]], graph.tensors[op.output]
    channels = min(source.channels, 4)
    one = replace(op, inputs=(0,), output=1)
    return Graph([source, target], [one], 0, 1, (0.0,) * channels, (1.0,) * channels)
