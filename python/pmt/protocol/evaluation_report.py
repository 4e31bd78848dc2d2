"""Evaluation of a model on a data set: accuracy, loss, confusion, and against another model."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from pmt.model import Confusion, Evaluation, Model
from pmt.model.class_checks import warn_of_unlike_classes
from pmt.protocol.comparison import Comparison
from pmt.protocol.data_source import DataSource

__all__ = ["EvaluationReport", "evaluate_model"]


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
    split: str = "test",
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
    data = source.load(split, model, limit=limit)
    model.check_classes(data)
    warn_of_unlike_classes(data, model.class_names, stacklevel=2)
    scores = model.score_images(data, threads=threads)
    comparison = None
    if against is not None:
        resized = data
        if against.input_shape != model.input_shape:
            resized = source.load(split, against, limit=limit)
        others = against.score_images(resized, threads=threads)
        comparison = Comparison.of_scores(names[::-1], others, scores)
    confusion = Confusion.of_predictions(data, scores.predicted, model)
    return EvaluationReport(scores.evaluation, confusion, comparison)
