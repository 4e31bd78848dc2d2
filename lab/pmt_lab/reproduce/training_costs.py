"""Work and memory of training methods on the paper's network, as the tables of costs show them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pmt.baselines.backprop.scheme import head_layer
from pmt.model import Model, load
from pmt.profiling.profile import analytic_bytes, profile_method, profiled_method
from pmt.train.costs.memory import PARTS, inference_moments

__all__ = ["KB", "NETWORK", "kilobytes", "paper_network", "printed_macs", "training_costs"]

NETWORK = "cifar10_mcunet"
KB = 1024


def paper_network() -> Model:
    """Return MCUNet with ten classes, which comes with pmt."""
    return load(NETWORK)


def training_costs(
    model: Model, methods: Mapping[str, tuple[str, str]], queries: int
) -> dict[str, Any]:
    """Count what a step of one image takes.

    Parameters
    ----------
    model : Model
        The network.
    methods : mapping of str to (str, str)
        Method and layers by the name under which they are shown.
    queries : int
        For each image and layer.

    Returns
    -------
    dict
        JSON values: bytes of the network, and work and memory of every method.
    """
    head = head_layer(model)
    convolutions = [layer for layer in model.layers if layer.index != head]
    peak = max(inference_moments(model), key=lambda moment: moment.total)
    return {
        "network": NETWORK,
        "queries": queries,
        "parameter_bytes": sum(x.weights + 4 * x.biases for x in model.layers),
        "inference_bytes": peak.total,
        "image_bytes": _size(model.input_shape),
        "output_values": sum(_size(x.output_shape) for x in convolutions),
        "convolution_macs": sum(x.macs for x in convolutions),
        "methods": {
            shown: _costs(model, name, layers, queries) for shown, (name, layers) in methods.items()
        },
    }


def printed_macs(model: Model, layers: str, queries: int) -> float:
    """Return multiply-accumulates of a step as the paper comes to them.

    The forward and the sum of the suffixes are rounded to a tenth of a million, then multiplied.
    """
    head = head_layer(model)
    convolutions = [layer for layer in model.layers if layer.index != head]
    chosen = model.select_layers(layers)
    forward = sum(x.macs for x in convolutions)
    suffixes = sum(x.macs for first in chosen for x in convolutions if x.index >= first)
    return 1e5 * (round(forward / 1e5) + queries * round(suffixes / 1e5))


def kilobytes(size: float) -> float:
    """Return bytes as the KB of 1,024 bytes that the paper counts."""
    return size / KB


def _size(shape: tuple[int, int, int]) -> int:
    return shape[0] * shape[1] * shape[2]


def _costs(model: Model, method: str, layers: str, queries: int) -> dict[str, Any]:
    fixed = profiled_method(method).own_layers
    own: dict[str, Any] = {} if fixed else {"layers": layers, "queries": queries}
    profile = profile_method(model, method, batch=1, **own)
    parts = {part: getattr(profile.memory, part) for part in PARTS}
    return {
        "method": profile.method,
        "layers": len(profile.layers),
        "macs": profile.work.macs,
        "forward_macs": profile.work.forward_macs,
        "forwards": profile.work.forwards,
        "analytic_bytes": analytic_bytes(model, profile),
        "bytes": profile.memory.sram,
        "parts": {part: size for part, size in parts.items() if size},
    }
