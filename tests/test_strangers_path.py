"""The page of the stranger's path shows what the script types, and where it ended."""

from __future__ import annotations

import re
from pathlib import Path

ROOT = Path(__file__).parents[1]
PAGE = (ROOT / "docs" / "strangers_path.md").read_text()
SCRIPT = (ROOT / "scripts" / "strangers_path.sh").read_text()


def typed(page: str) -> list[str]:
    return re.findall(r"^\$ ((?:.*\\\n)*.*)$", page, re.MULTILINE)


def test_the_page_has_the_commands_of_the_script() -> None:
    steps = "\n".join(re.findall(r"^see!? .*?[^\\]$", SCRIPT, re.MULTILINE | re.DOTALL))
    assert typed(PAGE) == re.findall(r"'([^']*)'", steps)
    assert len(typed(PAGE)) > 15


def test_the_page_ends_well() -> None:
    assert re.search(r"^verify: ok \(8 steps, 3 layers, 26 activations\)$", PAGE, re.MULTILINE)
    before, after = re.findall(r"impulse_noise severity 5\naccuracy (\S+)", PAGE)
    assert float(after) > float(before) + 0.1
    assert PAGE.endswith("\nequal\n```\n")


def test_the_page_names_no_place_on_a_machine() -> None:
    assert not re.search(r"/(tmp|root|home|work|usr)\b", PAGE)
