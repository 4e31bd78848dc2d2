"""Plots that are compared with stored pictures, pixel by pixel."""

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from pmt._util.plots import save_plot

STORED = Path(__file__).parents[1] / "golden" / "plots"
# Their matplotlib: another series sets text otherwise, which moves all that is laid out around it.
SERIES = "3.11"
# Root mean square over all pixels and channels, 0..255. One wheel draws the same bytes again, and
# another processor may round an edge otherwise. A missing tick label makes 1.9 or more.
TOLERANCE = 1.0
DOTS_PER_INCH = 45


def check_picture(draw: Callable[[], Any], name: str, folder: Path, goldens: Path = STORED) -> None:
    """Compare what ``draw`` returns with tests/golden/plots, in matplotlib's own style and fonts.

    PMT_UPDATE_GOLDEN=1 writes the picture instead.
    """
    matplotlib = pytest.importorskip("matplotlib")
    matplotlib.use("Agg")
    if not matplotlib.__version__.startswith(SERIES):
        pytest.skip(f"the pictures are drawn by matplotlib {SERIES}, here is another")
    from matplotlib import style
    from matplotlib.testing.compare import compare_images

    drawn = folder / f"{name}.png"
    with style.context({"font.family": "DejaVu Sans"}, after_reset=True):
        save_plot(draw(), drawn, dpi=DOTS_PER_INCH)
    stored = goldens / f"{name}.png"
    if os.environ.get("PMT_UPDATE_GOLDEN") == "1":
        stored.write_bytes(drawn.read_bytes())
    assert stored.stat().st_size < 30_000
    difference = compare_images(str(stored), str(drawn), TOLERANCE)
    assert difference is None, difference
