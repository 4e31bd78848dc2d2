"""lab/pages/never_worse.md shows the table of its stored runs."""

from __future__ import annotations

import json
import runpy
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]


def test_the_page_shows_the_table_of_its_runs():
    benchmark = runpy.run_path(str(ROOT / "lab" / "benchmarks" / "never_worse.py"))
    stored = json.loads((ROOT / "lab/results/never-worse.json").read_text())
    assert len(stored["runs"]) == 4 * 6 * 3
    page = (ROOT / "lab/pages/never_worse.md").read_text()
    assert f"\n```\n{benchmark['table_of'](stored['runs'])}\n```\n" in page
