"""README's picture, from the versioned results: accuracy over multiply-accumulates, with memory.

    python scripts/readme_picture.py docs/accuracy_and_memory.png

The area of a circle is the memory of training with one image at a time, as `pmt profile` counts it.
Accuracies are means of the paper's twelve corruptions, which weigh alike. Methods of which a
corruption has not been run yet are left out.
"""

from __future__ import annotations

import argparse
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

import pmt
from pmt._util.plot_file import save_plot
from pmt._util.plot_style import COLORS, FAINT, SMALL, new_axes
from pmt.research.reproduce import results
from pmt.research.reproduce.published import published
from pmt.research.reproduce.run_rows import Found, find
from pmt.research.reproduce.training_costs import kilobytes, training_costs

# The paper's 2e7 perturbed forwards of block 2.
PAPER_MACS = 2.4e14
# Square points of a circle for a KB of memory.
AREA = 0.6


@dataclass(frozen=True)
class Method:
    """A circle: its label, where its runs are, whose memory it takes, and where the label is.

    ``up`` and ``right`` are points from the circle's center, to the ``side`` of the label.
    """

    label: str
    grid: str
    name: str
    preparation: str
    trained: tuple[str, str]
    color: str
    up: float = 10
    right: float = 0
    side: str = "center"


OURS = ("default", "B2,head")
METHODS = (
    Method(
        "back-propagation, float32",
        "cifar10c_backprop",
        "bp_fp32",
        "none",
        ("bp_fp32", "all"),
        "orange",
        up=14,
        right=52,
        side="left",
    ),
    Method(
        "back-propagation, int8",
        "cifar10c_backprop",
        "bp_int8",
        "none",
        ("bp_int8", "all"),
        "purple",
        up=-22,
        right=52,
        side="left",
    ),
    Method(
        "MCUTrain",
        "cifar10c_backprop",
        "mcutrain",
        "none",
        ("mcutrain", ""),
        "yellow",
        up=-10,
        right=-10,
        side="right",
    ),
    Method(
        "the paper's method, run here",
        "cifar10c_paper",
        "paper",
        "none",
        ("paper", "B2,head"),
        "vermilion",
        up=-32,
    ),
    Method("pmt, unprepared", "cifar10c_default", "default", "none", OURS, "green", up=-32),
    Method(
        "pmt, preparation alone",
        "cifar10c_default",
        "preparation_only",
        "align+head",
        OURS,
        "sky",
    ),
    Method(
        "pmt",
        "cifar10c_default",
        "default",
        "align+head",
        OURS,
        "blue",
        up=8,
        right=-26,
        side="right",
    ),
)


def main() -> None:
    """Write the picture."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("path")
    save_plot(draw(results.load("cifar10c-accuracy")["data"]), parser.parse_args().path, dpi=110)


def draw(data: Mapping[str, Any]) -> Any:
    """Draw a circle for each method that has run, the start, and the paper's figure."""
    ax = new_axes(7.5, 4.2)
    model = pmt.load("cifar10_mcunet")
    before = mean_of("accuracy", find(data, "cifar10c_default", method="no_adaptation"))
    ax.axhline(before, color=FAINT, linestyle=":", linewidth=1)
    place = {"xycoords": ("axes fraction", "data"), "ha": "right"}
    label(ax, "no adaptation", (0.99, before), 4, **place)
    for method in METHODS:
        axes = {"method": method.name, "preparation": method.preparation}
        found = find(data, method.grid, **axes)
        accuracy = mean_of("accuracy", found)
        if accuracy is not None:
            draw_method(ax, method, mean_of("macs", found), accuracy, memory(model, method))
    theirs = float(np.mean(published("cifar10c-accuracy")["bp_free"]))
    ax.plot([PAPER_MACS], [theirs], "x", color=COLORS["vermilion"])
    size = published("sparse-cost")["bp_free_kb"]
    label(ax, f"the paper's method,\nas published: {size} KB", (PAPER_MACS, theirs), -28)
    ax.set_xscale("log")
    ax.set_xlim(2e10, 1e15)
    ax.set_ylim(45, 90)
    ax.set_xlabel("multiply-accumulates of training")
    ax.set_ylabel("test accuracy (%)")
    title = "MCUNet on twelve corruptions of CIFAR-10 test images, severity 5"
    ax.set_title(f"{title}; circles: memory of training", fontsize="medium")
    return ax


def mean_of(figure: str, found: Found) -> Any:
    """Return the mean over corruptions of that over seeds; None where a corruption is missing."""
    values: dict[str, list[float]] = {}
    for run in found.runs:
        value = run["macs"] if figure == "macs" else 100 * run["after"]["test"]["accuracy"]
        values.setdefault(run["axes"]["corruption"], []).append(value)
    if len(values) < len(published("cifar10c-accuracy")["corruptions"]):
        return None
    return float(np.mean([np.mean(one) for one in values.values()]))


def memory(model: pmt.Model, method: Method) -> float:
    """Return the memory of training with one image at a time, in KB."""
    costs = training_costs(model, {method.label: method.trained}, queries=8)
    return kilobytes(costs["methods"][method.label]["bytes"])


def draw_method(ax: Any, method: Method, macs: float, accuracy: float, size: float) -> None:
    """Draw a method's circle with its name and memory."""
    color = COLORS[method.color]
    style = {"alpha": 0.55, "edgecolor": "black", "linewidth": 0.6}
    ax.scatter([macs], [accuracy], s=AREA * size, color=color, **style)
    text = f"{method.label}\n{size:,.0f} KB"
    label(ax, text, (macs, accuracy), method.up, right=method.right, ha=method.side)


def label(
    ax: Any, text: str, place: tuple[float, float], up: float, *, right: float = 0, **options: Any
) -> None:
    """Write beside a point, so many points above and to the right of it."""
    options = {"ha": "center", "textcoords": "offset points", "fontsize": SMALL, **options}
    ax.annotate(text, place, (right, up), **options)


if __name__ == "__main__":
    main()
