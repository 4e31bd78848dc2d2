"""The notebooks run from top to bottom, and print what was committed."""

import ast
import base64
import importlib
import io
import re
import sys
from pathlib import Path
from typing import Any

import nbformat
import pytest
from PIL import Image

from pmt_lab.reproduce.stored import stored

tomllib = importlib.import_module("tomllib" if sys.version_info >= (3, 11) else "tomli")

ROOT = Path(__file__).parents[2]
FOLDER = ROOT / "notebooks"
SCRIPTS = sorted(FOLDER.glob("*.py"))
NAMES = [
    "01_first_steps",
    "02_what_a_perturbation_sees",
    "03_scaling_and_estimators",
    "04_which_block",
    "05_cifar10_c",
    "06_other_methods",
    "07_memory_and_time",
    "08_new_classes",
    "09_past_the_paper",
    "10_from_notebook_to_board",
    "11_own_loss_and_estimator",
    "12_what_a_sensor_did",
]
MOST_BYTES = 176 * 1024
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

every_notebook = pytest.mark.parametrize("script", SCRIPTS, ids=lambda path: path.stem)


@pytest.fixture
def runner(monkeypatch):
    monkeypatch.syspath_prepend(str(ROOT / "lab" / "scripts"))
    import run_notebooks

    yield run_notebooks
    sys.modules.pop("run_notebooks", None)


def committed(script: Path) -> nbformat.NotebookNode:
    return nbformat.read(script.with_suffix(".ipynb"), as_version=4)


def outputs(notebook: nbformat.NotebookNode) -> list[nbformat.NotebookNode]:
    return [output for cell in notebook.cells for output in cell.get("outputs", ())]


def pictures(notebook: nbformat.NotebookNode) -> list[str]:
    shown = [output.get("data", {}) for output in outputs(notebook)]
    return [data["image/png"] for data in shown if "image/png" in data]


def steady(notebook: nbformat.NotebookNode) -> list[nbformat.NotebookNode]:
    """Return the cells that show the same on every machine."""
    return [cell for cell in notebook.cells if VARIES not in cell.metadata.get("tags", ())]


def text_of(cell: nbformat.NotebookNode) -> str:
    shown = [o.get("text") or o.get("data", {}).get("text/plain", "") for o in cell.outputs]
    return "".join(text for text in shown if not text.startswith("<Figure"))


def texts(notebook: nbformat.NotebookNode) -> list[str]:
    """Return what each code cell shows that is the same on every machine and with all results."""
    code = [cell for cell in steady(notebook) if cell.cell_type == "code"]
    own = [cell for cell in code if not STORED.search(cell.source)]
    return [text_of(cell) for cell in own]


def test_every_notebook_has_its_script():
    assert [path.stem for path in SCRIPTS] == NAMES
    assert [path.stem for path in sorted(FOLDER.glob("*.ipynb"))] == NAMES


@every_notebook
def test_notebook_is_in_sync_with_its_script(script, runner):
    """After a change: make notebooks."""
    found, made = committed(script), runner.notebook_of(script)
    for notebook in (found, made):
        for cell in notebook.cells:
            cell.pop("outputs", None)
            cell.pop("execution_count", None)
    assert found.cells == made.cells
    assert found.metadata == made.metadata


@every_notebook
def test_notebook_is_committed_with_light_pictures_and_without_errors(script):
    notebook = committed(script)
    assert {output.output_type for output in outputs(notebook)} <= {
        "stream",
        "display_data",
        "execute_result",
    }
    assert [output.text for output in outputs(notebook) if output.get("name") == "stderr"] == []
    images = [base64.b64decode(picture) for picture in pictures(notebook)]
    assert images
    assert all(image.startswith(b"\x89PNG") for image in images)
    assert max(map(len, images)) <= MOST_BYTES_OF_A_PICTURE
    assert script.with_suffix(".ipynb").stat().st_size <= MOST_BYTES


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
def test_first_cell_installs_what_the_notebook_imports(script):
    """It does so in an empty environment alone: elsewhere it asks for nothing."""
    sources = [cell.source for cell in committed(script).cells if cell.cell_type == "code"]
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
def test_results_that_are_shown_are_those_that_are_versioned(script):
    """After a new result: make notebooks ARGS=--stored."""
    for cell in committed(script).cells:
        names = STORED.findall(cell.source) if cell.cell_type == "code" else []
        assert len(names) <= 1
        for name in names:
            study = stored(name, ROOT / "lab" / "results")
            table = study.table()
            parts = [f"{study}\n", f"{table}\n" if ".table()" in cell.source else ""]
            assert text_of(cell) == "".join(parts)


@every_notebook
def test_notebook_runs_and_shows_what_was_committed(script, runner, tmp_path):
    """After a change of what is shown: make notebooks."""
    if "torch]" in script.read_text():
        pytest.importorskip("torch")
    notebook = runner.run(script, tmp_path)
    assert texts(notebook) == texts(committed(script))
    drawn, known = ([*runner.pictures(steady(one))] for one in (notebook, committed(script)))
    apart = [
        runner.difference(one[runner.PNG], other[runner.PNG])
        for one, other in zip(drawn, known, strict=True)
    ]
    assert [one for one in apart if one > runner.TOLERANCE] == []


def drawing(runner: Any, heights: list[float]) -> list[nbformat.NotebookNode]:
    """Return a notebook's cell with the picture of a line."""
    pyplot = pytest.importorskip("matplotlib.pyplot")
    figure, ax = pyplot.subplots(figsize=(6, 4))
    ax.plot(heights, "o-")
    file = io.BytesIO()
    figure.savefig(file, format="png")
    pyplot.close(figure)
    data = {runner.PNG: base64.b64encode(file.getvalue()).decode()}
    output = nbformat.v4.new_output("display_data", data=data)
    cells = [nbformat.v4.new_code_cell("draw()", outputs=[output])]
    runner.lighten(cells)
    return cells


def test_a_picture_keeps_its_bytes_until_it_shows_something_else(runner):
    old = drawing(runner, [1, 2, 3])
    (picture,) = runner.pictures(old)
    before = picture[runner.PNG]
    edge = Image.open(io.BytesIO(base64.b64decode(before))).convert("RGB")
    edge.putpixel((300, 200), (250, 250, 250))
    file = io.BytesIO()
    edge.save(file, "PNG")

    same = drawing(runner, [1, 2, 3])
    (picture,) = runner.pictures(same)
    picture[runner.PNG] = base64.b64encode(file.getvalue()).decode()
    runner.keep_pictures(same, old)
    assert picture[runner.PNG] == before

    other = drawing(runner, [1, 2.03, 3])
    (picture,) = runner.pictures(other)
    drawn = picture[runner.PNG]
    assert runner.difference(drawn, before) > runner.TOLERANCE
    runner.keep_pictures(other, old)
    assert picture[runner.PNG] == drawn


def test_stored_renews_texts_and_refuses_code_that_was_not_run(runner, tmp_path):
    for suffix in (".py", ".ipynb"):
        name = f"01_first_steps{suffix}"
        (tmp_path / name).write_bytes((FOLDER / name).read_bytes())
    script = tmp_path / "01_first_steps.py"
    script.write_text(script.read_text().replace("# # First steps", "# # Steps"))
    renewed = runner.run_stored(script, tmp_path)
    assert renewed.cells[0].source.startswith("# Steps")
    assert outputs(renewed) == outputs(committed(script))
    script.write_text(script.read_text().replace("epochs=2", "epochs=3"))
    with pytest.raises(runner.NotRunError, match="a cell has changed; run it without --stored"):
        runner.run_stored(script, tmp_path)
