"""``pmt-lab report``: tables and curves of sweeps."""

import argparse

from pmt.plots import save_plot
from pmt_lab.cli.common import Output, add_plot, check_file, check_plot, listed
from pmt_lab.files import counted, write_text
from pmt_lab.plots import plot_report
from pmt_lab.report import FORMATS, METRICS, make_report

SUMMARY = "tables and curves of a sweep: mean, spread over seeds, intervals"
DESCRIPTION = """\
Arrange the finished runs of `pmt-lab sweep` in a table. A cell is the mean over seeds, with the
spread over seeds and, for accuracies, the 95 % Wilson interval over the test images. Runs in one
cell may differ only in the seed. The same runs give the same bytes."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    add = parser.add_argument
    add(
        "folders",
        metavar="DIR",
        nargs="+",
        help="folders of sweeps, several for the parts of one, or files that --keep wrote",
    )
    add(
        "--rows",
        metavar="FIELDS",
        type=listed(),
        help="fields of the rows, separated by commas: method, preparation, corruption, severity, "
        "layers or any option of the trainers (default: method, and each other axis in which runs "
        "of one cell would differ)",
    )
    add(
        "--columns",
        metavar="FIELDS",
        type=listed(),
        default=("corruption",),
        help="fields of the columns, separated by commas (default: corruption)",
    )
    add(
        "--where",
        metavar="FIELD=VALUE",
        type=_condition,
        action="append",
        default=[],
        help="only runs whose field has this value, or one of several: severity=3|5; may be "
        "repeated",
    )
    add(
        "--metric",
        metavar="NAME",
        default="test_accuracy",
        help=f"figure in the cells: {', '.join(METRICS)}; before_ is the untrained model "
        "(default: test_accuracy)",
    )
    add(
        "--spread",
        choices=("std", "range"),
        default="std",
        help="spread over seeds: the standard deviation, or the smallest and the largest value "
        "(default: std)",
    )
    add(
        "--baseline",
        metavar="ROW",
        help="compare all rows with this one: differences with intervals, paired by seed and "
        "image, and the number of columns in which a row is better; if rows have several fields, "
        "all of them, separated by commas, or the first ones that tell it from the others",
    )
    add(
        "--format",
        choices=FORMATS,
        default="md",
        help="Markdown, LaTeX (booktabs) or csv with one line per cell (default: md)",
    )
    add("--transpose", action="store_true", help="write the columns as rows in md and tex")
    add("--out", metavar="FILE", help="write the tables to this file (default: standard output)")
    add(
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
    for argument, path in (("--out", arguments.out), ("--keep", arguments.keep)):
        if path is not None:
            check_file(argument, path)
    report = make_report(
        arguments.folders,
        rows=arguments.rows,
        columns=arguments.columns,
        where=dict(arguments.where),
        metric=arguments.metric,
        baseline=arguments.baseline,
    )
    text = report.text(arguments.format, arguments.spread, transpose=arguments.transpose)
    if arguments.out is None:
        output.text(text.rstrip("\n"))
    else:
        write_text(arguments.out, text)
        output.text(f"{len(report.rows)} x {len(report.columns)} cells in {arguments.out}")
    if arguments.keep is not None:
        report.keep(arguments.keep)
        output.text(f"{counted(len(report.found.runs), 'run')} in {arguments.keep}")
    if arguments.plot is not None:
        save_plot(plot_report(report), arguments.plot)
        output.text(f"curves in {arguments.plot}")
    output.figures(report.to_json())
    return 0


def _condition(text: str) -> tuple[str, list[str]]:
    name, equals, value = text.partition("=")
    if not (name and equals and value):
        raise argparse.ArgumentTypeError(f"{text!r} must be FIELD=VALUE, for example severity=5")
    return name, value.split("|")
