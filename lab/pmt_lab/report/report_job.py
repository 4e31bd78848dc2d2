"""A report of sweeps: the table, the comparison with a baseline, and both as text and JSON."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from pmt_lab.report.finished_runs import FinishedRun, chosen, matching
from pmt_lab.report.formats import (
    Figures,
    comparison_text,
    pivot_text,
    to_csv,
    to_markdown,
    to_tex,
)
from pmt_lab.report.kept_runs import keep_runs
from pmt_lab.report.pivot import Comparison, Pivot, compare, default_rows, pivot
from pmt_lab.report.rates import ChosenRate, chosen_rates, rates_text
from pmt_lab.report.run_sources import gather_runs

__all__ = ["Report", "ReportJob", "make_report"]


@dataclass(frozen=True)
class ReportJob:
    """A report of sweeps, see :func:`make_report`.

    Parameters
    ----------
    folders : sequence of str or pathlib.Path
        Folders of sweeps, and files that :meth:`Report.keep` wrote.
    rows : tuple of str, optional
        Fields of the rows; by default the method, and each other axis of the grid in which runs of
        one cell would differ, such as the preparation.
    columns : tuple of str
        Fields of the columns.
    where : dict of str to list of str
        Only runs whose field has one of these values.
    metric : str
        Content of the cells, one of :data:`pmt_lab.report.METRICS`.
    baseline : str, optional
        Row that all others are compared with, paired by seed and image; its first values are
        enough if only one row has them.
    """

    folders: Sequence[str | Path]
    rows: tuple[str, ...] | None = None
    columns: tuple[str, ...] = ("corruption",)
    where: Mapping[str, Sequence[str]] = field(default_factory=dict)
    metric: str = "test_accuracy"
    baseline: str | None = None


@dataclass(frozen=True)
class Report:
    """A table of sweeps, its comparison with a baseline, if one was named, and tuned rates.

    ``runs`` are those of the table, ``unfinished`` the hashes of those that were only begun, and
    ``failed`` those of the table that ended with an error.
    """

    table: Pivot
    compared: Comparison | None
    rates: Sequence[ChosenRate] = ()
    runs: Sequence[FinishedRun] = ()
    unfinished: Sequence[str] = ()
    failed: Sequence[FinishedRun] = ()

    def keep(self, path: str | Path) -> None:
        """Write the runs without weights into a JSON file, which :class:`ReportJob` takes again.

        The tables from it are the same to the last digit; of curves it has 12 points.
        """
        keep_runs(self.runs, path, self.unfinished, self.failed)

    def text(self, form: str = "md", spread: str = "std", *, transpose: bool = False) -> str:
        """Return the tables as text.

        Parameters
        ----------
        form : {"md", "tex", "csv"}
            Markdown, LaTeX (booktabs), or one line per cell, without the tuned rates.
        spread : {"std", "range"}
            Spread over seeds: standard deviation, or the smallest and the largest value.
        transpose : bool
            Whether columns are written as rows, in Markdown and LaTeX; the figures stay.
        """
        if form == "csv":
            return to_csv(self.table, self.compared)
        figures = Figures(self.table.metric, spread)
        texts = [pivot_text(self.table, figures, transpose=transpose)]
        if self.compared is not None:
            texts.append(comparison_text(self.compared, figures, transpose=transpose))
        if self.rates:
            texts.append(rates_text(self.rates))
        return to_tex(texts) if form == "tex" else to_markdown(texts)

    def to_json(self) -> dict[str, Any]:
        """Return the figures for JSON."""
        table, compared = self.table, self.compared
        figures = {"metric": table.metric, "cells": self._cells(), "missing": table.missing}
        if self.failed:
            figures["failed"] = [
                {"hash": run.folder.name, **run.result["axes"], "error": run.result["error"]}
                for run in self.failed
            ]
        if compared is not None:
            figures["better"] = {
                ",".join(map(str, row)): dict(
                    zip(("columns", "clearly", "of"), compared.wins(row), strict=True)
                )
                for row in table.rows
                if row != compared.baseline
            }
        if self.rates:
            figures["rates"] = [rate.to_json() for rate in self.rates]
        return figures

    def _cells(self) -> list[dict[str, Any]]:
        table, cells = self.table, []
        differences = {} if self.compared is None else self.compared.differences
        for (row, column), cell in table.cells.items():
            entry: dict[str, Any] = {
                **dict(zip(table.row_fields, row, strict=True)),
                **dict(zip(table.column_fields, column, strict=True)),
                "mean": cell.mean,
                "std": cell.deviation,
                "interval": cell.interval,
                "values": cell.values,
                "seeds": [run.seed for run in cell.runs],
                "missing": cell.missing,
            }
            found = differences.get((row, column))
            if found is not None:
                entry["difference"] = {
                    "mean": found.mean,
                    "interval": found.interval,
                    "pairs": found.pairs,
                }
            cells.append(entry)
        return cells


def make_report(job: ReportJob) -> Report:
    """Arrange the finished runs of sweeps in a table.

    Parameters
    ----------
    job : ReportJob
        The folders and the arrangement.

    Returns
    -------
    Report
        The table; the same runs give the same bytes.

    Raises
    ------
    FileNotFoundError, ValueError
        If there are no runs, a field, a metric or the baseline is unknown, or runs in one cell
        differ in more than the seed.
    """
    found = gather_runs(job.folders)
    runs = chosen(found.runs, job.where)
    failed = matching(found.failed, job.where)
    unfinished = [] if job.where else found.unfinished
    table = pivot(
        runs,
        rows=default_rows([*runs, *failed], job.columns) if job.rows is None else job.rows,
        columns=job.columns,
        metric=job.metric,
        unfinished=len(unfinished),
        failed=failed,
    )
    compared = None if job.baseline is None else compare(table, job.baseline)
    return Report(table, compared, chosen_rates(runs), runs, unfinished, failed)
