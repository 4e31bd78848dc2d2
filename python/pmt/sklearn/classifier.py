"""A classifier as scikit-learn has them, which adapts an int8 network."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from pmt import methods
from pmt._util.arrays import Array, FloatArray, Int64Array
from pmt._util.checks import checked_array
from pmt._util.extras import missing_extra
from pmt._util.optional_types import Self
from pmt.datasets.arrays import as_inputs
from pmt.model import Model
from pmt.model.loading import load
from pmt.model.scores import class_logits, probabilities
from pmt.train.option_fields import refuse_unknown
from pmt.train.run.result import RunResult

try:
    from sklearn.base import BaseEstimator, ClassifierMixin
    from sklearn.utils.validation import check_is_fitted
except ImportError as error:
    raise missing_extra("pmt.sklearn needs scikit-learn", "sklearn") from error

_OWN = ("model", "method", "threads")


class PmtClassifier(ClassifierMixin, BaseEstimator):  # type: ignore[misc]
    """An int8 network that ``fit`` adapts, as scikit-learn's classifiers are trained.

    Parameters
    ----------
    model : str, path or Model
        Start of the adaptation, as :func:`pmt.load` takes it; it stays as it is.
    method : str
        A name of :data:`pmt.methods.METHODS`.
    threads : int
        Threads to use, 0 = all.
    **options
        Options of the method, for example those of :class:`pmt.TrainingOptions`. ``set_params``
        and searches may set any of them; ``get_params`` gives those that were set.

    Attributes
    ----------
    model_ : Model
        The adapted model.
    classes_ : ndarray of int64 or str, shape (classes,)
        Classes of the labels, ascending: no other is predicted.
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
        """Return the parameters by name, and the options that were set."""
        return {**{name: getattr(self, name) for name in _OWN}, **self.options}

    def set_params(self, **params: Any) -> Self:
        """Set parameters and options by name, and return the classifier.

        Raises
        ------
        ValueError
            If the method has no such option.
        """
        own = {name: params.pop(name) for name in _OWN if name in params}
        refuse_unknown(type(methods.options_of(own.get("method", self.method))), params)
        for name, value in own.items():
            setattr(self, name, value)
        self.options = {**self.options, **params}
        return self

    def fit(self, X: npt.ArrayLike, y: npt.ArrayLike) -> Self:
        """Adapt a copy of the model.

        Parameters
        ----------
        X : ndarray, shape (N, height, width, channels) or (N, pixels)
            Images, uint8 pixels 0..255, or floats as the model takes them; flat rows are brought
            to the model's shape.
        y : ndarray of int or str, shape (N,)
            Labels from 0 on, in the order of the model's outputs, or names of its classes. A model
            without names, as of ``pmt.load(path, classes=2)``, takes any others, at most as many
            as it has outputs: ascending, as scikit-learn's classifiers do.

        Returns
        -------
        PmtClassifier
            The classifier itself.

        Raises
        ------
        TypeError, ValueError
            As :func:`pmt.load`, :func:`pmt.methods.trainer` and its ``fit``, or if a label is
            none of the model's classes.
        """
        model = self.model.copy() if isinstance(self.model, Model) else load(self.model)
        trainer = methods.trainer(self.method, threads=self.threads, **self.options)
        labels = checked_array("y", y)
        classes = np.unique(labels)
        if labels.dtype.kind in "iuUO":
            labels = _outputs(classes, model)[np.searchsorted(classes, labels)]
        self.result_: RunResult = trainer.fit(model, _images(X, model), labels, progress=False)
        self.model_ = model
        self.classes_ = classes
        return self

    def predict(self, X: npt.ArrayLike) -> Array:
        """Return the most probable class of every image, shape (N,); images as in :meth:`fit`."""
        most_probable = self.predict_proba(X).argmax(axis=1)
        return np.asarray(self.classes_[most_probable])

    def predict_proba(self, X: npt.ArrayLike) -> FloatArray:
        """Return the probabilities of ``classes_``, shape (N, classes)."""
        check_is_fitted(self, "model_")
        logits = class_logits(self.model_.logits(_images(X, self.model_), threads=self.threads))
        return probabilities(logits[:, _outputs(self.classes_, self.model_)])


def _outputs(classes: Array, model: Model) -> Int64Array:
    """Return the outputs of a model that stand for classes: by number, by name, else in order."""
    names, labels = model.class_names or (), classes.tolist()
    known = names if classes.dtype.kind in "UO" else range(model.told_classes)
    others = [label for label in labels if label not in known]
    if not others:
        return np.array([known.index(label) for label in labels], np.int64)
    if not names and len(labels) <= model.told_classes:
        return np.arange(len(labels))
    has = f"the model's classes are {', '.join(names)}" if names else f"it has {model.output_text}"
    raise ValueError(
        f"y has the label {others[0]!r}, no class of the model: {has}; "
        f"PmtClassifier(pmt.load(path, classes={len(labels)})) learns any labels"
    )


def _images(images: npt.ArrayLike, model: Model) -> Array:
    """Return images, flat rows of pixels as images of the model's shape; float64 as float32."""
    given = as_inputs("X", checked_array("X", images))
    shape = model.image_shape
    if given.ndim == 2 and given.shape[1] == np.prod(shape):
        return given.reshape(len(given), *shape)
    return given
