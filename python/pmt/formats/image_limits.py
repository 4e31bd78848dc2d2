"""What one image can hold at most, checked before a large or odd network is built into one."""

from __future__ import annotations

import numpy as np

from pmt.net.graph import Graph

__all__ = ["check_limits"]

# The limit stands in cpp/core/image/model.hpp.
_MOST_TENSORS = 2048
_MOST_OPS = 1024
_MOST_VALUES = 2**28
_LARGEST_SIDE = 4096
_MOST_CHANNELS = 65536
_SHOWN = 6  # problems in one message
_TENSOR_SCALES = (1e-12, 1e6)
_WEIGHT_SCALES = (1e-30, 1e6)


def check_limits(graph: Graph, source: str) -> None:
    """Check a graph against the limits of the image format.

    Parameters
    ----------
    graph : Graph
        A consistent graph.
    source : str
        Where it comes from, for the error message.

    Raises
    ------
    ValueError
        With every limit that is passed.
    """
    problems = [
        f"{len(values)} {what}, an image holds {limit}"
        for what, values, limit in (
            ("tensors", graph.tensors, _MOST_TENSORS),
            ("ops", graph.ops, _MOST_OPS),
        )
        if len(values) > limit
    ]
    total = sum(tensor.elements for tensor in graph.tensors)
    if total > _MOST_VALUES:
        problems.append(f"activations of {total} values, an image holds {_MOST_VALUES}")
    for tensor in graph.tensors:
        if max(tensor.height, tensor.width) > _LARGEST_SIDE or tensor.channels > _MOST_CHANNELS:
            problems.append(
                f"tensor {tensor.name!r} of {tensor.height}x{tensor.width}x{tensor.channels}, at "
                f"most {_LARGEST_SIDE}x{_LARGEST_SIDE}x{_MOST_CHANNELS}"
            )
        if not _TENSOR_SCALES[0] <= tensor.scale <= _TENSOR_SCALES[1]:
            problems.append(f"tensor {tensor.name!r} has scale {tensor.scale}, not 1e-12 to 1e6")
    for op in graph.ops:
        scales = op.weight_scales
        if scales is None:
            continue
        if not np.all((scales >= _WEIGHT_SCALES[0]) & (scales <= _WEIGHT_SCALES[1])):
            problems.append(f"op {op.name!r} has weight scales outside of 1e-30 to 1e6")
    if problems:
        shown = "; ".join(problems[:_SHOWN])
        more = f"; and {len(problems) - _SHOWN} more" if len(problems) > _SHOWN else ""
        raise ValueError(
            f"{source}: beyond the limits of an image: {shown}{more}; use a smaller network or "
            "calibrate again"
        )
