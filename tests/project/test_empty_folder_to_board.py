"""The page from an empty folder to a board shows what its script types, and where it ended."""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

from firmware_tools import COMPILER, EMULATOR, need_firmware_tools

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "tutorials" / "empty_folder_to_board.md").read_text()
SCRIPT = (ROOT / "scripts" / "empty_folder_to_board.sh").read_text()


# Times differ from run to run, and pip finds other versions on other days.
VARIES = re.compile(r"\d+ ms|^(?:filelock|numpy|pip|setuptools) .*$", re.MULTILINE)
# A machine's own configuration of pip may name an index that does not have every package.
OF_THE_MACHINE = re.compile(r"^WARNING: Location .* is ignored: .*\n", re.MULTILINE)


def typed(page: str) -> list[str]:
    return re.findall(r"^\$ ((?:.*\\\n)*.*)$", page, re.MULTILINE)


def test_the_page_has_the_commands_of_the_script():
    steps = "\n".join(re.findall(r"^see!? .*?[^\\]$", SCRIPT, re.MULTILINE | re.DOTALL))
    assert typed(PAGE) == re.findall(r"'([^']*)'", steps)
    assert len(typed(PAGE)) > 15


def test_the_page_ends_well():
    assert re.search(r"^verify: ok \(8 steps, 3 layers, 26 activations\)$", PAGE, re.MULTILINE)
    before, after = re.findall(r"impulse_noise severity 5\naccuracy (\S+)", PAGE)
    assert float(after) > float(before) + 0.1
    assert PAGE.endswith("\nequal\n```\n")


def test_the_page_names_no_place_on_a_machine():
    assert not re.search(r"/(tmp|root|home|work|usr)\b", PAGE)


def test_the_page_is_what_the_script_prints(tmp_path):
    """With PMT_UPDATE_GOLDEN=1 the page is written instead."""
    need_firmware_tools(EMULATOR, "make")
    build = [sys.executable, "-m", "build", "--wheel", "--no-isolation", "--outdir", str(tmp_path)]
    subprocess.run(build, cwd=ROOT, check=True, capture_output=True)
    (wheel,) = tmp_path.glob("*.whl")
    # Those that ask ccache, if the tests are called so: two boards have the same core.
    compilers = str(Path(shutil.which(COMPILER) or "").parent)
    done = subprocess.run(
        [str(ROOT / "scripts" / "empty_folder_to_board.sh")],
        env={**os.environ, "WHEEL": str(wheel), "COMPILERS": compilers},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr
    printed = OF_THE_MACHINE.sub("", done.stdout)
    page = ROOT / "docs" / "tutorials" / "empty_folder_to_board.md"
    if os.environ.get("PMT_UPDATE_GOLDEN") == "1":
        page.write_text(printed)
    assert VARIES.sub("...", page.read_text()) == VARIES.sub("...", printed)
