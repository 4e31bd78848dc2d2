"""Two models on the same images: the differences, and how sure they are."""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import Any

import numpy as np

from pmt._util.counted import counted
from pmt._util.tables import html_table, table
from pmt.datasets import Dataset
from pmt.model import Evaluation, ImageScores, Model, load
from pmt.protocol.intervals import PairedMargin, paired_margin

__all__ = ["Comparison", "compare"]


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
        :func:`pmt.protocol.intervals.paired_margin`. It does not cover other training runs, and
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
    models = [one if isinstance(one, Model) else load(one) for one in (a, b)]
    names = [one.name if isinstance(one, Model) else os.fspath(one) for one in (a, b)]
    first, second = (model.score_images(data, threads=threads) for model in models)
    return Comparison.of_scores((names[0], names[1]), first, second)


def _ends(margin: PairedMargin) -> str:
    low, high = margin.interval
    return f"{low:+.4f} to {high:+.4f}"
