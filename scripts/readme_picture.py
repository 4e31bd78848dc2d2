"""README's picture, from the versioned results: accuracy over multiply-accumulates, with memory.

    python scripts/readme_picture.py docs/accuracy_and_memory.png

The area of a circle is the memory of training with one image at a time, as `pmt profile` counts it.
Methods without a finished run are left out.
"""

from __future__ import annotations

import argparse
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import pmt
from pmt._util.plot_file import save_plot
from pmt._util.plot_style import COLORS, FAINT, SMALL, new_axes
from pmt.research.reproduce import results
from pmt.research.reproduce.published import published
from pmt.research.reproduce.run_rows import find
from pmt.research.reproduce.training_costs import kilobytes, training_costs

CORRUPTION = "gaussian_noise"
# Square points of a circle for a KB of memory.
AREA = 0.6


@dataclass(frozen=True)
class Method:
    """A circle: its label, where its runs are, and whose memory it takes."""

    label: str
    grid: str
    name: str
    preparation: str
    trained: tuple[str, str]
    color: str


OURS = ("default", "B2,head")
METHODS = (
    Method(
        "back-propagation, float32",
        "cifar10c_backprop",
        "bp_fp32",
        "none",
        ("bp_fp32", "all"),
        "orange",
    ),
    Method(
        "back-propagation, int8",
        "cifar10c_backprop",
        "bp_int8",
        "none",
        ("bp_int8", "all"),
        "purple",
    ),
    Method("MCUTrain", "cifar10c_backprop", "mcutrain", "none", ("mcutrain", ""), "sky"),
    Method("paper's method", "cifar10c_paper", "paper", "none", ("paper", "B2,head"), "vermilion"),
    Method("pmt, no preparation", "cifar10c_default", "default", "none", OURS, "green"),
    Method(
        "pmt, alignment and exact head alone",
        "cifar10c_default",
        "preparation_only",
        "align+head",
        OURS,
        "sky",
    ),
    Method("pmt", "cifar10c_default", "default", "align+head", OURS, "blue"),
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
    before = find(data, "cifar10c_default", method="no_adaptation", corruption=CORRUPTION)
    ax.axhline(before.accuracy()[0], color=FAINT, linestyle=":", linewidth=1)
    ax.annotate(
        "no adaptation",
        (1, before.accuracy()[0]),
        (-4, 4),
        xycoords=("axes fraction", "data"),
        textcoords="offset points",
        ha="right",
        fontsize=SMALL,
    )
    for method in METHODS:
        found = find(
            data,
            method.grid,
            method=method.name,
            preparation=method.preparation,
            corruption=CORRUPTION,
        )
        if found.runs:
            draw_method(ax, method, found, memory(model, method))
    macs = 2.4e14
    paper = published("cifar10c-accuracy")
    theirs = paper["bp_free"][paper["corruptions"].index(CORRUPTION)]
    ax.plot([macs], [theirs], "x", color=COLORS["vermilion"])
    ax.annotate(
        "published", (macs, theirs), (0, 7), textcoords="offset points", ha="center", fontsize=SMALL
    )
    ax.set_xscale("log")
    ax.set_xlim(3e10, 6e14)
    ax.set_ylim(0, 90)
    ax.set_xlabel("multiply-accumulates of training")
    ax.set_ylabel("accuracy on 1,000 test images (%)")
    ax.set_title(
        "MCUNet under Gaussian noise of severity 5; circles: memory of training", fontsize="medium"
    )
    return ax


def memory(model: pmt.Model, method: Method) -> float:
    """Return the memory of training with one image at a time, in KB."""
    costs = training_costs(model, {method.label: method.trained}, queries=8)
    return kilobytes(costs["methods"][method.label]["bytes"])


def draw_method(ax: Any, method: Method, found: Any, size: float) -> None:
    """Draw a method's mean over its seeds."""
    accuracy, (low, high) = found.accuracy()
    macs = sum(run["macs"] for run in found.runs) / len(found.runs)
    color = COLORS[method.color]
    ax.scatter(
        [macs], [accuracy], s=AREA * size, color=color, alpha=0.55, edgecolor="black", linewidth=0.6
    )
    ax.errorbar(
        [macs],
        [accuracy],
        [[accuracy - low], [high - accuracy]],
        color="black",
        capsize=2,
        linewidth=0.8,
    )
    ax.annotate(
        f"{method.label}\n{size:,.0f} KB",
        (macs, accuracy),
        (0, -26),
        textcoords="offset points",
        ha="center",
        fontsize=SMALL,
    )


if __name__ == "__main__":
    main()
