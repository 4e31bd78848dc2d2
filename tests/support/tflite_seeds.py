"""Small sound .tflite files: what fuzzing starts from."""

from __future__ import annotations

import numpy as np
from tflite_builder import TfliteBuilder


def files() -> list[bytes]:
    """A convolutional and a fully connected network."""
    return [_convolutional(), _dense()]


def _convolutional() -> bytes:
    b = TfliteBuilder()
    image = b.activation(1, 4, 4, 3, name="image")
    weights = b.constant(np.ones((2, 3, 3, 3), np.int8), scales=[0.01, 0.02], name="conv")
    bias = b.constant(np.zeros(2, np.int32))
    hidden = b.activation(1, 2, 2, 2)
    b.op("CONV_2D", [image, weights, bias], [hidden], StrideH=2, StrideW=2, Padding=0)
    depthwise = b.constant(np.ones((1, 3, 3, 2), np.int8), scales=[0.1, 0.2], axis=3)
    deep = b.activation(1, 2, 2, 2)
    b.op(
        "DEPTHWISE_CONV_2D",
        [hidden, depthwise, b.constant(np.ones(2, np.int32))],
        [deep],
        StrideH=1,
        StrideW=1,
        Padding=0,
        DepthMultiplier=1,
    )
    total = b.activation(1, 2, 2, 2, scale=1.0)
    b.op("ADD", [hidden, deep], [total])
    pooled = b.activation(1, 1, 1, 2, scale=1.0)
    sizes = {"FilterHeight": 2, "FilterWidth": 2, "StrideH": 2, "StrideW": 2, "Padding": 1}
    b.op("AVERAGE_POOL_2D", [total], [pooled], **sizes)
    flat = b.activation(1, 2, scale=1.0)
    b.op("RESHAPE", [pooled, b.constant(np.array([1, 2], np.int32))], [flat])
    logits = _head(b, flat)
    return b.bytes([image], [logits])


def _dense() -> bytes:
    b = TfliteBuilder()
    values = b.activation(1, 2)
    return b.bytes([values], [_head(b, values)])


def _head(b: TfliteBuilder, flat: int) -> int:
    weights = b.constant(np.array([[1, 2], [3, 4], [5, 6]], np.int8), scales=[0.1], name="dense")
    logits, shares = b.activation(1, 3), b.activation(1, 3, scale=1 / 256, zero=-128)
    b.op("FULLY_CONNECTED", [flat, weights, b.constant(np.zeros(3, np.int32))], [logits])
    b.op("SOFTMAX", [logits], [shares])
    return shares
