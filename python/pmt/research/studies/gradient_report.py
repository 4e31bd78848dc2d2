"""A gradient study as files: a CSV of all rows and two plots."""

from __future__ import annotations

import csv
import io
from collections.abc import Sequence
from dataclasses import asdict, fields
from pathlib import Path
from typing import Any

from pmt._util import atomic_file
from pmt._util.extras import load_pyplot
from pmt.research.studies.gradient_quality import GradientStudy, Quality

__all__ = ["plot_by_layer", "plot_by_queries", "write_csv"]


def write_csv(study: GradientStudy, path: str | Path) -> None:
    """Write one line for each layer, estimator and number of queries; columns as Quality's."""
    text = io.StringIO()
    names = [field.name for field in fields(Quality)]
    writer = csv.DictWriter(text, names, lineterminator="\n")
    writer.writeheader()
    writer.writerows(asdict(row) for row in study.rows)
    atomic_file.write_text(path, text.getvalue())


def plot_by_layer(study: GradientStudy, path: str | Path) -> None:
    """Draw dimensions (top) and cosines (bottom) by layer, at the most queries that were measured.

    The paper's figure of cosine similarity. Lines are measured, crosses what theory expects.

    Raises
    ------
    ImportError
        If matplotlib is missing.
    """
    plt = load_pyplot()
    queries = max(row.queries for row in study.rows)
    figure, (sizes, cosines) = plt.subplots(
        2, 1, figsize=(9, 6), sharex=True, layout="constrained", height_ratios=(1, 2)
    )
    names = _estimators(study.rows)
    first = study.of(names[0], queries)
    layers = [row.layer for row in first]
    sizes.semilogy(layers, [row.weights for row in first], "o-", label="weights")
    sizes.semilogy(layers, [row.nodes for row in first], "s-", label="nodes")
    sizes.set_ylabel("dimension")
    sizes.legend()
    for k, name in enumerate(names):
        rows = study.of(name, queries)
        spread = [row.cosine_error for row in rows]
        cosines.errorbar(
            layers, [row.cosine for row in rows], spread, color=f"C{k}", marker="o", label=name
        )
        cosines.plot(layers, [row.expected_cosine for row in rows], "x", color=f"C{k}")
    cosines.axhline(0, color="black", linewidth=0.5)
    cosines.set_ylabel("cosine with the exact gradient")
    cosines.tick_params("x", rotation=60)
    cosines.legend(fontsize="small")
    figure.suptitle(f"{queries} queries, {study.images} images; crosses: theory without rounding")
    figure.savefig(path, dpi=120)
    plt.close(figure)


def plot_by_queries(study: GradientStudy, path: str | Path) -> None:
    """Draw each layer's relative squared error over the queries, with theory's lines (dashed).

    Raises
    ------
    ImportError
        If matplotlib is missing.
    """
    plt = load_pyplot()
    layers = list(dict.fromkeys(row.layer for row in study.rows))
    columns = min(4, len(layers))
    lines = -(-len(layers) // columns)
    figure, grid = plt.subplots(
        lines, columns, figsize=(3 * columns, 2.6 * lines), layout="constrained", squeeze=False
    )
    for ax in grid.ravel()[len(layers) :]:
        ax.set_axis_off()
    for ax, layer in zip(grid.ravel(), layers, strict=False):
        _draw_layer(ax, [row for row in study.rows if row.layer == layer])
        ax.set_title(layer, fontsize="small")
    handles, names = grid[0, 0].get_legend_handles_labels()
    figure.legend(handles, names, loc="outside upper center", ncols=3, fontsize="small")
    figure.supxlabel("queries")
    figure.supylabel("squared error / squared norm of the gradient; dashed: theory")
    figure.savefig(path, dpi=120)
    plt.close(figure)


def _draw_layer(ax: Any, rows: Sequence[Quality]) -> None:
    for k, name in enumerate(_estimators(rows)):
        own = sorted((row for row in rows if row.estimator == name), key=lambda row: row.queries)
        queries = [row.queries for row in own]
        errors = [max(row.squared_error, 1e-12) for row in own]
        ax.loglog(queries, errors, "o-", color=f"C{k}", markersize=3, label=name)
        expected = [row.expected_squared_error for row in own]
        if min(expected) > 0:
            ax.loglog(queries, expected, "--", color=f"C{k}", linewidth=1)
    counts = sorted({row.queries for row in rows})
    ax.set_xticks(counts, [str(count) for count in counts])
    ax.set_xticks([], minor=True)


def _estimators(rows: Sequence[Quality]) -> list[str]:
    return list(dict.fromkeys(row.estimator for row in rows))
