"""Figure 7, left: what scaling the learning rate brings, on node perturbation of four layers."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pmt_lab.reproduce.curve_rows import FIGURE_7, loss_rows, plot_losses
from pmt_lab.reproduce.grid_study import grid_study
from pmt_lab.reproduce.study import Row

__all__ = ["STUDY"]

Data = Mapping[str, Any]

_GRIDS = ("learning_rate_scaling", "learning_rate_scaling_backprop")
_BEST = "both_scalings"


def _compare(data: Data, paper: Data) -> list[Row]:
    """Return every variant's loss, and by how much each is above that with both scalings."""
    return loss_rows(data, _GRIDS, {method: (_BEST, shows) for method, shows in paper.items()})


def _plot(data: Data, *, ax: Any = None) -> Any:
    return plot_losses(data, _GRIDS, ax=ax)


STUDY = grid_study(
    "learning-rate-scaling",
    "Figure 7, left",
    "Scaling of the learning rate, Gaussian noise",
    _GRIDS,
    _compare,
    _plot,
    conditions=FIGURE_7,
)
