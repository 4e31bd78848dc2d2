"""A study of gradient estimates on a data set, with its files in a folder: a CSV and two plots."""

from __future__ import annotations

import csv
import io
from collections.abc import Callable
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Any

from pmt.datasets import Dataset
from pmt.model import Model
from pmt.plots import save_plot
from pmt.protocol import DataSource, balanced_order
from pmt_lab.files import write_text
from pmt_lab.plots.cosines import plot_cosines, plot_errors
from pmt_lab.studies.estimators import DEFAULT_ESTIMATORS, estimator_options
from pmt_lab.studies.gradient_quality import QUERIES, GradientStudy, Quality, study_gradients
from pmt_lab.studies.scope_variance import ScopeVariance, compare_scopes

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
        Folder of figures and plots; what was measured is kept there, and the same job continues.
    layers : str
        Names of blocks or layers, separated by commas.
    estimators : tuple of str
        See :func:`pmt_lab.studies.estimators.estimator_options`.
    queries : tuple of int
        For each image and layer.
    images : int
        Training images of the batch, balanced over the classes.
    repeats : int
        Estimates of each, with other perturbations, 2 or more.
    seed : int
        Seed of the perturbations.
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
        save_plot(plot_cosines(study), out / "cosine_by_layer.png")
        save_plot(plot_errors(study), out / "error_by_queries.png")
    return GradientResult(study, scopes)


def _printable(name: str) -> str:
    """Return a layer's name, which a model's file chose, without characters that steer."""
    return "".join(c if c.isprintable() else repr(c)[1:-1] for c in name)


def _write_csv(study: GradientStudy, path: Path) -> None:
    """Write one line for each layer, estimator and number of queries; columns as Quality's."""
    text = io.StringIO()
    names = [field.name for field in fields(Quality)]
    writer = csv.DictWriter(text, names, lineterminator="\n")
    writer.writeheader()
    writer.writerows({**asdict(row), "layer": _printable(row.layer)} for row in study.rows)
    write_text(path, text.getvalue())
