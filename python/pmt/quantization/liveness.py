"""How long activations are needed, and how many images that lets run at once."""

from __future__ import annotations

import numpy as np

from pmt.net.float_graph import FloatGraph

LARGEST_BATCH = 64
_BATCH_BYTES = 128 * 2**20


def last_readers(graph: FloatGraph) -> dict[int, int]:
    """Return, for every tensor that an op reads, the position of the last such op."""
    return {index: place for place, op in enumerate(graph.ops) for index in op.inputs}


def live_elements(graph: FloatGraph) -> int:
    """Return how many values an image has alive at once, at the most, with those being made."""
    last_reader = last_readers(graph)
    sizes = [int(np.prod(tensor.shape)) for tensor in graph.tensors]
    alive = {graph.input}
    most = sizes[graph.input]
    for position, op in enumerate(graph.ops):
        alive.add(op.output)
        most = max(most, sum(sizes[index] for index in alive))
        alive = {index for index in alive if last_reader.get(index, -1) > position}
    return most


def batch_size(graph: FloatGraph) -> int:
    """Return how many images to run at once: at most 64, fewer where activations are large."""
    # An op holds its padded input and one tap's product besides, hence the factor of three.
    bytes_an_image = 3 * 4 * live_elements(graph)
    return int(np.clip(_BATCH_BYTES // bytes_an_image, 1, LARGEST_BATCH))
