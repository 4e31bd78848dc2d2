"""Quality of gradient estimates: cosines by layer, and errors over the number of queries."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from pmt._util.plot_style import SMALL, line_style, one_axes, panels
from pmt.research.studies.gradient_quality import GradientStudy, Quality

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["plot_cosines", "plot_errors"]

_PANELS_ACROSS = 4
_LEAST_ERROR = 1e-12  # of a closed form; a logarithm needs one


def plot_cosines(
    study: GradientStudy, *, queries: int | None = None, ax: Axes | Sequence[Axes] | None = None
) -> npt.NDArray[np.object_]:
    """Draw dimensions (top) and cosines with the exact gradient (bottom) by layer.

    The paper's figure of cosine similarity. Lines are measured, with one standard error; crosses
    are what theory expects without rounding.

    Parameters
    ----------
    study : GradientStudy
        See :func:`pmt.research.studies.gradient_quality.study_gradients`.
    queries : int, optional
        Number of queries to show; by default the most that were measured.
    ax : matplotlib.axes.Axes or sequence of two, optional
        Axes to draw on, a single one for the cosines alone; two of a new figure by default.

    Returns
    -------
    ndarray of matplotlib.axes.Axes, shape (2,) or (1,)
        The axes of dimensions, where they are drawn, and of cosines.

    Raises
    ------
    ImportError
        If matplotlib is missing.
    ValueError
        If ``ax`` is not one or two, or no estimate has so many queries.
    """
    counts = sorted({row.queries for row in study.rows})
    chosen = counts[-1] if queries is None else queries
    if chosen not in counts:
        known = ", ".join(map(str, counts))
        raise ValueError(f"queries={chosen}: the study has estimates of {known} queries")
    if ax is None or isinstance(ax, Sequence | np.ndarray):
        axes = panels(ax, 2, 1, (9, 6), sharex=True, height_ratios=(1, 2)).ravel()
    else:
        axes = np.array([one_axes(ax, 0, 0)], object)
    names = _estimators(study.rows)
    if len(axes) == 2:
        _draw_dimensions(axes[0], study.of(names[0], chosen))
    below = axes[-1]
    for k, name in enumerate(names):
        _draw_cosines(below, study.of(name, chosen), k, name)
    below.axhline(0, color="black", linewidth=0.5)
    below.set_ylabel("cosine with the exact gradient")
    below.tick_params("x", rotation=60)
    below.legend(fontsize=SMALL)
    if ax is None:
        title = f"{chosen} queries, {study.images} images; crosses: theory without rounding"
        axes[0].figure.suptitle(title)
    return axes


def _draw_dimensions(ax: Any, rows: Sequence[Quality]) -> None:
    layers = [row.layer for row in rows]
    ax.semilogy(layers, [row.weights for row in rows], label="weights", **line_style(5))
    ax.semilogy(layers, [row.nodes for row in rows], label="nodes", **line_style(6))
    ax.set_ylabel("dimension")
    ax.legend(fontsize=SMALL)


def _draw_cosines(ax: Any, rows: Sequence[Quality], place: int, name: str) -> None:
    layers = [row.layer for row in rows]
    style = line_style(place)
    spread = [row.cosine_error for row in rows]
    ax.errorbar(layers, [row.cosine for row in rows], spread, label=name, capsize=2, **style)
    expected = [row.expected_cosine for row in rows]
    ax.plot(layers, expected, linestyle="none", marker="x", color=style["color"])


def plot_errors(
    study: GradientStudy, *, ax: Sequence[Axes] | None = None
) -> npt.NDArray[np.object_]:
    """Draw each layer's relative squared error over the queries, with theory's lines (thin).

    Parameters
    ----------
    study : GradientStudy
        See :func:`pmt.research.studies.gradient_quality.study_gradients`.
    ax : sequence of matplotlib.axes.Axes, optional
        As many axes as the study has layers; those of a new figure by default.

    Returns
    -------
    ndarray of matplotlib.axes.Axes, shape (layers,)
        The axes of the layers.

    Raises
    ------
    ImportError
        If matplotlib is missing.
    ValueError
        If ``ax`` is of another number.
    """
    layers = list(dict.fromkeys(row.layer for row in study.rows))
    across = min(_PANELS_ACROSS, len(layers))
    down = -(-len(layers) // across)
    if ax is not None:
        axes = panels(ax, 1, len(layers), (0, 0)).ravel()
    else:
        made = panels(None, down, across, (3 * across, 2.6 * down)).ravel()
        axes, spare = made[: len(layers)], made[len(layers) :]
        for each in spare:
            each.remove()
    for each, layer in zip(axes, layers, strict=True):
        _draw_layer(each, [row for row in study.rows if row.layer == layer])
        each.set_title(layer, fontsize=SMALL)
    if ax is None:
        figure = axes[0].figure
        handles, names = axes[0].get_legend_handles_labels()
        figure.legend(handles, names, loc="outside upper center", ncols=3, fontsize=SMALL)
        figure.supxlabel("queries; thin lines: theory")
        figure.supylabel("relative squared error")
    return axes


def _draw_layer(ax: Any, rows: Sequence[Quality]) -> None:
    for k, name in enumerate(_estimators(rows)):
        own = sorted((row for row in rows if row.estimator == name), key=lambda row: row.queries)
        queries = [row.queries for row in own]
        errors = [max(row.squared_error, _LEAST_ERROR) for row in own]
        style = line_style(k)
        ax.loglog(queries, errors, label=name, **style)
        expected = [row.expected_squared_error for row in own]
        if min(expected) > 0:
            ax.loglog(queries, expected, color=style["color"], linewidth=0.7)
    counts = sorted({row.queries for row in rows})
    ax.set_xticks(counts, [str(count) for count in counts])
    ax.set_xticks([], minor=True)


def _estimators(rows: Sequence[Quality]) -> list[str]:
    return list(dict.fromkeys(row.estimator for row in rows))
