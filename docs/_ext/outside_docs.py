"""Pages of the site that lie elsewhere in the repository, or are made when it is built."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

from sphinx.application import Sphinx

ROOT = Path(__file__).parents[2]
# Folders of the repository, and where the site has them.
OUTSIDE = {
    "notebooks": "notebooks",
    "notebooks/pictures": "notebooks/pictures",
    "lab/pages": "lab",
}
SUFFIXES = (".ipynb", ".md", ".png")


def remove_old_reference(app: Sphinx) -> None:
    """Remove the pages of the last build, for a name that is gone keeps none."""
    shutil.rmtree(Path(app.srcdir) / "reference" / "api", ignore_errors=True)


def copy_pages(app: Sphinx) -> None:
    """Copy notebooks and the lab's pages below the others, for Sphinx reads one folder."""
    for source, place in OUTSIDE.items():
        folder = Path(app.srcdir) / place
        folder.mkdir(exist_ok=True)
        originals = {p.name: p for p in (ROOT / source).iterdir() if p.suffix in SUFFIXES}
        for copy in folder.iterdir():
            if copy.name not in originals and copy.is_file():
                copy.unlink()
        for name, path in originals.items():
            copy = folder / name
            if not copy.is_file() or copy.read_bytes() != path.read_bytes():
                shutil.copyfile(path, copy)


def lead_links_inside(app: Sphinx, page: str, source: list[str]) -> None:
    """Let links between pages of different folders lead to where the site has them."""
    here, _, _ = page.rpartition("/")
    at = {place: folder for folder, place in OUTSIDE.items()}.get(here, f"docs/{here}".rstrip("/"))
    up, top = "../" * page.count("/"), "../" * (at.count("/") + 1)
    for folder, place in {**OUTSIDE, "docs": ""}.items():
        source[0] = source[0].replace(f"]({top}{folder}/", f"]({up}{place}/".replace("//", "/"))
    for beside in ("benchmarks", "pmt_lab"):  # files that the lab's pages show
        source[0] = source[0].replace(f"](../{beside}/", f"](../../lab/{beside}/")


def setup(app: Sphinx) -> dict[str, Any]:
    """Register them."""
    app.connect("builder-inited", remove_old_reference, priority=100)
    app.connect("builder-inited", copy_pages)
    app.connect("source-read", lead_links_inside)
    return {"parallel_read_safe": True}
