"""The look of the lab's plots: a style sheet of matplotlib, and axes that have it."""

import importlib
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

_SHEET = Path(__file__).with_name("lab.mplstyle")


def pyplot() -> Any:
    """Return matplotlib.pyplot; an ImportError tells how to get it."""
    try:
        return importlib.import_module("matplotlib.pyplot")
    except ImportError as error:
        raise ImportError('plots need matplotlib: pip install "./lab[plot]"') from error


def line_style(place: int) -> dict[str, Any]:
    """Return color, dashes, marker and its filling of the line at a place; 28 differ."""
    sheet = pyplot().matplotlib.rc_params_from_file(_SHEET, use_default_template=False)
    cycle = list(sheet["axes.prop_cycle"])
    sizes = {name: sheet[f"lines.{name}"] for name in ("markersize", "linewidth")}
    return {**cycle[place % len(cycle)], **sizes}


def axes_of(
    ax: Any, count: int, width: float, height: float, across: int = 4, **options: Any
) -> npt.NDArray[np.object_]:
    """Return ``count`` axes: the user's, or those of a new figure, in rows of ``across``.

    Each new one is ``width`` times ``height`` inches; options are those of
    ``matplotlib.pyplot.subplots``. A ValueError says that the user's are of another number.
    """
    if ax is not None:
        given = np.ravel(np.asarray(ax, object))
        if len(given) != count or not all(hasattr(one, "plot") for one in given):
            raise ValueError(f"ax must be {count} of matplotlib's Axes, or None for new ones")
        return given
    across = min(across, count)
    down = -(-count // across)
    # Not in a context of the sheet: its end would undo what a notebook's backend sets as it starts.
    size, layout = (width * across, height * down), {"layout": "constrained", "squeeze": False}
    made = pyplot().subplots(down, across, figsize=size, **layout, **options)[1].ravel()
    for spare in made[count:]:
        spare.remove()
    return np.asarray(made[:count], object)


def plain_text(text: str) -> str:
    """Return a name as matplotlib shows it literally.

    A dollar would begin a formula, and a legend leaves out what begins with an underscore.
    """
    shown = text.replace("$", r"\$")
    return f" {shown}" if shown.startswith("_") else shown
