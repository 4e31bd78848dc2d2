"""Tables of a page in lab/pages, from the runs that are kept in lab/results.

    python scripts/lab_tables.py pages/results.md

A block of the page names a file of `pmt-lab report --keep` and arguments of `pmt-lab report`, whose
output is put between its two lines; or the name of a table of pmt_lab.studies.gradient_tables and a
file of `pmt-lab study gradients`:

    <!-- table: sweeps/ablation.json --rows method --columns corruption -->
    <!-- end of table -->

    <!-- table: estimator_table gradients/paper14.json -->
    <!-- end of table -->

`python scripts/lab_tables.py --keep STUDY.json gradients/NAME.json` keeps what those tables need of
such a file.
"""

from __future__ import annotations

import argparse
import contextlib
import io
import json
import re
import shlex
from pathlib import Path
from typing import Any

from pmt_lab.cli import main as pmt_lab
from pmt_lab.files import origin, spread_json, write_text
from pmt_lab.studies.gradient_quality import Quality
from pmt_lab.studies.gradient_tables import estimator_table, layer_table, scope_table
from pmt_lab.studies.scope_variance import ScopeVariance

ROOT = Path(__file__).parents[2]
RESULTS = ROOT / "lab" / "results"
FIRST = re.compile(r"<!-- table: (.*) -->")
LAST = "<!-- end of table -->"
TABLES = {"estimator_table": estimator_table, "layer_table": layer_table}


def main() -> None:
    parser = argparse.ArgumentParser(description="Fill the tables of a page from kept runs.")
    parser.add_argument("pages", metavar="PAGE", nargs="*", help="Markdown files")
    help_text = "keep figures of `pmt-lab study gradients --json`, in lab/results"
    parser.add_argument("--keep", nargs=2, metavar=("STUDY", "FILE"), help=help_text)
    arguments = parser.parse_args()
    if arguments.keep:
        study, file = arguments.keep
        figures = json.loads(Path(study).read_text(encoding="utf-8"))
        write_text(RESULTS / file, spread_json(compact(figures), 2) + "\n")
    for page in map(Path, arguments.pages):
        try:
            write_text(page, filled(page.read_text(encoding="utf-8")))
        except ValueError as error:
            raise SystemExit(f"{page}: {error}") from None


def compact(figures: dict[str, Any]) -> dict[str, Any]:
    """Return a study of gradients with the most queries alone, to six digits."""
    most = max(row["queries"] for row in figures["rows"])
    rows = [row for row in figures["rows"] if row["queries"] == most]
    short = [{key: _rounded(value) for key, value in row.items()} for row in rows]
    return {**origin(), **figures, "rows": short}


def _rounded(value: Any) -> Any:
    return float(f"{value:.6g}") if isinstance(value, float) else value


def filled(text: str) -> str:
    """Return a page with the tables that its blocks name.

    Raises
    ------
    ValueError
        If a block is left open or closed twice, or `pmt-lab report` refuses it.
    """
    lines: list[str] = []
    block = ""
    for line in text.splitlines():
        first = FIRST.fullmatch(line)
        if first:
            if block:
                raise ValueError(f"{line} stands within {block}")
            block = line
            lines += [line, "", *table(first[1]).splitlines(), ""]
        elif line == LAST:
            if not block:
                raise ValueError(f"{line} ends no block: add <!-- table: FILE.json [OPTIONS] -->")
            block = ""
        if not block:
            lines.append(line)
    if block:
        raise ValueError(f"{block} has no {LAST}")
    return "\n".join(lines) + "\n"


def table(arguments: str) -> str:
    """Return the text of a block; files of results are those of lab/results."""
    words = [str(RESULTS / w) if w.endswith(".json") else w for w in shlex.split(arguments)]
    if words[0].endswith("_table"):
        return of_gradients(*words)
    try:
        return reported(words)
    except ValueError as error:
        raise ValueError(f"table: {arguments}: {error}") from None


def of_gradients(name: str, file: str) -> str:
    """Return a table of a study of gradient estimates."""
    kept = json.loads(Path(file).read_text(encoding="utf-8"))
    if name == "scope_table":
        made = scope_table([ScopeVariance(**row) for row in kept["scopes"]])
    else:
        made = TABLES[name]([Quality(**row) for row in kept["rows"]])
    return f"```\n{made}\n```"


def reported(words: list[str]) -> str:
    """Return the output of `pmt-lab report`."""
    printed, error = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(printed), contextlib.redirect_stderr(error):
        code = pmt_lab(["report", *words])
    if code != 0:
        raise ValueError(error.getvalue().strip())
    return printed.getvalue()


if __name__ == "__main__":
    main()
