"""README's figures and picture come from the versioned results."""

from __future__ import annotations

import runpy
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from pmt.research.reproduce import results
from pmt.research.reproduce.published import published
from pmt.research.reproduce.run_rows import find

ROOT = Path(__file__).parents[2]
README = " ".join((ROOT / "README.md").read_text().split())


def picture() -> dict[str, Any]:
    return runpy.run_path(str(ROOT / "scripts" / "readme_picture.py"))


@pytest.mark.parametrize(
    ("axes", "text"),
    [
        ({"method": "no_adaptation"}, "{:.0f} % as it comes"),
        (
            {"method": "default", "preparation": "align+head"},
            "{:.0f} % after alignment, exact head",
        ),
        ({"method": "default", "preparation": "none"}, "{:.0f} % by perturbed forwards alone"),
    ],
)
def test_accuracies_are_those_of_the_results(axes: dict[str, str], text: str) -> None:
    pytest.importorskip("matplotlib")
    data = results.load("cifar10c-accuracy")["data"]
    found = find(data, "cifar10c_default", **axes)
    assert text.format(picture()["mean_of"]("accuracy", found)) in README


def test_the_published_accuracy_is_the_papers() -> None:
    mean = np.mean(published("cifar10c-accuracy")["bp_free"])
    assert f"published {mean:.0f} %" in README


def test_the_picture_is_drawn_from_the_results(tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    ax = picture()["draw"](results.load("cifar10c-accuracy")["data"])
    texts = [text.get_text() for text in ax.texts]
    assert texts[0] == "no adaptation"
    assert texts[-1] == "the paper's method,\nas published: 209 KB"
    assert "pmt\n124 KB" in texts
    ax.figure.clear()
