"""Reports of sweeps: tables with spread and intervals, comparisons, curves."""

from pmt_lab.report.curves import Curve, mean_curve, results_curve
from pmt_lab.report.intervals import accuracy_interval, difference_interval, student_t
from pmt_lab.report.report import FORMATS, Report, make_report
from pmt_lab.report.runs import METRICS, FinishedRun, run_record, thinned

__all__ = [
    "FORMATS",
    "METRICS",
    "Curve",
    "FinishedRun",
    "Report",
    "accuracy_interval",
    "difference_interval",
    "make_report",
    "mean_curve",
    "results_curve",
    "run_record",
    "student_t",
    "thinned",
]
