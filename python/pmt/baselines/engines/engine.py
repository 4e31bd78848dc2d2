"""Inference engines: the interface that training by losses needs, and the core behind it."""

from __future__ import annotations

from typing import Protocol

import numpy as np
import numpy.typing as npt

from pmt import _core
from pmt._util.processes import thread_count
from pmt.model import Model

__all__ = ["CoreEngine", "Engine"]


class Engine(Protocol):
    """An inference engine: weights go in, the losses of images come out.

    Nothing else is asked of it: no gradient, no activation, no part of a network.
    """

    @property
    def model(self) -> Model:
        """The network's layers, shapes and scales; its weights need not be those of the engine."""

    @property
    def int8_logits(self) -> bool:
        """Whether losses are of the int8 output, not of the last layer's accumulators."""

    def parameters(self, layer: int) -> tuple[npt.NDArray[np.int8], npt.NDArray[np.int32]]:
        """Return copies of a layer's weights and biases.

        Parameters
        ----------
        layer : int
            Op index, as in ``model.layers``.

        Returns
        -------
        weights : ndarray of int8
            Shaped as ``model.core.weights(layer)``.
        bias : ndarray of int32, shape (channels,)
            In units of the input's scale times the channel's weight scale.
        """

    def set_parameters(
        self, layer: int, weights: npt.NDArray[np.int8], bias: npt.NDArray[np.int32]
    ) -> None:
        """Replace a layer's weights and biases.

        Parameters
        ----------
        layer : int
            Op index.
        weights : ndarray of int8
            As in :meth:`parameters`.
        bias : ndarray of int32, shape (channels,)
            As in :meth:`parameters`.

        Raises
        ------
        ValueError
            If there is no such layer, or a type or shape is wrong.
        """

    def losses(
        self, images: npt.NDArray[np.int8], labels: npt.NDArray[np.int64]
    ) -> tuple[npt.NDArray[np.int32], int]:
        """Run the network.

        Parameters
        ----------
        images : ndarray of int8, shape (n, height, width, channels)
            The network's input, as :meth:`pmt.Model.prepare` returns it.
        labels : ndarray of int64, shape (n,)
            Classes.

        Returns
        -------
        losses : ndarray of int32, shape (n,)
            Softmax cross-entropy in units of 2**-20 nats.
        correct : int
            Images whose largest logit, the first of equal ones, is their class.
        """


class CoreEngine:
    """Runs a model by the core's forward pass.

    Parameters
    ----------
    model : Model
        The model; its weights are the engine's.
    int8_logits : bool
        Take the losses of the int8 output, not of the last layer's accumulators.
    threads : int
        Threads to use, 0 for all. The losses do not depend on it.
    """

    def __init__(self, model: Model, *, int8_logits: bool = False, threads: int = 0) -> None:
        self.model = model
        self.int8_logits = int8_logits
        self.threads = thread_count(threads)

    def parameters(self, layer: int) -> tuple[npt.NDArray[np.int8], npt.NDArray[np.int32]]:
        """Return copies of a layer's weights and biases, see :class:`Engine`."""
        return self.model.core.weights(layer), self.model.core.bias(layer)

    def set_parameters(
        self, layer: int, weights: npt.NDArray[np.int8], bias: npt.NDArray[np.int32]
    ) -> None:
        """Replace a layer's weights and biases, see :class:`Engine`."""
        self.model.core.set_parameters(layer, weights, bias)

    def losses(
        self, images: npt.NDArray[np.int8], labels: npt.NDArray[np.int64]
    ) -> tuple[npt.NDArray[np.int32], int]:
        """Run the model, see :class:`Engine`."""
        logits = self.model.core.logits(images, self.threads, self.int8_logits)
        return _core.cross_entropy(logits, labels)
