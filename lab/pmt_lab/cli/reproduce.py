"""``pmt-lab reproduce``: the paper's tables and figures, measured again."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from dataclasses import asdict
from typing import Any, TypeVar

from pmt._util.progress import duration
from pmt.cli.arguments import add_json, add_plot, flag, job_of
from pmt.cli.output import (
    EXIT_FAILED,
    EXIT_INTERRUPTED,
    Output,
    check_plot,
    complain,
    is_of_stream,
    table,
)
from pmt.plots import save_plot
from pmt_lab.cli.sweep_arguments import add_workers, check_workers
from pmt_lab.reproduce.page import TITLES, page, row_cells, summary, write_page
from pmt_lab.reproduce.registry import STUDIES, study
from pmt_lab.reproduce.reproduce_job import ReproduceJob, Reproduction, forecast, reproduce
from pmt_lab.reproduce.study import Unfinished

Made = TypeVar("Made")

USAGE = "pmt-lab reproduce NAME [NAME ...] | --all | --list | --page DIR [options]"
SUMMARY = "the paper's tables and figures, measured again and compared"
DESCRIPTION = """\
Measure a table or figure of the paper again and compare it with the published numbers: difference,
95 % interval and verdict. After Ctrl-C, the same command continues. --scale small checks in seconds
that everything works, with the model and data that come with pmt; its figures are not comparable.
Full scale takes minutes for the studies without training and many hours for the others: see
--dry-run."""


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
        "--write", metavar="FILE", help="with --page, write them between the marks of FILE"
    )
    parser.add_argument(
        "--scale",
        choices=("small", "full"),
        default=ReproduceJob.scale,
        help="full: the paper's budget, or the share that the study states; small: seconds "
        "(default: full)",
    )
    parser.add_argument(
        "--out",
        metavar="DIR",
        default=ReproduceJob.out,
        help=f"folder of the runs (default: {ReproduceJob.out})",
    )
    parser.add_argument(
        "--data",
        metavar="DIR",
        help="folder of cifar-10-batches-bin, mcunet-5fps.pkl and the fine-grained data sets, "
        "whichever are present (default: the working directory, and what was downloaded)",
    )
    _add_work(parser)
    parser.add_argument(
        "--results",
        metavar="DIR",
        help="write the results to DIR/NAME.json; runs in the results of DIR are not repeated",
    )
    parser.add_argument(
        "--force",
        action="store_true",
        help="with --results, take no run from there and replace the file in any case",
    )
    add_plot(parser, "the study")
    add_json(parser)


def _add_work(parser: argparse.ArgumentParser) -> None:
    """Declare how much is run, and on which workers."""
    add_workers(parser)
    done = parser.add_mutually_exclusive_group()
    done.add_argument("--dry-run", action="store_true", help="say what is left, without running it")
    done.add_argument(
        "--collect", action="store_true", help="run nothing: compare what is finished so far"
    )


def run(arguments: argparse.Namespace, output: Output) -> int:
    """Run the command."""
    _check_together(arguments)
    if arguments.list:
        if arguments.studies:
            raise ValueError("--list shows all studies; give no name")
        rows = [[one.name, one.item, one.title] for one in STUDIES.values()]
        output.text(table(["study", "of the paper", "subject"], rows, left=_LEFT))
        output.figures({"studies": [dict(zip(_KEYS, row, strict=True)) for row in rows]})
        return 0
    if arguments.page is not None:
        return _page(arguments, output)
    names = _names(arguments)
    check_plot(arguments.plot)
    jobs = [job_of(ReproduceJob, arguments, study=name) for name in names]
    if arguments.dry_run:
        return _forecast(jobs, output)
    try:
        done, undone = _each(jobs, lambda job: _done(job, output), output)
    except KeyboardInterrupt:
        complain("interrupted; the same command continues")
        return EXIT_INTERRUPTED
    output.figures({"studies": [_figures(one) for one in done]})
    if arguments.plot is not None and not (done or undone):
        raise ValueError(f"--plot {arguments.plot}: no run of {names[0]} is finished; leave it out")
    if arguments.plot is not None and done:
        _draw(done[0], arguments.plot)
        output.text(f"plot in {arguments.plot}")
    failed = sum(len(one.failed) for one in done)
    if failed:
        complain(f"error: runs that failed: {failed}; the same command tries them again")
        return EXIT_FAILED
    return _code(undone)


# Options that have no effect with one that runs nothing.
_OF_WORK = ("results", "force", "plot", "dask", "collect", "dry_run")


def _check_together(arguments: argparse.Namespace) -> None:
    """Refuse options that would be ignored."""
    given = [name for name in _OF_WORK if getattr(arguments, name)]
    for other in ("list", "page"):
        if getattr(arguments, other) and given:
            raise ValueError(f"--{other} does no work; leave out {flag(given[0])}")
    if arguments.write is not None and arguments.page is None:
        raise ValueError(f"--write {arguments.write}: goes only with --page")
    if arguments.page is not None and arguments.json is not None:
        raise ValueError("--page prints Markdown and has no figures for --json; leave it out")
    if arguments.dry_run and arguments.plot is not None:
        raise ValueError("--dry-run has nothing to draw; leave out --plot")
    check_workers(arguments)
    if arguments.force and arguments.results is None:
        raise ValueError("--force replaces a file of --results; give the folder")


_KEYS = ("name", "item", "title")
_LEFT = ("study", "of the paper", "subject")


def _names(arguments: argparse.Namespace) -> list[str]:
    if bool(arguments.studies) == arguments.all:
        raise ValueError("give one or more studies, or --all; --list shows which there are")
    names = [study(name).name for name in arguments.studies] or list(STUDIES)
    if arguments.plot is not None:
        if len(names) > 1:
            raise ValueError(f"--plot {arguments.plot}: give one study to draw")
        if study(names[0]).plot is None:
            raise ValueError(f"--plot {arguments.plot}: {names[0]} has no plot; leave it out")
    return names


def _page(arguments: argparse.Namespace, output: Output) -> int:
    if arguments.studies:
        raise ValueError(f"--page {arguments.page}: shows all studies; give no name")
    if arguments.write is None:
        output.text(page(arguments.page).rstrip("\n"))
    else:
        write_page(arguments.page, arguments.write)
        output.text(f"tables in {arguments.write}")
    return 0


def _each(
    jobs: list[ReproduceJob],
    do: Callable[[ReproduceJob], Made],
    output: Output,
) -> tuple[list[Made], list[str]]:
    """Run every job; return what they made and the names of those that were refused.

    The error of a single job is the command's; of several jobs the others are still run.
    """
    made, refused = [], []
    for job in jobs:
        try:
            made.append(do(job))
        except Unfinished as nothing:
            output.text(str(nothing))
        except (ValueError, OSError, ImportError) as error:
            if len(jobs) == 1 or is_of_stream(error):
                raise
            complain(f"error: {job.study}: {error}")
            refused.append(job.study)
    return made, refused


def _code(refused: list[str]) -> int:
    if not refused:
        return 0
    complain(f"error: not done: {', '.join(refused)}")
    return EXIT_FAILED


def _forecast(jobs: list[ReproduceJob], output: Output) -> int:
    figures, refused = _each(jobs, lambda job: _left(job, output), output)
    output.figures({"studies": figures})
    return _code(refused)


def _left(job: ReproduceJob, output: Output) -> dict[str, Any]:
    left = forecast(job)
    entry: dict[str, Any] = {"study": job.study, "scale": job.scale}
    if left is None:
        output.text(f"{job.study}: minutes")
        return entry
    output.text(f"{job.study}: {left.runs} of {left.of} runs left, {duration(left.hours * 3600)}")
    return entry | asdict(left)


def _done(job: ReproduceJob, output: Output) -> Reproduction:
    found = study(job.study)
    output.text(f"{found.item}: {found.title}")
    done = reproduce(job, tell=output.text)
    rows = [row_cells(row) for row in done.rows]
    output.text(table(TITLES, rows, left=[*TITLES[:1], *TITLES[3:4], *TITLES[5:]]))
    output.text(f"{job.study}: {summary(done.rows)}")
    return done


def _draw(done: Reproduction, path: str) -> None:
    assert done.study.plot is not None
    if not any(row.ours is not None for row in done.rows):
        raise ValueError(f"--plot {path}: no run of {done.study.name} is finished; leave it out")
    save_plot(done.study.plot(done.result["data"]), path)


def _figures(done: Reproduction) -> dict[str, Any]:
    return {**done.result, "rows": [asdict(row) for row in done.rows], "failed": dict(done.failed)}
