"""The command ``pmt-lab``."""

from __future__ import annotations

from collections.abc import Sequence

from pmt import __version__
from pmt.cli import program
from pmt_lab.cli import bench, report, reproduce, study, sweep

__all__ = ["PMT_LAB", "main"]

PMT_LAB = program.Program(
    "pmt-lab",
    __version__,
    "Sweeps, reports, the reproduction of the paper, studies and speed of pmt.",
    (sweep, report, reproduce, study, bench),
)


def main(argv: Sequence[str] | None = None) -> int:
    """Run ``pmt-lab``; exit codes are those of :func:`pmt.cli.main`."""
    return program.main(argv, PMT_LAB)
