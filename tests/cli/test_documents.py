"""README and guides show what their commands and programs print.

After a change of the output: PMT_UPDATE_GOLDEN=1 pytest tests/cli/test_documents.py.
"""

import dataclasses
import re
from pathlib import Path

import pytest
from documents import ROOT, check_page, examples, masked
from firmware_tools import EMULATOR, need_firmware_tools

import pmt
from pages import own_pages
from pmt.cli import main
from pmt.train.options import PRESETS

PAGES = (
    "README.md",
    "docs/guides/exporters.md",
    "docs/guides/input_stage.md",
    "docs/guides/learner.md",
    "docs/guides/selection.md",
    "docs/reference/cli.md",
    "docs/reference/costs.md",
    "docs/tutorials/first_model.md",
)
# Pages with other tests, and a download from far away.
ELSEWHERE = {
    "docs/tutorials/empty_folder_to_board.md": "tests/project/test_empty_folder_to_board.py",
    "docs/guides/datasets.md": "tests/datasets/test_datasets_download.py",
}


def test_every_page_with_output_is_run_by_a_test():
    pages = [ROOT / "README.md", *own_pages()]
    shown = {str(page.relative_to(ROOT)) for page in pages if examples(page)}
    assert shown == {*PAGES, *ELSEWHERE}
    assert [test for test in ELSEWHERE.values() if not (ROOT / test).is_file()] == []


@pytest.mark.parametrize("page", PAGES)
def test_a_page_shows_what_its_examples_print(page, tmp_path, monkeypatch, capsys):
    if page.endswith("exporters.md"):
        pytest.importorskip("tflite")
    if page.endswith(("learner.md", "costs.md")):
        need_firmware_tools(EMULATOR, "make")
    monkeypatch.chdir(tmp_path)
    check_page(ROOT / page, lambda: capsys.readouterr().out)


PAGE = """
```python
print(f"{1 + 1} images in {0.25} s")
```

```
2 images in 3.1 s
```

```
$ pmt --version
pmt VERSION

$ pmt info --help
usage: pmt info MODEL [--layers SPEC] [--batch N] [--plan] [options]
...
```
"""


def check_made_page(folder: Path, text: str, capsys: pytest.CaptureFixture[str]) -> str:
    page = folder / "page.md"
    page.write_text(text)
    check_page(page, lambda: capsys.readouterr().out)
    return page.read_text()


def test_times_may_differ_and_figures_may_not(tmp_path, monkeypatch, capsys):
    monkeypatch.delenv("PMT_UPDATE_GOLDEN", raising=False)
    current = PAGE.replace("VERSION", pmt.__version__)
    assert check_made_page(tmp_path, current, capsys) == current
    for stale in (
        current.replace("\n2 images", "\n3 images"),
        current.replace("[--plan]", "[--plot]"),
        PAGE,
    ):
        with pytest.raises(AssertionError):
            check_made_page(tmp_path, stale, capsys)


def test_a_page_is_brought_up_to_date(tmp_path, monkeypatch, capsys):
    monkeypatch.setenv("PMT_UPDATE_GOLDEN", "1")
    stale = PAGE.replace("2 images in", "3 images in").replace("[--plan]", "[--plot]")
    assert check_made_page(tmp_path, stale, capsys) == (
        PAGE.replace("VERSION", pmt.__version__).replace("2 images in 3.1 s", "2 images in 0.25 s")
    )


def test_masks_hide_times_alone():
    row = "    1      1.7467     0.4170     1.4363    0.4640      5,217         16,000"
    assert masked(f"{row}        0.7") == f"{row} #"
    assert masked("contrast              69,104      0.0") == "contrast #"
    assert masked("8,192 MACs, 390 ms, 1 to go") == "8,192 MACs,  #, 1 to go"


def test_the_program_that_runs_an_export_prints_the_right_class(tmp_path, monkeypatch, capsys):
    pytest.importorskip("tflite")
    pytest.importorskip("ai_edge_litert")
    monkeypatch.chdir(tmp_path)
    text = (ROOT / "docs" / "guides" / "exporters.md").read_text()
    (program,) = re.findall(r"```python\n(.*?)```", text, re.DOTALL)
    exec(program, {})
    predicted, label = capsys.readouterr().out.split()
    assert predicted == label


def test_the_statistics_that_the_ten_lines_hint_at_make_them_no_worse(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (program,) = re.findall(
        r"## Ten lines\n\n```python\n(.*?)```", (ROOT / "README.md").read_text(), re.DOTALL
    )
    load = 'pmt.load("fashion_mnist_dscnn")'
    clean = 'pmt.datasets.bundled("train").images[:256]'
    ends = []
    for model in (load, f"pmt.statistics({load}, {clean})"):
        names = {}
        exec(program.replace(load, model), names)
        ends.append(names["model"].evaluate(names["test"]).accuracy)
    assert ends == [0.689, 0.689]


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
