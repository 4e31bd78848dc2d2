"""README's picture, from the versioned results: accuracy over multiply-accumulates, with memory.

    python scripts/readme_picture.py docs/accuracy_and_memory.png

The area of a circle is the memory of training with one image at a time, as `pmt profile` counts it.
Accuracies are means of the paper's twelve corruptions, which weigh alike. Methods of which a
corruption has not been run yet are left out.
"""

import argparse
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

import pmt
from pmt._util.plots import COLORS, FAINT, SMALL, new_axes
from pmt.plots import save_plot
from pmt_lab.reproduce import results
from pmt_lab.reproduce.costs import kilobytes, training_costs
from pmt_lab.reproduce.runs import Found, find
from pmt_lab.reproduce.study import published

# The paper's 2e7 perturbed forwards of block 2.
PAPER_MACS = 2.4e14
# Square points of a circle for a KB of memory.
AREA = 0.6
# Look of all marks.
MARK = {"alpha": 0.55, "edgecolor": "black", "linewidth": 0.6}


@dataclass(frozen=True)
class Method:
    """A mark: its label, where its runs are, whose memory it takes, and where the label is.

    Without ``trained`` it is a diamond: it needs a host, whose memory is not that of a device.
    ``up`` and ``right`` are points from the mark's center, to the ``side`` of the label.
    """

    label: str
    grid: str
    name: str
    trained: tuple[str, str] | None
    color: str
    up: float
    right: float = 0
    side: str = "center"
    preparation: str = "none"


OURS = ("default", "B2,head")
METHODS = (
    Method(
        "back-propagation, all layers, float32: ",
        "cifar10c_backprop",
        "bp_fp32",
        ("bp_fp32", "all"),
        "orange",
        up=44,
        right=58,
        side="left",
    ),
    Method(
        "back-propagation, all layers, int8: ",
        "cifar10c_backprop",
        "bp_int8",
        ("bp_int8", "all"),
        "purple",
        up=22,
        right=58,
        side="left",
    ),
    Method(
        "back-propagation,\nchosen channels\n(MCUTrain): ",
        "cifar10c_backprop",
        "mcutrain",
        ("mcutrain", ""),
        "yellow",
        up=-34,
        right=-30,
        side="right",
    ),
    Method(
        "the paper's method as\nprinted, run here: ",
        "cifar10c_paper",
        "paper",
        ("paper", "B2,head"),
        "vermilion",
        up=-36,
    ),
    Method(
        "its authors' released\nsettings, run here: ",
        "cifar10c_released",
        "released",
        ("released", "B2"),
        "vermilion",
        up=-22,
        right=22,
        side="left",
    ),
    Method("pmt, block 2,\nunprepared: ", "cifar10c_default", "default", OURS, "green", up=-22),
    Method(
        "unprepared,\nten times the work: ",
        "cifar10c_default_tenfold",
        "default",
        OURS,
        "green",
        up=-22,
    ),
    Method(
        "preparation on\nthe host alone",
        "cifar10c_filters",
        "preparation_only",
        None,
        "sky",
        up=0,
        right=-16,
        side="right",
        preparation="input+align+head",
    ),
    Method(
        "pmt: preparation on the host,\nthen block 2 on the device: ",
        "cifar10c_filters",
        "default",
        OURS,
        "blue",
        up=46,
        right=-30,
        side="right",
        preparation="input+align+head",
    ),
)


def main() -> None:
    """Write the picture."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("path")
    save_plot(draw(results.load("cifar10c-accuracy")["data"]), parser.parse_args().path, dpi=110)


def draw(data: Mapping[str, Any]) -> Any:
    """Draw a mark for each method that has run, the start, and the paper's figure."""
    ax = new_axes(7.5, 4.4)
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
    text = f"the paper's method, as\npublished ({size} KB for block 3)"
    label(ax, text, (PAPER_MACS, theirs), 10)
    ax.set_xscale("log")
    ax.set_xlim(2e10, 6e15)
    ax.set_ylim(45, 95)
    ax.set_xlabel("multiply-accumulates of training (MACs)")
    ax.set_ylabel("test accuracy (%)")
    title = "MCUNet on twelve corruptions of CIFAR-10, severity 5"
    ax.set_title(f"{title}; area of a circle: memory with one image", fontsize="medium")
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


def memory(model: pmt.Model, method: Method) -> float | None:
    """Return the memory of training with one image at a time, in KB; None of a host's."""
    if method.trained is None:
        return None
    costs = training_costs(model, {method.name: method.trained}, queries=8)
    return kilobytes(costs["methods"][method.name]["bytes"])


def draw_method(ax: Any, method: Method, macs: float, accuracy: float, size: float | None) -> None:
    """Draw a method's circle with its name and memory, or a diamond with its name."""
    style = {**MARK, "color": COLORS[method.color]}
    if size is None:
        ax.scatter([macs], [accuracy], s=45, marker="D", **style)
    else:
        ax.scatter([macs], [accuracy], s=AREA * size, **style)
    text = method.label if size is None else f"{method.label}{size:,.0f} KB"
    right, side = method.right, method.side
    label(ax, text, (macs, accuracy), method.up, right=right, ha=side, va="center")


def label(
    ax: Any, text: str, place: tuple[float, float], up: float, *, right: float = 0, **options: Any
) -> None:
    """Write beside a point, at an offset in points, with a line to it."""
    line = {"arrowstyle": "-", "color": FAINT, "linewidth": 0.8, "shrinkA": 0, "shrinkB": 0}
    arrow = {"arrowprops": line} if right else {}
    options = {"ha": "center", "textcoords": "offset points", "fontsize": SMALL, **options}
    ax.annotate(text, place, (right, up), **arrow, **options)


if __name__ == "__main__":
    main()
