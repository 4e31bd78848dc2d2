"""Figure 7, right: estimators of the gradient at the same cost, on four layers."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pmt_lab.reproduce.curve_rows import FIGURE_7, loss_rows, plot_losses
from pmt_lab.reproduce.grid_study import grid_study
from pmt_lab.reproduce.study import Row

__all__ = ["STUDY"]

Data = Mapping[str, Any]

_GRIDS = ("estimators",)
# The comparison of each estimator: with itself layer by layer, and the mixture.
_BETTER = {
    "weight_model_wise": "weight_layer_wise",
    "node_model_wise": "node_layer_wise",
    "weight_layer_wise": "paper",
    "node_layer_wise": "paper",
}


def _compare(data: Data, paper: Data) -> list[Row]:
    """Return every estimator's loss, and by how much each is above the one the figure prefers."""
    return loss_rows(
        data, _GRIDS, {method: (better, paper[method]) for method, better in _BETTER.items()}
    )


def _plot(data: Data, *, ax: Any = None) -> Any:
    return plot_losses(data, _GRIDS, ax=ax)


STUDY = grid_study(
    "estimators",
    "Figure 7, right",
    "Estimators at the same cost, Gaussian noise",
    _GRIDS,
    _compare,
    _plot,
    conditions=FIGURE_7,
)
