"""How sure figures are: intervals of shares, two models on the same images; an evaluation."""

from __future__ import annotations

import math
import os
from dataclasses import dataclass
from typing import Any

import numpy as np

from pmt import _core
from pmt._util.arrays import DoubleArray, Int32Array
from pmt._util.checks import SplitName, check_type, checked_names, checked_range
from pmt._util.extras import data_frame
from pmt._util.optional_types import DataFrame
from pmt._util.text import counted, html_table, table
from pmt.datasets import Dataset
from pmt.model import Confusion, Evaluation, ImageScores, Model, load
from pmt.model.data_checks import warn_of_unlike_classes
from pmt.model.model import check_model
from pmt.protocol.data_source import DataSource, check_source

Z = 1.959964  # 95 %


def wilson_interval(correct: int, count: int, *, z: float = Z) -> tuple[float, float]:
    """Return the interval that holds the true share with the confidence of ``z``.

    Parameters
    ----------
    correct : int
        Successes, 0 to ``count``.
    count : int
        Trials, 1 or more.
    z : float
        Quantile of the normal distribution; the default is that of 95 %.

    Returns
    -------
    tuple of float
        Lower and upper end, within 0..1. Unlike the share plus or minus z standard errors, it
        holds near 0 and 1 and for few trials.

    Raises
    ------
    TypeError
        If ``correct`` or ``count`` is not an integer.
    ValueError
        If they are out of range, or ``z`` is not positive.

    Notes
    -----
    E. B. Wilson, "Probable inference, the law of succession, and statistical inference", Journal
    of the American Statistical Association 22, 1927.

    Examples
    --------
    >>> low, high = wilson_interval(601, 900)
    >>> f"{low:.4f} {high:.4f}"
    '0.6363 0.6978'
    """
    count = checked_range("count", count, 1)
    correct = checked_range("correct", correct, 0, count)
    return wilson_of_share(correct / count, count, z=z)


def wilson_of_share(share: float, count: float, *, z: float = Z) -> tuple[float, float]:
    """Return the interval for a share of ``count`` trials, which need not be a whole number.

    Parameters
    ----------
    share : float
        Share of successes, 0..1.
    count : float
        Trials, above 0; fewer than were made where they depend on each other.
    z : float
        As :func:`wilson_interval`.

    Returns
    -------
    tuple of float
        As :func:`wilson_interval`.

    Raises
    ------
    ValueError
        If a number is out of range.
    """
    for name, value in (("share", share), ("count", count), ("z", z)):
        check_type(name, value, (int, float, np.integer, np.floating), "a number")
    if not count > 0.0:
        raise ValueError(f"count={count}: an interval needs more than 0 trials")
    if not 0.0 <= share <= 1.0:
        raise ValueError(f"share={share} must be 0 to 1")
    if not z > 0.0:
        raise ValueError(f"z={z} must be above 0, for example 1.96 for 95 %")
    center = share + z**2 / (2 * count)
    spread = z * math.sqrt(share * (1 - share) / count + z**2 / (4 * count**2))
    scale = 1 + z**2 / count
    # Where nothing or everything is right, an end is the share itself, but for the last bit.
    low, high = (center - spread) / scale, (center + spread) / scale
    return (low if share > 0.0 else 0.0), (high if share < 1.0 else 1.0)


@dataclass(frozen=True)
class PairedMargin:
    """A mean difference of paired scores, and its standard error."""

    mean: float
    standard_error: float

    @property
    def significant(self) -> bool:
        """Whether 0 lies outside the 95 % interval."""
        return abs(self.mean) > Z * self.standard_error

    @property
    def interval(self) -> tuple[float, float]:
        """Ends of the 95 % interval."""
        return self.mean - Z * self.standard_error, self.mean + Z * self.standard_error


def paired_margin(scores: DoubleArray, others: DoubleArray) -> PairedMargin:
    """Return the mean of ``others - scores`` of the same images, so that easy and hard ones cancel.

    Both have shape (S, N): a row for each of S repeats (seeds of training, in pairs), and 2 images
    or more. The variance of the mean is that of the images' means over N, plus, where there are
    several repeats, that of the repeats' means over S. With one repeat the chance in training is
    not in it.
    """
    if scores.shape != others.shape or scores.ndim != 2 or scores.shape[1] < 2:
        raise ValueError(
            f"scores {scores.shape} and others {others.shape} must both be (repeats, images) with "
            "2 images or more"
        )
    differences = np.asarray(others, np.float64) - np.asarray(scores, np.float64)
    repeats, images = differences.shape
    variance = float(differences.mean(axis=0).var(ddof=1)) / images
    if repeats > 1:
        variance += float(differences.mean(axis=1).var(ddof=1)) / repeats
    return PairedMargin(float(differences.mean()), math.sqrt(variance))


