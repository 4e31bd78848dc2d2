"""Benchmarks whose figures are kept as JSON, and the table that is made of them."""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

from pmt._util import atomic_file
from pmt_lab.kept_files import origin, spread_json


def parser_of(doc: str) -> argparse.ArgumentParser:
    """Return a parser with the options that all of them have; `doc` is the module's."""
    parser = argparse.ArgumentParser(description=doc.split("\n")[0])
    parser.add_argument("--results", help="file that gets what was measured, as JSON")
    parser.add_argument("--table", type=Path, help="run nothing; the table of such a file")
    return parser


def add_model_and_data(parser: argparse.ArgumentParser) -> None:
    """Declare a model and CIFAR-10, both needed for a measurement."""
    parser.add_argument("model", nargs="?", help="model file, or the name of a bundled one")
    parser.add_argument("--data", help="folder of CIFAR-10")


def measure_or_show(
    parser: argparse.ArgumentParser,
    measure: Callable[[argparse.Namespace], dict[str, Any]],
    table_of: Callable[[dict[str, Any]], str],
    *,
    levels: int = 2,
) -> None:
    """Print the table of a new measurement, which is kept, or that of a file.

    ``levels`` of the JSON have a line for each entry.
    """
    options = parser.parse_args()
    if options.table is not None:
        print(table_of(json.loads(options.table.read_text())))
        return
    needed = [getattr(options, name) for name in ("model", "data") if name in options]
    if None in needed:
        parser.error("MODEL and --data are needed, or --table alone")
    kept = {**origin(), **measure(options)}
    if options.results:
        atomic_file.write_text(options.results, spread_json(kept, levels) + "\n")
    print(table_of(kept))
