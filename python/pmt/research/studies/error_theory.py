"""Expected squared error of a gradient estimate on a loss that is linear in the perturbation."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from pmt.research.studies.layer_moments import LayerMoments
from pmt.train.options import TrainingOptions

__all__ = ["expected_cosine", "expected_error", "paper_variance"]


def expected_error(
    layers: Sequence[LayerMoments], index: int, options: TrainingOptions, kinds: Sequence[str]
) -> float:
    """Return E ||estimate - gradient||^2 of one layer's weights.

    Parameters
    ----------
    layers : sequence of LayerMoments
        Of all layers under training; others than ``index`` matter with ``scope="model_wise"``.
    index : int
        Which one.
    options : TrainingOptions
        Queries, scope, sharing, baseline, and directions and pairs where there are such.
    kinds : sequence of {"weight_perturbation", "node_perturbation", "closed_form"}
        Estimator of each layer.

    Returns
    -------
    float
        Squared nats a step. Rounding, curvature and what a clean baseline leaves in are not in it:
        what is measured beyond it is theirs.

    Notes
    -----
    For Q independent sign vectors in d dimensions E (estimate - g)(estimate - g)^T =
    (||g||^2 I + g g^T - 2 diag(g^2)) / Q, whose trace is (d - 1) / Q ||g||^2 (Rademacher; Gao and
    Sener, 2022, have the general case). Orthogonal directions: (d - Q) / Q ||g||^2.
    """
    layer, kind = layers[index], kinds[index]
    images = len(layer.weight_squares)
    if kind == "closed_form" or _option(options, "directions", "") == "coordinate":
        return 0.0
    queries = _queries(options)
    shared = options.sharing == "batch"
    own = _perturbed(layer, kind, shared)
    total: npt.NDArray[np.float64] | float = own
    if options.scope == "model_wise":
        each = (_perturbed(one, k, shared) for one, k in zip(layers, kinds, strict=True))
        total = sum(each, np.zeros(1))
    if kind == "node_perturbation":
        errors = total * layer.patch_squares + layer.weight_squares - 2 * layer.diagonal
        return float(errors.mean()) / queries / images * _orthogonality(layer.nodes, options)
    if _option(options, "hadamard_index", "") == "running":
        return _running(layer, options)
    errors = (layer.weights * total - own) / queries
    return float(errors.mean()) / (1 if shared else images) * _orthogonality(layer.weights, options)


def expected_cosine(error: float, layer: LayerMoments) -> float:
    """Return the cosine with the exact gradient that an unbiased estimate of this error has."""
    return math.sqrt(layer.squares / (layer.squares + error))


def paper_variance(layers: Sequence[LayerMoments], queries: float, *, model_wise: bool) -> float:
    """Return the paper's formula for weight perturbation's summed error at equal cost.

    Parameters
    ----------
    layers : sequence of LayerMoments
        The L layers.
    queries : float
        Q of the table "Gradient estimation variance": with ``model_wise`` queries of all layers at
        once, else Q / L for each layer.
    model_wise : bool
        Which column of the table.

    Returns
    -------
    float
        Model-wise ``((sum_i d_i - 1) sum_i S_i + L V) / (N Q)``, layer-wise
        ``(L sum_i (d_i - 1) S_i + L V) / (N Q)``: the table, with layers of different size. S_i is
        the squared norm of a layer's mean gradient, V the variance over the images.

    Notes
    -----
    With perturbations of its own for each image, V stands beside S: the error is
    ``(d - 1) (S + V) / (N Q)``, see :func:`expected_error`. The printed formula has V without d,
    as if all images shared their gradient; it is far below what is measured where V exceeds S.
    """
    count, images = len(layers), len(layers[0].weight_squares)
    variance = sum(float(one.weight_squares.mean()) - one.squares for one in layers)
    if model_wise:
        first = (sum(one.weights for one in layers) - 1) * sum(one.squares for one in layers)
    else:
        first = count * sum((one.weights - 1) * one.squares for one in layers)
    return (first + count * variance) / (images * queries)


def _running(layer: LayerMoments, options: TrainingOptions) -> float:
    """Rows that go on from image to image: all N Q directions are orthogonal, for the mean too."""
    images, d, queries = len(layer.weight_squares), layer.weights, options.queries
    all_rows = images * queries
    scatter = float(layer.weight_squares.mean()) - layer.squares
    return (max(0, d - all_rows) * layer.squares + max(0, d - queries) * scatter) / all_rows


def _perturbed(layer: LayerMoments, kind: str, shared: bool) -> npt.NDArray[np.float64]:
    """Variance that a layer brings into each difference of losses, by image."""
    if kind == "closed_form":  # it is not perturbed
        return np.zeros(1)
    if kind == "node_perturbation":
        return layer.node_squares
    return np.array([layer.squares]) if shared else layer.weight_squares


def _queries(options: TrainingOptions) -> float:
    """Independent differences among the queries."""
    if _option(options, "pairs", "") == "antithetic":
        return options.queries / 2
    return options.queries - (1 if options.baseline == "leave_one_out" else 0)


def _orthogonality(dimension: int, options: TrainingOptions) -> float:
    """What orthogonal directions take off: (d - Q) / (d - 1)."""
    if _option(options, "directions", "") != "hadamard" or dimension < 2:
        return 1.0
    directions = options.queries
    if _option(options, "pairs", "") == "antithetic":
        directions //= 2
    return max(0, dimension - directions) / (dimension - 1)


def _option(options: TrainingOptions, name: str, default: Any) -> Any:
    return getattr(options, name, default)