def is_worse(scores: ImageScores, than: ImageScores, errors: int = 1) -> bool:
    """Whether the mean loss is higher by more than ``errors`` standard errors.

    The standard error is that of the differences, image by image. The core decides, in integers.
    """
    losses, others = whole_losses(scores, than)
    return _core.is_worse(losses, others, errors)


def whole_losses(*states: ImageScores) -> list[Int32Array]:
    """Return the losses of states as whole numbers of one unit: 2^-20, or more to fit int32."""
    losses = [np.rint(s.losses * float(_core.LOSS_ONE)).astype(np.int64) for s in states]
    largest = max(int(np.abs(values).max(initial=0)) for values in losses)
    shift = max(0, largest.bit_length() - 31)  # of losses that grow with the output's square
    return [(values >> shift).astype(np.int32) for values in losses]


@dataclass(frozen=True, repr=False)
class Comparison:
    """Differences of two models ``a`` and ``b`` on the same images.

    Attributes
    ----------
    names : tuple of str
        Names of ``a`` and ``b``.
    a, b : Evaluation
        Accuracy and loss of each.
    accuracy, loss : PairedMargin
        ``mean`` of the differences ``b - a``, image by image, with their 95 % ``interval``, see
        :func:`pmt.protocol.comparison.paired_margin`. It does not cover other training runs, and
        that of the accuracy has no width where both get the same images right.
    only_a, only_b : int
        Images that one gets right and the other does not.
    """

    names: tuple[str, str]
    a: Evaluation
    b: Evaluation
    accuracy: PairedMargin
    loss: PairedMargin
    only_a: int
    only_b: int

    @classmethod
    def of_scores(cls, names: tuple[str, str], a: ImageScores, b: ImageScores) -> Comparison:
        """Compare the scores of two models on the same images, in the same order.

        Raises
        ------
        ValueError
            If there are fewer than two images, or not the same number for both.
        """
        for argument, scores in (("a", a), ("b", b)):
            check_type(argument, scores, ImageScores, "what model.score_images(data) returns")
        if len(a.losses) != len(b.losses) or len(a.losses) < 2:
            raise ValueError(
                f"the scores are of {len(a.losses)} and {len(b.losses)} images: a comparison "
                "needs the same images for both, 2 or more"
            )
        return cls(
            names,
            a.evaluation,
            b.evaluation,
            paired_margin(a.correct[None].astype(np.float64), b.correct[None].astype(np.float64)),
            paired_margin(a.losses[None], b.losses[None]),
            int((a.correct & ~b.correct).sum()),
            int((b.correct & ~a.correct).sum()),
        )

    def to_json(self) -> dict[str, Any]:
        """Return the figures for JSON."""
        return {
            **{key: vars(getattr(self, key)) for key in ("a", "b")},
            **{
                key: {
                    "difference": margin.mean,
                    "interval": list(margin.interval),
                    "significant": margin.significant,
                }
                for key, margin in (("accuracy", self.accuracy), ("loss", self.loss))
            },
            "only_a": self.only_a,
            "only_b": self.only_b,
        }

    def to_frame(self) -> DataFrame:
        """Return accuracy and loss as a pandas DataFrame: both models, difference and interval.

        Raises
        ------
        ImportError
            If pandas is missing.
        """
        margins = {"accuracy": self.accuracy, "loss": self.loss}
        rows = [
            *({name: getattr(one, name) for name in margins} for one in (self.a, self.b)),
            {name: margin.mean for name, margin in margins.items()},
            *({name: margin.interval[i] for name, margin in margins.items()} for i in range(2)),
        ]
        return data_frame(rows, [*self.names, "difference", "low", "high"], "model")

    _TITLES = ("model", "accuracy", "loss")

    def _rows(self) -> list[list[str]]:
        models = zip(("a", "b"), self.names, (self.a, self.b), strict=True)
        return [
            *(
                [f"{key}: {name}", f"{one.accuracy:.4f}", f"{one.loss:.4f}"]
                for key, name, one in models
            ),
            ["b - a", f"{self.accuracy.mean:+.4f}", f"{self.loss.mean:+.4f}"],
            ["95 % interval", _ends(self.accuracy), _ends(self.loss)],
        ]

    @property
    def _caption(self) -> str:
        return (
            f"{counted(self.a.n, 'image')}: a alone is right on {self.only_a:,}, "
            f"b alone on {self.only_b:,}"
        )

    def __str__(self) -> str:
        return f"{table(self._TITLES, self._rows(), left=('model',))}\n{self._caption}"

    __repr__ = __str__

    def _repr_html_(self) -> str:
        return html_table(self._caption, self._TITLES, self._rows())


