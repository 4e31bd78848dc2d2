"""``pmt-lab report``: tables and curves of sweeps."""

from __future__ import annotations

import argparse

from pmt._util import atomic_file
from pmt._util.text import counted
from pmt.cli.arguments import add_json, add_plot, job_of, parts
from pmt.cli.output import Output, check_file, check_plot
from pmt.plots import save_plot
from pmt_lab.plots import plot_report
from pmt_lab.report import FORMATS, METRICS, ReportJob, make_report

USAGE = "pmt-lab report DIR [DIR ...] [--rows FIELDS] [--columns FIELDS] [options]"
SUMMARY = "tables and curves of a sweep: mean, spread over seeds, intervals"
DESCRIPTION = """\
Arrange the finished runs of `pmt-lab sweep` in a table. A cell is the mean over seeds, with the
spread over seeds and, for accuracies, the 95 % Wilson interval over the test images. Runs in one
cell may differ only in the seed. The same runs give the same bytes."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    parser.add_argument(
        "folders",
        metavar="DIR",
        nargs="+",
        help="folders of sweeps, several for the shards of one, or files that --keep wrote",
    )
    _add_table(parser)
    _add_files(parser)
    add_json(parser)


def _add_table(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--rows",
        metavar="FIELDS",
        type=_names,
        help="fields of the rows, separated by commas: method, preparation, corruption, severity, "
        "layers or any option of the trainers (default: method, and each other axis in which runs "
        "of one cell would differ)",
    )
    parser.add_argument(
        "--columns",
        metavar="FIELDS",
        type=_names,
        default=["corruption"],
        help="fields of the columns, likewise (default: corruption)",
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
        help=f"figure in the cells: {', '.join(METRICS)}; before_ is the untrained model "
        "(default: test_accuracy)",
    )
    parser.add_argument(
        "--spread",
        metavar="NAME",
        choices=("std", "range"),
        default="std",
        help="spread over seeds: std, the standard deviation, or range, the smallest and the "
        "largest value (default: std)",
    )
    parser.add_argument(
        "--baseline",
        metavar="ROW",
        help="compare all rows with this one: differences with intervals, paired by seed and "
        "image, and the number of columns in which a row is better; if rows have several fields, "
        "all of them, separated by commas, or the first ones that tell it from the others",
    )


def _add_files(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--format",
        metavar="NAME",
        choices=FORMATS,
        default="md",
        help="md, tex (booktabs) or csv with one line per cell (default: md)",
    )
    parser.add_argument(
        "--transpose",
        action="store_true",
        help="write the columns as rows in md and tex, for tables with many columns",
    )
    parser.add_argument(
        "--out", metavar="FILE", help="write the tables to this file (default: standard output)"
    )
    parser.add_argument(
        "--keep",
        metavar="FILE",
        help="write the runs, without weights, to this JSON file, from which `pmt-lab report FILE` "
        "makes the same tables; of curves 12 points are kept",
    )
    add_plot(
        parser,
        "the loss on the held-out images over multiply-accumulates, a panel for each column, a "
        "line for each row, with its range over seeds",
    )


def run(arguments: argparse.Namespace, output: Output) -> int:
    """Run the command."""
    check_plot(arguments.plot)
    for argument in ("--out", "--keep"):
        path = getattr(arguments, argument[2:])
        if path is not None:
            check_file(argument, path)
    report = make_report(
        job_of(
            ReportJob,
            arguments,
            rows=None if arguments.rows is None else tuple(arguments.rows),
            columns=tuple(arguments.columns),
            where=dict(arguments.where),
        )
    )
    text = report.text(arguments.format, arguments.spread, transpose=arguments.transpose)
    if arguments.out is None:
        output.text(text.rstrip("\n"))
    else:
        atomic_file.write_text(arguments.out, text)
        table = report.table
        output.text(f"{len(table.rows)} x {len(table.columns)} cells in {arguments.out}")
    if arguments.keep is not None:
        report.keep(arguments.keep)
        output.text(f"{counted(len(report.runs), 'run')} in {arguments.keep}")
    if arguments.plot is not None:
        save_plot(plot_report(report.table), arguments.plot)
        output.text(f"curves in {arguments.plot}")
    output.figures(report.to_json())
    return 0


def _names(text: str) -> list[str]:
    names = list(filter(None, parts(text)))
    if not names:
        raise argparse.ArgumentTypeError("must name one field or more, separated by commas")
    return names


def _condition(text: str) -> tuple[str, list[str]]:
    name, equals, value = text.partition("=")
    if not (name and equals and value):
        raise argparse.ArgumentTypeError(f"{text!r} must be FIELD=VALUE, for example severity=5")
    return name, value.split("|")
