"""Tables of the lab's pages come from the runs that are kept with them."""

from __future__ import annotations

import re
import runpy
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[2]
LAB = ROOT / "docs" / "lab"
SCRIPT: dict[str, Any] = runpy.run_path(str(ROOT / "scripts" / "lab_tables.py"))
BLOCK = "<!-- table: sweeps/pooled_long.json -->"
END = "<!-- end of table -->"


def test_the_tables_are_made_from_the_kept_runs() -> None:
    page = (LAB / "results.md").read_text(encoding="utf-8")
    assert SCRIPT["filled"](page) == page, "run `python scripts/lab_tables.py docs/lab/results.md`"


def test_every_file_of_runs_has_its_table() -> None:
    page = (LAB / "results.md").read_text(encoding="utf-8")
    named = set(re.findall(r"^<!-- table: (\S+)", page, re.MULTILINE))
    kept = {path.relative_to(LAB / "results").as_posix() for path in LAB.rglob("sweeps/*.json")}
    assert named == kept


def test_a_block_is_filled_with_what_the_report_prints() -> None:
    filled = SCRIPT["filled"](f"before\n\n{BLOCK}\nold\n{END}\n\nafter\n").splitlines()
    assert filled[:5] == ["before", "", BLOCK, "", "**test accuracy in %**"]
    assert "| pooled | **62.6 ± 1.1 (59.8..65.2)** |" in filled
    assert "old" not in filled
    assert filled[-5:] == ["- Bold: best of its column.", "", END, "", "after"]


@pytest.mark.parametrize(
    ("page", "error"),
    [
        (BLOCK, f"{BLOCK} has no {END}"),
        (f"{BLOCK}\n{BLOCK}\n{END}", f"{BLOCK} stands within {BLOCK}"),
        (END, f"{END} ends no block: add <!-- table: FILE.json [OPTIONS] -->"),
    ],
)
def test_blocks_that_are_not_closed(page: str, error: str) -> None:
    with pytest.raises(ValueError, match=f"^{re.escape(error)}$"):
        SCRIPT["filled"](page)


def test_what_the_report_refuses() -> None:
    with pytest.raises(ValueError, match=r"^table: sweeps/none\.json: pmt: error: .* is no folder"):
        SCRIPT["filled"](f"<!-- table: sweeps/none.json -->\n{END}\n")
