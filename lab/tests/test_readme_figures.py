"""README's numbers and picture come from the versioned results."""

import re
import runpy
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from pmt.cli import main
from pmt_lab.reproduce import results
from pmt_lab.reproduce.runs import find
from pmt_lab.reproduce.study import published

ROOT = Path(__file__).parents[2]
README = " ".join((ROOT / "README.md").read_text().split())


def picture() -> dict[str, Any]:
    return runpy.run_path(str(ROOT / "lab" / "scripts" / "readme_picture.py"))


@pytest.mark.parametrize(
    ("grid", "axes", "text"),
    [
        ("default", {"method": "no_adaptation"}, "MCUNet has a mean accuracy of {:.0f} %"),
        (
            "default",
            {"method": "default", "preparation": "align+head"},
            "`pmt` raises it to {:.0f} %",
        ),
        (
            "default",
            {"method": "default", "preparation": "none"},
            "Without these two it reaches {:.0f} %",
        ),
        (
            "default_tenfold",
            {"method": "default", "preparation": "none"},
            "and with ten times the work {:.0f} %",
        ),
        ("backprop", {"method": "mcutrain"}, "sparse back-propagation (MCUTrain) {:.0f} %"),
        ("backprop", {"method": "bp_fp32"}, "all layers {:.0f} % in float32"),
        ("backprop", {"method": "bp_int8"}, "{:.0f} % in int8"),
        ("paper", {"method": "paper"}, "it has {:.0f} % with all of its forwards"),
    ],
)
def test_accuracies_are_those_of_the_results(grid, axes, text):
    pytest.importorskip("matplotlib")
    found = find(results.load("cifar10c-accuracy")["data"], f"cifar10c_{grid}", **axes)
    assert text.format(picture()["mean_of"]("accuracy", found)) in README


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
    assert "preparation on the host alone" in texts
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
