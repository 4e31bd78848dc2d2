"""The grids that come with pmt are good, and the documents show them as they are."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

import pmt
from pmt.research.sweep import read_grid

ROOT = Path(__file__).parents[2]
GRIDS = sorted((ROOT / "benchmarks" / "grids").glob("*.toml"))
PAGE = (ROOT / "docs" / "guides" / "sweeps.md").read_text()


@pytest.mark.parametrize("path", GRIDS, ids=lambda path: path.stem)
def test_a_grid_can_be_read(path):
    grid = read_grid(path)
    assert "no_adaptation" in [method.name for method in grid.methods]


def test_the_page_shows_the_grid_of_the_papers_table():
    shown = re.search(r"```toml\n(.*?)```", PAGE, re.DOTALL).group(1)
    file = (ROOT / "benchmarks" / "grids" / "paper_table.toml").read_text()
    lines = [line for line in file.splitlines() if not line.startswith("#")]
    assert shown.splitlines() == lines


def test_the_grid_of_the_papers_table_has_its_corruptions():
    grid = read_grid(ROOT / "benchmarks" / "grids" / "paper_table.toml")
    assert len(grid.corruptions) == 12
    model = pmt.load("cifar10_mcunet")
    trained = [model.core.ops()[op]["name"] for op in model.select_layers(grid.layers[0])]
    assert trained == [f"b{block}.pointwise1" for block in (4, 5, 6, 7)] + ["classifier"]


def test_the_table_of_entries_is_current(tmp_path):
    from pmt.research.sweep.grid_file import _TABLES

    rows = dict(re.findall(r"^\| `\[(\w+)(?:\.NAME)?\]` \| ([^|]*) \|", PAGE, re.MULTILINE))
    assert set(rows) == set(_TABLES)
    for table, entries in _TABLES.items():
        for entry in entries:
            assert f"`{entry}`" in rows[table], f"[{table}] {entry}"
