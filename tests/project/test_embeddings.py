"""docs/guides/embeddings.md as a reader runs it: features of clean images, a loss on embeddings."""

import re
from typing import Any

import pytest

from pages import DOCS, code_blocks, run_block

EXAMPLE = DOCS.parent / "examples" / "own_embedding.py"


def test_the_page_runs_and_prints_what_it_says(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    names: dict[str, Any] = {}
    printed = []
    for kind, text in code_blocks("guides/embeddings.md"):
        run_block(kind, text, names)
        printed.append(capsys.readouterr().out)
    assert printed[0] == "128 features 14x14x32 features\n"
    page = (DOCS / "guides" / "embeddings.md").read_text()
    assert f"It prints `{printed[1].strip()}`." in page
    shown = re.search(r"It prints `right by the nearest prototype: (\S+)`; .* is (\S+)\.$", page, 8)
    nearest = float(printed[2].rpartition(" ")[2])
    assert nearest == pytest.approx(float(shown[1]), abs=0.02)  # NumPy's sums differ by machine
    untrained = names["pmt"].load("fashion_mnist_dscnn").features()
    cosines = untrained.outputs(names["test"].images) @ names["prototypes"].T
    before = (cosines.argmax(axis=1) == names["test"].labels).mean()
    assert before == pytest.approx(float(shown[2]), abs=0.002)


def test_the_example_is_30_lines_at_most_and_stands_on_the_page():
    text = EXAMPLE.read_text()
    assert len(text.splitlines()) <= 30
    assert ("python", text) in code_blocks("guides/embeddings.md")
