"""Predictions of a network's logits: labels, probabilities, the most probable classes."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any

import numpy as np
import numpy.typing as npt

from pmt._util.checks import OptionError, checked_integer

__all__ = ["Classifier", "check_top", "most_probable", "probabilities"]


class Classifier(ABC):
    """Base of what gives a logit for each class."""

    @property
    @abstractmethod
    def classes(self) -> int:
        """Number of classes."""

    @property
    @abstractmethod
    def metadata(self) -> dict[str, Any]:
        """Class names and all else that the model says of itself."""

    @abstractmethod
    def logits(self, images: npt.NDArray[np.uint8], *, threads: int = 0) -> npt.NDArray[np.float32]:
        """Run the network; one row per image."""

    @abstractmethod
    def check_gives_classes(self) -> None:
        """Raise ValueError if the output is not logits of classes."""

    @property
    def class_names(self) -> tuple[str, ...] | None:
        """Name of every class, as the metadata has them; None where it lacks one for each.

        Training a head for other classes gives the model their names, see
        :meth:`pmt.ZOTrainer.fit`.
        """
        names = self.metadata.get("class_names")
        if not isinstance(names, list) or len(names) != self.classes:
            return None
        return tuple(str(name) for name in names)

    def predict(
        self, images: npt.NDArray[np.uint8], *, top: int | None = None, threads: int = 0
    ) -> npt.NDArray[np.int64]:
        """Return the label of every image.

        Parameters
        ----------
        images : ndarray of uint8, shape (N, height, width, channels)
            Pixels 0..255.
        top : int, optional
            Return this many labels for each image, 1 to the number of classes.
        threads : int
            As in :meth:`logits`.

        Returns
        -------
        ndarray of int64, shape (N,), or (N, top)
            The label with the largest logit; with ``top`` the most probable first. Of equal logits
            the lower label comes first. :attr:`class_names` are in the order of the labels.

        Raises
        ------
        TypeError, ValueError
            As :meth:`prepare`, or if ``top`` is out of range, or the model gives features.
        """
        self.check_gives_classes()
        check_top(1 if top is None else top, self.classes)
        logits = self.logits(images, threads=threads)
        if top is not None:
            return most_probable(logits, top)
        labels: npt.NDArray[np.int64] = logits.argmax(axis=1)
        return labels

    def predict_proba(
        self, images: npt.NDArray[np.uint8], *, threads: int = 0
    ) -> npt.NDArray[np.float32]:
        """Return the probability of every class, for every image.

        Parameters
        ----------
        images : ndarray of uint8, shape (N, height, width, channels)
            Pixels 0..255.
        threads : int
            As in :meth:`logits`.

        Returns
        -------
        ndarray of float32, shape (N, classes)
            Softmax of the logits; rows sum to 1.

        Raises
        ------
        TypeError, ValueError
            As :meth:`prepare`, or if the model gives features.
        """
        self.check_gives_classes()
        return probabilities(self.logits(images, threads=threads))


def check_top(top: int, classes: int) -> None:
    """Raise an error unless so many of the classes can be asked for."""
    if not 1 <= checked_integer("top", top) <= classes:
        raise OptionError("top", f" {top}: must be 1 to {classes}, the number of classes")


def most_probable(logits: npt.NDArray[np.float32], top: int) -> npt.NDArray[np.int64]:
    """Return the ``top`` labels of every row, largest logit first, of equal ones the lower."""
    return np.argsort(-logits, axis=1, kind="stable")[:, :top].astype(np.int64, copy=False)


def probabilities(logits: npt.NDArray[np.float32]) -> npt.NDArray[np.float32]:
    """Return the softmax of every row."""
    shifted = logits.astype(np.float64)
    shifted -= shifted.max(axis=1, keepdims=True)
    exponentials = np.exp(shifted)
    shares: npt.NDArray[np.float64] = exponentials / exponentials.sum(axis=1, keepdims=True)
    return shares.astype(np.float32)
