"""Every option of the training goes through a grid as it goes through the command line."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
from train.test_options import DECLARED, NEEDS, _toml, another, outside

import pmt
from pmt_lab.sweep.grid_file import Problems, read_grid
from pmt_lab.sweep.methods import check_methods

# Read by the grid from elsewhere: its axes and its budget.
ELSEWHERE = ("layers", "seed", "macs")
NAMES = [name for name in DECLARED if name not in ELSEWHERE]


def grid_options(path: Path, options: dict[str, Any]) -> dict[str, Any]:
    lines = [f"{name} = {_toml(value)}" for name, value in options.items()]
    head = ["[model]", 'path = "m"', "[data]", 'path = "d"', "[method.default]"]
    path.write_text("\n".join([*head, *lines]))
    problems = Problems(str(path))
    found = check_methods(read_grid(path, problems), problems)["default"]
    problems.stop()
    return found


@pytest.mark.parametrize("name", NAMES)
def test_an_option_goes_through_a_grid(name: str, tmp_path: Path) -> None:
    option = DECLARED[name]
    wanted = {**NEEDS.get(name, {}), name: another(option.values, option.default)}
    found = grid_options(tmp_path / "grid.toml", wanted)
    assert pmt.TrainingOptions(**found) == pmt.TrainingOptions(**wanted)


@pytest.mark.parametrize(
    ("name", "value"), [(name, value) for name in NAMES for value in outside(DECLARED[name].values)]
)
def test_a_value_outside_is_refused_as_everywhere(name: str, value: Any, tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=f"^{name}=") as refused:
        pmt.TrainingOptions(**{name: value})
    found = grid_options(tmp_path / "grid.toml", {name: value})
    with pytest.raises(ValueError, match=f"^{re.escape(str(refused.value))}$"):
        pmt.methods.trainer("default", **found)
