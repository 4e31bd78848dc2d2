"""A study of gradient estimates on a data set, with its files in a folder: a CSV and two plots."""

from __future__ import annotations

import csv
import io
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Any

from pmt._util import atomic_file
from pmt._util.extras import load_pyplot
from pmt.datasets import Dataset
from pmt.model import Model
from pmt.protocol import DataSource, balanced_order
from pmt.research.studies.estimators import DEFAULT_ESTIMATORS, estimator_options
from pmt.research.studies.gradient_quality import QUERIES, GradientStudy, Quality, study_gradients
from pmt.research.studies.scope_variance import ScopeVariance, compare_scopes

__all__ = ["GradientJob", "GradientResult", "run_gradient_study"]


@dataclass(frozen=True)
class GradientJob:
    """A study of gradient estimates, see :func:`run_gradient_study`.

    Parameters
    ----------
    model : Model
        The network; it is not changed.
    data : DataSource
        The images.
    out : str or pathlib.Path
        Folder of figures and plots; what was measured is kept there, and the same job goes on.
    layers : str
        Names of blocks or layers, separated by commas.
    estimators : tuple of str
        See :func:`pmt.research.studies.estimators.estimator_options`.
    queries : tuple of int
        For each image and layer.
    images : int
        Training images of the batch, balanced over the classes.
    repeats : int
        Estimates of each, with other perturbations, 2 or more.
    seed : int
        Of the perturbations.
    scopes : bool
        Compare layer-wise with model-wise perturbation, too.
    plots : bool
        Draw the plots, which need matplotlib.
    threads : int
        Threads to use, 0 for all; the result does not depend on it.
    """

    model: Model
    data: DataSource
    out: str | Path
    layers: str = "all"
    estimators: tuple[str, ...] = DEFAULT_ESTIMATORS
    queries: tuple[int, ...] = QUERIES
    images: int = 16
    repeats: int = 8
    seed: int = 1
    scopes: bool = True
    plots: bool = True
    threads: int = 0


@dataclass(frozen=True)
class GradientResult:
    """A study, and the comparison of scopes, which is empty where none was asked for."""

    study: GradientStudy
    scopes: list[ScopeVariance]

    def to_json(self) -> dict[str, Any]:
        """Return the figures for JSON."""
        return {
            "images": self.study.images,
            "rows": [asdict(row) for row in self.study.rows],
            "scopes": [asdict(row) for row in self.scopes],
        }


def run_gradient_study(
    job: GradientJob,
    *,
    opened: Callable[[Dataset], None] | None = None,
    studied: Callable[[GradientStudy], None] | None = None,
) -> GradientResult:
    """Compare estimates with the exact gradient, layer by layer, and write CSV and plots.

    Parameters
    ----------
    job : GradientJob
        The network, the images and the estimators.
    opened : callable, optional
        Called with the images before the work.
    studied : callable, optional
        Called with the study before scopes are compared.

    Returns
    -------
    GradientResult
        The figures.

    Raises
    ------
    ImportError
        If torch is missing.
    FileNotFoundError, ValueError
        If the images cannot be read, a name is unknown, a number is out of range, or ``out`` holds
        another study.
    """
    for name in job.estimators:
        for count in job.queries:
            estimator_options(name, count, job.seed)
    pool = job.data.pool("train", job.model)
    data = pool.take(balanced_order(pool.labels, 0)[: job.images])
    if opened is not None:
        opened(data)
    out = Path(job.out)
    study = study_gradients(
        job.model,
        data,
        layers=job.layers,
        estimators=job.estimators,
        queries=job.queries,
        repeats=job.repeats,
        seed=job.seed,
        out=out,
        threads=job.threads,
    )
    if studied is not None:
        studied(study)
    scopes: list[ScopeVariance] = []
    if job.scopes:
        scopes = compare_scopes(
            job.model,
            data,
            layers=job.layers,
            repeats=job.repeats,
            seed=job.seed,
            threads=job.threads,
        )
    _write_csv(study, out / "gradients.csv")
    if job.plots:
        _plot_by_layer(study, out / "cosine_by_layer.png")
        _plot_by_queries(study, out / "error_by_queries.png")
    return GradientResult(study, scopes)


def _write_csv(study: GradientStudy, path: Path) -> None:
    """Write one line for each layer, estimator and number of queries; columns as Quality's."""
    text = io.StringIO()
    names = [field.name for field in fields(Quality)]
    writer = csv.DictWriter(text, names, lineterminator="\n")
    writer.writeheader()
    writer.writerows(asdict(row) for row in study.rows)
    atomic_file.write_text(path, text.getvalue())


def _plot_by_layer(study: GradientStudy, path: Path) -> None:
    """Draw dimensions (top) and cosines (bottom) by layer, at the most queries that were measured.

    The paper's figure of cosine similarity. Lines are measured, crosses what theory expects.
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


def _plot_by_queries(study: GradientStudy, path: Path) -> None:
    """Draw each layer's relative squared error over the queries, with theory's lines (dashed)."""
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
