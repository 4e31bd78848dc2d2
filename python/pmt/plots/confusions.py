"""Two confusion matrices side by side."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from pmt._util.checks import check_type, checked_names
from pmt._util.optional_types import Axes
from pmt._util.plots import panels, plain_text
from pmt.model import Confusion


def plot_confusions(
    before: Confusion,
    after: Confusion,
    *,
    names: tuple[str, str] = ("before", "after"),
    ax: Sequence[Axes] | None = None,
) -> npt.NDArray[np.object_]:
    """Draw the confusion matrices of two models, with the accuracy of each.

    Parameters
    ----------
    before, after : Confusion
        Two matrices of the same classes, for instance of a model before and after training.
    names : tuple of two str
        Names of the two.
    ax : sequence of matplotlib.axes.Axes, optional
        Two axes to draw on; those of a new figure by default.

    Returns
    -------
    ndarray of matplotlib.axes.Axes, shape (2,)
        The axes.

    Raises
    ------
    ImportError
        If matplotlib is missing.
    ValueError
        If the classes differ, or ``ax`` is not two.
    """
    for argument, value in (("before", before), ("after", after)):
        check_type(argument, value, Confusion, "a pmt.Confusion; model.confusion(data) returns one")
    if len(checked_names("names", names)) != 2:
        raise ValueError(f"names={names!r} must be two, of before and after")
    if before.class_names != after.class_names:
        raise ValueError(
            f"before has the classes {', '.join(before.class_names)} and after "
            f"{', '.join(after.class_names)}: compare models on the same data"
        )
    side = before.plot_inches
    axes = panels(ax, 1, 2, (2 * side, side + 0.3)).ravel()
    for each, name, confusion in zip(axes, names, (before, after), strict=True):
        confusion.plot(each)
        each.set_title(f"{plain_text(name)}: accuracy {confusion.accuracy:.3f}")
    if ax is None:
        axes[1].set_ylabel("")
    return axes
