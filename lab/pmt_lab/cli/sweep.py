"""``pmt-lab sweep``: all runs of a grid."""

import argparse
from typing import Any

from pmt import methods
from pmt_lab.cli.common import EXIT_FAILED, Output, add_workers, check_workers, complain
from pmt_lab.files import counted
from pmt_lab.sweep import RunSpec, Sweep, open_sweep

SUMMARY = "train many methods on many corruptions, in processes or on a cluster"
DESCRIPTION = """\
Run every configuration in a grid file: methods x preparations x corruptions x severities x layers x
seeds, each in a folder of DIR that is named by a hash of everything that decides its bytes. If the
grid tunes learning rates, its trials run first. Finished runs are skipped, and unfinished ones
continue bit for bit: after Ctrl-C or a crash, or on another machine, run the same command again.
`pmt-lab report DIR` makes the tables."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    parser.add_argument(
        "grid", metavar="FILE", help="TOML file of the grid, see lab/pages/sweeps.md"
    )
    parser.add_argument(
        "--out", metavar="DIR", required=True, help="folder of the runs; created if it is missing"
    )
    add_workers(parser)
    parser.add_argument(
        "--dry-run",
        action="store_true",
        help="say how many runs and GMACs are left, without running them",
    )
    parser.add_argument(
        "--plugin",
        metavar="MODULE",
        action="append",
        default=[],
        help="module, or .py file, that registers a method of your own; may be repeated, or given "
        "in the environment variable PMT_PLUGINS, separated by commas",
    )


def run(arguments: argparse.Namespace, output: Output) -> int:
    """Run the command."""
    check_workers(arguments)
    methods.load_plugins(arguments.plugin)
    sweep = open_sweep(arguments.grid, arguments.out)
    left, runs = sweep.left, counted(len(sweep.all_runs), "run")
    trials = f", {len(sweep.trials)} of them trials" if sweep.trials else ""
    work = f"{len(left)} left, {sum(run.macs for run in left) / 1e9:,.0f} GMAC"
    output.text(f"{runs}{trials}, {len(sweep.results)} finished, {work}")
    summary = None
    if not arguments.dry_run:
        sweep, summary = sweep.run(jobs=arguments.jobs, dask=arguments.dask, tell=output.text)
        done = len(summary.finished) + len(summary.already)
        output.text(f"{done} of {runs} are finished; `pmt-lab report {arguments.out}`")
        for line in sweep.edges:
            output.text(line)
    failed = {} if summary is None else summary.failed
    names = ("method", "preparation", "layers")
    output.figures(
        {
            "runs": [_entry(run, sweep) for run in sweep.all_runs],
            "macs_left": sum(run.macs for run in sweep.left),
            "rates": [
                {**dict(zip(names, group, strict=True)), **rate}
                for group, rate in sweep.rates.items()
            ],
            "failed": failed,
        }
    )
    if failed:
        awaiting = sum(run.awaits_rate for run in sweep.runs)
        more = f"; {counted(awaiting, 'run')} without a rate, as trials failed" if awaiting else ""
        complain(f"error: {counted(len(failed), 'run')} failed, see above{more}")
        return EXIT_FAILED
    return 0


def _entry(run: RunSpec, sweep: Sweep) -> dict[str, Any]:
    rate = run.options.get("learning_rate")
    return {
        "hash": None if run.awaits_rate else run.hash,
        **run.axes,
        "macs": run.macs,
        "learning_rate": "to be tuned" if run.awaits_rate else rate,
        "trial": run.trial > 0,
        "finished": not run.awaits_rate and run.hash in sweep.results,
    }
