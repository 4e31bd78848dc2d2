"""``pmt-lab reproduce``: the paper's tables and figures, measured again."""

import argparse
from dataclasses import asdict

from pmt_lab.cli.common import (
    EXIT_FAILED,
    Output,
    add_workers,
    check_workers,
    complain,
    table,
)
from pmt_lab.files import described
from pmt_lab.reproduce import STUDIES, find_study
from pmt_lab.reproduce.page import TITLES, page, row_cells, summary, write_pages
from pmt_lab.reproduce.reproduce_job import Reproduction, reproduce
from pmt_lab.reproduce.study import Unfinished

SUMMARY = "the paper's tables and figures, measured again and compared"
DESCRIPTION = """\
Measure a table or figure of the paper again and compare it with the published numbers: difference,
95 % interval and verdict. After Ctrl-C, the same command continues. --scale small checks in seconds
that everything works, with the model and data that come with pmt; its figures are not comparable.
Full scale takes minutes for the studies without training and many hours for the others."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    parser.add_argument("studies", metavar="NAME", nargs="*", help="studies, see --list")
    which = parser.add_mutually_exclusive_group()
    which.add_argument("--list", action="store_true", help="list the studies, without running them")
    which.add_argument("--all", action="store_true", help="run all studies, in the paper's order")
    which.add_argument(
        "--page", metavar="DIR", help="print the tables of the results in DIR as Markdown"
    )
    parser.add_argument(
        "--write", metavar="DIR", help="with --page, write them between the marks of DIR's pages"
    )
    parser.add_argument(
        "--scale",
        choices=("small", "full"),
        default="full",
        help="full: the paper's budget, or the share that the study states; small: seconds "
        "(default: full)",
    )
    parser.add_argument(
        "--out",
        metavar="DIR",
        default="runs/reproduce",
        help="folder of the runs (default: runs/reproduce)",
    )
    parser.add_argument(
        "--data",
        metavar="DIR",
        help="folder of cifar-10-batches-bin, mcunet-5fps.pkl and the fine-grained data sets, "
        "whichever are present (default: the working directory, and what was downloaded)",
    )
    add_workers(parser)
    parser.add_argument(
        "--collect", action="store_true", help="run nothing: compare what is finished so far"
    )
    parser.add_argument(
        "--results",
        metavar="DIR",
        help="write the results to DIR/NAME.json; runs that the file holds are not repeated",
    )
    parser.add_argument(
        "--force",
        action="store_true",
        help="with --results, take no run from there and replace the file in any case",
    )


def run(arguments: argparse.Namespace, output: Output) -> int:
    """Run the command."""
    _check_together(arguments)
    if arguments.list:
        rows = [[one.name, one.item, one.title] for one in STUDIES.values()]
        titles = ["study", "of the paper", "subject"]
        output.text(table(titles, rows, left=titles))
        keys = ("name", "item", "title")
        output.figures({"studies": [dict(zip(keys, row, strict=True)) for row in rows]})
        return 0
    if arguments.page is not None:
        if arguments.write is None:
            output.text(page(arguments.page).rstrip("\n"))
        else:
            write_pages(arguments.page, arguments.write)
            output.text(f"tables in {arguments.write}")
        return 0
    done, undone = _reproduce(arguments, output)
    output.figures(
        {
            "studies": [
                {**one.result, "rows": [asdict(row) for row in one.rows], "failed": one.failed}
                for one in done
            ]
        }
    )
    failed = sum(len(one.failed) for one in done)
    if failed:
        complain(f"error: runs that failed: {failed}; the same command tries them again")
    if undone:
        complain(f"error: not done: {', '.join(undone)}")
    return EXIT_FAILED if failed or undone else 0


def _check_together(arguments: argparse.Namespace) -> None:
    """Refuse options that would be ignored, and studies that do not exist."""
    if arguments.write is not None and arguments.page is None:
        raise ValueError(f"--write {arguments.write}: goes only with --page")
    if arguments.force and arguments.results is None:
        raise ValueError("--force replaces a file of --results; give the folder")
    check_workers(arguments)
    shows = arguments.list or arguments.page is not None
    if shows and arguments.studies:
        raise ValueError("--list and --page show all studies; give no name")
    if not shows and bool(arguments.studies) == arguments.all:
        raise ValueError("give one or more studies, or --all; --list shows which there are")
    for name in arguments.studies:
        find_study(name)


def _reproduce(
    arguments: argparse.Namespace, output: Output
) -> tuple[list[Reproduction], list[str]]:
    """Do every study; return those that were done and the names of those that were refused.

    The error of a single study is the command's; of several the others are still done.
    """
    done, refused = [], []
    names = arguments.studies or list(STUDIES)
    keywords = ("out", "data", "jobs", "dask", "collect", "results", "force")
    for name in names:
        found = STUDIES[name]
        output.text(f"{found.item}: {found.title}")
        try:
            one = reproduce(
                name,
                arguments.scale,
                tell=output.text,
                **{keyword: getattr(arguments, keyword) for keyword in keywords},
            )
        except Unfinished as nothing:
            output.text(str(nothing))
        except (ValueError, OSError, ImportError) as error:
            if len(names) == 1 or isinstance(error, BrokenPipeError):
                raise
            complain(f"error: {name}: {described(error)}")
            refused.append(name)
        else:
            rows = [row_cells(row) for row in one.rows]
            output.text(table(TITLES, rows, left=[*TITLES[:1], *TITLES[3:4], *TITLES[5:]]))
            output.text(f"{name}: {summary(one.rows)}")
            done.append(one)
    return done, refused
