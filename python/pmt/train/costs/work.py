"""Multiply-accumulates of a method, counted by purpose."""

import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass

from pmt import _core
from pmt._util.text import html_table


@dataclass(frozen=True, repr=False)
class Cost:
    """Cost of one step: perturbed ``forwards`` and multiply-accumulates of all that it computes."""

    forwards: int
    macs: int

    def __repr__(self) -> str:
        return f"<pmt.Cost of a step: {self.forwards:,} perturbed forwards, {self.macs:,} MACs>"

    def _repr_html_(self) -> str:
        row = [f"{self.forwards:,}", f"{self.macs:,}"]
        return html_table("cost of a step", ["perturbed forwards", "MACs"], [row])


@dataclass(frozen=True)
class Work:
    """Multiply-accumulates that training takes for one image.

    Padding counts as pixels do; additions, signs, requantization, and the update of the weights
    do not count, for any method.
    """

    forward: int  # the clean forward pass
    queries: int = 0  # perturbed forwards, from the perturbed layer to the end
    # Forwards up to a layer whose gradient needs its input again (node perturbation, pooled or not,
    # closed form).
    reforwards: int = 0
    input_gradients: int = 0  # back-propagation through layers: as many as the layer's forward
    # Products of a layer's output gradient and its input: as many as the layer's forward, by the
    # share of input channels that are trained.
    weight_gradients: int = 0
    # Work that a device does again for lack of memory: queries begin with their stream, a gradient
    # in groups of channels runs it again for each, a pooled one twice.
    restarts: int = 0
    forwards: int = 0  # perturbed forwards; each counts as one whatever its length

    @property
    def macs(self) -> int:
        """Everything counted."""
        backward = self.input_gradients + self.weight_gradients
        return self.forward + self.queries + self.reforwards + self.restarts + backward

    @property
    def forward_macs(self) -> int:
        """Multiply-accumulates as the paper counts them: the clean forward and the queries."""
        return self.forward + self.queries

    def cost(self, images: int) -> Cost:
        """Return the cost of a step of a number of images."""
        return Cost(images * self.forwards, images * self.macs)

    def to_json(self) -> dict[str, int]:
        """Return the figures for JSON."""
        return {**asdict(self), "macs": self.macs, "forward_macs": self.forward_macs}


def zeroth_order_work(
    model: _core.Model,
    options: _core.Options,
    layers: Sequence[int],
    *,
    of_ops: Sequence[int] | None = None,
) -> Work:
    """Count the work of a step for each image, with layers as op indices in ascending order.

    With Q queries and layers i of suffix T_i, it is ``Q * sum T_i`` for the queries (paper section
    3.1); model-wise, Q times the suffix of the first. ``of_ops`` counts each op by another measure
    than its multiply-accumulates.
    """
    macs = [int(op["macs"]) for op in model.ops()] if of_ops is None else of_ops
    trained = _core.Trainer(model, options, layers, 1, 1).layers()
    queried = [layer for layer in trained if layer["estimator"] != "closed_form"]
    if options.scope == "model_wise":
        queried = queried[:1]
    again = [layer["op"] for layer in trained if layer["estimator"] != "weight_perturbation"]
    return Work(
        forward=sum(macs),
        queries=sum(layer["queries"] * sum(macs[layer["op"] :]) for layer in queried),
        reforwards=sum(sum(macs[: op + 1]) for op in again),
        weight_gradients=sum(macs[op] for op in again) if options.train_weights else 0,
        forwards=sum(layer["queries"] for layer in queried),
    )


def device_restarts(
    model: _core.Model,
    options: _core.Options,
    layers: Sequence[int],
    device: _core.DeviceMemory,
    batch: int,
    *,
    of_ops: Sequence[int] | None = None,
) -> int:
    """Count a device's work for an image beyond :func:`zeroth_order_work`; arguments as there.

    A query of a layer that streams begins with the stream. A pooled gradient runs the layer's
    stream twice, first to count what no clamp holds. A gradient that is summed up for a group of
    channels after another runs the stream again for each group, or, with several images, all of
    the network up to the layer; where the size of the step depends on the whole gradient, twice.
    """
    macs = [int(op["macs"]) for op in model.ops()] if of_ops is None else of_ops
    begins = {op: begin for begin, end, _ in device.segments() for op in range(begin, end + 1)}
    trained = _core.Trainer(model, options, layers, 1, 1).layers()
    again = 0
    for layer, at_once in zip(trained, device.channels_at_once(), strict=True):
        op, exact = int(layer["op"]), layer["estimator"] == "closed_form"
        begin = begins.get(op, op)
        again += 0 if exact else int(layer["queries"]) * sum(macs[begin:op])
        if layer["estimator"] == "weight_perturbation":
            continue
        groups = math.ceil(model.bias(op).size / at_once)
        # With a normalized step each group is summed up to be counted, and again to be applied.
        passes = groups * (2 if options.step == "normalized" and groups > 1 else 1)
        first = begin if batch == 1 else 0
        streams = op in begins
        repeated = sum(macs[first : op + (0 if exact else 1)]) if streams or batch > 1 else 0
        again += (passes - 1) * repeated
        if streams and layer["estimator"] == "pooled_perturbation":
            again += passes * sum(macs[begin : op + 1])
        again += (passes // groups - 1) * macs[op] if options.train_weights else 0
    return again
