"""Reports of sweeps: tables with spread and intervals, comparisons, curves."""

from __future__ import annotations

from pmt_lab.report.curves import Curve, mean_curve, results_curve
from pmt_lab.report.finished_runs import METRICS, FinishedRun, chosen
from pmt_lab.report.formats import (
    FORMATS,
    Figures,
    comparison_text,
    pivot_text,
    to_csv,
    to_markdown,
    to_tex,
)
from pmt_lab.report.pivot import Cell, Comparison, Difference, Pivot, compare, pivot
from pmt_lab.report.rates import ChosenRate
from pmt_lab.report.report_job import Report, ReportJob, make_report
from pmt_lab.report.run_sources import read_runs

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
