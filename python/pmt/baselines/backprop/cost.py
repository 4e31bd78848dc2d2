"""The cost of back-propagation: multiply-accumulates, and peak memory moment by moment.

The time is that of one image: every op forward, the loss, every op backward. It is a lower bound
that no arena can beat (nothing is lost between buffers, kernels need no working memory), so a
comparison with zeroth-order training, whose arena is counted exactly, favors back-propagation.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict, dataclass
from typing import Any

from pmt.baselines.backprop.scheme import UpdateScheme, head_layer, input_channels
from pmt.model import Model
from pmt.net.ops import DEFINITIONS, LAYER_KINDS
from pmt.train.costs.memory import Memory, Moment, inference_moments, lifetimes
from pmt.train.costs.work import Work

# Their backward pass can work in place.
_ELEMENTWISE = ("reshape", *(kind for kind, op in DEFINITIONS.items() if op.inputs > 1))
_GRADIENT = 4  # bytes of a gradient, whatever the weights are


@dataclass(frozen=True)
class BackwardGraph:
    """The backward pass of a scheme.

    ``ops`` are all ops of the network, ``elements`` the values of each tensor. ``reaches`` are the
    tensors whose gradient is formed: something trained lies before. The pass ends at ``first``.
    """

    ops: list[dict[str, Any]]
    elements: list[int]
    scheme: UpdateScheme
    reaches: frozenset[int]
    first: int

    @classmethod
    def of(cls, model: Model, scheme: UpdateScheme) -> BackwardGraph:
        """Find the backward pass of a scheme."""
        ops = model.core.ops()
        tensors = model.core.tensors()
        trained = scheme.by_op()
        reaches: set[int] = set()
        for op in ops:
            if op["index"] in trained or any(tensor in reaches for tensor in op["inputs"]):
                reaches.add(op["output"])
        elements = [int(t["height"] * t["width"] * t["channels"]) for t in tensors]
        return cls(ops, elements, scheme, frozenset(reaches), scheme.layers[0].op)

    def passes(self, op: dict[str, Any]) -> bool:
        """Whether an op's input gets a gradient."""
        return any(tensor in self.reaches for tensor in op["inputs"])

    def input_gradient_macs(self) -> int:
        """Multiply-accumulates of the gradients by layers' inputs: as many as their forwards."""
        return sum(int(op["macs"]) for op in self.ops if self.passes(op))

    def weight_gradient_macs(self, model: Model) -> int:
        """Multiply-accumulates of the weight gradients, by the share of channels trained."""
        return sum(
            int(self.ops[update.op]["macs"]) * update.channels // input_channels(model, update.op)
            for update in self.scheme.layers
        )

    def mask_bits(self, op: dict[str, Any], *, exact_logits: bool) -> int:
        """Bits that tell which outputs of an op stood at a clamp.

        One for each value, where a gradient comes back through the op; none for logits that are
        read before they are rounded, or for ops that only move or average values.
        """
        last = op["index"] == len(self.ops) - 1
        clamps = op["kind"] in (*LAYER_KINDS, "add")
        if op["output"] not in self.reaches or not clamps or (last and exact_logits):
            return 0
        return int(self.elements[op["output"]])

    def kept_bytes(self, model: Model, bytes_each: int) -> dict[int, tuple[int, int]]:
        """Return the bytes of each tensor kept for weight gradients, and its first reader.

        A tensor that several layers read is kept once, in the channels that most of them need.
        """
        kept: dict[int, tuple[int, int]] = {}
        for update in self.scheme.layers:
            if update.channels == 0:
                continue
            tensor = self.ops[update.op]["inputs"][0]
            part = self.elements[tensor] * update.channels // input_channels(model, update.op)
            size, first = kept.get(tensor, (0, update.op))
            kept[tensor] = (max(size, part * bytes_each), min(first, update.op))
        return kept


def backward_work(model: Model, scheme: UpdateScheme) -> Work:
    """Count the work of a step for each image.

    A layer's input gradient and its weight gradient take as many multiply-accumulates as its
    forward pass; the weight gradient only by the share of input channels that are trained. No
    input gradient is formed where nothing before the layer is trained. Bias gradients are sums.
    """
    graph = BackwardGraph.of(model, scheme)
    return Work(
        forward=model.macs,
        input_gradients=graph.input_gradient_macs(),
        weight_gradients=graph.weight_gradient_macs(model),
    )


