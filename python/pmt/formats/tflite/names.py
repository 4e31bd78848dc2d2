"""Names of layers, made from the names that converters give to weights."""

from __future__ import annotations

__all__ = ["short_name"]

_LONGEST = 32
# Last parts that name the operator, not the layer. "conv2d" is the default name of a layer.
_OPERATORS = ("Conv2D", "DepthwiseConv2D", "MatMul", "convolution", "depthwise")
_GENERIC = frozenset(
    [
        *_OPERATORS,
        "BiasAdd",
        "ReadVariableOp",
        "Squeeze",
        "resource",
        "kernel",
        "weights",
        "depthwise_kernel",
        "depthwise_weights",
    ]
)


def short_name(weights: str) -> str:
    """Return ``conv2d_1`` for weights named ``model/conv2d_1/Conv2D``, or nothing.

    Fused operators join their names with semicolons; the convolution's is taken where it is there.
    """
    names = weights.split(";")
    chosen = next((name for name in names if name.rpartition("/")[2] in _OPERATORS), names[0])
    parts = [part for part in chosen.split("/") if part]
    while parts and parts[-1] in _GENERIC:
        parts.pop()
    name = parts[-1] if parts else ""
    plain = name.isascii() and name.replace("_", "").replace(".", "").isalnum()
    return name if plain and len(name) <= _LONGEST else ""
