"""Reports of sweeps: tables with spread and intervals, comparisons, curves."""

from __future__ import annotations

from pmt.research.report.curves import Curve, mean_curve, results_curve
from pmt.research.report.finished_runs import METRICS, FinishedRun, chosen
from pmt.research.report.formats import (
    FORMATS,
    Figures,
    comparison_text,
    pivot_text,
    to_csv,
    to_markdown,
    to_tex,
)
from pmt.research.report.pivot import Cell, Comparison, Difference, Pivot, compare, pivot
from pmt.research.report.rates import ChosenRate
from pmt.research.report.report_job import Report, ReportJob, make_report
from pmt.research.report.run_sources import read_runs

__all__ = [
    "FORMATS",
    "METRICS",
    "Cell",
    "ChosenRate",
    "Comparison",
    "Curve",
    "Difference",
    "Figures",
    "FinishedRun",
    "Pivot",
    "Report",
    "ReportJob",
    "chosen",
    "compare",
    "comparison_text",
    "make_report",
    "mean_curve",
    "pivot",
    "pivot_text",
    "read_runs",
    "results_curve",
    "to_csv",
    "to_markdown",
    "to_tex",
]
