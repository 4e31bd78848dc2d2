"""Table 6: MeZO and DeepZero on the layers that the paper's method trains."""

from __future__ import annotations

from pmt.research.reproduce.bp_free_rows import bp_free_grids, bp_free_rows, plot_bp_free
from pmt.research.reproduce.grid_study import grid_study

__all__ = ["STUDY"]

_GRID = "bp_free_methods_same_layers"

STUDY = grid_study(
    "bp-free-methods-same-layers",
    "Table 6",
    "Other methods without back-propagation, the same layers",
    bp_free_grids(_GRID),
    lambda data, paper: bp_free_rows(data, paper, _GRID),
    lambda data, ax=None: plot_bp_free(data, _GRID, ax=ax),
    conditions="MeZO and DeepZero train only block 2, as their published numbers of forwards "
    "tell; the run of the paper's method, which is that of table 7, trains the head, too.",
)
