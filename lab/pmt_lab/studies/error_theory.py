"""Theory of a gradient estimate's error, and the moments of a layer that it needs."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from pmt.model import Model
from pmt.train.options import TrainingOptions

_NODES = ("node_perturbation", "pooled_perturbation")


@dataclass(frozen=True)
class LayerMoments:
    """Exact (straight-through) gradients of one layer and their norms, in int8 steps.

    ``gradient`` are the derivatives by the weights, mean over the images, nats per step. The others
    are float64 (N,), an image each. ``weight_squares`` are squared norms of the gradient by the
    weights, ``node_squares`` of that by the output, as a perturbation sees it: half the gradient
    where the output stands at a clamp, since only one of two signs moves it. ``patch_squares`` are
    sums over output nodes of the squared norm of the weights' derivative by that node's gradient:
    what turns an error of the node gradient into one of the weights' gradient; ``diagonal`` the
    same sums, each node weighted with its squared gradient.
    """

    gradient: npt.NDArray[np.float64]
    weights: int
    nodes: int
    weight_squares: npt.NDArray[np.float64]
    node_squares: npt.NDArray[np.float64]
    patch_squares: npt.NDArray[np.float64]
    diagonal: npt.NDArray[np.float64]

    @property
    def squares(self) -> float:
        """Squared norm of the mean gradient."""
        return float(self.gradient @ self.gradient)

    @property
    def coherence(self) -> float:
        """Mean squared norm of an image's gradient over that of the mean: 1 if all agree."""
        return float(self.weight_squares.mean()) / self.squares


def layer_moments(
    model: Model,
    images: npt.NDArray[np.int8],
    labels: npt.NDArray[np.int64],
    layer: int,
    *,
    free: bool = False,
) -> LayerMoments:
    """Differentiate the int8 network at one layer, with rounding taken as the identity.

    Images are prepared ones, int8 of shape (N, height, width, channels); the layer is an op index.
    With ``free`` no query moves a node at a clamp. Needs torch.
    """
    from pmt.baselines.backprop.networks import sample_weight_gradients

    caught = _differentiated(model, images, labels, layer)
    op = model.to_graph().ops[layer]
    weights = sample_weight_gradients(op, caught["x"], caught["by_sums"]).flatten(1).double()
    out = caught["by_output"].flatten(1).double()
    at_clamp = caught["at_clamp"].flatten(1)
    seen = out * (1.0 - (1.0 if free else 0.5) * at_clamp.double())
    patches = _patch_norms(op, caught["x"]).double()  # (N, positions, channels)
    scales = caught["output_scales"].double()
    inside = (~at_clamp).reshape(len(images), -1, len(scales)).double()
    spread = inside * scales**2 * patches
    gradient = out.reshape(spread.shape)
    return LayerMoments(
        gradient=weights.mean(0).numpy(),
        weights=int(weights.shape[1]),
        nodes=int(out.shape[1]),
        weight_squares=(weights**2).sum(1).numpy(),
        node_squares=(seen**2).sum(1).numpy(),
        patch_squares=spread.sum((1, 2)).numpy(),
        diagonal=(gradient**2 * spread).sum((1, 2)).numpy(),
    )


