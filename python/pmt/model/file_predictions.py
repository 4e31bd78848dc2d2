"""Predictions for image files."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from pmt.datasets.unlabeled import find_files, read_in_blocks
from pmt.model.model import Model
from pmt.model.scores import check_top, most_probable, probabilities

__all__ = ["FilePredictions", "predict_files"]


@dataclass(frozen=True)
class FilePredictions:
    """Predictions, in the order of the files.

    Attributes
    ----------
    files : list of str
        The file of each of N images; of an .npz file ``FILE[index]``.
    labels : ndarray of int64, shape (N, top)
        The most probable labels, the most probable first.
    probabilities : ndarray of float32, shape (N, top)
        Their probabilities.
    class_names : tuple of str or None
        Name of every class, if they are known.
    """

    files: list[str]
    labels: npt.NDArray[np.int64]
    probabilities: npt.NDArray[np.float32]
    class_names: tuple[str, ...] | None

    def class_name(self, label: int) -> str:
        """Return the name of a class, its label where it has none."""
        return str(label) if self.class_names is None else self.class_names[label]

    def to_json(self) -> dict[str, Any]:
        """Return the figures for JSON."""
        return {
            "predictions": [
                {
                    "file": file,
                    "classes": [
                        {
                            "label": int(label),
                            "name": None if self.class_names is None else self.class_names[label],
                            "probability": float(probability),
                        }
                        for label, probability in zip(row, shares, strict=True)
                    ],
                }
                for file, row, shares in zip(
                    self.files, self.labels, self.probabilities, strict=True
                )
            ]
        }


def predict_files(
    model: Model,
    files: Sequence[str | os.PathLike[str]],
    *,
    top: int = 1,
    class_names: Sequence[str] | None = None,
    threads: int = 0,
) -> FilePredictions:
    """Classify image files.

    Parameters
    ----------
    model : Model
        The network.
    files : sequence of str or pathlib.Path
        Image files, folders of them, and .npz files with an array ``images``. Images of another
        size than the model's input are resized, and a gray one is given to a model of three
        channels as three equal ones.
    top : int
        Classes for each image, 1 to the model's.
    class_names : sequence of str, optional
        Name of every class; by default the model's.
    threads : int
        Threads to use; 0 takes all. The result does not depend on it.

    Returns
    -------
    FilePredictions
        Labels and probabilities.

    Raises
    ------
    FileNotFoundError, ValueError, TypeError
        If a file is missing or damaged, an image has more channels than the model takes, ``top`` is
        out of range, there are not as many names as classes, or the model gives features.
    ImportError
        If Pillow is needed and not installed.
    """
    model.check_gives_classes()
    check_top(top, model.classes)
    if class_names is not None and len(class_names) != model.classes:
        raise ValueError(
            f"the model has {model.classes} classes, the data set or list gives "
            f"{len(class_names)} class names; give one name a class"
        )
    names = model.class_names if class_names is None else tuple(class_names)
    height, width, channels = model.input_shape
    found: list[str] = []
    labels, shares = [], []
    for block in read_in_blocks(find_files(files), (height, width), channels, threads=threads):
        logits = model.logits(block.images, threads=threads)
        best = most_probable(logits, top)
        found += block.names
        labels.append(best)
        shares.append(np.take_along_axis(probabilities(logits), best, axis=1))
    return FilePredictions(found, np.concatenate(labels), np.concatenate(shares), names)
