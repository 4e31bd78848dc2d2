"""The documents show what the program prints."""

import dataclasses
import re
from pathlib import Path

import pytest

import pmt
from pages import own_pages
from pmt.cli import main
from pmt.train.options import PRESETS

ROOT = Path(__file__).parents[2]


def test_the_program_that_runs_an_export_prints_the_right_class(tmp_path, monkeypatch, capsys):
    pytest.importorskip("tflite")
    pytest.importorskip("ai_edge_litert")
    monkeypatch.chdir(tmp_path)
    text = (ROOT / "docs" / "guides" / "exporters.md").read_text()
    (program,) = re.findall(r"```python\n(.*?)```", text, re.DOTALL)
    exec(program, {})
    predicted, label = capsys.readouterr().out.split()
    assert predicted == label


def test_every_command_has_its_line_in_the_documents(capsys):
    text = (ROOT / "docs" / "reference" / "cli.md").read_text()
    assert main(["--help"]) == 0
    commands = re.findall(r"^    ([a-z]+) +\w", capsys.readouterr().out, re.MULTILINE)
    assert "corrupt" in commands
    assert [name for name in commands if f"| `pmt {name} " not in text] == []


def test_the_table_of_presets_is_current():
    text = (ROOT / "docs" / "concepts" / "algorithm.md").read_text()
    rows = dict(re.findall(r"^\| (`[a-z0-9_`, ]+`)[^|]*\| (.*?) \|[^|]*\|$", text, re.MULTILINE))
    table = {}
    for names, values in rows.items():
        columns = [column.strip() for column in values.split("|")]
        names = [name.strip("` ") for name in names.split(",")]
        for i, name in enumerate(names):
            split = len(names) > 1 and "," in columns[0]
            table[name] = [
                (column.split(",")[i] if split else column).split("(")[0].strip()
                for column in columns
            ]
    for field in dataclasses.fields(pmt.TrainingOptions):
        if field.name in ("layers", "epochs", "seed"):
            assert not any(field.name in changes for changes in PRESETS.values())
            continue
        for preset, shown in zip(PRESETS, table[field.name], strict=True):
            value = getattr(pmt.preset(preset), field.name)
            if isinstance(value, bool):
                assert shown == ("yes" if value else "no"), field.name
            elif isinstance(value, str):
                assert shown == value, field.name
            else:
                assert float(shown) == value, field.name


def test_every_link_between_the_documents_leads_somewhere():
    own = [ROOT / name for name in ("README.md", "CONTRIBUTING.md", "SECURITY.md")]
    for page in [*own, *own_pages(), *sorted((ROOT / "lab").rglob("*.md"))]:
        for target in re.findall(r"\]\(([^)#]+)[^)]*\)", page.read_text()):
            if not target.startswith("http"):
                assert (page.parent / target).is_file(), f"{page.name}: {target}"
