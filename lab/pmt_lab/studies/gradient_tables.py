"""Tables of a study of gradient estimates: every figure, means by estimator, cosines by layer."""

from __future__ import annotations

from collections.abc import Sequence
from statistics import fmean, geometric_mean

from pmt._util.text import table
from pmt_lab.studies.gradient_quality import Quality
from pmt_lab.studies.scope_variance import ScopeVariance

__all__ = ["estimator_table", "layer_table", "quality_table", "scope_table"]


def quality_table(rows: Sequence[Quality]) -> str:
    """Return a line for each layer, estimator and number of queries."""
    titles = ["layer", "estimator", "queries", "cosine", "expected", "squared error", "expected "]
    biased = any(row.expected_bias for row in rows)
    titles += ["limit", "bias"] if biased else []
    lines = [
        [
            row.layer,
            row.estimator,
            str(row.queries),
            f"{row.cosine:.3f} ± {row.cosine_error:.3f}",
            f"{row.expected_cosine:.3f}",
            f"{row.squared_error:.3g} ± {row.squared_error_error:.1g}",
            f"{row.expected_squared_error:.3g}",
            *([f"{row.limit_cosine:.3f}", f"{row.expected_bias:.3g}"] if biased else []),
        ]
        for row in rows
    ]
    return table(titles, lines, left=["layer", "estimator"])


def estimator_table(rows: Sequence[Quality]) -> str:
    """Return a line for each estimator: means, at the most queries, of layers that all perturb.

    The last column is the geometric mean of the squared error over the expected one, where neither
    is 0.
    """
    titles = ["estimator", "queries", "cosine", "expected", "error / expected"]
    lines = []
    for name, own in _at_most_queries(rows).items():
        cosine = fmean(row.cosine for row in own)
        expected = fmean(row.expected_cosine for row in own)
        excess = [
            row.squared_error / row.expected_squared_error
            for row in own
            if row.squared_error > 0 and row.expected_squared_error > 0
        ]
        beyond = f"{geometric_mean(excess):.2f}" if excess else ""
        lines.append([name, str(own[0].queries), f"{cosine:.3f}", f"{expected:.3f}", beyond])
    return table(titles, lines, left=["estimator"])


def layer_table(rows: Sequence[Quality]) -> str:
    """Return a line for each layer that all perturb: each estimator's cosine at the most queries.

    In parentheses is the limit for infinitely many queries, where it is not 1.
    """
    found = _at_most_queries(rows)
    layers = list(dict.fromkeys(row.layer for own in found.values() for row in own))
    cells = {(row.layer, row.estimator): _cosine(row) for own in found.values() for row in own}
    lines = [[layer, *(cells.get((layer, name), "") for name in found)] for layer in layers]
    return table(["layer", *found], lines, left=["layer"])


def scope_table(scopes: Sequence[ScopeVariance]) -> str:
    """Return a line for each estimator and scope."""
    titles = ["perturbed", "scope", "queries", "squared error", "expected", "paper's formula"]
    lines = [
        [
            row.estimator,
            row.scope,
            str(row.queries),
            f"{row.measured:.4g} ± {row.measured_error:.2g}",
            f"{row.expected:.4g}",
            "" if row.paper is None else f"{row.paper:.4g}",
        ]
        for row in scopes
    ]
    return table(titles, lines, left=["perturbed", "scope"])


def _at_most_queries(rows: Sequence[Quality]) -> dict[str, list[Quality]]:
    """Return each estimator's figures at the most queries, of the layers that all perturb."""
    most = max((row.queries for row in rows), default=0)
    exact = {row.layer for row in rows if row.kind == "closed_form"}
    chosen = [row for row in rows if row.queries == most and row.layer not in exact]
    names = dict.fromkeys(row.estimator for row in chosen)
    return {name: [row for row in chosen if row.estimator == name] for name in names}


def _cosine(row: Quality) -> str:
    limit = f" ({row.limit_cosine:.2f})" if row.limit_cosine != 1 else ""
    return f"{row.cosine:.3f}{limit}"
