"""Choices of channels by their weights, and of layers and channels by potentials (TinyTrain)."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from pmt._util.arrays import Array, DoubleArray, Int8Array, Int64Array
from pmt.baselines.backprop.cost import backward_work
from pmt.baselines.backprop.scheme import LayerUpdate, UpdateScheme, head_layer, input_channels
from pmt.baselines.sparse_update.contribution import scheme_memory
from pmt.model import Model


def top_channels(scores: npt.ArrayLike, count: int) -> tuple[int, ...]:
    """Return the ``count`` channels of the highest score, ascending; of equals the first."""
    order = np.argsort(-np.asarray(scores, np.float64), kind="stable")
    return tuple(sorted(int(channel) for channel in order[:count]))


def largest_channels(model: Model, op: int, count: int) -> tuple[int, ...]:
    """Return the input channels of the largest Euclidean norm of int8 weights, MCUTrain's rule."""
    weights = by_input_channel(model, op, model.core.weights(op)).astype(np.int64)
    return top_channels(np.square(weights).sum(axis=(0, 2)), count)


def chosen_scheme(model: Model, scheme: UpdateScheme) -> UpdateScheme:
    """Return the scheme with the channels chosen, by the weights, where they are not."""
    updates = []
    for u in scheme.layers:
        chosen = u.chosen or largest_channels(model, u.op, u.channels)
        updates.append(LayerUpdate(u.op, u.channels, u.bias, chosen))
    return UpdateScheme(tuple(updates))


def by_input_channel(model: Model, op: int, weights: Array) -> Array:
    """View an array in the shape of a layer's weights as (before, input channels, after)."""
    channels = input_channels(model, op)
    if model.core.ops()[op]["kind"] != "depthwise_conv2d":
        return weights.reshape(-1, channels, 1)  # (out, kernel, kernel, in)
    kernel = model.core.ops()[op]["kernel"]  # (kernel, kernel, in, outputs of each)
    return weights.reshape(kernel[0] * kernel[1], channels, -1)


def channel_potentials(
    model: Model, images: Int8Array, labels: Int64Array, layers: Sequence[int], *, chunk: int = 50
) -> dict[int, DoubleArray]:
    """Estimate the Fisher potential of every input channel of some layers.

    With the activation ``a`` and its gradient ``g`` of sample n, over positions d:
    ``potential_o = 1/(2N) * sum_n (sum_d a_nd g_nd)^2``, the change of the loss (to second order,
    with the empirical Fisher information as its curvature) when channel o is set to zero
    (TinyTrain, arXiv:2307.09988, section 2.2). The product has no unit: scales cancel.

    Layers are op indices; the activation of a layer is its input, which an update of its weights
    has to keep: fewer channels are less memory. Images are prepared ones, ``chunk`` at once.
    Returns float64 (input channels,) by op index, of a linear layer (features,). Needs torch.
    """
    from pmt.baselines.backprop.networks import IntegerNetwork

    network = IntegerNetwork(model).requires_grad_(False)
    sums = {op: np.float64(0.0) for op in layers}
    for first in range(0, len(images), chunk):
        part = slice(first, first + chunk)
        products = network.channel_products(images[part], labels[part], layers)
        for op, product in products.items():
            sums[op] = sums[op] + np.square(product).sum(axis=0)
    return {op: np.asarray(total) / (2 * len(images)) for op, total in sums.items()}


# Shares of a layer's channels that are tried, largest first.
_RATIOS = (1.0, 0.5, 0.25, 0.125)


@dataclass(frozen=True)
class Budgets:
    """Limits of a backward pass: bytes, as :func:`scheme_memory` counts, and MACs for one image."""

    memory: int
    macs: int

    def hold(self, model: Model, scheme: UpdateScheme) -> bool:
        """Whether a scheme is within both."""
        work = backward_work(model, scheme)
        backward = work.input_gradients + work.weight_gradients
        return backward <= self.macs and scheme_memory(model, scheme).total <= self.memory


def inspected_layers(model: Model, count: int) -> list[int]:
    """Return the last ``count`` layers before the head: to score them takes little memory."""
    head = head_layer(model)
    return [layer.index for layer in model.layers if layer.index != head][-count:]


def layer_scores(model: Model, potentials: Mapping[int, DoubleArray]) -> dict[int, float]:
    """Score layers by their potential for each weight and multiply-accumulate.

    ``s_i = P_i / (W_i / max W * M_i / max M)``, with ``P_i`` the sum of the layer's channel
    potentials, ``W_i`` its weights, ``M_i`` the multiply-accumulates of its forward, and the
    largest of each among the layers that are scored (arXiv:2307.09988, section 2.2).
    """
    layers = {layer.index: layer for layer in model.layers if layer.index in potentials}
    most_weights = max(layer.weights for layer in layers.values())
    most_macs = max(layer.macs for layer in layers.values())
    return {
        op: float(potentials[op].sum()) / (layer.weights / most_weights * (layer.macs / most_macs))
        for op, layer in layers.items()
    }


def select_scheme(
    model: Model, potentials: Mapping[int, DoubleArray], budgets: Budgets
) -> UpdateScheme:
    """Choose layers by score while the budgets hold, and channels by potential.

    Layers are taken in the order of their scores. Each gets the largest share of channels that is
    still within both budgets (1, 1/2, 1/4 or 1/8; at least one channel) and all its biases, or is
    passed over. Its channels are those of the highest potential. The linear head comes
    first. A ValueError says that not even the first choice is within the budgets.
    """
    linear = head_layer(model)
    chosen: dict[int, LayerUpdate] = {}
    if linear is not None:
        chosen = UpdateScheme.whole([linear], model).by_op()
    scores = layer_scores(model, potentials)
    for op in sorted(scores, key=lambda op: (-scores[op], op)):
        for update in _updates(op, potentials[op]):
            if budgets.hold(model, _scheme({**chosen, op: update})):
                chosen[op] = update
                break
    if not chosen or not budgets.hold(model, _scheme(chosen)):
        raise ValueError(
            f"no layer fits {budgets.memory} bytes and {budgets.macs} multiply-accumulates of the "
            "backward pass; raise the budgets"
        )
    return _scheme(chosen)


def _updates(op: int, potentials: DoubleArray) -> list[LayerUpdate]:
    counts = [max(1, int(ratio * len(potentials))) for ratio in _RATIOS]
    return [LayerUpdate(op, n, True, top_channels(potentials, n)) for n in dict.fromkeys(counts)]


def _scheme(chosen: Mapping[int, LayerUpdate]) -> UpdateScheme:
    return UpdateScheme(tuple(chosen[op] for op in sorted(chosen)))
