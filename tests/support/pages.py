"""Code of a page of the documents, run as a reader runs it."""

import re
import shlex
from pathlib import Path
from typing import Any

from pmt.cli import main

DOCS = Path(__file__).parents[2] / "docs"


def own_pages(docs: Path = DOCS) -> list[Path]:
    """The pages in docs/, without those that a build of the site leaves: Git ignores them."""
    ignored = (docs.parent / ".gitignore").read_text()
    built = [docs.parent / name for name in re.findall(r"^/(docs/.*)/$", ignored, re.MULTILINE)]
    return sorted(path for path in docs.rglob("*.md") if not any(map(path.is_relative_to, built)))


def code_blocks(page: str) -> list[tuple[str, str]]:
    """Code blocks of a page in docs/, in order: Python programs, and commands of pmt."""
    text = (DOCS / page).read_text()
    found = re.findall(r"^```(python)?\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)
    return [(kind, text) for kind, text in found if not text.startswith("pip ")]


def run_block(kind: str, text: str, names: dict[str, Any]) -> None:
    """Run a Python program in `names`, or commands of pmt, one a line that may be continued."""
    if kind == "python":
        exec(text, names)
        return
    for line in text.replace("\\\n", "").splitlines():
        command, *arguments = shlex.split(line)
        assert command == "pmt"
        assert main(arguments) == 0
