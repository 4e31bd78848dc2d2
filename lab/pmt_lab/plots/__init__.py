"""Plots of the lab's measurements; :mod:`pmt.plots` has those of one run."""

from pmt_lab.plots.cosines import plot_cosines
from pmt_lab.plots.curves import plot_curves, plot_report

__all__ = ["plot_cosines", "plot_curves", "plot_report"]
