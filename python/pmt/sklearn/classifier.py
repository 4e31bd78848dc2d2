"""A classifier as scikit-learn has them, which adapts an int8 network."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from pmt import methods
from pmt._util.extras import missing_extra
from pmt.model import Model
from pmt.model.loading import load

try:
    from sklearn.base import BaseEstimator, ClassifierMixin
    from sklearn.utils.validation import check_is_fitted
except ImportError as error:
    raise missing_extra("pmt.sklearn needs scikit-learn", "sklearn") from error

if TYPE_CHECKING:
    from typing_extensions import Self

    from pmt.train.run.result import RunResult

__all__ = ["PmtClassifier"]


class PmtClassifier(ClassifierMixin, BaseEstimator):  # type: ignore[misc]
    """An int8 network that ``fit`` adapts, as scikit-learn's classifiers are trained.

    Parameters
    ----------
    model : str, path or Model
        What the adaptation begins with, as :func:`pmt.load` takes it; it stays as it is.
    method : str
        A name of :data:`pmt.methods.METHODS`.
    threads : int
        Threads to use, 0 = all.
    **options
        Options of the method, for example those of :class:`pmt.TrainingOptions`. Each is a
        parameter of this classifier, too, which a search may vary.

    Attributes
    ----------
    model_ : Model
        The adapted model.
    classes_ : ndarray of int64, shape (classes,)
        Labels that it tells apart, those of its outputs.
    result_ : RunResult
        The training.

    Examples
    --------
    >>> import pmt
    >>> from pmt.sklearn import PmtClassifier
    >>> data = pmt.corruptions.corrupt(pmt.datasets.bundled("train"), "fog", 5)
    >>> classifier = PmtClassifier("fashion_mnist_dscnn", layers="head", epochs=1)
    >>> classifier.fit(data.images, data.labels).score(data.images, data.labels) > 0.6
    True
    """

    def __init__(
        self, model: Any, method: str = "default", threads: int = 0, **options: Any
    ) -> None:
        self.model = model
        self.method = method
        self.threads = threads
        self.options = options

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """Return the parameters by name, the options that were given among them."""
        own = {"model": self.model, "method": self.method, "threads": self.threads}
        return {**own, **self.options}

    def set_params(self, **params: Any) -> Self:
        """Set parameters and options by name, and return the classifier."""
        for name, value in params.items():
            if name in ("model", "method", "threads"):
                setattr(self, name, value)
            else:
                self.options = {**self.options, name: value}
        return self

    def fit(self, X: npt.ArrayLike, y: npt.ArrayLike) -> Self:
        """Adapt a copy of the model.

        Parameters
        ----------
        X : ndarray of uint8, shape (N, height, width, channels) or (N, pixels)
            Images, pixels 0..255; flat rows are brought to the model's shape.
        y : ndarray of int, shape (N,)
            Labels from 0 on, in the order of the model's outputs.

        Returns
        -------
        PmtClassifier
            The classifier itself.

        Raises
        ------
        TypeError, ValueError
            As :func:`pmt.load`, :func:`pmt.methods.trainer` and its ``fit``.
        """
        model = self.model.copy() if isinstance(self.model, Model) else load(self.model)
        trainer = methods.trainer(self.method, threads=self.threads, **self.options)
        images = _images(np.asarray(X), model)
        self.result_: RunResult = trainer.fit(model, images, np.asarray(y), progress=False)
        self.model_ = model
        self.classes_ = np.arange(model.told_classes)
        return self

    def predict(self, X: npt.ArrayLike) -> npt.NDArray[np.int64]:
        """Return the label of every image, shape (N,); images as in :meth:`fit`."""
        return self._fitted().predict(_images(np.asarray(X), self.model_), threads=self.threads)

    def predict_proba(self, X: npt.ArrayLike) -> npt.NDArray[np.float32]:
        """Return the probabilities of the classes, shape (N, classes)."""
        images = _images(np.asarray(X), self._fitted())
        return self.model_.predict_proba(images, threads=self.threads)

    def _fitted(self) -> Model:
        check_is_fitted(self, "model_")
        return self.model_


def _images(images: npt.NDArray[Any], model: Model) -> npt.NDArray[Any]:
    """Return images, flat rows of pixels as images of the model's shape."""
    shape = model.image_shape
    if images.ndim == 2 and images.shape[1] == np.prod(shape):
        return images.reshape(len(images), *shape)
    return images
