"""Layer-wise against model-wise perturbation at equal cost: the paper's table of variances."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from pmt import _core
from pmt._util.processes import thread_count
from pmt.datasets import Dataset
from pmt.model import Model
from pmt_lab.studies.error_theory import LayerMoments, expected_error, layer_moments, paper_variance
from pmt_lab.studies.estimators import estimator_options, layer_trainers


def compare_scopes(
    model: Model,
    data: Dataset,
    *,
    layers: str = "all",
    queries: int,
    words: str,
    repeats: int,
    estimators: Sequence[str] = ("weight", "node"),
    threads: int = 0,
) -> tuple[float, list[dict[str, Any]]]:
    """Measure entries of the table: each of ``estimators``, model-wise and layer-wise.

    Arguments are those of :func:`pmt_lab.studies.gradient_quality.study_gradients`, and
    ``words``, further words of the estimators. ``queries`` is Q, a multiple of the L layers, at
    least 2 L. Needs torch. The number returned is V over S of all layers, the scatter of the
    images' gradients.

    An entry is about the summed squared error of all layers' weight gradients, over their summed
    squared norm. ``estimator`` is "weight", "node" or "free_node" (no query moves a node at a
    clamp); ``scope`` "model_wise", all layers in each of Q queries, or "layer_wise", each layer in
    Q / L queries of its own.
    ``measured`` is the mean over the repeats, beside its standard error; ``expected`` the value of
    theory, with the images' scatter, and for nodes with the chain rule to the weights; ``printed``
    the paper's formula, which for nodes is about the nodes' own gradients.
    """
    chosen = model.select_layers(layers)
    if queries % len(chosen) or queries < 2 * len(chosen):
        raise ValueError(
            f"queries={queries}: must be a multiple of the {len(chosen)} layers, twice as many or "
            "more, so that each scope costs the same"
        )
    if repeats < 2:
        raise ValueError(f"repeats={repeats}: a standard error needs 2 or more")
    images, labels = model.prepare(data.images), np.ascontiguousarray(data.labels)
    moments_of = {
        free: [layer_moments(model, images, labels, index, free=free) for index in chosen]
        for free in {estimator == "free_node" for estimator in estimators}
    }
    rows = []
    for estimator in estimators:
        moments = moments_of[estimator == "free_node"]
        squares = sum(layer.squares for layer in moments)
        for scope, each in (("model_wise", queries), ("layer_wise", queries // len(chosen))):
            options = estimator_options(f"{estimator}+{scope}+{words}", each, seed=1)
            trainers = layer_trainers(model, chosen, options, len(labels), thread_count(threads))
            kinds = [trainer.layers()[position]["estimator"] for trainer, position in trainers]
            errors = [_error(trainers, images, labels, step, moments) for step in range(repeats)]
            expected = sum(expected_error(moments, i, options, kinds) for i in range(len(kinds)))
            form = {"model_wise": scope == "model_wise", "nodes": estimator != "weight"}
            row: dict[str, Any] = {"estimator": estimator, "scope": scope, "queries": each}
            row |= {"measured": float(np.mean(errors))}
            row |= {"measured_error": float(np.std(errors, ddof=1)) / len(errors) ** 0.5}
            printed = paper_variance(moments, queries, **form) / squares
            rows.append({**row, "expected": expected / squares, "printed": printed})
    scatter = sum(float(layer.weight_squares.mean()) for layer in moments) / squares - 1.0
    return scatter, rows


def _error(
    trainers: Sequence[tuple[_core.Trainer, int]],
    images: npt.NDArray[np.int8],
    labels: npt.NDArray[np.int64],
    step: int,
    moments: Sequence[LayerMoments],
) -> float:
    """Return an estimate's squared error of all layers over the gradients' squared norm."""
    total = 0.0
    for (trainer, position), layer in zip(trainers, moments, strict=True):
        weights, _ = trainer.estimate(images, labels, step, position)
        total += float(((weights.astype(np.float64) - layer.gradient) ** 2).sum())
    return total / sum(layer.squares for layer in moments)
