"""What a training step costs."""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["Cost"]


@dataclass(frozen=True)
class Cost:
    """Cost of one step: perturbed ``forwards`` and multiply-accumulates of all that it computes."""

    forwards: int
    macs: int
