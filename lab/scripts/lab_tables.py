"""Tables of a page in lab/pages, from the runs that are kept in lab/results.

    python scripts/lab_tables.py pages/results.md

A block of the page names a file of `pmt-lab report --keep` and arguments of `pmt-lab report`, whose
output is put between its two lines:

    <!-- table: sweeps/ablation.json --rows method --columns corruption -->
    <!-- end of table -->
"""

import argparse
import contextlib
import io
import re
import shlex
from pathlib import Path

from pmt_lab.cli import main as pmt_lab
from pmt_lab.files import write_text

ROOT = Path(__file__).parents[2]
RESULTS = ROOT / "lab" / "results"
FIRST = re.compile(r"^<!-- table: (.*) -->$", re.MULTILINE)
LAST = "<!-- end of table -->"
BLOCK = re.compile(f"({FIRST.pattern})\n(?:(?!<!-- ).*\n)*{LAST}$", re.MULTILINE)


def main() -> None:
    parser = argparse.ArgumentParser(description="Fill the tables of a page from kept runs.")
    parser.add_argument("pages", metavar="PAGE", nargs="+", help="Markdown files")
    arguments = parser.parse_args()
    for page in map(Path, arguments.pages):
        try:
            write_text(page, filled(page.read_text(encoding="utf-8")))
        except ValueError as error:
            raise SystemExit(f"{page}: {error}") from None


def filled(text: str) -> str:
    """Return a page with the tables that its blocks name.

    A ValueError says that a block has no end, or `pmt-lab report` refuses it.
    """
    made, count = BLOCK.subn(lambda at: f"{at[1]}\n\n{table(at[2])}\n{LAST}", text)
    if count != len(FIRST.findall(text)) or count != text.count(LAST):
        raise ValueError(f"a line <!-- table: ... --> needs, after it, a line {LAST}")
    return made


def table(arguments: str) -> str:
    """Return the output of `pmt-lab report`; files of results are those of lab/results."""
    words = [str(RESULTS / w) if w.endswith(".json") else w for w in shlex.split(arguments)]
    printed, error = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(printed), contextlib.redirect_stderr(error):
        code = pmt_lab(["report", *words])
    if code != 0:
        raise ValueError(f"table: {arguments}: {error.getvalue().strip()}")
    return printed.getvalue()


if __name__ == "__main__":
    main()
