"""Whether two graphs are one network with other weights."""

from __future__ import annotations

import numpy as np

from pmt.net.graph import Graph, Op, Tensor

__all__ = ["differences"]

_FIELDS = ("kind", "name", "inputs", "output", "kernel", "stride", "padding", "clamp")


def differences(expected: Graph, found: Graph) -> list[str]:
    """Compare all that training leaves as it is.

    Parameters
    ----------
    expected, found : Graph
        The networks. Weights and biases, preprocessing, blocks and metadata may differ.

    Returns
    -------
    list of str
        What differs, in the order of the ops; empty for the same network.
    """
    if len(expected.ops) != len(found.ops):
        return [f"it has {len(expected.ops)} operations, the model {len(found.ops)}"]
    if len(expected.tensors) != len(found.tensors):
        return [f"it has {len(expected.tensors)} activations, the model {len(found.tensors)}"]
    problems = []
    for index, (a, b) in enumerate(zip(expected.tensors, found.tensors, strict=True)):
        if _shape(a) != _shape(b):
            problems.append(f"activation {index} is {_shape(a)}, the model's {_shape(b)}")
        elif _quantisation(a) != _quantisation(b):
            problems.append(
                f"activation {index} has scale and zero point {_quantisation(a)}, the model's "
                f"{_quantisation(b)}"
            )
    for one, other in zip(expected.ops, found.ops, strict=True):
        problems += _op_differences(one, other)
    if (expected.input, expected.output) != (found.input, found.output):
        problems.append("input or output is another activation")
    return problems


def _op_differences(expected: Op, found: Op) -> list[str]:
    for name in _FIELDS:
        a, b = getattr(expected, name), getattr(found, name)
        if a != b:
            return [f"{expected.name!r} has {name} {a!r}, the model {b!r}"]
    if (expected.weights is None) != (found.weights is None):
        return [f"{expected.name!r} has weights on one side only"]
    if expected.weights is None or found.weights is None:
        return []
    if expected.weights.shape != found.weights.shape:
        shapes = (expected.weights.shape, found.weights.shape)
        return [f"{expected.name!r} has weights {shapes[0]}, the model {shapes[1]}"]
    if not np.array_equal(_scales(expected), _scales(found)):
        return [f"{expected.name!r} has other weight scales than the model"]
    return []


def _scales(op: Op) -> np.ndarray[tuple[int, ...], np.dtype[np.float32]]:
    assert op.weight_scales is not None
    return op.weight_scales.astype(np.float32)


def _shape(tensor: Tensor) -> tuple[int, int, int]:
    return (tensor.height, tensor.width, tensor.channels)


def _quantisation(tensor: Tensor) -> tuple[float, int]:
    return (float(np.float32(tensor.scale)), tensor.zero_point)
