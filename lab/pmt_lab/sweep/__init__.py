"""Sweeps: methods x preparations x corruptions x layers x seeds, in processes or on a cluster."""

from __future__ import annotations

from pmt_lab.sweep.forecasting import Estimate, estimate
from pmt_lab.sweep.grid_file import Grid, GridError, Problems, Tuning, read_grid
from pmt_lab.sweep.planning import Plan, plan, shard
from pmt_lab.sweep.result import read_result
from pmt_lab.sweep.run_spec import RunSpec, fingerprint
from pmt_lab.sweep.sweep_job import (
    Sweep,
    SweepForecast,
    SweepJob,
    SweepResult,
    open_sweep,
    run_sweep,
)
from pmt_lab.sweep.sweeping import Summary, finished_results, run_all
from pmt_lab.sweep.tuning import Choice, Trial

__all__ = [
    "Choice",
    "Estimate",
    "Grid",
    "GridError",
    "Plan",
    "Problems",
    "RunSpec",
    "Summary",
    "Sweep",
    "SweepForecast",
    "SweepJob",
    "SweepResult",
    "Trial",
    "Tuning",
    "estimate",
    "fingerprint",
    "finished_results",
    "open_sweep",
    "plan",
    "read_grid",
    "read_result",
    "run_all",
    "run_sweep",
    "shard",
]
