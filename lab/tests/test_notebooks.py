"""The notebooks run from top to bottom, and print what was committed."""

import ast
import base64
import importlib
import io
import re
import sys
from copy import deepcopy
from pathlib import Path
from typing import Any

import nbformat
import pytest
from PIL import Image

from pmt_lab.reproduce.stored import stored

tomllib = importlib.import_module("tomllib" if sys.version_info >= (3, 11) else "tomli")

ROOT = Path(__file__).parents[2]
FOLDER = ROOT / "notebooks"
NOTEBOOKS = sorted(FOLDER.glob("*.ipynb"))
MOST_BYTES = 24 * 1024
MOST_BYTES_OF_A_PICTURE = 44 * 1024
# Cells with this tag show times, counts of a compiler, or what a machine may lack.
VARIES = "varies"
# The packages that hold the modules of our own two; those of others have their modules' names.
MODULES = {"poor-mans-training": "pmt", "poor-mans-training-lab": "pmt_lab"}
PROJECTS = {
    name: tomllib.loads((ROOT / folder / "pyproject.toml").read_text())["project"]
    for name, folder in (("poor-mans-training", "."), ("poor-mans-training-lab", "lab"))
}
# Cells that show a versioned result, which is renewed without a run of the notebook.
STORED = re.compile(r'stored\("([a-z0-9-]+)"\)')

every_notebook = pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)


@pytest.fixture
def scripts(monkeypatch):
    monkeypatch.syspath_prepend(str(ROOT / "lab" / "scripts"))
    yield
    for name in ("run_notebooks", "notebook_pictures"):
        sys.modules.pop(name, None)


@pytest.fixture
def runner(scripts):
    return importlib.import_module("run_notebooks")


@pytest.fixture
def pictures(scripts):
    return importlib.import_module("notebook_pictures")


def committed(path: Path) -> nbformat.NotebookNode:
    return nbformat.read(path, as_version=4)


def code_of(notebook: nbformat.NotebookNode) -> list[nbformat.NotebookNode]:
    return [cell for cell in notebook.cells if cell.cell_type == "code"]


def outputs(notebook: nbformat.NotebookNode) -> list[nbformat.NotebookNode]:
    return [output for cell in notebook.cells for output in cell.get("outputs", ())]


def steady(cells: list[nbformat.NotebookNode]) -> list[nbformat.NotebookNode]:
    """Return the cells that show the same on every machine."""
    return [cell for cell in cells if VARIES not in cell.metadata.get("tags", ())]


def text_of(cell: nbformat.NotebookNode) -> str:
    shown = [o.get("text") or o.get("data", {}).get("text/plain", "") for o in cell.outputs]
    return "".join(text for text in shown if not text.startswith("<Figure"))


def texts(notebook: nbformat.NotebookNode) -> list[str]:
    """Return what each code cell shows that is the same on every machine and with all results."""
    own = [cell for cell in code_of(notebook) if not STORED.search(cell.source)]
    return [text_of(cell) for cell in steady(own)]


def test_the_index_lists_every_notebook():
    index = (ROOT / "docs" / "tutorials" / "index.md").read_text()
    assert re.findall(r"/notebooks/(\w+)\.ipynb\)", index) == [path.stem for path in NOTEBOOKS]
    assert len(NOTEBOOKS) >= 12
    drawn = {path.stem.rpartition("-")[0] for path in FOLDER.glob("pictures/*")}
    assert drawn == {path.stem for path in NOTEBOOKS}


@every_notebook
def test_notebook_is_committed_as_the_script_writes_it(path):
    """After a change: make notebooks."""
    notebook = committed(path)
    assert path.read_text() == f"{nbformat.writes(notebook)}\n"
    kernel = {"display_name": "Python 3", "language": "python", "name": "python3"}
    assert notebook.metadata == {"kernelspec": kernel}
    assert {key for cell in notebook.cells for key in cell.metadata} <= {"tags"}
    counts = [cell.execution_count for cell in code_of(notebook)]
    assert counts == [*range(1, len(counts) + 1)]
    # Ruff sees to lines of code alone.
    lines = [line for cell in notebook.cells for line in cell.source.split("\n")]
    assert [line for line in lines if len(line) > 100] == []


