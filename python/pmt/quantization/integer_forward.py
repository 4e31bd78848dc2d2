"""Every activation of an int8 network, real-valued or not, as the core computes it."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from pmt.model import Model
from pmt.net.graph import Graph, Tensor

Int8Array = npt.NDArray[np.int8]


def integer_activations(graph: Graph, images: npt.NDArray[np.uint8]) -> list[Int8Array]:
    """Run the network and keep every activation.

    Parameters
    ----------
    graph : Graph
        The int8 network.
    images : ndarray of uint8, shape (N, H, W, C)
        Pixels 0..255.

    Returns
    -------
    list of ndarray of int8
        One per tensor of the graph, ``(N, H, W, C)`` each; the input is among them.
    """
    model = Model.from_graph(graph)
    per_image = [model.core.activations(image) for image in model.prepare(images)]
    return [np.stack(tensors) for tensors in zip(*per_image, strict=True)]


def dequantised(tensor: Tensor, values: Int8Array) -> npt.NDArray[np.float32]:
    """Real values ``scale * (q - zero_point)`` of an activation."""
    real = (values.astype(np.float32) - np.float32(tensor.zero_point)) * np.float32(tensor.scale)
    return np.asarray(real, np.float32)
