"""docs/tutorials/own_network.md as a reader runs it: torch, int8, adapted, LiteRT."""

import re
from typing import Any

import pytest

from pages import code_blocks, run_block

BLOCKS = code_blocks("tutorials/own_network.md")


def test_the_page_runs_and_the_network_adapts(tmp_path, monkeypatch, capsys):
    for package in ("torch", "onnx", "tflite", "ai_edge_litert"):
        pytest.importorskip(package)
    monkeypatch.chdir(tmp_path)
    outputs: list[str] = []
    names: dict[str, Any] = {}  # the programs are one session
    for kind, text in BLOCKS:
        run_block(kind, text, names)
        outputs.append(capsys.readouterr().out)
    assert [kind for kind, _ in BLOCKS] == ["python", "python", "python", "", "", "", "python"]
    _, quantized, _, trained, judged, converted, compared = outputs
    (floating, integer) = re.search(r"^accuracy float (\S+), int8 (\S+)$", quantized).groups()
    assert abs(float(floating) - float(integer)) < 0.01
    before, after = re.search(r"^accuracy (\S+) -> (\S+),", trained, re.MULTILINE).groups()
    assert float(after) > float(before) + 0.15
    assert re.search(r"^ *aligned ", trained, re.MULTILINE)
    assert re.search(rf"^b: adapted +{after} ", judged, re.MULTILINE)
    assert "cnn.tflite: full-integer TFLite" in converted
    assert float(compared.split()[0]) >= 99.0
