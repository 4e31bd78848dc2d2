"""docs/guides/own_network.md as a reader runs it: torch, ONNX, int8, adapted, .tflite, LiteRT."""

from __future__ import annotations

import re
import shlex
import warnings
from pathlib import Path
from typing import Any

import pytest

from pmt.cli import main

PAGE = Path(__file__).parents[2] / "docs" / "guides" / "own_network.md"


def blocks() -> list[tuple[str, str]]:
    """Code blocks in order: Python programs, and commands of pmt."""
    found = re.findall(r"^```(python)?\n(.*?)^```$", PAGE.read_text(), re.MULTILINE | re.DOTALL)
    return [(kind, text) for kind, text in found if not text.startswith("pip ")]


def run(kind: str, text: str, names: dict[str, Any]) -> None:
    if kind == "python":
        with warnings.catch_warnings():
            # torch calls the exporter that needs no further package a legacy.
            warnings.simplefilter("ignore", DeprecationWarning)
            exec(text, names)
    else:
        command, *arguments = shlex.split(text)
        assert command == "pmt"
        assert main(arguments) == 0


def test_the_page_runs_and_the_network_adapts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    for package in ("torch", "onnx", "tflite", "ai_edge_litert"):
        pytest.importorskip(package)
    monkeypatch.chdir(tmp_path)
    names: dict[str, Any] = {}
    outputs = []
    for kind, text in blocks():
        run(kind, text, names)
        outputs.append(capsys.readouterr().out)
    assert [kind for kind, _ in blocks()] == ["python", "", "", "", "python"]
    _, quantized, trained, converted, compared = outputs
    (floating, integer) = re.search(
        r"1,000 test images: accuracy float (\S+), int8 (\S+),", quantized
    ).groups()
    assert abs(float(floating) - float(integer)) < 0.01
    before, after = re.search(r"^accuracy (\S+) -> (\S+),", trained, re.MULTILINE).groups()
    assert float(after) > float(before) + 0.15
    assert "cnn.tflite: full-integer TFLite" in converted
    assert float(compared.split()[0]) >= 99.0
