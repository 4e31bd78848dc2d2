"""docs/guides/datasets.md as a reader runs it: own arrays, and those of other libraries."""

import re
from pathlib import Path
from typing import Any

import pytest

from pages import code_blocks, run_block

PROGRAMS = [text for kind, text in code_blocks("guides/datasets.md") if kind == "python"]


def test_arrays_of_ones_own():
    names: dict[str, Any] = {}
    run_block("python", PROGRAMS[0], names)
    assert repr(names["data"]) == "Dataset('mine', 200 images 28x28x1, 10 classes)"
    assert len(names["both"]) == 250
    assert names["label"] == 0


def test_an_adapter_takes_a_loader_to_a_trained_model(capsys):
    pytest.importorskip("torch")
    program = PROGRAMS[1]
    assert len(program.splitlines()) <= 30
    run_block("python", program, {})
    printed = capsys.readouterr().out
    assert printed.endswith("Dataset('stream', 120 images 28x28x1, 10 classes)\n")
    accuracies = re.findall(r"^ *(?:start|1) .* (0\.\d{4}) ", printed, re.MULTILINE)
    assert float(accuracies[1]) > float(accuracies[0]) + 0.02


def test_the_page_names_every_adapter():
    page = (Path(__file__).parents[2] / "docs" / "guides" / "datasets.md").read_text()
    rows = re.findall(r"^\| `(from_\w+)` \|", page, re.MULTILINE)
    assert rows == ["from_torch", "from_hugging_face", "from_stream"]


def test_a_stream_becomes_a_data_set(capsys):
    (program,) = (text for text in PROGRAMS if "from_stream(camera, limit=400" in text)
    run_block("python", program, {})
    expected = "Dataset('stream', 400 images 28x28x1, 10 classes) 400\n"
    assert capsys.readouterr().out == expected
