"""Sweeps: methods x preparations x corruptions x layers x seeds, in processes or on a cluster."""

from pmt_lab.sweep.grid import Grid, GridError, MethodTable, Tuning, read_grid
from pmt_lab.sweep.planning import Plan, changed_options, plan
from pmt_lab.sweep.result import finished_results, pack, read_result, unpack
from pmt_lab.sweep.run_spec import NO_ADAPTATION, RunSpec, fingerprint
from pmt_lab.sweep.sweeping import Summary, Sweep, open_sweep, run_all

__all__ = [
    "NO_ADAPTATION",
    "Grid",
    "GridError",
    "MethodTable",
    "Plan",
    "RunSpec",
    "Summary",
    "Sweep",
    "Tuning",
    "changed_options",
    "fingerprint",
    "finished_results",
    "open_sweep",
    "pack",
    "plan",
    "read_grid",
    "read_result",
    "run_all",
    "unpack",
]