def pooled_moments(
    model: Model, images: npt.NDArray[np.int8], labels: npt.NDArray[np.int64], layer: int
) -> LayerMoments:
    """Return the moments of the part of a layer's gradient that pooled node perturbation estimates.

    ``gradient`` is the exact gradient by every channel's nodes that no clamp holds, shared out
    evenly to them, times their inputs. A channel stands for a node in the others. Arguments and
    errors are those of :func:`layer_moments`.
    """
    from pmt.baselines.backprop.networks import sample_weight_gradients, torch

    caught = _differentiated(model, images, labels, layer)
    op, x = model.to_graph().ops[layer], caught["x"].double()
    shape = caught["by_output"].shape
    at_clamp = caught["at_clamp"].flatten(1, 2).double()  # (N, positions, channels)
    seen = caught["by_output"].flatten(1, 2).double() * (1.0 - at_clamp)
    by_channel = seen.sum(1, keepdim=True)
    free = (1.0 - at_clamp).sum(1, keepdim=True)
    share = caught["output_scales"].double() * (1.0 - at_clamp) / free.clamp(min=1.0)

    def by_weights(gradient: Any) -> Any:
        return sample_weight_gradients(op, x, (gradient * share).reshape(shape)).double()

    weights = by_weights(by_channel.expand(seen.shape)).flatten(1)
    last = op.kind == "depthwise_conv2d"  # the channels of a weight's layout, else the first
    units = by_weights(torch.ones_like(seen)) ** 2
    factors = units.sum((1, 2)) if last else units.flatten(2).sum(2)
    squares = by_channel[:, 0] ** 2
    return LayerMoments(
        gradient=weights.mean(0).numpy(),
        weights=int(weights.shape[1]),
        nodes=int(squares.shape[1]),
        weight_squares=(weights**2).sum(1).numpy(),
        node_squares=squares.sum(1).numpy(),
        patch_squares=factors.sum(1).numpy(),
        diagonal=(squares * factors).sum(1).numpy(),
    )


def _differentiated(
    model: Model, images: npt.NDArray[np.int8], labels: npt.NDArray[np.int64], layer: int
) -> dict[str, Any]:
    """Input of the layer, gradients by its sums and by its output, which outputs are at a clamp."""
    from pmt.baselines.backprop.networks import IntegerNetwork, tensor_of, torch

    caught: dict[str, Any] = {}

    class Tapped(IntegerNetwork):
        def _op(self, index: int, op: Any, sources: list[Any]) -> Any:
            result = super()._op(index, op, sources)
            if index == layer:
                caught["output"] = result
            return result

    network = Tapped(model).requires_grad_(False)
    op = network.graph.ops[layer]

    def watch(x: Any, sums: Any) -> Any:
        caught["x"], caught["sums"] = x.detach(), sums.requires_grad_()
        return caught["sums"]

    network.watched[layer] = watch
    logits = network(tensor_of(images))
    losses = torch.nn.functional.cross_entropy(logits, tensor_of(labels), reduction="sum")
    scales = getattr(network, f"output_scales{layer}")
    if "output" not in caught:  # the head, whose sums are the logits: they are its nodes
        (by_sums,) = torch.autograd.grad(losses, caught["sums"])
        return {
            **caught,
            "by_sums": by_sums,
            "by_output": by_sums / scales,
            "at_clamp": torch.zeros_like(by_sums, dtype=torch.bool),
            "output_scales": scales,
        }
    by_sums, by_output = torch.autograd.grad(losses, (caught["sums"], caught["output"]))
    zero = network.graph.tensors[op.output].zero_point
    output = caught["output"].detach() + zero
    return {
        **caught,
        "by_sums": by_sums,
        "by_output": by_output,
        "at_clamp": (output <= op.clamp[0]) | (output >= op.clamp[1]),
        "output_scales": scales,
    }


