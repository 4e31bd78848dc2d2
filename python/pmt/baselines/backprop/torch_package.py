"""The one place that imports torch; modules that need it take it from here."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from pmt._util.extras import import_extra

__all__ = ["tensor_of", "torch"]


torch: Any = import_extra("torch", "back-propagation needs the package torch", "torch")


def tensor_of(array: npt.NDArray[Any]) -> Any:
    """Return a tensor with a copy of an array: torch warns of arrays that cannot be written."""
    return torch.from_numpy(np.array(array))
