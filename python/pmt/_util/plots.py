"""How plots look and are kept.

A color-blind palette, with dashes and markers for gray prints; the same plot gives the same bytes
of a file.
"""

import io
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from pmt._util import atomic_file
from pmt._util.checks import checked_array, checked_path
from pmt._util.extras import import_extra, load_pyplot
from pmt._util.text import printable

# Okabe and Ito's palette.
COLORS = {
    "blue": "#0072B2",
    "vermilion": "#D55E00",
    "green": "#009E73",
    "orange": "#E69F00",
    "purple": "#CC79A7",
    "sky": "#56B4E9",
    "black": "#000000",
    "yellow": "#F0E442",
}
FAINT = "0.6"
# Relative to the user's font.
SMALL = "small"

# Yellow is too light for a line.
_LINE_COLORS = tuple(color for name, color in COLORS.items() if name != "yellow")
_DASHES = ("-", (0, (5, 2)), (0, (1, 1.5)), (0, (5, 2, 1, 2)))
_MARKERS = ("o", "s", "^", "D", "v", "P", "X")
_FILLINGS = ("full", "none", "left", "bottom")
_BAR_COLORS = tuple(color for name, color in COLORS.items() if name != "black")
_HATCHES = ("", "///", "...", "xxx")
# Right end of axes with bars, as a multiple of the longest one.
_ROOM = 1.05


def line_style(place: int) -> dict[str, Any]:
    """Return color, dashes, marker and its filling of the line at a place; 28 differ."""
    color, turn = place % len(_LINE_COLORS), place // len(_LINE_COLORS)
    dash = (color + turn) % len(_DASHES)
    return {
        "color": _LINE_COLORS[color],
        "linestyle": _DASHES[dash],
        "marker": _MARKERS[color],
        "fillstyle": _FILLINGS[turn % len(_FILLINGS)],
        "markersize": 4,
        "linewidth": 1.4,
    }


def bar_style(place: int) -> dict[str, Any]:
    """Return color and hatch of the bars at a place; 28 differ."""
    color = place % len(_BAR_COLORS)
    hatch = (color + place // len(_BAR_COLORS)) % len(_HATCHES)
    return {
        "facecolor": _BAR_COLORS[color],
        "hatch": _HATCHES[hatch],
        "edgecolor": "black",
        "linewidth": 0.5,
    }


def plain_text(text: str) -> str:
    """Return a user's text as matplotlib shows it literally.

    A dollar would begin a formula, and a legend leaves out what begins with an underscore.
    """
    shown = printable(text).replace("$", r"\$")
    return f" {shown}" if shown.startswith("_") else shown


def new_axes(width: float, height: float) -> Any:
    """Return the axes of a new figure of a size in inches."""
    return load_pyplot().subplots(figsize=(width, height), layout="constrained")[1]


def one_axes(ax: Any, width: float, height: float) -> Any:
    """Return the user's axes, or, for None, those of a new figure of a size in inches."""
    if ax is None:
        return new_axes(width, height)
    _check_axes(ax)
    return ax


def _check_axes(ax: object, argument: str = "ax") -> None:
    matplotlib = import_extra("matplotlib.axes", "plots need matplotlib", "plot")
    if not isinstance(ax, matplotlib.Axes):
        raise TypeError(
            f"{argument} is {type(ax).__name__}: must be one Axes of matplotlib; of several, give "
            "the one to draw on"
        )


def panels(
    ax: Sequence[Any] | None, rows: int, columns: int, size: tuple[float, float], **options: Any
) -> npt.NDArray[np.object_]:
    """Return ``rows`` times ``columns`` axes: the user's, or those of a new figure.

    ``size`` is the whole figure's in inches; options are those of ``matplotlib.pyplot.subplots``.
    """
    count = rows * columns
    if ax is not None:
        given = np.ravel(checked_array("ax", ax))
        if len(given) != count:
            raise ValueError(
                f"ax has {len(given)} axes and the plot {count} panels: give as many, or none"
            )
        for one in given:
            _check_axes(one)
        return given.reshape(rows, columns)
    pyplot = load_pyplot()
    _, made = pyplot.subplots(
        rows, columns, figsize=size, layout="constrained", squeeze=False, **options
    )
    return np.asarray(made, object)


def mark_sizes(ax: Any, sizes: Sequence[float]) -> None:
    """Mark sizes of memory in KB by dotted lines across horizontal bars, and name them above.

    The bars are there: the axes get some room to the right of the longest one and the last size.
    """
    above = {"xycoords": ax.get_xaxis_transform(), "textcoords": "offset points", "va": "bottom"}
    for size in sorted(sizes):
        ax.axvline(size, color="black", linewidth=0.8, linestyle="dotted")
        # Neighbors can be near: all names but the last one end at their line.
        side = "left" if size == max(sizes) else "right"
        ax.annotate(f"{size:,.0f} KB", (size, 1.0), (0, 2), ha=side, fontsize=SMALL, **above)
    ax.set_xlim(right=_ROOM * max([ax.dataLim.x1, *sizes]))


def add_legend(ax: Any, *, beside: bool, **options: Any) -> Any:
    """Add a legend: right of the axes, where the figure is ours, or within those of the user."""
    place = {"loc": "upper left", "bbox_to_anchor": (1.0, 1.0)} if beside else {"loc": "best"}
    return ax.legend(**{"fontsize": SMALL, "frameon": not beside, **place, **options})


_MOST_DPI = 2400
_SUFFIXES = (".png", ".svg", ".pdf")
# Neither date nor random names.
_METADATA: dict[str, dict[str, None]] = {".svg": {"Date": None}, ".pdf": {"CreationDate": None}}


def plot_suffix(path: str | Path, argument: str = "path =") -> str:
    """Return the suffix of a plot's file, or raise a ValueError that names the argument."""
    suffix = Path(path).suffix.lower()
    if suffix not in _SUFFIXES:
        raise ValueError(f"{argument} {path}: the suffix must be .png, .svg or .pdf")
    return suffix


def save_plot(axes: Any, path: str | Path, *, dpi: float = 120) -> None:
    """Write the figure of some axes to a file, and close it.

    Parameters
    ----------
    axes : matplotlib.axes.Axes or ndarray of Axes
        Axes that a plotting function returned.
    path : str or pathlib.Path
        File to write: ``.png``, ``.svg`` or ``.pdf``. It is whole or not there.
    dpi : float
        Pixels an inch of a PNG.

    Raises
    ------
    ValueError
        If the suffix is another.
    OSError
        If the file cannot be written.
    """
    suffix = plot_suffix(checked_path("path", path))
    number = isinstance(dpi, int | float | np.number) and not isinstance(dpi, bool)
    if not number or not 10 <= dpi <= _MOST_DPI:
        raise ValueError(f"dpi={dpi!r} must be a number of 10 to {_MOST_DPI}")
    first: Any = next(iter(axes.flat), None) if isinstance(axes, np.ndarray) else axes
    _check_axes(first, "axes")
    figure = first.figure
    while getattr(figure, "figure", figure) is not figure:  # a subfigure's
        figure = figure.figure
    matplotlib = import_extra("matplotlib", "plots need matplotlib", "plot")
    buffer = io.BytesIO()
    with matplotlib.rc_context({"svg.hashsalt": "pmt"}):
        figure.savefig(buffer, format=suffix[1:], dpi=dpi, metadata=_METADATA.get(suffix))
    load_pyplot().close(figure)
    atomic_file.write_bytes(Path(path), buffer.getvalue())
