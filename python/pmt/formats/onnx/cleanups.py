"""Joins ops of a draft network where one op computes exactly what two do."""

from __future__ import annotations

from collections import Counter

import numpy as np

from pmt.formats.onnx.draft import OPEN, Draft, DraftOp
from pmt.net.float_graph import LAYER_KINDS

__all__ = ["clean"]


def clean(draft: Draft, output: int) -> int:
    """Join paddings and float scalings with the layer after them, and renumber the activations.

    Returns
    -------
    int
        The output's new number.
    """
    readers = Counter(index for op in draft.ops for index in op.inputs)
    readers[output] += 1
    by_input = {op.inputs[0]: op for op in draft.ops}
    writers = {op.output: op for op in draft.ops}
    kept = []
    for op in draft.ops:
        following = by_input.get(op.output)
        joined = following is not None and readers[op.output] == 1
        if joined and following is not None and _join(draft, op, following, writers):
            following.inputs = op.inputs
            by_input[op.inputs[0]] = following
            continue
        kept.append(op)
    draft.ops = kept
    return _renumber(draft, output)


def _join(draft: Draft, op: DraftOp, following: DraftOp, writers: dict[int, DraftOp]) -> bool:
    if op.kind == "pad":
        return _join_padding(draft, op, following, writers)
    plain = op.kind == "depthwise_conv2d" and op.kernel == (1, 1) and op.stride == (1, 1)
    unpadded = not any(op.padding) and op.bounds == OPEN and not draft.quantized
    same_channels = draft.tensors[op.inputs[0]].size == draft.tensors[op.output].size
    if plain and unpadded and same_channels and following.kind in LAYER_KINDS:
        return _join_scaling(op, following)
    return False


def _join_padding(
    draft: Draft, op: DraftOp, following: DraftOp, writers: dict[int, DraftOp]
) -> bool:
    source, target = draft.tensors[op.inputs[0]], draft.tensors[op.output]
    if target.quantization not in (None, source.quantization):
        if source.quantization is not None:
            return False
        source.quantization = target.quantization
    total = tuple(a + b for a, b in zip(op.padding, following.padding, strict=True))
    top, left, bottom, right = total
    height, width = following.kernel
    if max(top, bottom) >= height or max(left, right) >= width:
        return False
    writer = writers.get(op.inputs[0])
    # A zero wins in no window of values that are never negative.
    harmless = following.kind == "max_pool" and writer is not None and writer.bounds[0] >= 0
    if following.kind not in ("conv2d", "depthwise_conv2d") and not harmless:
        return False
    following.padding = (top, left, bottom, right)
    return True


def _join_scaling(op: DraftOp, following: DraftOp) -> bool:
    """Take ``x * factor + offset`` into the weights and bias of the layer that reads it."""
    assert op.weights is not None
    assert following.weights is not None
    channels = op.weights.shape[2]
    factor = op.weights[0, 0].astype(np.float64)
    offset = np.zeros(channels) if op.bias is None else op.bias
    if any(following.padding) and np.any(offset != 0):
        return False  # the padding's zeros would have to be shifted too
    weights = following.weights.astype(np.float64)
    if following.kind == "depthwise_conv2d":
        repeat = weights.shape[2] // channels
        bias = weights.sum(axis=(0, 1)) * np.repeat(offset, repeat)
        weights = weights * np.repeat(factor, repeat)
    else:
        by_channel = weights.reshape(len(weights), -1, channels)
        bias = (by_channel * offset).sum(axis=(1, 2))
        weights = (by_channel * factor).reshape(weights.shape)
    following.weights = weights.astype(np.float32)
    following.bias = bias if following.bias is None else following.bias + bias
    return True


def _renumber(draft: Draft, output: int) -> int:
    used = sorted({0, output, *(i for op in draft.ops for i in (*op.inputs, op.output))})
    numbers = {old: new for new, old in enumerate(used)}
    draft.tensors = [draft.tensors[old] for old in used]
    for op in draft.ops:
        op.inputs, op.output = tuple(numbers[i] for i in op.inputs), numbers[op.output]
    return numbers[output]
