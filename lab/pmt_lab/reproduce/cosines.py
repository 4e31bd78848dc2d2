"""Estimates of gradients: the images of studies, cosines layer by layer, and conclusions."""

import math
import zlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from pmt.baselines.backprop.scheme import head_layer
from pmt.datasets import Dataset
from pmt.model import Model, load
from pmt.protocol import DataSource, balanced_order
from pmt_lab.report import student_t
from pmt_lab.reproduce.study import Context, Data, Interval, Row, Scale, beside, claim
from pmt_lab.studies.gradient_quality import Quality, study_gradients

# The distribution shift of the paper's ablations (section 4.2.1).
_CORRUPTION, _SEVERITY = "gaussian_noise", 5


@dataclass(frozen=True)
class GradientBatch:
    """A network, a batch of corrupted training images, and both in a few words."""

    network: str
    model: Model
    images: Dataset
    source: str

    @property
    def contents(self) -> list[int]:
        """Checksums of the network, the images and their labels."""
        parts = (self.images.images, self.images.labels)
        return [zlib.crc32(part) for part in (self.model.image(), *(p.tobytes() for p in parts))]

    @property
    def convolutions(self) -> str:
        """Names of all layers but the head: the paper's network has no other."""
        head = head_layer(self.model)
        return ",".join(layer.name for layer in self.model.layers if layer.index != head)


def gradient_batch(scale: Scale, context: Context, images: int) -> GradientBatch:
    """Return MCUNet with noisy images of CIFAR-10, or at small scale the bundled ones.

    Images are balanced over the classes. Raises FileNotFoundError where CIFAR-10 is missing.
    """
    full = scale == "full"
    network = "cifar10_mcunet" if full else "fashion_mnist_dscnn"
    data = str(context.need_cifar10()) if full else "bundled"
    model = load(network)
    pool = DataSource(data, _CORRUPTION, _SEVERITY).pool("train", model)
    batch = pool.take(balanced_order(pool.labels, 0)[:images])
    name = "CIFAR-10" if full else "Fashion-MNIST"
    return GradientBatch(network, model, batch, f"{name}, {_CORRUPTION} severity {_SEVERITY}")


# Probability that a value lies beyond one end of its 95 % interval.
_ONE_SIDE = 0.025


def measured_cosines(
    batch: GradientBatch, layers: str, queries: Mapping[str, int], repeats: int, context: Context
) -> dict[str, Any]:
    """Measure estimators at their numbers of queries; kept measurements are not made again.

    Returns dimensions of the layers, and for every estimator the mean cosine of each layer, its
    standard error, the cosine that theory expects without rounding, and what is perturbed.
    """
    rows: dict[str, Sequence[Quality]] = {}
    for count in sorted(set(queries.values())):
        names = [name for name, own in queries.items() if own == count]
        context.tell(f"{count} queries: {', '.join(names)}")
        study = study_gradients(
            batch.model,
            batch.images,
            layers=layers,
            estimators=names,
            queries=[count],
            repeats=repeats,
            out=context.folder,
            threads=context.jobs,
        )
        rows |= {name: study.of(name, count) for name in names}
    first = rows[next(iter(queries))]
    return {
        "network": batch.network,
        "images": f"{len(batch.images)} of {batch.source}",
        "repeats": repeats,
        "layers": [row.layer for row in first],
        "weights": [row.weights for row in first],
        "nodes": [row.nodes for row in first],
        "estimators": {name: _figures(rows[name]) for name in queries},
    }


def _figures(rows: Sequence[Quality]) -> dict[str, Any]:
    return {
        "queries": rows[0].queries,
        "perturbed": [row.kind.removesuffix("_perturbation") for row in rows],
        "cosine": [round(row.cosine, 5) for row in rows],
        "error": [round(row.cosine_error, 5) for row in rows],
        "expected": [round(row.expected_cosine, 5) for row in rows],
    }


def series(data: Data, estimator: str) -> tuple[Any, Any]:
    """Return an estimator's cosines and their standard errors, one of each per layer."""
    found = data["estimators"][estimator]
    return np.array(found["cosine"]), np.array(found["error"])


def mean_cosine(data: Data, estimator: str) -> tuple[float, Interval]:
    """Return an estimator's mean over the layers, and its 95 % interval."""
    cosines, errors = series(data, estimator)
    return _mean(cosines, errors**2, data["repeats"] - 1)


def mean_expected(data: Data, estimator: str) -> float:
    """Return the mean over the layers of the cosine that theory expects without rounding."""
    return float(np.mean(data["estimators"][estimator]["expected"]))


def difference(
    data: Data, one: str, other: str, layers: Sequence[int] | None = None
) -> tuple[float, Interval]:
    """Return by how much the mean cosine of one exceeds the other's, and its 95 % interval.

    The interval holds the scatter of estimates on these layers and images, no other.
    """
    (a, a_error), (b, b_error) = series(data, one), series(data, other)
    chosen = list(range(len(a))) if layers is None else list(layers)
    variances = (a_error**2 + b_error**2)[chosen]
    return _mean((a - b)[chosen], variances, 2 * (data["repeats"] - 1))


def above_zero(what: str, found: tuple[float, Interval], why: str = "") -> Row:
    """Return the row of a :func:`difference` that a figure shows to be above 0."""
    mean, interval = found
    return claim(what, mean, "above 0", "cosine", holds=interval[0] > 0, interval=interval, why=why)


def mean_row(what: str, found: tuple[float, Interval], why: str) -> Row:
    """Return the row of a cosine, or a difference, that no figure shows."""
    return beside(what, found[0], "cosine", interval=found[1], why=why)


def _mean(values: Any, variances: Any, freedom: int) -> tuple[float, Interval]:
    """Return a mean over layers, of which each has a variance of ``freedom`` degrees of freedom."""
    mean, count = float(values.mean()), len(values)
    half = student_t(count * freedom) * math.sqrt(float(variances.sum())) / count
    return mean, (mean - half, mean + half)


def wins(data: Data, one: str, other: str) -> list[int]:
    """Return the layers where one has the larger cosine, beyond the 95 % interval of that layer."""
    (a, a_error), (b, b_error) = series(data, one), series(data, other)
    margin = student_t(2 * (data["repeats"] - 1)) * np.sqrt(a_error**2 + b_error**2)
    return [int(k) for k in np.flatnonzero(a - b > margin)]


def beyond_chance(count: int, layers: int) -> bool:
    """Whether a count of :func:`wins` is unlikely (5 %) if the cosines do not differ."""
    share = _ONE_SIDE
    below = sum(math.comb(layers, k) * share**k * (1 - share) ** (layers - k) for k in range(count))
    return 1 - below < 2 * share


def turns(data: Data, estimator: str) -> float:
    """Return the share of inner layers above or below both neighbors, beyond 95 % intervals."""
    cosines, errors = series(data, estimator)
    margin = student_t(2 * (data["repeats"] - 1)) * np.sqrt(errors[1:] ** 2 + errors[:-1] ** 2)
    steps = np.diff(cosines)
    sure = np.abs(steps) > margin
    return float(((steps[1:] * steps[:-1] < 0) & sure[1:] & sure[:-1]).mean())
