"""Operators of a ``.tflite`` file that read values whose channels come first: the end of a network.

Converters from PyTorch put a TRANSPOSE before the flattening or the mean that stands before the
last layer. The graph keeps its values channels last: the mean is the same, and the last layer's
weights are put into the order of the graph.
"""

import math
from collections.abc import Callable

import numpy as np

from pmt.formats.layers import Unsupported
from pmt.formats.tflite import windows
from pmt.formats.tflite.network import Step

REMEDY = "convert from a channels-last network, or end it with a mean or a dense layer"


def converter(step: Step) -> Callable[[Step], None]:
    """Return the converter of an operator that reads values whose channels come first."""
    taken = step.network.channels_first.get(step.op.inputs[0])
    if taken is not None and step.op.kind == "MEAN":
        return _mean
    if taken == set() and step.op.kind in ("RESHAPE", "TRANSPOSE", "FULLY_CONNECTED"):
        kinds = {"RESHAPE": _flatten, "TRANSPOSE": _back, "FULLY_CONNECTED": _fully_connected}
        return kinds[step.op.kind]
    raise Unsupported("reads values whose channels come first", REMEDY)


def _mean(step: Step) -> None:
    """Lower MEAN over height and width, at once or one after the other, as one mean.

    The values between the two are not rounded to int8, so that the mean may differ by one.
    """
    network, source = step.network, step.op.inputs[0]
    shape, axes, taken = step.shape(), step.integers(1), network.channels_first[source]
    rank = len(shape)
    if axes is None or not all(-rank <= axis < rank for axis in axes):
        raise Unsupported(f"reduces axes {axes} of shape {shape}", REMEDY)
    reduced = {axis % rank for axis in axes} | taken
    keeps = len(network.model.tensors[step.output].shape) == rank
    left = [axis for axis in range(2, rank) if axis not in reduced and shape[axis] != 1]
    if min(reduced, default=0) < 2:
        raise Unsupported(f"reduces axes {axes} of shape {shape}", REMEDY)
    kept = tuple(1 if axis in reduced else size for axis, size in enumerate(shape))
    if left:
        if len(network.readers.get(step.output, ())) != 1:
            raise Unsupported("a mean over width alone is read twice", REMEDY)
        after = kept if keeps else tuple(n for axis, n in enumerate(kept) if axis not in reduced)
        network.alias(step.output, source, after)
        network.channels_first[step.output] = reduced if keeps else set()
        return
    channels = step.tensor().channels
    size = (1, 1, channels)
    step.emit("mean", kept if keeps else (1, channels), stem="mean", size=size)


def _flatten(step: Step) -> None:
    """Lower RESHAPE to a vector: the layer that reads it has weights in the order of the file."""
    shape = step.network.model.tensors[step.output].shape
    if max(shape, default=0) != step.tensor().elements:
        raise Unsupported(f"reshapes {step.shape()} to {shape}", REMEDY)
    step.require_same_quantization()
    step.alias(shape)
    step.network.channels_first[step.output] = set()


def _back(step: Step) -> None:
    """Lower TRANSPOSE back to channels last, which changes nothing."""
    shape, order = step.shape(), step.integers(1)
    if order != [0, 2, 3, 1] or len(shape) != 4:
        raise Unsupported(f"moves values: order {order} for shape {shape}", REMEDY)
    step.require_same_quantization()
    step.alias(tuple(shape[axis] for axis in order))


def _fully_connected(step: Step) -> None:
    source = step.tensor()
    height, width, channels = source.shape
    places = np.arange(math.prod(source.shape)).reshape(channels, height, width)
    windows.fully_connected(step, places.transpose(1, 2, 0).ravel())
