"""Memory that training takes on a 32-bit target."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from pmt import _core
from pmt.train.options import TrainingOptions

__all__ = ["arena_bytes", "device_options", "portable_arena_excess"]

# Perturbed weights made at once. The result does not depend on it; memory does, five bytes each.
_WEIGHT_TILE_BYTES = 4096

_ALIGNMENT = 16
# Bytes of the core's structs that hold pointers: on the 32-bit target, where the firmware asserts
# them, and with pointers of 8 bytes.
_PARAMETERS = {4: 8, 8: 16}
_LAYER = {4: 44, 8: 56}
_WORKSPACE = {4: 56, 8: 112}
_LAYER_STORAGE_32 = 8
_LAYER_SETTINGS = 16
_STREAMED_OPS = 12


def device_options(options: TrainingOptions) -> _core.Options:
    """Return the core's options as they are on a device; train there with no others."""
    core = options.to_core()
    core.weight_tile_bytes = _WEIGHT_TILE_BYTES
    return core


def arena_bytes(
    model: _core.Model,
    options: _core.Options,
    layers: Sequence[int],
    batch: int,
    settings: Sequence[_core.LayerSettings] = (),
) -> int:
    """Return the exact size of the target's arena.

    It holds the list of the layers, their settings, which ops stream, weights (int8; not where
    biases alone are trained) and biases (int32), and the trainer's own memory for one worker:
    activations, queries, gradient sums, the optimizer state.

    Parameters
    ----------
    model : _core.Model
        The network.
    options : _core.Options
        Of :func:`device_options`.
    layers : sequence of int
        Op indices, ascending.
    batch : int
        Largest number of samples in a step.
    settings : sequence of _core.LayerSettings, optional
        One for each layer; by default the options'.

    Returns
    -------
    int
        Bytes, a multiple of 16.
    """
    count = len(layers)
    parameters = sum(_round_up(n * count) for n in (4, _LAYER_SETTINGS, _LAYER_STORAGE_32))
    for layer in layers:
        parameters += _round_up(model.weights(layer).size) if options.train_weights else 0
        parameters += _round_up(4 * model.bias(layer).size)
    device = _core.DeviceMemory(model, options, list(layers), batch, list(settings))
    parameters += _round_up(_STREAMED_OPS * len(device.segments()))
    pointer = np.dtype(np.uintp).itemsize
    tables = ((_PARAMETERS, model.op_count), (_LAYER, count), (_WORKSPACE, 1))
    saved = sum(_round_up(size[pointer] * n) - _round_up(size[4] * n) for size, n in tables)
    return parameters + device.arena_bytes - saved


def _round_up(size: int) -> int:
    return math.ceil(size / _ALIGNMENT) * _ALIGNMENT


def portable_arena_excess(
    model: _core.Model,
    options: _core.Options,
    layers: Sequence[int],
    batch: int,
    settings: Sequence[_core.LayerSettings] = (),
) -> int:
    """Return what a processor without Arm's DSP extension takes beyond :func:`arena_bytes`.

    Its kernels, the portable ones, lay out their scratch in another way; what streams is the same,
    as an export has decided it. The arguments are those of :func:`arena_bytes`.

    Returns
    -------
    int
        Bytes, a multiple of 16; 0 where it takes less.
    """
    given = (model, options, list(layers), batch, list(settings))
    device = _core.DeviceMemory(*given)
    portable = _core.DeviceMemory(*given, portable=True, streams=device.segments())
    return max(0, portable.arena_bytes - device.arena_bytes)
