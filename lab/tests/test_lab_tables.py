"""Tables of the lab's pages come from the runs that are kept with them."""

from __future__ import annotations

import json
import re
import runpy
from pathlib import Path
from typing import Any

import pytest

import pmt

ROOT = Path(__file__).parents[2]
LAB = ROOT / "lab" / "pages"
SCRIPT: dict[str, Any] = runpy.run_path(str(ROOT / "lab" / "scripts" / "lab_tables.py"))
BLOCK = "<!-- table: sweeps/pooled_long.json -->"
END = "<!-- end of table -->"
PAGES = ("choices.md", "preparation.md", "results.md")


@pytest.mark.parametrize("name", PAGES)
def test_the_tables_are_made_from_what_is_kept(name: str) -> None:
    page = (LAB / name).read_text(encoding="utf-8")
    assert SCRIPT["filled"](page) == page, f"run `python scripts/lab_tables.py pages/{name}`"


def test_every_file_has_its_table() -> None:
    pages = "".join((LAB / name).read_text(encoding="utf-8") for name in PAGES)
    lines = re.findall(r"^<!-- table: (.*) -->$", pages, re.MULTILINE)
    named = {word for line in lines for word in line.split() if word.endswith(".json")}
    results = LAB.parent / "results"
    kept = {path.relative_to(results).as_posix() for path in results.glob("sweeps/*.json")}
    assert named == kept


def test_a_block_is_filled_with_what_the_report_prints() -> None:
    filled = SCRIPT["filled"](f"before\n\n{BLOCK}\nold\n{END}\n\nafter\n").splitlines()
    assert filled[:5] == ["before", "", BLOCK, "", "**test accuracy in %**"]
    assert any(
        re.fullmatch(r"\| pooled +\| \*\*62\.6 ± 1\.1 \(59\.8\.\.65\.2\)\*\* +\|", line)
        for line in filled
    )
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
    message = r"^table: sweeps/none\.json: pmt-lab: error: .*: no such folder or file"
    with pytest.raises(ValueError, match=message):
        SCRIPT["filled"](f"<!-- table: sweeps/none.json -->\n{END}\n")


def test_the_page_of_24_tasks_shows_the_table_of_its_runs() -> None:
    benchmark = runpy.run_path(str(ROOT / "lab" / "benchmarks" / "never_worse.py"))
    stored = json.loads((LAB.parent / "results" / "never-worse.json").read_text())
    assert len(stored["runs"]) == 4 * 6 * 3
    page = (LAB / "never_worse.md").read_text(encoding="utf-8")
    assert f"\n```\n{benchmark['table_of'](stored['runs'])}\n```\n" in page


def test_the_page_of_the_preparation_shows_the_table_of_a_board_that_learns() -> None:
    benchmark = runpy.run_path(str(ROOT / "lab" / "benchmarks" / "learner_on_board.py"))
    stored = json.loads((LAB.parent / "results" / "learner-on-board.json").read_text())
    assert len(stored) == 7
    assert all(row["equal"] for row in stored)
    page = (LAB / "preparation.md").read_text(encoding="utf-8")
    assert f"\n```\n{benchmark['table_of'](stored)}\n```\n" in page


@pytest.mark.parametrize(
    ("name", "rows", "severity"),
    [
        ("input-stage", 3 * (1 + 5 * 19), 5),
        ("input-stage-resnet8", 1 + 19, 5),
        ("input-stage-fashion", 3 * (1 + 19), 5),
        ("camera-faults", 12, -1),
        ("camera-faults-resnet8", 12, -1),
    ],
)
def test_the_page_of_the_preparation_shows_what_an_input_stage_brings(
    name: str, rows: int, severity: int
) -> None:
    benchmark = runpy.run_path(str(ROOT / "lab" / "benchmarks" / "input_stage.py"))
    stored = json.loads((LAB.parent / "results" / f"{name}.json").read_text())
    assert len(stored) == rows
    page = (LAB / "preparation.md").read_text(encoding="utf-8")
    assert f"\n```\n{benchmark['table_of'](stored, severity)}\n```\n" in page


def test_the_page_of_the_preparation_shows_the_changes_by_severity() -> None:
    benchmark = runpy.run_path(str(ROOT / "lab" / "benchmarks" / "input_stage.py"))
    stored = json.loads((LAB.parent / "results" / "input-stage.json").read_text())
    page = (LAB / "preparation.md").read_text(encoding="utf-8")
    assert f"\n```\n{benchmark['changes_of'](stored)}\n```\n" in page


def test_the_page_of_the_released_settings_shows_its_tables() -> None:
    benchmark = runpy.run_path(str(ROOT / "lab" / "benchmarks" / "released_settings.py"))
    stored = json.loads((LAB.parent / "results" / "released-settings.json").read_text())
    page = (LAB / "released.md").read_text(encoding="utf-8")
    budgets = dict.fromkeys(row["epochs"] for row in stored)
    assert 5 in budgets
    for epochs in budgets:
        table = benchmark["table_of"]([row for row in stored if row["epochs"] == epochs])
        assert f"\n```\n{table}\n```\n" in page


def test_the_last_switch_leads_to_the_released_settings() -> None:
    benchmark = runpy.run_path(str(ROOT / "lab" / "benchmarks" / "released_settings.py"))
    last = list(benchmark["SWITCHES"])[-1]
    options = benchmark["settings"]()[last].options
    assert pmt.preset("paper", **options) == pmt.preset("released", layers="B2")
