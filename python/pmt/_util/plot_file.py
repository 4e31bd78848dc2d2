"""Plots as files: the same plot gives the same bytes."""

from __future__ import annotations

import io
from pathlib import Path
from typing import Any

import numpy as np

from pmt._util import atomic_file
from pmt._util.extras import import_extra, load_pyplot

__all__ = ["plot_suffix", "save_plot"]

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
    suffix = plot_suffix(path)
    figure = np.ravel(np.asarray(axes, object))[0].figure
    while getattr(figure, "figure", figure) is not figure:  # a subfigure's
        figure = figure.figure
    matplotlib = import_extra("matplotlib", "plots need matplotlib", "plot")
    buffer = io.BytesIO()
    with matplotlib.rc_context({"svg.hashsalt": "pmt"}):
        figure.savefig(buffer, format=suffix[1:], dpi=dpi, metadata=_METADATA.get(suffix))
    load_pyplot().close(figure)
    atomic_file.write_bytes(Path(path), buffer.getvalue())
