"""The documentation site: it builds without a warning, offline, and has every page and name."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

import pmt

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    """The site, built as `make docs` does."""
    for package in ("sphinx", "myst_nb", "numpydoc", "sphinx_argparse_cli", "sphinx_copybutton"):
        pytest.importorskip(package)
    out = tmp_path_factory.mktemp("site")
    (command,) = re.findall(
        r"-m (sphinx .*) docs build/docs$", (ROOT / "Makefile").read_text(), re.M
    )
    build = [sys.executable, "-m", *command.split(), str(DOCS), str(out)]
    place = {**os.environ, "READTHEDOCS_GIT_CLONE_URL": "https://github.com/owner/repository.git"}
    done = subprocess.run(build, cwd=ROOT, env=place, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stderr == ""
    return out


def words(page: Path) -> str:
    return re.sub(r"<[^>]+>", "", page.read_text(encoding="utf-8"))


def test_every_page_is_in_the_site_and_found_by_its_search(site):
    # A page outside of every toctree is a warning, and so an error.
    pages = [path.relative_to(DOCS).with_suffix("") for path in DOCS.rglob("*.md")]
    assert len(pages) > 30
    index = (site / "searchindex.js").read_text(encoding="utf-8")
    for page in pages:
        assert (site / f"{page}.html").is_file()
        assert f'"{page.as_posix()}"' in index


def test_every_public_name_has_its_reference(site):
    folder = site / "reference" / "api"
    made = {path.stem for path in folder.glob("*.html")}
    assert {name for name in dir(pmt) if f"pmt.{name}" not in made} == {"__version__"}
    text = words(folder / "pmt.ZOTrainer.html")
    assert "Trains layers of an int8 model with forward passes only." in text
    assert "Preset where options is not given." in text


def test_every_command_has_its_options(site):
    text = (site / "reference" / "commands.html").read_text(encoding="utf-8")
    for anchor in ("pmt-train", "pmt-train---learning-rate", "pmt-eval---data", "pmt-download"):
        assert f'id="{anchor}"' in text, anchor


def test_notebooks_are_pages(site):
    for notebook in (ROOT / "notebooks").glob("*.ipynb"):
        page = (site / "notebooks" / f"{notebook.stem}.html").read_text(encoding="utf-8")
        colab = "https://colab.research.google.com/github/owner/repository/blob/HEAD/notebooks"
        assert f'href="{colab}/{notebook.name}"' in page
        assert page.count("<img alt=") == notebook.read_text().count("](pictures/") > 0


def test_nothing_is_loaded_from_elsewhere(site):
    loaded = re.compile(
        r'<(?:script|img|iframe|source|object)[^>]* (?:src|data)="(?:https?:)?//[^"]*'
        r'|<link[^>]* href="(?:https?:)?//[^"]*'
        r"|(?:url\(|@import )[\"']?(?:https?:)?//[^\"')]*"
    )
    files = [path for kind in ("html", "css") for path in site.rglob(f"*.{kind}")]
    assert len(files) > 100
    found = {str(p.relative_to(site)): loaded.findall(p.read_text("utf-8")) for p in files}
    assert {name: places for name, places in found.items() if places} == {}


def test_formulas_need_no_script(site):
    text = (site / "notebooks" / "02_what_a_perturbation_sees.html").read_text(encoding="utf-8")
    assert re.sub(r"\s+", "", text).count("<msqrt><mi>d</mi></msqrt></math>") == 1


FENCED = re.compile(r"^```\w*\n(.*?)^```$", re.MULTILINE | re.DOTALL)


@pytest.mark.parametrize("folder", ["docs/tutorials", "lab/pages"])
def test_code_fits_its_column(folder):
    """docs/_static/pmt.css makes room for that many characters."""
    texts = [page.read_text() for page in (ROOT / folder).glob("*.md")]
    blocks = [block for text in texts for block in re.findall(FENCED, text)]
    lines = [line for block in blocks for line in block.split("\n")]
    assert len(lines) > 200
    assert [line for line in lines if len(line) > 119] == []


def test_the_first_page_shows_readme(site):
    shown = " ".join(words(site / "index.html").split())
    readme = (ROOT / "README.md").read_text()
    for text in (
        "There is no float copy of the weights",
        "MCUNet has a mean accuracy of",
        "then its head was trained on all images",
        "or with Pillow, SciPy, pooch, matplotlib",
        "year = {2025}",
    ):
        assert text in shown
        assert text in " ".join(readme.split())
    assert (site / "_images" / "accuracy_and_memory.png").is_file()