def compare(
    a: Model | str | os.PathLike[str],
    b: Model | str | os.PathLike[str],
    data: Dataset,
    *,
    threads: int = 0,
) -> Comparison:
    """Compare two models on the same images.

    Parameters
    ----------
    a, b : Model, str, pathlib.Path or RunFolder
        The models, or what :func:`pmt.load` reads: model files, run folders, bundled names.
    data : Dataset
        Images of the size that both take, and labels; 2 images or more.
    threads : int
        Threads to use; 0 takes all. The result does not depend on it.

    Returns
    -------
    Comparison
        Differences ``b - a`` in accuracy and loss with 95 % intervals. They are paired by image:
        what makes an image hard for both models cancels, so that they are narrower than the
        intervals of the two models suggest.

    Raises
    ------
    FileNotFoundError, ValueError, TypeError
        As :func:`pmt.load` and :meth:`Model.evaluate`; or if there is only one image.
    """
    models = [_loaded("a", a), _loaded("b", b)]
    data = Dataset.of(data, "data")
    names = [one.name if isinstance(one, Model) else os.fspath(one) for one in (a, b)]
    first, second = (model.score_images(data, threads=threads) for model in models)
    return Comparison.of_scores((names[0], names[1]), first, second)


def _loaded(argument: str, model: Model | str | os.PathLike[str]) -> Model:
    kinds = (Model, str, os.PathLike)
    check_type(argument, model, kinds, "a pmt.Model or the path of one; compare(a, b, data)")
    return model if isinstance(model, Model) else load(model)


def _ends(margin: PairedMargin) -> str:
    low, high = margin.interval
    return f"{low:+.4f} to {high:+.4f}"


@dataclass(frozen=True)
class EvaluationReport:
    """The result of an evaluation.

    Attributes
    ----------
    evaluation : Evaluation
        Accuracy, loss and number of images.
    confusion : Confusion
        Counts of which classes are taken for which.
    comparison : Comparison or None
        Differences to the other model, which is ``a``: model minus other.
    """

    evaluation: Evaluation
    confusion: Confusion
    comparison: Comparison | None

    def to_json(self, *, confusion: bool = True) -> dict[str, Any]:
        """Return the figures for JSON, those of the classes only where they are asked for."""
        return {
            **vars(self.evaluation),
            **({"confusion": self.confusion.to_json()} if confusion else {}),
            **({"comparison": self.comparison.to_json()} if self.comparison else {}),
        }


def evaluate_model(
    model: Model,
    source: DataSource,
    *,
    split: SplitName = "test",
    limit: int = 0,
    against: Model | None = None,
    names: tuple[str, str] = ("model", "other"),
    threads: int = 0,
) -> EvaluationReport:
    """Evaluate a model on a data set, and another model for comparison.

    Parameters
    ----------
    model : Model
        The network.
    source : DataSource
        The images.
    split : {"train", "test"}
        Part of the data set.
    limit : int
        At most this many images, always the same ones; 0 takes all.
    against : Model, optional
        Another network, compared on the same images; they are resized to the input of each.
    names : tuple of str
        Names of the two.
    threads : int
        Threads to use; 0 takes all. The result does not depend on it.

    Returns
    -------
    EvaluationReport
        The figures.

    Raises
    ------
    FileNotFoundError, ValueError, ImportError
        If the data cannot be read or does not go with a model.
    """
    check_model(model)
    if against is not None:
        check_model(against, "against")
        if len(checked_names("names", names)) != 2:
            raise ValueError(f"names={names!r} must be two, of model and against")
    check_source(source, "source")
    data = source.load(split, model, limit=limit)
    model.check_scored(data)
    if model.classes > 1:
        warn_of_unlike_classes(data, model.class_names, stacklevel=2)
    scores = model.score_images(data, threads=threads)
    comparison = None
    if against is not None:
        resized = data
        if against.image_shape != model.image_shape:
            resized = source.load(split, against, limit=limit)
        others = against.score_images(resized, threads=threads)
        comparison = Comparison.of_scores(names[::-1], others, scores)
    confusion = Confusion.of_predictions(data, scores.predicted, model)
    return EvaluationReport(scores.evaluation, confusion, comparison)
