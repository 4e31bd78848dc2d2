"""Channel potentials without back-propagation: the loss with each channel taken out."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from pmt import _core
from pmt._util.progress import ProgressLine
from pmt.baselines.sparse_update.channels import by_input_channel
from pmt.model import Model

__all__ = ["forward_potentials"]


def forward_potentials(
    model: Model,
    images: npt.NDArray[np.int8],
    labels: npt.NDArray[np.int64],
    layers: Sequence[int],
    *,
    threads: int = 1,
) -> dict[int, npt.NDArray[np.float64]]:
    """Measure what each input channel of some layers is worth, with forward passes alone.

    The Fisher potential ``1/(2N) * sum_n (sum_d a_nd g_nd)^2`` holds the change of each sample's
    loss when a channel becomes zero, to first order. Here that change is measured:
    ``1/(2N) * sum_n (loss_n without channel - loss_n)^2``. A channel is taken out by setting its
    weights to zero, which int8 holds exactly: no rounding stands between. What else reads the
    activation (a residual connection) still does.

    Parameters
    ----------
    model : Model
        The network; it is not changed.
    images : ndarray of int8, shape (N, height, width, channels)
        Prepared images.
    labels : ndarray of int64, shape (N,)
        Their classes.
    layers : sequence of int
        Op indices.
    threads : int
        Threads of the core; the result does not depend on it.

    Returns
    -------
    dict
        By op index, float64 of shape (input channels,); of a linear layer (features,). One forward
        of all images for each channel.

    Raises
    ------
    ValueError
        If there are no images or not as many labels.
    """
    if len(images) == 0 or len(images) != len(labels):
        raise ValueError(
            f"{len(images)} images and {len(labels)} labels: give as many, one or more"
        )
    tried = model.copy()
    clean = _losses(tried, images, labels, threads)
    total = {op: by_input_channel(model, op, model.core.weights(op)).shape[1] for op in layers}
    line, done = ProgressLine(sum(total.values()), unit="channel"), 0
    found = {}
    try:
        for op in layers:
            weights, bias = model.core.weights(op), model.core.bias(op)
            found[op] = np.zeros(total[op])
            for channel in range(total[op]):
                without = np.array(weights)
                by_input_channel(model, op, without)[:, channel] = 0
                if (without != weights).any():
                    tried.core.set_parameters(op, without, bias)
                    change = _losses(tried, images, labels, threads) - clean
                    found[op][channel] = np.square(change).mean() / 2
                done += 1
                line.update(done, "")
            tried.core.set_parameters(op, weights, bias)
    finally:
        line.clear()
    return found


def _losses(
    model: Model, images: npt.NDArray[np.int8], labels: npt.NDArray[np.int64], threads: int
) -> npt.NDArray[np.float64]:
    """Cross-entropy of every image, in nats."""
    logits = model.core.logits(images, threads=threads)
    losses, _ = _core.cross_entropy(logits, np.ascontiguousarray(labels))
    return losses.astype(np.float64) / _core.LOSS_ONE
