"""``pmt show``: a contact sheet of a data set, or of its images corrupted."""

import argparse

from pmt._util.progress import ProgressLine
from pmt._util.text import counted, printable, split_names
from pmt.cli.arguments import (
    add_coarse_labels,
    add_constants,
    add_corruption_seed,
    add_integer,
    add_size,
    add_split,
    call,
    checked_constants,
    chosen_corruptions,
    chosen_labels,
    chosen_severities,
    data_help,
)
from pmt.cli.output import Output, check_plot
from pmt.model.loading import load
from pmt.plots import plot_sheet, save_plot
from pmt.sheets import Sheet, make_sheet

USAGE = "pmt show DATA --out SHEET.png [--corruptions [NAMES]] [options]"
SUMMARY = "a contact sheet of a data set, or of its images corrupted"
DESCRIPTION = """\
Draw a data set: a row for each class, with its first images. With --corruptions: a row for each
corruption and a column for each severity, for one image or several. With --model: images as they
are, and as the network reads them behind its input stage. If DATA is or contains a CIFAR-10-C
folder, its arrays are shown. Needs matplotlib."""

_DOTS_PER_INCH = 200  # 150 pixels an image


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    parser.add_argument("data", metavar="DATA", help=data_help())
    parser.add_argument(
        "--out", metavar="PATH", required=True, help="file to write: .png, .svg, .pdf"
    )
    parser.add_argument(
        "--corruptions",
        metavar="NAMES",
        nargs="?",
        const="all",
        help="show corruptions: all (also if NAMES is left out; without frost if its photographs "
        "are missing), or names separated by commas; `pmt corrupt --help` lists them",
    )
    parser.add_argument(
        "--severities",
        metavar="LIST",
        help="severities to show, separated by commas (default: 1,2,3,4,5)",
    )
    add_split(parser)
    add_integer(
        parser,
        "--images N",
        "images of each class (default: 10); with --corruptions or --model images in all",
        otherwise="1, 8",
        within=(1, 1000),
    )
    parser.add_argument(
        "--index",
        metavar="LIST",
        help="with --corruptions: which images of the split, as numbers from 0 separated by commas "
        "(default: the first ones)",
    )
    parser.add_argument(
        "--model",
        metavar="MODEL",
        help="show images, with each of --corruptions if there are some, as they are and as this "
        "model reads them",
    )
    add_corruption_seed(parser, ", as in `pmt corrupt`")
    add_size(parser, "first")
    add_coarse_labels(parser)
    add_constants(parser)


def run(arguments: argparse.Namespace, output: Output) -> int:
    """Run the command."""
    check_plot(arguments.out, "--out")
    sheet = _made(arguments)
    save_plot(plot_sheet(sheet), arguments.out, dpi=_DOTS_PER_INCH)
    rows, images = counted(len(sheet.rows), "row"), counted(sheet.columns, "image")
    output.text(f"{printable(sheet.title)}\n{rows} of {images}, in {arguments.out}")
    for reason in sheet.left_out.values():
        output.text(f"left out: {reason}")
    output.figures(
        {
            "out": arguments.out,
            "rows": [row.label for row in sheet.rows],
            "columns": sheet.columns,
            "left_out": dict(sheet.left_out),
        }
    )
    return 0


def _made(arguments: argparse.Namespace) -> Sheet:
    """Lay out the sheet after a progress line."""
    chosen = arguments.corruptions
    for option in ("severities", "index", "constants"):
        if chosen is None and getattr(arguments, option) is not None:
            raise ValueError(f"--{option} needs --corruptions")
    if chosen is not None:
        chosen = chosen_corruptions("--corruptions", chosen)
    line: ProgressLine | None = None

    def after_tile(done: int, tiles: int, name: str) -> None:
        nonlocal line
        line = line or ProgressLine(tiles, unit="tile")
        line.update(done, name)

    try:
        return call(
            make_sheet,
            arguments,
            corruptions=chosen,
            severities=chosen_severities("--severities", arguments.severities or "1,2,3,4,5"),
            index=None if arguments.index is None else split_names(arguments.index),
            labels=chosen_labels(arguments),
            constants=checked_constants(arguments),
            model=None if arguments.model is None else load(arguments.model),
            progress=after_tile,
        )
    finally:
        if line is not None:
            line.clear()
