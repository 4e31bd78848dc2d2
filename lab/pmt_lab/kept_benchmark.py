"""The command line of a benchmark whose rows are kept, so that a stopped run continues."""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from pmt_lab.files import kept_rows, write_rows

__all__ = ["run_benchmark"]

Row = dict[str, Any]


def run_benchmark(
    title: str,
    rows_of: Callable[[argparse.Namespace], Mapping[str, Callable[[], Row]]],
    text_of: Callable[[list[Row]], str],
    add_arguments: Callable[[argparse.ArgumentParser], None] = lambda parser: None,
) -> None:
    """Run the missing rows and print the tables, or those of a file.

    Parameters
    ----------
    title : str
        Docstring of the benchmark, whose first line describes the command.
    rows_of : callable
        Returns what makes each row, by its name, from the arguments: ``data``, a folder of data
        sets, ``out``, the folder of the rows, and those that were added.
    text_of : callable
        Returns the tables of rows.
    add_arguments : callable
        Declares further arguments.
    """
    parser = argparse.ArgumentParser(description=title.split("\n")[0])
    parser.add_argument("--data", type=Path, help="folder of the data sets")
    parser.add_argument("--out", type=Path, help="folder of the figures")
    parser.add_argument("--results", type=Path, help="file that keeps what the table needs")
    parser.add_argument("--table", type=Path, help="run nothing; the table of such a file")
    add_arguments(parser)
    arguments = parser.parse_args()
    if arguments.table is not None:
        print(text_of(json.loads(arguments.table.read_text())))
        return
    if None in (arguments.data, arguments.out):
        parser.error("--data and --out are needed, or --table alone")
    rows = rows_of(arguments)
    found = []
    for row in kept_rows(arguments.out, rows):
        found.append(row)
        print(f"{len(found)} of {len(rows)}: {list(rows)[len(found) - 1]}", flush=True)
    print(text_of(found))
    if arguments.results is not None:
        write_rows(arguments.results, found)
