"""What training needs of an inference engine."""

from __future__ import annotations

from typing import Protocol

import numpy as np
import numpy.typing as npt

from pmt.model import Model

__all__ = ["Engine"]


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
            As of :meth:`parameters`.
        bias : ndarray of int32, shape (channels,)
            As of :meth:`parameters`.

        Raises
        ------
        ValueError
            If there is no such layer, or a type or shape is another.
        """

    def losses(
        self, images: npt.NDArray[np.int8], labels: npt.NDArray[np.int64]
    ) -> tuple[npt.NDArray[np.int32], int]:
        """Run the network.

        Parameters
        ----------
        images : ndarray of int8, shape (n, height, width, channels)
            The network's input, as of :meth:`pmt.Model.prepare`.
        labels : ndarray of int64, shape (n,)
            Classes.

        Returns
        -------
        losses : ndarray of int32, shape (n,)
            Softmax cross-entropy in units of 2**-20 nats.
        correct : int
            Images whose largest logit, the first of equal ones, is their class.
        """
