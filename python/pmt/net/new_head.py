"""A new last layer for a network, so that it tells other classes apart."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from pmt._util.checks import OptionError, checked_integer
from pmt.net.graph import LAYER_KINDS, OF_CLASSES, Graph, ends_in_features
from pmt.net.image_limits import MOST_CHANNELS

__all__ = ["with_new_head"]


def with_new_head(graph: Graph, classes: int) -> Graph:
    """Return a network with a new last layer, whose logits are all 0 until it is trained.

    Its weights and biases are 0. Every weight scale is the median of the old layer's, so that the
    int8 range covers weights as large as the old ones. The other layers, the blocks and the
    statistics of clean images stay; class names do not.

    Parameters
    ----------
    graph : Graph
        The network; it does not change.
    classes : int
        Number of classes, 2 or more.

    Returns
    -------
    Graph
        The network with the new layer. Arrays of the other layers are shared.

    Raises
    ------
    TypeError
        If ``classes`` is not an integer.
    ValueError
        If ``classes`` is out of range, or the network does not end in a layer that gives a logit
        for each class.
    """
    count = checked_integer("classes", classes)
    if not 2 <= count <= MOST_CHANNELS:
        raise OptionError("classes", f" {count}: must be 2..{MOST_CHANNELS}")
    head, output = graph.ops[-1], graph.tensors[graph.output]
    gives_logits = head.kind in LAYER_KINDS and head.kind != "depthwise_conv2d"
    if not gives_logits or ends_in_features(output.shape, graph.metadata):
        raise OptionError(
            "classes",
            f" {count}: the network does not end in a layer that gives a logit for each class, "
            f"but in {head.kind} {head.name!r}; its last layer cannot be replaced",
        )
    assert head.weights is not None
    assert head.weight_scales is not None
    scale = np.float32(np.median(head.weight_scales))
    new = replace(
        head,
        weights=np.zeros((count, *head.weights.shape[1:]), np.int8),
        bias=np.zeros(count, np.int32),
        weight_scales=np.full(count, scale, np.float32),
    )
    tensors = list(graph.tensors)
    tensors[graph.output] = replace(output, channels=count)
    metadata = {k: v for k, v in graph.metadata.items() if k not in OF_CLASSES}
    return replace(graph, tensors=tensors, ops=[*graph.ops[:-1], new], metadata=metadata)
