"""Scale and zero point: how a range of real values is laid over int8."""

from __future__ import annotations

import numpy as np

INT8_STEPS = 255

Range = tuple[float, float]


def scale_and_zero_point(low: float, high: float) -> tuple[float, int]:
    """Spread [low, high], which holds zero, over -128..127; zero is met exactly.

    Raises
    ------
    ValueError
        The range is too narrow or too wide for a float32 scale.
    """
    if high == low:
        return 1.0, 0
    # At the float32 precision of the file, so that a saved network is the same network.
    scale = float(np.float32((high - low) / INT8_STEPS))
    if not 0.0 < scale < np.inf:
        raise ValueError(
            f"an activation ranges from {low} to {high}, which no float32 scale covers: "
            "check the float weights"
        )
    return scale, int(np.clip(np.rint(-128 - low / scale), -128, 127))