@every_notebook
def test_notebook_is_committed_without_errors_and_with_links_to_light_pictures(path):
    shown = outputs(committed(path))
    assert {output.output_type for output in shown} <= {
        "stream",
        "display_data",
        "execute_result",
    }
    assert [output.text for output in shown if output.get("name") == "stderr"] == []
    kinds = {kind for output in shown for kind in output.get("data", ())}
    assert kinds <= {"text/plain", "text/markdown", "text/html"}
    links = [o.data["text/markdown"] for o in shown if "text/markdown" in o.get("data", ())]
    names = [f"pictures/{path.stem}-{count}.png" for count in range(1, len(links) + 1)]
    assert links == [f"![Figure {n}]({name})" for n, name in enumerate(names, start=1)]
    assert {*names} == {f"pictures/{p.name}" for p in FOLDER.glob(f"pictures/{path.stem}-*")} != {}
    images = [(FOLDER / name).read_bytes() for name in names]
    assert all(image.startswith(b"\x89PNG") for image in images)
    assert max(map(len, images)) <= MOST_BYTES_OF_A_PICTURE
    assert path.stat().st_size <= MOST_BYTES


def installed(requirement: str) -> set[str]:
    """Return the packages of a requirement: our own with what they need, others by name."""
    name, extras = re.match(r"([\w-]+)(?:\[([\w,]+)\])?", requirement).groups()
    if name not in PROJECTS:
        return {name}
    project = PROJECTS[name]
    needed = list(project["dependencies"])
    for extra in extras.split(",") if extras else ():
        needed += project["optional-dependencies"][extra]
    return {name}.union(*map(installed, needed))


@every_notebook
def test_first_cell_installs_what_the_notebook_imports(path):
    """It does so in an empty environment alone: elsewhere it asks for nothing."""
    sources = [cell.source for cell in code_of(committed(path))]
    first = sources[0]
    found = re.search(
        r'find_spec\("(\w+)"\) is None:\s.*"pip",\s"install --quiet (.*)"', first, re.S
    )
    module, requirements = found.groups()
    packages = set().union(*map(installed, requirements.split()))
    available = {MODULES.get(name, name) for name in packages}
    imports = [node for source in sources[1:] for node in ast.walk(ast.parse(source))]
    names = {alias.name for node in imports if isinstance(node, ast.Import) for alias in node.names}
    names |= {node.module for node in imports if isinstance(node, ast.ImportFrom)}
    used = {name.partition(".")[0] for name in names} - sys.stdlib_module_names
    assert used <= available
    assert module == ("pmt_lab" if "pmt_lab" in used else "pmt")
    assert ("poor-mans-training-lab" in packages) == ("pmt_lab" in used)


@every_notebook
def test_results_that_are_shown_are_those_that_are_versioned(path):
    """After a new result: make notebooks ARGS=--stored."""
    for cell in code_of(committed(path)):
        names = STORED.findall(cell.source)
        assert len(names) <= 1
        for name in names:
            study = stored(name, ROOT / "lab" / "results")
            table = study.table()
            parts = [f"{study}\n", f"{table}\n" if ".table()" in cell.source else ""]
            assert text_of(cell) == "".join(parts)


@every_notebook
def test_notebook_runs_and_shows_what_was_committed(path, runner, pictures, tmp_path):
    """After a change of what is shown: make notebooks."""
    if "torch]" in path.read_text():
        pytest.importorskip("torch")
    ran, known = runner.run(path, tmp_path), pictures.read(path)
    assert texts(ran) == texts(known)
    drawn, old = ([*pictures.pictures(steady(one.cells))] for one in (ran, known))
    apart = [
        pictures.difference(one[pictures.PNG], other[pictures.PNG])
        for one, other in zip(drawn, old, strict=True)
    ]
    assert [one for one in apart if one > pictures.TOLERANCE] == []