@dataclass(frozen=True)
class Arithmetic:
    """Bytes of numbers in a back-propagation method.

    ``value``: weights and activations, 1 (int8) or 4 (float32). ``state``: optimizer state for each
    trained parameter, 4 for momentum. ``shadow``: copy for each trained weight, 4 where a float32
    shadow is kept of int8 weights. ``exact_logits``: the loss reads the last layer's accumulators,
    not its clamped int8 output.
    """

    value: int = 1
    state: int = 0
    shadow: int = 0
    exact_logits: bool = True


def backward_memory(
    model: Model, scheme: UpdateScheme, arithmetic: Arithmetic, *, batch: int = 1
) -> Memory:
    """Count the peak memory of a step, by part, with the images of a batch one after the other.

    With one image each layer is updated as soon as its gradient is there; with more, gradients of
    all trained parameters add up.
    """
    moments = backward_moments(model, scheme, arithmetic, batch=batch)
    peak = max(moments, key=lambda moment: moment.total)
    weights, biases = scheme.weights(model), scheme.biases(model)
    all_weights = sum(layer.weights for layer in model.layers)
    all_biases = sum(layer.biases for layer in model.layers)
    return Memory(
        frozen=(all_weights - weights) * arithmetic.value + (all_biases - biases) * 4,
        weights=weights * arithmetic.value,
        biases=biases * 4,
        **asdict(peak),
        optimizer=(weights + biases) * arithmetic.state + weights * arithmetic.shadow,
    )


def backward_moments(
    model: Model, scheme: UpdateScheme, arithmetic: Arithmetic, *, batch: int = 1
) -> list[Moment]:
    """Return the live tensors at each op forward, then, from the last on, at each op backward."""
    return list(_moments(model, BackwardGraph.of(model, scheme), arithmetic, batch))


def _moments(
    model: Model, graph: BackwardGraph, arithmetic: Arithmetic, batch: int
) -> Iterator[Moment]:
    """Yield the live tensors at each op forward, then at each op backward."""
    made, used = lifetimes(graph.ops)
    kept = graph.kept_bytes(model, arithmetic.value)
    one = {u.op: _gradient_bytes(model, graph.scheme, u.op) for u in graph.scheme.layers}
    sums = sum(one.values()) if batch > 1 else 0
    exact = arithmetic.exact_logits and head_layer(model) is not None
    masks = [(graph.mask_bits(op, exact_logits=exact) + 7) // 8 for op in graph.ops]
    image = model.core.input_tensor
    for now, moment in enumerate(inference_moments(model, arithmetic.value)):
        # A tensor that is kept counts as kept once its last reader is done.
        saved = {t: size for t, (size, _) in kept.items() if used[t] < now}
        yield Moment(
            activations=moment.activations,
            input=moment.input + saved.pop(image, 0),
            saved_activations=sum(saved.values()),
            masks=sum(masks[: now + 1]),
            weight_gradients=sums,
        )
    for now in range(len(graph.ops) - 1, graph.first - 1, -1):
        saved = {t: size for t, (size, reader) in kept.items() if reader <= now}
        yield Moment(
            input=saved.pop(image, 0),
            saved_activations=sum(saved.values()),
            masks=sum(masks[: now + 1]),
            activation_gradients=_GRADIENT * _gradients_alive(graph, now, made, used),
            weight_gradients=sums or one.get(now, 0),
        )


def _gradients_alive(
    graph: BackwardGraph, now: int, made: dict[int, int], used: dict[int, int]
) -> int:
    """Values of all gradients of activations that exist while op ``now`` goes backward."""
    op = graph.ops[now]
    alive = 0
    for tensor in graph.reaches:
        # From the backward pass of its last reader to that of its maker.
        if made[tensor] <= now <= used[tensor]:
            alive += graph.elements[tensor]
    if op["kind"] in _ELEMENTWISE and graph.passes(op) and op["output"] in graph.reaches:
        alive -= graph.elements[op["output"]]
    return alive


def _gradient_bytes(model: Model, scheme: UpdateScheme, op: int) -> int:
    one = UpdateScheme((scheme.by_op()[op],))
    return _GRADIENT * (one.weights(model) + one.biases(model))
