"""The page of the tree: every file and folder that docs/architecture.md names is there."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8")
# Where a path of the page may begin.
ROOTS = ("", "cpp", "cpp/core", "python/pmt", "firmware_export")
SUFFIXES = (".cpp", ".hpp", ".py", ".pyi", ".md", ".toml", ".txt", ".cmake", ".*")
WRITTEN_BY_A_RUN = ("config.toml",)


def named_paths(text: str) -> list[str]:
    """Return the paths between backticks; a bare name is in the folder of the path before it."""
    found, folder = [], ""
    for name in re.findall(r"`([^`\s]+)`", text):
        if name in WRITTEN_BY_A_RUN or not ("/" in name or name.endswith(SUFFIXES)):
            continue
        if "/" in name:
            folder = name.rpartition("/")[0]
            found.append(name)
        else:
            found.append(f"{folder}/{name}".lstrip("/"))
    return found


def places(path: str) -> list[Path]:
    """Return the files and folders that a path stands for; NAME is any name."""
    pattern = path.rstrip("/").replace("NAME", "*")
    found = [place for root in ROOTS for place in (ROOT / root).glob(pattern)]
    return [place for place in found if place.is_dir() or not path.endswith("/")]


def test_paths_are_read_as_the_page_says():
    text = "`cpp/core` takes no `heap`; `core/zo/loss.*`, `query.cpp`; `boards/NAME/`, `--seed`"
    assert named_paths(text) == ["cpp/core", "core/zo/loss.*", "core/zo/query.cpp", "boards/NAME/"]
    assert places("core/zo/query.cpp") == [ROOT / "cpp" / "core" / "zo" / "query.cpp"]
    assert len(places("core/zo/loss.*")) == 2
    assert places("core/zo/query.cpp/") == places("core/zo/none.cpp") == []


@pytest.mark.parametrize("path", sorted(set(named_paths(PAGE))))
def test_what_the_page_names_is_in_the_tree(path):
    assert places(path), f"docs/architecture.md: there is no {path}"


def test_the_picture_has_every_package():
    picture = PAGE.partition("```\n")[2].partition("```")[0]
    shown = set(re.findall(r"\b\w+(?=/)", picture))
    folders = [ROOT / "cpp" / "core", ROOT / "firmware_export", ROOT / "python" / "pmt"]
    packages = {path.name for folder in folders for path in folder.iterdir() if path.is_dir()}
    assert len(packages) > 20
    assert packages - shown - {"data", "_native", "__pycache__"} == set()
