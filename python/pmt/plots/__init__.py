"""Plots of measurements: each function draws on new axes or the user's, and returns them.

They need matplotlib. :func:`save_plot` writes what they return to a file.
"""

from pmt._util.plots import save_plot
from pmt.plots.confusions import plot_confusions
from pmt.plots.memory import plot_memory, plot_step_memory
from pmt.plots.selection import plot_selection
from pmt.plots.sheets import plot_sheet

__all__ = [
    "plot_confusions",
    "plot_memory",
    "plot_selection",
    "plot_sheet",
    "plot_step_memory",
    "save_plot",
]
