"""``pmt report``: tables and curves of sweeps."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

from pmt._util import atomic_file
from pmt.cli.arguments import add_json
from pmt.cli.output import Output
from pmt.research.report import (
    FORMATS,
    METRICS,
    Comparison,
    Figures,
    Pivot,
    chosen,
    compare,
    comparison_text,
    pivot,
    pivot_text,
    plot_curves,
    read_runs,
    to_csv,
    to_markdown,
    to_tex,
)

USAGE = "pmt report DIR [DIR ...] [--rows FIELDS] [--columns FIELDS] [options]"
SUMMARY = "tables and curves of a sweep: mean, spread over seeds, intervals"
DESCRIPTION = """\
Arrange the finished runs of `pmt sweep` in a table. A cell is the mean over seeds; beside it stand
the spread over seeds and, for accuracies, Wilson's 95 % interval over the test images. Runs in one
cell must differ in nothing but the seed. The same runs give the same bytes."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    parser.add_argument(
        "folders",
        metavar="DIR",
        nargs="+",
        help="folders of sweeps; those of shards may be several",
    )
    parser.add_argument(
        "--rows",
        metavar="FIELDS",
        type=_names,
        default=["method"],
        help="what the rows are: method, corruption, severity, layers or any option of the "
        "trainers, several separated by commas (default: method)",
    )
    parser.add_argument(
        "--columns",
        metavar="FIELDS",
        type=_names,
        default=["corruption"],
        help="what the columns are, likewise (default: corruption)",
    )
    parser.add_argument(
        "--where",
        metavar="FIELD=VALUE",
        type=_condition,
        action="append",
        default=[],
        help="only runs whose field has this value, or one of several: severity=3|5; may be "
        "repeated",
    )
    parser.add_argument(
        "--metric",
        metavar="NAME",
        default="test_accuracy",
        help=f"what the cells are: {', '.join(METRICS)}; before_ is the untrained model "
        "(default: test_accuracy)",
    )
    parser.add_argument(
        "--spread",
        metavar="NAME",
        choices=("std", "range"),
        default="std",
        help="spread over seeds: std, the standard deviation, or range, the least and the largest "
        "(default: std)",
    )
    parser.add_argument(
        "--baseline",
        metavar="ROW",
        help="add the differences of all rows to this one, with intervals, paired by seed and "
        "image, and in how many columns a row is better",
    )
    parser.add_argument(
        "--format",
        metavar="NAME",
        choices=FORMATS,
        default="md",
        help="md, tex (booktabs) or csv, one line a cell (default: md)",
    )
    parser.add_argument(
        "--out", metavar="FILE", help="write the tables to this file (default: standard output)"
    )
    parser.add_argument(
        "--plot",
        metavar="FILE",
        help="draw the held-out loss over multiply-accumulates, a panel for each column, a line "
        "for each row, with its range over seeds: .png, .svg or .pdf",
    )
    add_json(parser)


def run(arguments: argparse.Namespace, output: Output) -> int:
    """Run the command."""
    runs, unfinished = read_runs(arguments.folders)
    where = dict(arguments.where)
    table = pivot(
        chosen(runs, where),
        rows=arguments.rows,
        columns=arguments.columns,
        metric=arguments.metric,
        unfinished=0 if where else unfinished,
    )
    compared = compare(table, arguments.baseline) if arguments.baseline is not None else None
    text = _written(table, compared, arguments)
    if arguments.out is None:
        output.text(text.rstrip("\n"))
    else:
        atomic_file.write_text(arguments.out, text)
        output.text(f"{len(table.rows)} x {len(table.columns)} cells in {arguments.out}")
    if arguments.plot is not None:
        _check_suffix(arguments.plot)
        plot_curves(table, arguments.plot)
        output.text(f"curves in {arguments.plot}")
    output.figures(_figures(table, compared))
    return 0


def _written(table: Pivot, compared: Comparison | None, arguments: argparse.Namespace) -> str:
    if arguments.format == "csv":
        return to_csv(table, compared)
    figures = Figures(arguments.metric, arguments.spread)
    texts = [pivot_text(table, figures)]
    if compared is not None:
        texts.append(comparison_text(compared, figures))
    return to_tex(texts) if arguments.format == "tex" else to_markdown(texts)


def _figures(table: Pivot, compared: Comparison | None) -> dict[str, Any]:
    cells = []
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
        found = compared.differences.get((row, column)) if compared is not None else None
        if found is not None:
            entry["difference"] = {
                "mean": found.mean,
                "interval": found.interval,
                "pairs": found.pairs,
            }
        cells.append(entry)
    figures: dict[str, Any] = {"metric": table.metric, "cells": cells, "missing": table.missing}
    if compared is not None:
        rows = [row for row in table.rows if row != compared.baseline]
        figures["better"] = {
            ",".join(map(str, row)): dict(
                zip(("columns", "clearly", "of"), compared.wins(row), strict=True)
            )
            for row in rows
        }
    return figures


def _check_suffix(path: str) -> None:
    if Path(path).suffix.lower() not in (".png", ".svg", ".pdf"):
        raise ValueError(f"--plot {path}: the suffix must be .png, .svg or .pdf")


def _names(text: str) -> list[str]:
    names = [part.strip() for part in text.split(",") if part.strip()]
    if not names:
        raise argparse.ArgumentTypeError("must name one field or more, separated by commas")
    return names


def _condition(text: str) -> tuple[str, list[str]]:
    name, equals, value = text.partition("=")
    if not (name and equals and value):
        raise argparse.ArgumentTypeError(f"{text!r} must be FIELD=VALUE, for example severity=5")
    return name, value.split("|")
