"""Tables of the lab's pages, README's numbers and its picture come from the kept results."""

import json
import re
import runpy
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import pmt
from pmt.cli import main
from pmt.firmware.board.profile import profile_methods
from pmt.protocol import wilson_of_share
from pmt_lab.reproduce import results
from pmt_lab.reproduce.runs import find
from pmt_lab.reproduce.stored import stored
from pmt_lab.reproduce.study import published

ROOT = Path(__file__).parents[2]
LAB = ROOT / "lab" / "pages"
SCRIPT: dict[str, Any] = runpy.run_path(str(ROOT / "lab" / "scripts" / "lab_tables.py"))
BLOCK = "<!-- table: sweeps/pooled_long.json -->"
END = "<!-- end of table -->"
PAGES = ("choices.md", "preparation.md", "released.md", "results.md")
BOTH_CHANGES = "released, nodes alone, stochastic rounding"


@pytest.mark.parametrize("name", PAGES)
def test_the_tables_are_made_from_what_is_kept(name):
    page = (LAB / name).read_text(encoding="utf-8")
    assert SCRIPT["filled"](page) == page, f"run `python scripts/lab_tables.py pages/{name}`"


def test_every_file_has_its_table():
    pages = "".join((LAB / name).read_text(encoding="utf-8") for name in PAGES)
    lines = re.findall(r"^<!-- table: (.*) -->$", pages, re.MULTILINE)
    named = {word for line in lines for word in line.split() if word.endswith(".json")}
    results = LAB.parent / "results"
    kept = {path.relative_to(results).as_posix() for path in results.glob("sweeps/*.json")}
    assert named == kept


def test_a_block_is_filled_with_what_the_report_prints():
    filled = SCRIPT["filled"](f"before\n\n{BLOCK}\nold\n{END}\n\nafter\n").splitlines()
    assert filled[:5] == ["before", "", BLOCK, "", "**test accuracy in %**"]
    assert any(
        re.fullmatch(r"\| pooled +\| \*\*62\.6 ± 1\.1 \(59\.8\.\.65\.2\)\*\* +\|", line)
        for line in filled
    )
    assert "old" not in filled
    assert filled[-5:] == ["- Bold: best of its column.", "", END, "", "after"]


@pytest.mark.parametrize("page", [BLOCK, f"{BLOCK}\n{BLOCK}\n{END}", END])
def test_blocks_that_are_not_closed(page):
    with pytest.raises(
        ValueError, match=f"^a line <!-- table: ... --> needs, after it, a line {END}$"
    ):
        SCRIPT["filled"](page)


def test_what_the_report_refuses():
    message = r"^table: sweeps/none\.json: pmt-lab: error: .*: no such folder or file"
    with pytest.raises(ValueError, match=message):
        SCRIPT["filled"](f"<!-- table: sweeps/none.json -->\n{END}\n")


README = " ".join((ROOT / "README.md").read_text().split())


def picture() -> dict[str, Any]:
    return runpy.run_path(str(ROOT / "lab" / "scripts" / "readme_picture.py"))


@pytest.mark.parametrize(
    ("grid", "axes", "text"),
    [
        ("default", {"method": "no_adaptation"}, "MCUNet has a mean accuracy of {:.0f} %"),
        ("filters", {"method": "default"}, "`pmt` raises it to {:.0f} %"),
        (
            "default",
            {"method": "default", "preparation": "align+head"},
            "Without the filters it reaches {:.0f} %",
        ),
        ("default", {"method": "default", "preparation": "none"}, "without all three {:.0f} %"),
        (
            "default_tenfold",
            {"method": "default", "preparation": "none"},
            "and with ten times the work {:.0f} %",
        ),
        ("backprop", {"method": "mcutrain"}, "sparse back-propagation (MCUTrain) {:.0f} %"),
        ("backprop", {"method": "bp_fp32"}, "all layers {:.0f} % in float32"),
        ("backprop", {"method": "bp_int8"}, "{:.0f} % in int8"),
        ("filters_backprop", {"method": "bp_fp32"}, "behind the three steps {:.0f} %"),
        ("paper", {"method": "paper"}, "it has {:.0f} % with all of its forwards"),
    ],
)
def test_accuracies_are_those_of_the_results(grid, axes, text):
    pytest.importorskip("matplotlib")
    found = find(results.load("cifar10c-accuracy")["data"], f"cifar10c_{grid}", **axes)
    assert text.format(picture()["mean_of"]("accuracy", found)) in README


def test_the_table_of_learning_boards_is_that_of_the_results():
    script = runpy.run_path(str(ROOT / "lab" / "benchmarks" / "learner_on_board.py"))
    kept = json.loads((ROOT / "lab" / "results" / "learner-on-board.json").read_text())
    assert set(kept) <= set(script["CASES"])
    page = (ROOT / "lab" / "pages" / "preparation.md").read_text()
    assert f"```\n{script['table_of'](kept)}\n```" in page


