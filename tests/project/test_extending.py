"""docs/guides/extending.md shows the files of examples/, and these run."""

from __future__ import annotations

import re
import runpy
import shlex
from pathlib import Path

import pytest
from pages import code_blocks, run_block

import pmt
from pmt.cli import main
from pmt.methods import plugins, registry

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "guides" / "extending.md").read_text()
OWN = ("own_loss", "own_estimator", "own_optimizer", "own_method")
NUMBERS = re.compile(r"(\d\.\d+) -> (\d\.\d+)")


@pytest.fixture(autouse=True)
def own_folder(tmp_path, monkeypatch):
    """Run in an empty folder, and register nothing for other tests."""
    known = [(one, dict(one)) for one in (registry.METHODS, registry.KINDS)]
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(plugins, "_LOADED", set())
    monkeypatch.setenv("PMT_PLUGINS", "")
    yield
    for one, before in known:
        one.clear()
        one.update(before)


@pytest.mark.parametrize("name", OWN)
def test_an_example_is_30_lines_at_most_and_stands_on_the_page(name):
    text = (ROOT / "examples" / f"{name}.py").read_text()
    assert len(text.splitlines()) <= 30
    assert f"```python\n{text}```" in PAGE


def test_the_engine_and_the_samples_of_the_core_are_written_as_shown():
    programs = [text for kind, text in code_blocks("guides/extending.md") if kind == "python"]
    names = {}
    run_block("python", programs[0], names)
    assert names["losses"].shape == (100, 10)
    run_block("python", programs[-1], {})
    assert Path("samples.bin").stat().st_size == 25 * (1 + 28 * 28)
    assert pmt.load("model.pmt").image() == pmt.load("fashion_mnist_dscnn").image()


def test_the_loss_becomes_what_the_page_says(capsys):
    runpy.run_path(str(ROOT / "examples" / "own_loss.py"))
    printed = capsys.readouterr().out.strip()
    assert f"It prints `{printed}`." in PAGE


def test_the_estimator_learns_what_the_page_says(capsys):
    runpy.run_path(str(ROOT / "examples" / "own_estimator.py"))
    before, after = map(float, NUMBERS.search(capsys.readouterr().out).groups())
    shown = re.search(r"It prints `(\S+) -> (\S+)`", PAGE).groups()
    assert before == float(shown[0])
    assert after == pytest.approx(float(shown[1]), abs=0.02)  # NumPy's sums differ by machine


def test_the_optimizer_learns_and_its_finished_run_is_returned(capsys):
    for _ in range(2):
        runpy.run_path(str(ROOT / "examples" / "own_optimizer.py"))
    first, second = NUMBERS.findall(capsys.readouterr().out)
    assert float(first[1]) < float(first[0]) - 0.05
    assert second == first


def test_the_method_trains_and_resumes_by_the_commands_of_the_page(capsys):
    commands = re.findall(r"^pmt (train .*own_method.*)$", PAGE, re.MULTILINE)
    assert len(commands) == 2
    printed = []
    for command in commands:
        shown = command.replace("examples/", f"{ROOT}/examples/")
        assert main(shlex.split(shown)) == 0
        printed.append(capsys.readouterr().out)
    assert "gradients by votes" in printed[0]
    before, after = map(float, re.search(r"^accuracy (\S+) -> (\S+),", printed[0], re.M).groups())
    assert after > before + 0.1
    assert printed[0].splitlines()[-3:] == printed[1].splitlines()[-3:]
