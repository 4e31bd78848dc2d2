"""The limits of a ``.pmt`` image, as ``cpp/core/image/model.hpp`` has them."""

from __future__ import annotations

from pmt import _core

LARGEST_WEIGHT = _core.LARGEST_WEIGHT
"""The largest weight; the smallest is its negative."""

DEAD_CHANNEL_SCALE = _core.DEAD_CHANNEL_SCALE
"""Weight scale below which a channel cannot reach the output, and is left as it is."""

TENSOR_SCALES = _core.TENSOR_SCALES
"""Smallest and largest scale of a tensor."""

WEIGHT_SCALES = _core.WEIGHT_SCALES
"""Smallest and largest scale of a channel's weights."""

MOST_TENSORS = _core.MOST_TENSORS
MOST_OPS = _core.MOST_OPS

LARGEST_SIDE = _core.LARGEST_SIDE
"""The largest height or width of a tensor; also of padding."""

MOST_CHANNELS = _core.MOST_CHANNELS

MOST_ACTIVATIONS = _core.MOST_ACTIVATIONS
"""Elements of all tensors together."""
