"""docs/guides/sensors.md as a reader runs it: windows of a motion sensor, a drift, the command."""

import re
from typing import Any

import pytest

from pages import code_blocks, run_block


def test_the_page_runs_and_the_head_brings_nearly_all_of_it(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    blocks = code_blocks("guides/sensors.md")
    assert [kind for kind, _ in blocks] == ["python", "python", "python", ""]
    names: dict[str, Any] = {}
    for kind, text in blocks:
        run_block(kind, text, names)
    printed = capsys.readouterr().out
    begun, drifted, head, whole = map(float, re.findall(r"^[a-z ,]+: (0\.\d{3})$", printed, re.M))
    assert begun > 0.9
    assert drifted < begun - 0.3
    assert head > drifted + 0.45
    assert head > 0.9
    assert whole > head - 0.005
    before, after = re.search(r"^accuracy (\S+) -> (\S+),", printed, re.MULTILINE).groups()
    assert float(before) == pytest.approx(drifted, abs=5e-4)
    assert float(after) == pytest.approx(whole, abs=5e-4)
    assert f"600 test images of {tmp_path / 'motion'}\n" in printed