def _patch_norms(op: Any, x: Any) -> Any:
    """Squared norm of each output node's inputs, (N, positions, channels)."""
    from pmt.baselines.backprop.networks import padded, torch

    squares = x.double() ** 2
    if op.kind == "fully_connected":
        return squares.flatten(1).sum(1)[:, None, None]
    nchw = padded(squares, op.padding, 0.0).permute(0, 3, 1, 2)
    columns = torch.nn.functional.unfold(nchw, op.kernel, stride=op.stride)
    by_channel = columns.reshape(len(x), x.shape[3], -1, columns.shape[2]).sum(2)
    if op.kind == "conv2d":
        return by_channel.sum(1)[:, :, None]
    channels = op.weights.shape[-1]
    return by_channel.repeat_interleave(channels // x.shape[3], 1).permute(0, 2, 1)


def expected_error(
    layers: Sequence[LayerMoments], index: int, options: TrainingOptions, kinds: Sequence[str]
) -> float:
    """Return E ||estimate - gradient||^2 of a layer's weights, in squared nats per step.

    ``layers`` has the moments of all layers under training, :func:`pooled_moments` of those that
    are pooled, and ``kinds`` their estimators; others than ``index`` matter with
    ``scope="model_wise"``. The error of a pooled layer is around the pooled gradient, so that
    :func:`expected_bias` comes on top. Rounding, curvature and what a clean baseline leaves in are
    not in it: what is measured beyond it is theirs.

    For Q independent sign vectors in d dimensions E (estimate - g)(estimate - g)^T = (||g||^2 I + g
    g^T - 2 diag(g^2)) / Q, whose trace is (d - 1) / Q ||g||^2 (Rademacher; Gao and Sener, 2022,
    have the general case).
    """
    layer, kind = layers[index], kinds[index]
    images = len(layer.weight_squares)
    if kind == "closed_form":
        return 0.0
    queries = _queries(options)
    shared = options.sharing == "batch"
    own = _perturbed(layer, kind, shared)
    total: npt.NDArray[np.float64] | float = own
    if options.scope == "model_wise":
        each = (_perturbed(one, k, shared) for one, k in zip(layers, kinds, strict=True))
        total = sum(each, np.zeros(1))
    if kind in _NODES:
        errors = total * layer.patch_squares + layer.weight_squares - 2 * layer.diagonal
        return float(errors.mean()) / queries / images
    errors = (layer.weights * total - own) / queries
    return float(errors.mean()) / (1 if shared else images)


def expected_cosine(
    error: float, layer: LayerMoments, estimated: LayerMoments | None = None
) -> float:
    """Return the cosine with the exact gradient that an estimate of this error has.

    ``estimated`` are the moments of the gradient around which it scatters, if not the exact one's.
    """
    if estimated is None:
        return math.sqrt(layer.squares / (layer.squares + error))
    length = math.sqrt(layer.squares * (estimated.squares + error))
    return float(layer.gradient @ estimated.gradient) / length if length else 0.0


def expected_bias(layer: LayerMoments, pooled: LayerMoments) -> float:
    """Return the squared distance of the pooled gradient from the exact one."""
    return float(((pooled.gradient - layer.gradient) ** 2).sum())


def paper_variance(
    layers: Sequence[LayerMoments], queries: float, *, model_wise: bool, nodes: bool = False
) -> float:
    """Return the paper's formula for the summed error at equal cost, of its table of variances.

    It is, model-wise, with Q queries of all L layers at once, ``((sum_i d_i - 1) sum_i S_i + L V) /
    (N Q)``, and layer-wise, with Q / L for each, ``(L sum_i (d_i - 1) S_i + L V) / (N Q)``: the
    table, with layers of different size. d_i is the number of weights, or with ``nodes`` that of
    nodes, S_i the squared norm of a layer's mean gradient, V the variance over the images.

    With perturbations of its own for each image, V stands beside S: the error is ``(d - 1) (S + V)
    / (N Q)``, see :func:`expected_error`. The printed formula has V without d, as if all images
    shared their gradient; it is far below what is measured where V exceeds S. For nodes it leaves
    out the chain rule: an error of a node's gradient reaches the weights times the layer's inputs
    there.
    """
    count, images = len(layers), len(layers[0].weight_squares)
    sizes = [one.nodes if nodes else one.weights for one in layers]
    variance = sum(float(one.weight_squares.mean()) - one.squares for one in layers)
    if model_wise:
        first = (sum(sizes) - 1) * sum(one.squares for one in layers)
    else:
        first = count * sum((d - 1) * one.squares for d, one in zip(sizes, layers, strict=True))
    return (first + count * variance) / (images * queries)


def _perturbed(layer: LayerMoments, kind: str, shared: bool) -> npt.NDArray[np.float64]:
    """Return the variance that a layer brings into each difference of losses, by image."""
    if kind == "closed_form":  # it is not perturbed
        return np.zeros(1)
    if kind in _NODES:
        return layer.node_squares
    return np.array([layer.squares]) if shared else layer.weight_squares


def _queries(options: TrainingOptions) -> float:
    """Return the number of independent differences among the queries."""
    if options.pairs == "antithetic":
        return options.queries / 2
    return options.queries - (1 if options.baseline == "leave_one_out" else 0)
