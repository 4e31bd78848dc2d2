"""A model that runs, and how to load one."""

from pmt.model.layers import Layer
from pmt.model.loading import BUNDLED_MODELS, ConvertedFile, convert, load
from pmt.model.model import Model
from pmt.model.scores import (
    Confusion,
    Evaluation,
    FilePredictions,
    ImageScores,
    predict,
    scores_of_logits,
)

__all__ = [
    "BUNDLED_MODELS",
    "Confusion",
    "ConvertedFile",
    "Evaluation",
    "FilePredictions",
    "ImageScores",
    "Layer",
    "Model",
    "convert",
    "load",
    "predict",
    "scores_of_logits",
]
