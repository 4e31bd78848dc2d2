"""A link to Colab on each notebook's page, where the site knows its repository on GitHub."""

from __future__ import annotations

import json
import os
import re
from typing import Any

from sphinx.application import Sphinx


def notebook_address(repository: str, page: str) -> str | None:
    """Return the address of a page's notebook in Colab; None for others and other hosts."""
    found = re.fullmatch(r"https://github\.com/([\w.-]+/[\w.-]+?)(?:\.git)?/?", repository)
    if found is None or not page.startswith("notebooks/"):
        return None
    return f"https://colab.research.google.com/github/{found[1]}/blob/HEAD/{page}.ipynb"


def add_link(app: Sphinx, page: str, source: list[str]) -> None:
    """Put the link below the title."""
    # Read the Docs names the repository that it builds.
    address = notebook_address(os.environ.get("READTHEDOCS_GIT_CLONE_URL", ""), page)
    if address is None:
        return
    notebook = json.loads(source[0])
    lines = "".join(notebook["cells"][0]["source"]).split("\n")
    lines[1:1] = ["", f"[Open in Colab]({address})"]
    notebook["cells"][0]["source"] = "\n".join(lines)
    source[0] = json.dumps(notebook)


def setup(app: Sphinx) -> dict[str, Any]:
    """Register it."""
    app.connect("source-read", add_link)
    return {"parallel_read_safe": True}
