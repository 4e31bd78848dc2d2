"""``pmt-lab sweep``: all runs of a grid."""

from __future__ import annotations

import argparse

from pmt._util.progress import duration
from pmt._util.text import counted
from pmt.cli.arguments import add_json, add_plugin
from pmt.cli.output import EXIT_FAILED, EXIT_INTERRUPTED, Output, complain
from pmt_lab.cli.sweep_arguments import add_workers, check_workers
from pmt_lab.sweep import SweepForecast, SweepJob, open_sweep

USAGE = "pmt-lab sweep FILE --out DIR [--jobs N] [--shard I/N] [--dry-run] [options]"
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
        help="say how many runs, GMACs and hours are left, without running them",
    )
    add_plugin(parser)
    add_json(parser)


def run(arguments: argparse.Namespace, output: Output) -> int:
    """Run the command."""
    check_workers(arguments)
    job = SweepJob(arguments.grid, arguments.out, arguments.jobs, arguments.shard, arguments.dask)
    sweep = open_sweep(job)
    runs, trials = len(sweep.all_runs), len(sweep.plan.trials)
    which = counted(runs, "run") + (f", {trials} of them trials" if trials else "")
    output.text(f"{which}, {len(sweep.results)} finished, {len(sweep.left)} left")
    if sweep.awaiting:
        output.text(
            f"learning rates of {counted(len(sweep.awaiting), 'run')}: to be tuned by the trials"
        )
    if arguments.dry_run:
        _report_left(sweep.forecast(), output)
        return 0
    try:
        result = sweep.run(output.text)
    except KeyboardInterrupt:
        complain("interrupted; the same command continues")
        return EXIT_INTERRUPTED
    output.text(f"{result.done} of {runs} runs are finished; `pmt-lab report {job.out}`")
    for line in result.sweep.edges:
        output.text(line)
    output.figures(result.to_json())
    if result.summary.failed:
        awaiting = len(result.sweep.awaiting)
        runs_await = "1 run awaits" if awaiting == 1 else f"{awaiting:,} runs await"
        more = f"; {runs_await} the learning rates of failed trials" if awaiting else ""
        complain(f"error: {counted(len(result.summary.failed), 'run')} failed, see above{more}")
        return EXIT_FAILED
    return 0


def _report_left(forecast: SweepForecast, output: Output) -> None:
    expected = forecast.expected
    output.text(
        f"{expected.macs / 1e9:,.0f} GMAC, {duration(expected.hours * 3600)} with "
        f"{counted(expected.jobs, 'process', 'processes')} of this machine "
        f"({expected.macs_per_second / 1e9:.1f} GMAC/s each in the forward)"
    )
    output.figures(forecast.to_json())
