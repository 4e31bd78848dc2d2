"""Pages of the site that lie elsewhere in the repository, or are made when it is built."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

from sphinx.application import Sphinx

ROOT = Path(__file__).parents[2]
NOTEBOOKS = "notebooks"


def remove_old_reference(app: Sphinx) -> None:
    """Remove the pages of the last build, for a name that is gone keeps none."""
    shutil.rmtree(Path(app.srcdir) / "reference" / "api", ignore_errors=True)


def copy_notebooks(app: Sphinx) -> None:
    """Copy the notebooks below the pages, for Sphinx reads one folder."""
    folder = Path(app.srcdir) / NOTEBOOKS
    folder.mkdir(exist_ok=True)
    originals = {path.name: path for path in (ROOT / NOTEBOOKS).glob("*.ipynb")}
    for copy in folder.iterdir():
        if copy.name not in originals:
            copy.unlink()
    for name, path in originals.items():
        copy = folder / name
        if not copy.is_file() or copy.read_bytes() != path.read_bytes():
            shutil.copyfile(path, copy)


def lead_links_inside(app: Sphinx, page: str, source: list[str]) -> None:
    """Let links between a page and a notebook lead to where the site has them."""
    if page.startswith(f"{NOTEBOOKS}/"):
        source[0] = source[0].replace("](../docs/", "](../")
    else:
        up = "../" * page.count("/")
        source[0] = source[0].replace(f"](../{up}{NOTEBOOKS}/", f"]({up}{NOTEBOOKS}/")


def setup(app: Sphinx) -> dict[str, Any]:
    """Register them."""
    app.connect("builder-inited", remove_old_reference, priority=100)
    app.connect("builder-inited", copy_notebooks)
    app.connect("source-read", lead_links_inside)
    return {"parallel_read_safe": True}