def drawing(pictures: Any, heights: list[float]) -> list[nbformat.NotebookNode]:
    """Return a notebook's cell with the picture of a line."""
    pyplot = pytest.importorskip("matplotlib.pyplot")
    figure, ax = pyplot.subplots(figsize=(6, 4))
    ax.plot(heights, "o-")
    file = io.BytesIO()
    figure.savefig(file, format="png")
    pyplot.close(figure)
    data = {pictures.PNG: base64.b64encode(file.getvalue()).decode()}
    output = nbformat.v4.new_output("display_data", data=data)
    cells = [nbformat.v4.new_code_cell("draw()", outputs=[output])]
    pictures.lighten(cells)
    return cells


def test_a_picture_keeps_its_bytes_until_it_shows_something_else(pictures):
    old = drawing(pictures, [1, 2, 3])
    (picture,) = pictures.pictures(old)
    before = picture[pictures.PNG]
    edge = Image.open(io.BytesIO(base64.b64decode(before))).convert("RGB")
    edge.putpixel((300, 200), (250, 250, 250))
    file = io.BytesIO()
    edge.save(file, "PNG")

    same = drawing(pictures, [1, 2, 3])
    (picture,) = pictures.pictures(same)
    picture[pictures.PNG] = base64.b64encode(file.getvalue()).decode()
    pictures.keep_pictures(same, old)
    assert picture[pictures.PNG] == before

    other = drawing(pictures, [1, 2.03, 3])
    (picture,) = pictures.pictures(other)
    drawn = picture[pictures.PNG]
    assert pictures.difference(drawn, before) > pictures.TOLERANCE
    pictures.keep_pictures(other, old)
    assert picture[pictures.PNG] == drawn


def test_pictures_stand_beside_the_notebook_and_are_its_own(pictures, tmp_path):
    path, folder = tmp_path / "plots.ipynb", tmp_path / "pictures"
    folder.mkdir()
    (folder / "plots-3.png").write_bytes(b"of an earlier version")
    (folder / "other-3.png").write_bytes(b"of another notebook")
    cells = [cell for heights in ([1, 2], [2, 1]) for cell in drawing(pictures, heights)]
    before = [data[pictures.PNG] for data in pictures.pictures(cells)]
    pictures.write(nbformat.v4.new_notebook(cells=cells), path)
    assert {p.name for p in folder.iterdir()} == {"plots-1.png", "plots-2.png", "other-3.png"}
    (output,) = committed(path).cells[1].outputs
    assert output.data == {"text/markdown": "![Figure 2](pictures/plots-2.png)"}
    again = pictures.read(path)
    assert [data[pictures.PNG] for data in pictures.pictures(again.cells)] == before


def test_a_run_draws_a_picture_again_whose_file_is_missing(runner, pictures, tmp_path):
    path = tmp_path / "plots.ipynb"
    cells = drawing(pictures, [1, 2])
    cells[0].execution_count, cells[0].source = 1, "print(1)"
    pictures.write(nbformat.v4.new_notebook(cells=cells), path)
    (tmp_path / "pictures" / "plots-1.png").unlink()
    with pytest.raises(
        runner.NotRunError, match=r"^pictures/plots-1.png is missing; leave out --stored"
    ):
        runner.run_stored(path, tmp_path)
    assert text_of(runner.run(path, tmp_path).cells[0]) == "1\n"


def test_stored_renews_results_alone_and_refuses_cells_that_were_not_run_in_order(
    runner, pictures, tmp_path
):
    path, known = tmp_path / "08_new_classes.ipynb", pictures.read(FOLDER / "08_new_classes.ipynb")
    changed = deepcopy(known)
    changed.cells[0].source = "# Classes"
    for cell in code_of(changed):
        if STORED.search(cell.source):
            cell.outputs, cell.execution_count = [], None
    nbformat.write(changed, path)
    renewed = runner.run_stored(path, tmp_path)
    assert renewed.cells[0] == changed.cells[0]
    pictures.keep_pictures(renewed.cells, known.cells)
    assert renewed.cells[1:] == known.cells[1:]
    changed.cells[4].execution_count = 17
    nbformat.write(changed, path)
    with pytest.raises(runner.NotRunError, match="cell cell-04 was added, moved or run alone"):
        runner.run_stored(path, tmp_path)
