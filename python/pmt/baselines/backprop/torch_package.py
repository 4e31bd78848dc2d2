"""The one place that imports torch; modules that need it take it from here."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

__all__ = ["tensor_of", "torch"]


def _imported() -> Any:
    try:
        import torch
    except ImportError:
        raise ImportError(
            'back-propagation needs the package torch: pip install "poor-mans-training[torch]"'
        ) from None
    return torch


torch: Any = _imported()


def tensor_of(array: npt.NDArray[Any]) -> Any:
    """Return a tensor with a copy of an array: torch warns of arrays that cannot be written."""
    return torch.from_numpy(np.array(array))