def test_accuracies_by_cross_fitted_heads_are_those_of_the_results():
    data = results.load("fgvc-accuracy")["data"]
    runs = (
        *(("backprop", "mcutrain"), ("backprop", "mcutrain_cross_fit")),
        *(("late_layers", "default"), ("late_layers", "default_cross_fit")),
    )
    found = [find(data, f"fgvc_{grid}_cars", method=method).runs for grid, method in runs]
    text = (
        "raise it from {:.0f} to {:.0f} % on the 196 classes of Cars, and pmt's perturbed forwards "
        "from {:.0f} to {:.0f} %"
    )
    means = [100 * np.mean([one["after"]["test"]["accuracy"] for one in seeds]) for seeds in found]
    assert text.format(*means) in README


def test_the_memory_of_batches_is_that_of_the_profile():
    model = pmt.load("cifar10_mcunet")
    sizes = [
        profile_methods(model, method, layers=layers, batch=batch).profiles[0].memory.sram / 1024
        for method, layers, batch in (
            ("default", "B2,head", 25),
            ("released", "B2", 100),
            ("paper", "B2,head", 100),
        )
    ]
    assert "{:.0f} KB for pmt, {:.0f} and {:.0f} KB for the paper's method".format(*sizes) in README


def test_corruptions_that_stay_below_are_those_of_the_results():
    rows = stored("cifar10c-accuracy").rows
    below = {
        title: [
            row.what.removeprefix(f"{title}: ")
            for row in rows
            if row.what.startswith(f"{title}: ") and row.verdict == "not reproduced"
        ]
        for title in ("released settings", BOTH_CHANGES)
    }
    assert below == {
        "released settings": ["gaussian_noise", "shot_noise", "speckle_noise"],
        BOTH_CHANGES: ["gaussian_noise"],
    }
    assert "Three of the twelve stay lower: Gaussian noise (55 %," in README
    assert "unless with both, shot noise (59 %, of 66) and speckle noise (63 %," in README


@pytest.mark.parametrize("epochs", [5, 50])
def test_the_table_of_switches_is_that_of_the_kept_runs(epochs):
    kept = json.loads((LAB.parent / "results" / "released-settings.json").read_text())
    lines = [" ".join(line.split()) for line in (LAB / "released.md").read_text().splitlines()]
    runs: dict[str, list[Any]] = {}
    for run in kept:
        if run["epochs"] == epochs:
            runs.setdefault(run["setting"], []).append(run)
    for setting, seeds in runs.items():
        last = [run["test"][-1] for run in seeds]
        chosen = [run["test"][int(np.argmax(run["held_out"]))] for run in seeds]
        low, high = wilson_of_share(float(np.mean(last)), 900)
        by_seed = ", ".join(f"{100 * share:.1f}" for share in last)
        assert (
            f"{setting} {seeds[0]['forwards'] / 1e6:.1f} {100 * np.mean(last):.1f} "
            f"{100 * low:.1f}..{100 * high:.1f} {by_seed} {100 * np.mean(chosen):.1f}"
        ) in lines


def test_the_published_accuracy_is_the_papers():
    paper = published("cifar10c-accuracy")
    assert f"whose published accuracy is {np.mean(paper['bp_free']):.0f} %" in README


def test_the_picture_is_drawn_from_the_results(tmp_path):
    pytest.importorskip("matplotlib")
    ax = picture()["draw"](results.load("cifar10c-accuracy")["data"])
    texts = [text.get_text() for text in ax.texts]
    assert texts[0] == "no adaptation"
    assert texts[-1] == "the paper's method, as\npublished (209 KB for block 3)"
    assert "pmt: preparation on the host,\nthen block 2 on the device: 124 KB" in texts
    assert "preparation on\nthe host alone" in texts
    ax.figure.clear()


def test_the_demo_prints_what_readme_says(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    assert main(["demo"]) == 0
    printed = capsys.readouterr().out
    before, after = re.search(r"^fog accuracy +(.*)% +(.*)%$", printed, re.MULTILINE).groups()
    found = re.findall(r"([+-]\d+\.\d) by", printed)
    head, forwards, refit = (figure.removeprefix("+") for figure in found)
    alone = re.search(r"exact head on all images: (.*)%", printed)[1]
    for text in (
        f"to fog, from {before} to {after} %",
        f"{head} points by the exact head, {forwards} by perturbed forwards, {refit} by the head",
        f"The exact head alone, on all images, ends at {alone} %",
    ):
        assert text in README
