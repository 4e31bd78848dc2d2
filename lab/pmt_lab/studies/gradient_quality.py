"""Quality of gradient estimates: cosine and squared error against the exact gradient."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from joblib import Memory

from pmt import _core
from pmt._util.processes import thread_count
from pmt._util.progress import ProgressLine
from pmt.datasets import Dataset
from pmt.datasets.dataset import checksum
from pmt.model import Model
from pmt.train.options import TrainingOptions
from pmt.train.zo_trainer import ZOTrainer
from pmt_lab.studies.error_theory import (
    LayerMoments,
    expected_bias,
    expected_cosine,
    expected_error,
    layer_moments,
    pooled_moments,
)
from pmt_lab.studies.estimators import DEFAULT_ESTIMATORS, estimator_options, layer_trainers

QUERIES = (4, 16, 64)


@dataclass(frozen=True)
class Quality:
    """Estimates of one layer by one estimator, against the exact gradient of its weights.

    ``kind`` is ``weight_perturbation``, ``node_perturbation``, ``pooled_perturbation`` or
    ``closed_form``; ``queries`` are for each image and layer, ``weights`` and ``nodes`` the layer's
    dimensions, ``forwards`` and ``macs`` the cost of one estimate. Cosine and squared error,
    ``||estimate - exact||^2 / ||exact||^2``, are means over the repeats, beside their standard
    errors; the expected ones are values of theory, for a loss that is linear in the perturbation.
    ``coherence`` is the mean squared norm of the images' gradients over that of their mean.
    ``expected_bias`` is the part of the squared error that no number of queries removes, and
    ``limit_cosine`` the expected cosine of infinitely many: 0 and 1 unless pooled.
    """

    layer: str
    estimator: str
    kind: str
    queries: int
    weights: int
    nodes: int
    cosine: float
    cosine_error: float
    squared_error: float
    squared_error_error: float
    expected_cosine: float
    expected_squared_error: float
    coherence: float
    repeats: int
    forwards: int
    macs: int
    expected_bias: float = 0.0
    limit_cosine: float = 1.0


@dataclass(frozen=True)
class GradientStudy:
    """All measurements of a study, in the order they were asked for."""

    rows: tuple[Quality, ...]
    images: int

    def of(self, estimator: str, queries: int) -> list[Quality]:
        """Return the layers of one estimator at one number of queries."""
        return [r for r in self.rows if r.estimator == estimator and r.queries == queries]


def study_gradients(
    model: Model,
    data: Dataset,
    *,
    layers: str = "all",
    estimators: Sequence[str] = DEFAULT_ESTIMATORS,
    queries: Sequence[int] = QUERIES,
    repeats: int = 8,
    seed: int = 1,
    out: str | Path | None = None,
    threads: int = 0,
    progress: bool = True,
) -> GradientStudy:
    """Compare estimates with the exact (straight-through) gradient, layer by layer.

    Parameters
    ----------
    model : Model
        The network; it is not changed.
    data : Dataset
        The batch whose mean loss is differentiated.
    layers : str
        Names of blocks or layers. With an estimator that is ``model_wise`` all of them are
        perturbed together.
    estimators : sequence of str
        See :func:`pmt_lab.studies.estimators.estimator_options`.
    queries : sequence of int
        For each image and layer.
    repeats : int
        Estimates of each, with other perturbations; 2 or more.
    seed : int
        Seed of the perturbations.
    out : str or pathlib.Path, optional
        Folder that keeps each measurement as it is made; those that are there are not made again.
    threads : int
        Threads; the result does not depend on it.
    progress : bool
        Show a progress line on a terminal.

    Returns
    -------
    GradientStudy
        One row for each layer, estimator and number of queries.

    Raises
    ------
    ImportError
        If torch is missing.
    ValueError
        If a name is unknown or a number is out of range.
    """
    if repeats < 2:
        raise ValueError(f"repeats={repeats}: a standard error needs 2 or more")
    model.check_classes(data)
    chosen = model.select_layers(layers)
    plans = [
        (name, estimator_options(name, count, seed).replace(layers=layers, batch=len(data)))
        for name in estimators
        for count in queries
    ]
    settings = {
        "model_crc32": _core.crc32(model.image()),
        "data_crc32": checksum(data),
        "layers": [str(index) for index in chosen],
        "repeats": repeats,
        "seed": seed,
    }
    measure = _Measurement(model, data, chosen, repeats, thread_count(threads))
    rows = list(_measured(measure, plans, settings, out, progress))
    return GradientStudy(tuple(rows), len(data))


def _measured(
    measure: _Measurement,
    plans: Sequence[tuple[str, TrainingOptions]],
    settings: dict[str, Any],
    out: str | Path | None,
    progress: bool,
) -> Iterator[Quality]:
    rows_of = Memory(out, verbose=0).cache(_rows, ignore=["measure"])
    calls = [(measure, settings, name, options) for name, options in plans]
    work = [
        0
        if rows_of.check_call_in_cache(*call)
        else ZOTrainer(call[-1]).cost(measure.model).macs * measure.repeats // 10**6
        for call in calls
    ]
    line = ProgressLine(max(1, sum(work)), unit="MMAC")
    try:
        for place, call in enumerate(calls):
            yield from rows_of(*call)
            if progress and work[place]:
                name, options = plans[place]
                line.update(sum(work[: place + 1]), f"{name} at {options.queries} queries")
    finally:
        line.clear()


def _rows(
    measure: _Measurement, settings: dict[str, Any], name: str, options: TrainingOptions
) -> list[Quality]:
    """Measure an estimator; settings stand for the measurement in the key of the kept rows."""
    return measure.rows(name, options)


class _Measurement:
    """Estimates on one model and batch."""

    def __init__(
        self, model: Model, data: Dataset, layers: list[int], repeats: int, threads: int
    ) -> None:
        self.model = model
        self.layers = layers
        self.repeats = repeats
        self.threads = threads
        self.images = model.prepare(data.images)
        self.labels = np.ascontiguousarray(data.labels)
        self._moments: list[LayerMoments] = []
        self._estimated: dict[tuple[int, str], LayerMoments] = {}

    @property
    def moments(self) -> list[LayerMoments]:
        """Moments of the exact gradients; made when they are first needed."""
        if not self._moments:
            self._moments = [
                layer_moments(self.model, self.images, self.labels, index) for index in self.layers
            ]
        return self._moments

    def estimated(self, index: int, kind: str, rule: str) -> LayerMoments:
        """Return the moments of the gradient that a layer's estimator estimates."""
        pooled = kind == "pooled_perturbation"
        if not pooled and (kind, rule) != ("node_perturbation", "free_node"):
            return self.moments[index]
        key = self.layers[index], kind
        if key not in self._estimated:
            given = self.model, self.images, self.labels, self.layers[index]
            self._estimated[key] = (
                pooled_moments(*given) if pooled else layer_moments(*given, free=True)
            )
        return self._estimated[key]

    def rows(self, name: str, options: TrainingOptions) -> list[Quality]:
        """Measure one estimator at one number of queries, all layers."""
        made = []
        cost = ZOTrainer(options).cost(self.model)
        batch = len(self.labels)
        trainers = layer_trainers(self.model, self.layers, options, batch, self.threads)
        layers = [core.layers()[position] for core, position in trainers]
        kinds = [layer["estimator"] for layer in layers]
        estimated = [self.estimated(i, kind, options.rule) for i, kind in enumerate(kinds)]
        for index, moments in enumerate(self.moments):
            core, position = trainers[index]
            cosines, errors = self._repeated(core, position, moments)
            theory = _theory(moments, estimated, index, options, kinds)
            made.append(
                Quality(
                    layer=layers[index]["name"],
                    estimator=name,
                    kind=kinds[index],
                    queries=options.queries,
                    weights=moments.weights,
                    nodes=moments.nodes,
                    **_summary("cosine", cosines),
                    **_summary("squared_error", errors),
                    **theory,
                    coherence=moments.coherence,
                    repeats=self.repeats,
                    forwards=cost.forwards,
                    macs=cost.macs,
                )
            )
        return made

    def _repeated(
        self, core: _core.Trainer, position: int, moments: LayerMoments
    ) -> tuple[list[float], list[float]]:
        exact, cosines, errors = moments.gradient, [], []
        for step in range(self.repeats):
            weights, _ = core.estimate(self.images, self.labels, step, position)
            estimate = weights.astype(np.float64)
            length = float(np.linalg.norm(estimate))
            product = float(estimate @ exact)
            cosines.append(product / (length * np.sqrt(moments.squares)) if length else 0.0)
            errors.append(float(((estimate - exact) ** 2).sum()) / moments.squares)
        return cosines, errors


def _theory(
    exact: LayerMoments,
    estimated: Sequence[LayerMoments],
    index: int,
    options: TrainingOptions,
    kinds: Sequence[str],
) -> dict[str, float]:
    variance = expected_error(estimated, index, options, kinds)
    if kinds[index] != "pooled_perturbation":
        return {
            "expected_cosine": expected_cosine(variance, exact),
            "expected_squared_error": variance / exact.squares,
        }
    pooled = estimated[index]
    bias = expected_bias(exact, pooled)
    return {
        "expected_cosine": expected_cosine(variance, exact, pooled),
        "expected_squared_error": (variance + bias) / exact.squares,
        "expected_bias": bias / exact.squares,
        "limit_cosine": expected_cosine(0.0, exact, pooled),
    }


def _summary(name: str, values: Sequence[float]) -> dict[str, float]:
    spread = float(np.std(values, ddof=1)) / len(values) ** 0.5
    return {name: float(np.mean(values)), f"{name}_error": spread}
