"""Quality of gradient estimates: cosines with the exact gradient, by layer."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from pmt_lab.plots.style import axes_of, line_style
from pmt_lab.studies.gradient_quality import GradientStudy, Quality

if TYPE_CHECKING:
    from matplotlib.axes import Axes


def plot_cosines(
    study: GradientStudy, *, queries: int | None = None, ax: Axes | Sequence[Axes] | None = None
) -> npt.NDArray[np.object_]:
    """Draw dimensions (top) and cosines with the exact gradient (bottom) by layer.

    The paper's figure of cosine similarity. Lines are measured, with one standard error; crosses
    are what theory expects without rounding.

    Parameters
    ----------
    study : GradientStudy
        See :func:`pmt_lab.studies.gradient_quality.study_gradients`.
    queries : int, optional
        Number of queries to show; by default the most that were measured.
    ax : matplotlib.axes.Axes or sequence of two, optional
        Axes to draw on, a single one for the cosines alone; two of a new figure by default.

    Returns
    -------
    ndarray of matplotlib.axes.Axes, shape (2,) or (1,)
        The axes of dimensions, where they are drawn, and of cosines.
    """
    counts = sorted({row.queries for row in study.rows})
    chosen = counts[-1] if queries is None else queries
    if chosen not in counts:
        known = ", ".join(map(str, counts))
        raise ValueError(f"queries={chosen}: the study has estimates of {known} queries")
    alone = ax is not None and np.size(np.asarray(ax, object)) == 1
    axes = axes_of(
        ax, 1 if alone else 2, 9, 3, across=1, sharex=True, height_ratios=None if alone else (1, 2)
    )
    names = _estimators(study.rows)
    first = study.of(names[0], chosen)
    if not alone:
        draw_dimensions(axes[0], [row.weights for row in first], [row.nodes for row in first])
        axes[0].legend(fontsize="small")
    below = axes[-1]
    rows = {name: study.of(name, chosen) for name in names}
    cosines = {name: [(row.cosine, row.cosine_error) for row in own] for name, own in rows.items()}
    draw_cosines(below, [row.layer for row in first], cosines)
    for place, own in enumerate(rows.values()):
        expected = [row.expected_cosine for row in own]
        below.plot(range(len(own)), expected, "x", color=line_style(place)["color"])
    below.tick_params("x", rotation=60)
    below.legend(fontsize="small")
    if ax is None:
        title = f"{chosen} queries, {study.images} images; crosses: theory without rounding"
        axes[0].figure.suptitle(title)
    return axes


def draw_dimensions(ax: Axes, weights: Sequence[int], nodes: Sequence[int]) -> None:
    """Draw the numbers of weights and nodes of each layer."""
    ax.semilogy(range(len(weights)), weights, label="weights", **line_style(5))
    ax.semilogy(range(len(nodes)), nodes, label="nodes", **line_style(6))
    ax.set_ylabel("dimension")


def draw_cosines(
    ax: Axes, layers: Sequence[str], cosines: Mapping[str, Sequence[tuple[float, float]]]
) -> None:
    """Draw the cosines of estimators by layer, each with its standard error."""
    places = range(len(layers))
    for number, (label, pairs) in enumerate(cosines.items()):
        values, errors = zip(*pairs, strict=True)
        ax.errorbar(places, values, errors, label=label, capsize=2, **line_style(number))
    ax.axhline(0, color="black", linewidth=0.5)
    ax.set_xticks(places, layers)
    ax.set_ylabel("cosine with the exact gradient")


def _estimators(rows: Sequence[Quality]) -> list[str]:
    return list(dict.fromkeys(row.estimator for row in rows))
