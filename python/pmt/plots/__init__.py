"""Plots of what is measured: each function draws on new axes or the user's, and returns them.

They need matplotlib. :func:`save_plot` writes what they return to a file.
"""

from __future__ import annotations

from pmt._util.plots import save_plot
from pmt.research.plots.confusions import plot_confusions
from pmt.research.plots.cosines import plot_cosines, plot_errors
from pmt.research.plots.curves import plot_curves, plot_report
from pmt.research.plots.memory import plot_memory
from pmt.research.plots.selection import plot_selection
from pmt.research.plots.sheets import plot_sheet
from pmt.research.plots.speed import plot_speed
from pmt.research.plots.step_memory import plot_step_memory

__all__ = [
    "plot_confusions",
    "plot_cosines",
    "plot_curves",
    "plot_errors",
    "plot_memory",
    "plot_report",
    "plot_selection",
    "plot_sheet",
    "plot_speed",
    "plot_step_memory",
    "save_plot",
]
