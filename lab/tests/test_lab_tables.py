"""Tables of the lab's pages come from the runs that are kept with them."""

import re
import runpy
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[2]
LAB = ROOT / "lab" / "pages"
SCRIPT: dict[str, Any] = runpy.run_path(str(ROOT / "lab" / "scripts" / "lab_tables.py"))
BLOCK = "<!-- table: sweeps/pooled_long.json -->"
END = "<!-- end of table -->"
PAGES = ("choices.md", "preparation.md", "results.md")


@pytest.mark.parametrize("name", PAGES)
def test_the_tables_are_made_from_what_is_kept(name):
    page = (LAB / name).read_text(encoding="utf-8")
    assert SCRIPT["filled"](page) == page, f"run `python scripts/lab_tables.py pages/{name}`"


def test_every_file_has_its_table():
    pages = "".join((LAB / name).read_text(encoding="utf-8") for name in PAGES)
    lines = re.findall(r"^<!-- table: (.*) -->$", pages, re.MULTILINE)
    named = {word for line in lines for word in line.split() if word.endswith(".json")}
    results = LAB.parent / "results"
    kept = {path.relative_to(results).as_posix() for path in results.glob("sweeps/*.json")}
    assert named == kept


def test_a_block_is_filled_with_what_the_report_prints():
    filled = SCRIPT["filled"](f"before\n\n{BLOCK}\nold\n{END}\n\nafter\n").splitlines()
    assert filled[:5] == ["before", "", BLOCK, "", "**test accuracy in %**"]
    assert any(
        re.fullmatch(r"\| pooled +\| \*\*62\.6 ± 1\.1 \(59\.8\.\.65\.2\)\*\* +\|", line)
        for line in filled
    )
    assert "old" not in filled
    assert filled[-5:] == ["- Bold: best of its column.", "", END, "", "after"]


@pytest.mark.parametrize("page", [BLOCK, f"{BLOCK}\n{BLOCK}\n{END}", END])
def test_blocks_that_are_not_closed(page):
    with pytest.raises(
        ValueError, match=f"^a line <!-- table: ... --> needs, after it, a line {END}$"
    ):
        SCRIPT["filled"](page)


def test_what_the_report_refuses():
    message = r"^table: sweeps/none\.json: pmt-lab: error: .*: no such folder or file"
    with pytest.raises(ValueError, match=message):
        SCRIPT["filled"](f"<!-- table: sweeps/none.json -->\n{END}\n")
