"""Networks as .tflite files with quantization that real converters would choose.

Scales follow from the spread that random inputs have after each operator, so that values neither
clip nor vanish and a wrong rounding shows.
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from tflite_builder import TfliteBuilder

SAME, VALID = 0, 1
NONE, RELU, RELU_N1_TO_1, RELU6 = 0, 1, 2, 3


@dataclass(frozen=True)
class Value:
    """An activation of the network: its tensor, shape, scale, zero point and real spread."""

    index: int
    shape: tuple[int, ...]
    scale: float
    zero: int
    spread: float


class NetworkBuilder:
    """Appends operators to a file, each with a random constant and a fitting output scale."""

    def __init__(self, seed: int = 0) -> None:
        self.file = TfliteBuilder()
        self.rng = np.random.default_rng(seed)

    def image(self, *shape: int) -> Value:
        scale, zero = float(self.rng.uniform(0.007, 0.02)), int(self.rng.integers(-128, 20))
        index = self.file.activation(1, *shape, scale=scale, zero=zero)
        return Value(index, (1, *shape), scale, zero, 74 * scale)

    def output(self, shape: tuple[int, ...], spread: float, activation: int = NONE) -> Value:
        zero = -128 if activation in (RELU, RELU6) else int(self.rng.integers(-30, 30))
        scale = spread * float(self.rng.uniform(2.5, 4)) / 128
        if activation in (RELU6, RELU_N1_TO_1):
            scale = {RELU6: 6 / 255, RELU_N1_TO_1: 2 / 255}[activation]
        index = self.file.activation(*shape, scale=scale, zero=zero)
        return Value(index, shape, scale, zero, min(spread, 90 * scale))

    def like(self, x: Value, *shape: int) -> Value:
        """An activation with the quantization of ``x``."""
        index = self.file.activation(*shape, scale=x.scale, zero=x.zero)
        return Value(index, shape, x.scale, x.zero, x.spread)

    def integers(self, *values: object) -> int:
        return self.file.constant(np.array(values, np.int32))

    def parameters(
        self, x: Value, shape: tuple[int, ...], axis: int, taps: int, *, per_tensor: bool = False
    ) -> tuple[list[int], float]:
        """Weights and bias; and the spread of the layer's output."""
        out = shape[axis]
        count = 1 if per_tensor else out
        scales = self.rng.uniform(0.3, 1.2, count) / (taps**0.5 * 74 * x.spread)
        weights = self.rng.integers(-127, 128, shape).astype(np.int8)
        bias = (self.rng.normal(0, 0.3, out) / (x.scale * scales)).astype(np.int32)
        stored = self.file.constant(weights, scales=list(scales), axis=axis)
        biases = self.file.constant(bias, scales=list(x.scale * scales))
        return [x.index, stored, biases], 1.0

    def conv(
        self, x: Value, out: int, kernel: int | tuple[int, int] = 3, *, stride: int = 1,
        padding: int = SAME, groups: int = 1, dilation: int = 1, activation: int = NONE,
        per_tensor: bool = False,
    ) -> Value:  # fmt: skip
        height, width = kernel if isinstance(kernel, tuple) else (kernel, kernel)
        inner = x.shape[3] // groups
        inputs, spread = self.parameters(
            x, (out, height, width, inner), 0, height * width * inner, per_tensor=per_tensor
        )
        y = self.output(
            (1, *_windows(x, (height, width), stride, padding, dilation), out), spread, activation
        )
        self.file.op(
            "CONV_2D", inputs, [y.index], Padding=padding, StrideH=stride,
            StrideW=stride, DilationHFactor=dilation, DilationWFactor=dilation,
            FusedActivationFunction=activation,
        )  # fmt: skip
        return y

    def depthwise(
        self, x: Value, kernel: int = 3, *, multiplier: int = 1, stride: int = 1,
        padding: int = SAME, dilation: int = 1, activation: int = NONE,
    ) -> Value:  # fmt: skip
        out = x.shape[3] * multiplier
        inputs, spread = self.parameters(x, (1, kernel, kernel, out), 3, kernel * kernel)
        size = _windows(x, (kernel, kernel), stride, padding, dilation)
        y = self.output((1, *size, out), spread, activation)
        self.file.op(
            "DEPTHWISE_CONV_2D", inputs, [y.index], Padding=padding, StrideH=stride,
            StrideW=stride, DilationHFactor=dilation, DilationWFactor=dilation,
            DepthMultiplier=multiplier, FusedActivationFunction=activation,
        )  # fmt: skip
        return y

    def dense(
        self, x: Value, out: int, *, keep: bool = False, activation: int = NONE, bias: bool = True
    ) -> Value:
        inner = x.shape[-1] if keep else int(np.prod(x.shape))
        inputs, spread = self.parameters(x, (out, inner), 0, inner)
        shape = (*x.shape[:-1], out) if keep else (1, out)
        y = self.output(shape, spread, activation)
        self.file.op(
            "FULLY_CONNECTED", inputs if bias else [*inputs[:2], -1], [y.index],
            FusedActivationFunction=activation, KeepNumDims=keep,
        )  # fmt: skip
        return y

    def add(self, x: Value, y: Value, activation: int = NONE) -> Value:
        z = self.output(x.shape, float(np.hypot(x.spread, y.spread)), activation)
        self.file.op("ADD", [x.index, y.index], [z.index], FusedActivationFunction=activation)
        return z

    def concatenation(self, *parts: Value, axis: int = -1) -> Value:
        """CONCATENATION of tensors of one quantization, along the channels unless told."""
        shape = list(parts[0].shape)
        shape[axis] = sum(part.shape[axis] for part in parts)
        z = self.like(parts[0], *shape)
        inputs = [part.index for part in parts]
        self.file.op("CONCATENATION", inputs, [z.index], Axis=axis, FusedActivationFunction=NONE)
        return z

    def with_constant(
        self, kind: str, x: Value, *, scalar: bool = False, first: bool = False, activation: int = 0
    ) -> Value:
        """ADD, SUB or MUL of one constant a channel, or of one for all."""
        values = self.rng.integers(-128, 128, 1 if scalar else x.shape[-1]).astype(np.int8)
        constant = self.file.constant(values, scales=[x.spread / 100], zero=-3)
        if kind == "MUL":
            constant = self.file.constant(values, scales=[0.012], zero=5)
        y = self.output(x.shape, 1.4 * x.spread, activation)
        inputs = [constant, x.index] if first else [x.index, constant]
        self.file.op(kind, inputs, [y.index], FusedActivationFunction=activation)
        return y

    def quantize(self, x: Value) -> Value:
        y = self.output(x.shape, x.spread)
        self.file.op("QUANTIZE", [x.index], [y.index])
        return y

    def activate(self, kind: str, x: Value, *, requantize: bool = False) -> Value:
        y = self.output(x.shape, x.spread) if requantize else self.like(x, *x.shape)
        self.file.op(kind, [x.index], [y.index])
        return y

    def limit(self, kind: str, x: Value, value: int) -> Value:
        """MAXIMUM or MINIMUM with one int8 value."""
        y = self.like(x, *x.shape)
        constant = self.file.constant(np.array([value], np.int8), scales=[x.scale], zero=x.zero)
        self.file.op(kind, [x.index, constant], [y.index])
        return y

    def pool(
        self, kind: str, x: Value, kernel: int, *, stride: int = 2, padding: int = VALID,
        activation: int = NONE,
    ) -> Value:  # fmt: skip
        size = _windows(x, (kernel, kernel), stride, padding, 1)
        y = self.like(x, 1, *size, x.shape[3])
        self.file.op(
            kind, [x.index], [y.index], Padding=padding, StrideH=stride, StrideW=stride,
            FilterHeight=kernel, FilterWidth=kernel, FusedActivationFunction=activation,
        )  # fmt: skip
        return y

    def reduce(self, kind: str, x: Value, axes: tuple[int, ...], *, keep: bool = False) -> Value:
        rank = len(x.shape)
        reduced = [a % rank for a in axes]
        shape = tuple(
            1 if i in reduced else n for i, n in enumerate(x.shape) if keep or i not in reduced
        )
        y = self.output(shape, x.spread / 3) if kind == "MEAN" else self.like(x, *shape)
        self.file.op(kind, [x.index, self.integers(*axes)], [y.index], KeepDims=keep)
        return y

    def pad(
        self, x: Value, rows: tuple[int, int], columns: tuple[int, int], value: int | None = None
    ) -> Value:
        y = self.like(x, 1, x.shape[1] + sum(rows), x.shape[2] + sum(columns), x.shape[3])
        amounts = self.integers((0, 0), rows, columns, (0, 0))
        if value is None:
            self.file.op("PAD", [x.index, amounts], [y.index])
        else:
            constant = self.file.constant(np.array([value], np.int8), scales=[x.scale], zero=x.zero)
            self.file.op("PADV2", [x.index, amounts, constant], [y.index])
        return y

    def reshape(self, x: Value, *shape: int) -> Value:
        y = self.like(x, *shape)
        self.file.op("RESHAPE", [x.index, self.integers(*shape)], [y.index])
        return y

    def computed_reshape(self, x: Value, *shape: int) -> Value:
        """As Keras flattens: SHAPE, STRIDED_SLICE, PACK, RESHAPE."""
        f, y = self.file, self.like(x, *shape)
        sizes, batch, packed = f.sizes(len(x.shape)), f.sizes(), f.sizes(len(shape))
        zero, one = self.integers(0), self.integers(1)
        f.op("SHAPE", [x.index], [sizes], OutType=2)
        f.op("STRIDED_SLICE", [sizes, zero, one, one], [batch], ShrinkAxisMask=1)
        rest = [f.constant(np.array(n, np.int32)) for n in shape[1:]]
        f.op("PACK", [batch, *rest], [packed], ValuesCount=len(shape))
        f.op("RESHAPE", [x.index, packed], [y.index])
        return y

    def renamed(
        self, kind: str, x: Value, shape: tuple[int, ...], *constants: int, **options: object
    ) -> Value:
        """EXPAND_DIMS, SQUEEZE, TRANSPOSE with their constants and options."""
        y = self.like(x, *shape)
        self.file.op(kind, [x.index, *constants], [y.index], **options)
        return y

    def space_to_batch(self, x: Value, block: int, pads: tuple[int, int]) -> Value:
        size = [-(-(n + sum(pads)) // block) for n in x.shape[1:3]]
        y = self.like(x, block * block, *size, x.shape[3])
        blocks = self.integers(block, block)
        self.file.op("SPACE_TO_BATCH_ND", [x.index, blocks, self.integers(pads, pads)], [y.index])
        return y

    def batch_to_space(self, x: Value, block: int, size: int, crops: tuple[int, int]) -> Value:
        y = self.like(x, 1, size, size, x.shape[3])
        blocks = self.integers(block, block)
        self.file.op("BATCH_TO_SPACE_ND", [x.index, blocks, self.integers(crops, crops)], [y.index])
        return y

    def bytes(self, x: Value, y: Value) -> bytes:
        return self.file.bytes([x.index], [y.index])


def _windows(
    x: Value, kernel: tuple[int, int], stride: int, padding: int, dilation: int
) -> tuple[int, int]:
    extents = ((k - 1) * dilation + 1 for k in kernel)
    height, width = (
        -(-n // stride) if padding == SAME else (n - k) // stride + 1
        for n, k in zip(x.shape[1:3], extents, strict=True)
    )
    return height, width


def mobilenet(b: NetworkBuilder) -> bytes:
    """Inverted residuals, PAD before stride 2, RELU6, a 1x1 convolution as head, computed shape."""
    x = b.image(15, 15, 3)
    y = b.conv(b.pad(x, (0, 1), (0, 1)), 8, stride=2, padding=VALID, activation=RELU6)
    for stride in (1, 2):
        z = b.conv(y, 24, 1, activation=RELU6)
        z = b.depthwise(z, 5, stride=stride, activation=RELU6)
        z = b.conv(z, 8, 1)
        y = b.add(y, z) if stride == 1 else z
    y = b.reduce("MEAN", y, (1, 2), keep=True)
    y = b.conv(y, 5, 1)
    return b.bytes(x, b.computed_reshape(y, 1, 5))


def resnet(b: NetworkBuilder) -> bytes:
    """A padded max pool, explicit RELUs, projections, unfolded normalization."""
    x = b.image(16, 16, 3)
    y = b.conv(x, 8, 7, stride=2, activation=RELU)
    y = b.pool("MAX_POOL_2D", b.pad(y, (1, 1), (1, 1), -128), 3)
    for stride in (1, 2):
        z = b.with_constant("ADD", b.with_constant("MUL", y), activation=RELU)
        z = b.activate("RELU", b.conv(z, 8, 3, stride=stride))
        z = b.conv(z, 8, 3, per_tensor=True)
        y = b.add(b.conv(y, 8, 1, stride=stride), z)
        y = b.activate("RELU6", y, requantize=True)
    y = b.pool("AVERAGE_POOL_2D", y, 2, stride=1)
    y = b.reshape(y, 1, y.shape[3])
    return b.bytes(x, b.dense(y, 6))


def mixed(b: NetworkBuilder) -> bytes:
    """Groups, dilation, multipliers, requantization, constants, a dense layer of positions."""
    x = b.image(12, 12, 4)
    y = b.with_constant("SUB", b.with_constant("MUL", x, scalar=True), scalar=True)
    y = b.conv(y, 8, 3, groups=2, activation=RELU_N1_TO_1)
    y = b.depthwise(b.quantize(y), 3, multiplier=2, dilation=2)
    y = b.conv(y, 12, (1, 5), dilation=2, padding=VALID)
    y = b.dense(y, 10, keep=True, activation=RELU)
    y = b.pool("AVERAGE_POOL_2D", y, 3, padding=SAME, activation=RELU6)
    y = b.reduce("REDUCE_MAX", y, (1, 2))
    return b.bytes(x, b.dense(b.dense(y, 7, activation=RELU6), 4, bias=False))


def signal(b: NetworkBuilder) -> bytes:
    """A one-dimensional convolution as Keras writes it, between expanded and squeezed shapes."""
    x = b.image(24, 3)
    y = b.renamed("EXPAND_DIMS", x, (1, 1, 24, 3), b.integers(1))
    y = b.conv(y, 8, (1, 5), stride=1, activation=RELU)
    y = b.pool("MAX_POOL_2D", y, 1, stride=2)
    y = b.renamed("SQUEEZE", y, (1, 12, 8), SqueezeDims=[1])
    y = b.reduce("MEAN", y, (1,))
    return b.bytes(x, b.dense(y, 3))


def inception(b: NetworkBuilder) -> bytes:
    """Branches joined as converters do it: a wide one requantized, a pool, what they read."""
    x = b.image(14, 13, 3)
    y = b.conv(x, 8, 3, stride=2, activation=RELU)
    for _ in range(2):
        pooled = b.pool("MAX_POOL_2D", y, 3, stride=1, padding=SAME)
        wide = b.conv(b.conv(y, 4, 1, activation=RELU), 5, 3, activation=RELU)
        alike = b.like(pooled, *wide.shape)
        b.file.op("QUANTIZE", [wide.index], [alike.index])
        y = b.activate("RELU", b.concatenation(y, alike, pooled))
    y = b.reduce("REDUCE_MAX", y, (1, 2))
    return b.bytes(x, b.dense(b.concatenation(y, y, axis=1), 5))


def drawn(b: NetworkBuilder) -> bytes:
    """Four to eight operators drawn at random; some read what another one reads too."""
    x = b.image(*(int(n) for n in b.rng.integers(9, 14, 2)), int(b.rng.integers(1, 4)))
    values = [b.conv(x, 4, 3)]
    for _ in range(int(b.rng.integers(4, 9))):
        part = DRAWN[int(b.rng.integers(len(DRAWN)))]
        values.append(part(b, values[-1 - int(b.rng.random() < 0.25 and len(values) > 1)]))
        if values[-1].shape == values[-2].shape and b.rng.random() < 0.3:
            values.append(b.add(values[-1], values[-2], int(b.rng.integers(4))))
    y = b.reduce("MEAN", values[-1], (1, 2)) if b.rng.random() < 0.5 else values[-1]
    return b.bytes(x, b.dense(y, 5))


def _activation(b: NetworkBuilder) -> int:
    return int(b.rng.integers(4))


DRAWN: list[Callable[[NetworkBuilder, Value], Value]] = [
    lambda b, x: b.conv(x, 6, (3, 1), dilation=2, activation=_activation(b)),
    lambda b, x: b.conv(x, 4, 3, padding=SAME, groups=2, activation=_activation(b)),
    lambda b, x: b.conv(x, x.shape[3], 1, activation=_activation(b)),
    lambda b, x: b.conv(b.pad(x, (1, 0), (2, 1)), 4, 3, padding=VALID),
    lambda b, x: b.depthwise(b.pad(x, (1, 1), (1, 1)), 3, padding=VALID, activation=RELU6),
    lambda b, x: b.depthwise(x, 3, multiplier=int(b.rng.integers(1, 3)), activation=RELU),
    lambda b, x: b.dense(x, 4, keep=True, activation=_activation(b)),
    lambda b, x: b.with_constant("ADD", x, activation=_activation(b)),
    lambda b, x: b.with_constant("SUB", x, first=bool(b.rng.integers(2))),
    lambda b, x: b.with_constant("MUL", x, scalar=bool(b.rng.integers(2))),
    lambda b, x: b.quantize(x),
    lambda b, x: b.activate("RELU", x),
    lambda b, x: b.activate("RELU6", x, requantize=True),
    lambda b, x: b.limit("MAXIMUM", x, int(b.rng.integers(-120, 0))),
    lambda b, x: b.pool("AVERAGE_POOL_2D", x, 2, stride=1, padding=SAME),
    lambda b, x: b.concatenation(b.pool("MAX_POOL_2D", x, 3, stride=1, padding=SAME), x),
    lambda b, x: b.pool("MAX_POOL_2D", b.pad(x, (1, 1), (1, 1), -128), 3, stride=1),
    lambda b, x: b.pad(x, (0, 1), (0, 0), int(b.rng.integers(-100, 100))),
    lambda b, x: b.computed_reshape(x, 1, x.shape[2], x.shape[1], x.shape[3]),
]


GENERATED: dict[str, Callable[[NetworkBuilder], bytes]] = {
    "mobilenet": mobilenet,
    "resnet": resnet,
    "mixed": mixed,
    "signal": signal,
    "inception": inception,
    "drawn": drawn,
}


def generated(name: str, seed: int = 0) -> bytes:
    """One of the :data:`GENERATED` networks with random weights."""
    return GENERATED[name](NetworkBuilder(seed))
