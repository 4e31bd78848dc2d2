"""TinyTrain's choice of layers and channels for the task at hand."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from pmt.baselines.backprop.cost import backward_work
from pmt.baselines.backprop.scheme import LayerUpdate, UpdateScheme, head_layer
from pmt.baselines.sparse_update.channels import top_channels
from pmt.baselines.sparse_update.contribution import scheme_memory
from pmt.model import Model

__all__ = ["Budgets", "inspected_layers", "layer_scores", "select_scheme"]

# Shares of a layer's channels that are tried, largest first.
_RATIOS = (1.0, 0.5, 0.25, 0.125)


@dataclass(frozen=True)
class Budgets:
    """Limits of the backward pass.

    Attributes
    ----------
    memory : int
        Bytes that the update adds, see :mod:`pmt.baselines.sparse_update.contribution`.
    macs : int
        Multiply-accumulates of the backward pass for one image.
    """

    memory: int
    macs: int

    def hold(self, model: Model, scheme: UpdateScheme) -> bool:
        """Whether a scheme is within both."""
        work = backward_work(model, scheme)
        backward = work.input_gradients + work.weight_gradients
        return backward <= self.macs and scheme_memory(model, scheme).total <= self.memory


def inspected_layers(model: Model, count: int) -> list[int]:
    """Return the last ``count`` layers before the head: only theirs are scored.

    Six blocks of three layers in the publication, so that scoring needs little memory itself.
    """
    if count < 1:
        raise ValueError(f"inspect={count!r} must be 1 layer or more")
    head = head_layer(model)
    return [layer.index for layer in model.layers if layer.index != head][-count:]


def layer_scores(
    model: Model, potentials: Mapping[int, npt.NDArray[np.float64]]
) -> dict[int, float]:
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
    model: Model,
    potentials: Mapping[int, npt.NDArray[np.float64]],
    budgets: Budgets,
    *,
    head: bool = True,
) -> UpdateScheme:
    """Choose layers by score while the budgets hold, and channels by potential.

    Layers are taken in the order of their scores. Each gets the largest share of channels that is
    still within both budgets (1, 1/2, 1/4 or 1/8; at least one channel) and all its biases, or is
    passed over. Its channels are those of the highest potential. The linear head, if it is trained,
    comes first. A ValueError says that not even the first choice is within the budgets.
    """
    linear = head_layer(model)
    chosen: dict[int, LayerUpdate] = {}
    if head and linear is not None:
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


def _updates(op: int, potentials: npt.NDArray[np.float64]) -> list[LayerUpdate]:
    counts = [max(1, int(ratio * len(potentials))) for ratio in _RATIOS]
    return [LayerUpdate(op, n, True, top_channels(potentials, n)) for n in dict.fromkeys(counts)]


def _scheme(chosen: Mapping[int, LayerUpdate]) -> UpdateScheme:
    return UpdateScheme(tuple(chosen[op] for op in sorted(chosen)))
