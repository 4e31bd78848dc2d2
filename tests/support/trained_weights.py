"""The weights of each layer that an update scheme trains."""

import numpy as np

from pmt.baselines.backprop.scheme import UpdateScheme
from pmt.baselines.sparse_update.channels import by_input_channel, chosen_scheme
from pmt.model import Model


def weight_masks(model: Model, scheme: UpdateScheme) -> dict[int, np.ndarray]:
    """Return which weights are trained, by op index, in the shape of `model.core.weights(op)`."""
    masks = {}
    for update in chosen_scheme(model, scheme).layers:
        mask = np.zeros(model.core.weights(update.op).shape, np.bool_)
        by_input_channel(model, update.op, mask)[:, list(update.chosen)] = True
        masks[update.op] = mask
    return masks
