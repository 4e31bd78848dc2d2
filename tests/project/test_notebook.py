"""The notebooks run from top to bottom, and their two files say the same."""

from __future__ import annotations

from pathlib import Path

import jupytext
import nbformat
import pytest
from nbclient import NotebookClient

FOLDER = Path(__file__).parents[2] / "notebooks"
SCRIPTS = sorted(FOLDER.glob("*.py"))


def cells(notebook: nbformat.NotebookNode) -> list[tuple[str, str]]:
    return [(cell.cell_type, cell.source) for cell in notebook.cells]


def test_every_notebook_has_its_script():
    assert [path.name for path in SCRIPTS] == ["01_first_steps.py", "own_loss_and_estimator.py"]
    assert [path.stem for path in sorted(FOLDER.glob("*.ipynb"))] == [path.stem for path in SCRIPTS]


@pytest.mark.parametrize("script", SCRIPTS, ids=lambda path: path.stem)
def test_notebook_is_in_sync_with_its_script(script):
    """After a change: jupytext --sync notebooks/*.py."""
    notebook = nbformat.read(script.with_suffix(".ipynb"), as_version=4)
    assert cells(notebook) == cells(jupytext.read(script))


@pytest.mark.parametrize("script", SCRIPTS, ids=lambda path: path.stem)
def test_notebook_is_committed_without_outputs(script):
    """After a run: jupyter nbconvert --clear-output --inplace notebooks/*.ipynb."""
    notebook = nbformat.read(script.with_suffix(".ipynb"), as_version=4)
    code = [cell for cell in notebook.cells if cell.cell_type == "code"]
    assert code
    assert [cell.outputs for cell in code] == [[]] * len(code)
    assert [cell.execution_count for cell in code] == [None] * len(code)


def test_first_steps_run_and_the_model_learns(tmp_path):
    notebook = nbformat.read(FOLDER / "01_first_steps.ipynb", as_version=4)
    resources = {"metadata": {"path": str(tmp_path)}}
    NotebookClient(notebook, timeout=300, kernel_name="python3", resources=resources).execute()

    assert (tmp_path / "runs" / "first_steps" / "DONE").is_file()
    assert (tmp_path / "fw" / "card.img").is_file()
    outputs = [output for cell in notebook.cells for output in cell.get("outputs", ())]
    figures = [o for o in outputs if "image/png" in o.get("data", {})]
    assert len(figures) == 2
    text = "".join(o.get("text", "") for o in outputs)
    before, after = (
        float(text.split("noisy images: ")[1].split("%")[0]),
        float(text.split("% before, ")[1].split("%")[0]),
    )
    assert after > before + 10


def test_a_score_without_a_gradient_is_learned(tmp_path):
    notebook = nbformat.read(FOLDER / "own_loss_and_estimator.ipynb", as_version=4)
    resources = {"metadata": {"path": str(tmp_path)}}
    NotebookClient(notebook, timeout=300, kernel_name="python3", resources=resources).execute()

    outputs = [output for cell in notebook.cells for output in cell.get("outputs", ())]
    text = "".join(o.get("text", "") for o in outputs)
    start, priced, ranked = (float(part.split()[0]) for part in text.split("an image costs ")[1:])
    assert priced < 0.6 * start
    assert ranked < 0.75 * start
    assert len([o for o in outputs if "image/png" in o.get("data", {})]) == 1
