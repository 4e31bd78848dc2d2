"""The back-propagation baselines by name."""

from __future__ import annotations

from typing import Any

from pmt.baselines.backprop.options import BackpropOptions

__all__ = ["PRESETS", "preset"]

# All layers of MCUNet diverge at 0.003, in float32 as in int8 (docs/reference/backprop.md).
_FULL: dict[str, Any] = {"learning_rate": 0.0003}

PRESETS: dict[str, dict[str, Any]] = {
    "bp_fp32": {**_FULL, "arithmetic": "float32"},
    "bp_int8": {**_FULL},
    "bp_int8_shadow": {**_FULL, "rounding": "shadow"},
    "bp_bias_only": {"learning_rate": 0.003, "train_weights": False},
    "bp_last_layer": {"learning_rate": 0.01, "layers": "head"},
}


def preset(name: str, **changes: Any) -> BackpropOptions:
    """Return the options of a baseline, with some changed.

    Parameters
    ----------
    name : {"bp_fp32", "bp_int8", "bp_int8_shadow", "bp_bias_only", "bp_last_layer"}
        Full training of the float network; of the int8 network with weights that are really
        rounded (stochastically), or with float32 shadow weights; of its biases alone; of the block
        ``head`` alone.
    **changes
        Fields of :class:`pmt.backprop.BackpropOptions`.

    Returns
    -------
    BackpropOptions
        The options.

    Raises
    ------
    ValueError, TypeError
        If the name or an option is unknown, or a value is outside its range.
    """
    if name not in PRESETS:
        raise ValueError(f"preset={name!r} is unknown; choose one of {', '.join(PRESETS)}")
    return BackpropOptions(**PRESETS[name]).replace(**changes)
