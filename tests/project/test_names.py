"""Names are there after ``import pmt``: those that a page prints, and the public ones alone."""

import importlib
import re
import subprocess
import sys
from pathlib import Path

import pytest

import pmt

ROOT = Path(__file__).parents[2]
PAGES = [
    ROOT / "README.md",
    *sorted((ROOT / "docs").rglob("*.md")),
    *sorted((ROOT / "lab" / "pages").glob("*.md")),
]
_NAME = re.compile(r"(?<![\w./-])pmt(?:\.[A-Za-z_]\w*)+(?![\w/-]|\.\w)")
_FILES = {"pmt.lock"}
_TRIED = """
import sys
import pmt
for name in sys.argv[1:]:
    found = pmt
    for part in name.split(".")[1:]:
        found = getattr(found, part)
"""


def test_every_printed_name_is_there_after_import_pmt():
    names = {name for page in PAGES for name in _NAME.findall(page.read_text(encoding="utf-8"))}
    names -= _FILES
    assert len(names) > 80
    command = [sys.executable, "-c", _TRIED, *sorted(names)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.stderr == ""


def test_every_public_name_can_be_imported_and_a_wrong_one_is_told():
    for name in pmt.__all__:
        assert getattr(pmt, name) is not None
    assert dir(pmt) == sorted(pmt.__all__)
    assert {"Model", "ZOTrainer", "load", "datasets", "corruptions", "methods"} <= set(dir(pmt))
    assert not {"_core", "annotations", "net", "formats"} & set(dir(pmt))
    with pytest.raises(AttributeError, match=r"module 'pmt' has no attribute 'quantise'"):
        _ = pmt.quantise
    for name in ("a.b", "datasets.array_files", ".datasets", "a b", ""):
        with pytest.raises(AttributeError, match=f"^module 'pmt' has no attribute '{name}'$"):
            getattr(pmt, name)
    assert not hasattr(pmt.train, "run.folder")


def test_import_pmt_loads_nothing_before_a_name_is_used():
    program = "import pmt, sys; print(sorted(m for m in sys.modules if m[:3] in ('pmt', 'num')))"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert done.stdout == "['pmt', 'pmt._util', 'pmt._util.lazy']\n"


@pytest.mark.parametrize("module", ["backprop", "callbacks", "corruptions", "datasets", "methods"])
def test_public_modules_are_imported_by_the_names_that_users_write(module):
    imported = importlib.import_module(f"pmt.{module}")
    assert imported is getattr(pmt, module)
