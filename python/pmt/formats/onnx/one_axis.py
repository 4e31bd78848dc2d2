"""Nodes over one axis, (batch, channels, length), converted as those over images of height 1."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np

from pmt.formats.onnx.call import Call, QuantizedConstant, Value
from pmt.formats.onnx.draft import View

_ONE_EACH = ("kernel_shape", "strides", "dilations")


def over_one_axis(convert: Callable[[Call], View]) -> Callable[[Call], View]:
    """Let a converter of nodes over height and width convert those over a length too."""

    def converted(call: Call) -> View:
        view = call.values[0]
        if not isinstance(view, View) or len(view.axes) != 3:
            return convert(call)
        result = convert(_over_images(call))
        return replace(result, axes=(*result.axes[:2], result.axes[3]))

    return converted


def _over_images(call: Call) -> Call:
    """Return the call with a height of 1 in its weights and attributes; Call.image has it too."""
    attributes = dict(call.node.attributes)
    for name in _ONE_EACH:
        if isinstance(attributes.get(name), list):
            attributes[name] = [1, *attributes[name]]
    pads = attributes.get("pads")
    if isinstance(pads, list) and len(pads) == 2:
        attributes["pads"] = [0, pads[0], 0, pads[1]]
    weights = [_with_height(value) for value in call.values[1:2]]
    node = replace(call.node, attributes=attributes)
    return replace(call, node=node, values=[*call.values[:1], *weights, *call.values[2:]])


def _with_height(weights: Value | None) -> Value | None:
    if isinstance(weights, QuantizedConstant) and weights.values.ndim == 3:
        axis = weights.axis
        moved = axis if axis is None or axis < 2 else axis + 1
        return replace(weights, values=weights.values[:, :, None], axis=moved)
    if isinstance(weights, np.ndarray) and weights.ndim == 3:
        return weights[:, :, None]
    return weights
