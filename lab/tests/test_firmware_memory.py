"""The program that measures the firmware's memory has the rows of the page that shows it."""

from __future__ import annotations

import re
import runpy
from pathlib import Path

ROOT = Path(__file__).parents[2]


def test_the_program_has_the_rows_of_the_page() -> None:
    program = runpy.run_path(str(ROOT / "lab" / "benchmarks" / "firmware_memory.py"))
    page = (ROOT / "docs" / "guides" / "firmware.md").read_text()
    shown = re.findall(r"^\| (all 43|`?\w+`?) \| `(stm32\S+)` \|", page, re.MULTILINE)
    rows = [("all 43" if row.layers == "all" else row.layers, row.like) for row in program["ROWS"]]
    assert [(layers.strip("`"), board) for layers, board in shown] == rows
