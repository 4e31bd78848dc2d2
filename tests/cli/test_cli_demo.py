"""`pmt demo`: an adaptation that needs no file."""

import json
import re

import pytest

import pmt
from pmt.cli import main


def test_demo_adapts_without_a_file_and_leaves_none(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    assert main(["demo", "--json", "-"]) == 0
    printed = capsys.readouterr()
    figures = json.loads(printed.out)
    assert figures["before"]["fog"]["accuracy"] == pytest.approx(0.238)
    assert figures["after"]["fog"]["accuracy"] > 0.7
    assert figures["head_alone"]["n"] == 1000
    row = re.search(r"^fog accuracy +(\S+) +(\S+)$", printed.err, re.MULTILINE)
    assert row is not None
    assert row.groups() == ("23.8%", f"{figures['after']['fog']['accuracy']:.1%}")
    assert "points of accuracy: +" in printed.err
    assert list(tmp_path.iterdir()) == []


def test_demo_keeps_its_run_in_a_new_folder_alone(tmp_path, capsys):
    out = tmp_path / "demo"
    assert main(["demo", "--out", str(out)]) == 0
    assert pmt.RunFolder(out).done
    assert capsys.readouterr().out.rstrip().endswith("its curves in curves.png")
    assert main(["demo", "--out", str(out)]) == 2
    assert capsys.readouterr().err == (
        f"pmt: error: --out={str(out)!r} holds a finished run; choose another folder or remove it\n"
    )
    (out / "DONE").unlink()  # as a run that was interrupted at its end
    assert main(["demo", "--out", str(out)]) == 0
    assert pmt.RunFolder(out).done
    capsys.readouterr()
    (tmp_path / "notes.txt").write_text("mine")
    assert main(["demo", "--out", str(tmp_path)]) == 2
    assert "already exists and holds no run" in capsys.readouterr().err
