"""A model that runs, and how to load one."""

from pmt.model.loading import BUNDLED_MODELS, ConvertedFile, convert, load
from pmt.model.model import Evaluation, ImageScores, Layer, Model, scores_of_logits

__all__ = [
    "BUNDLED_MODELS",
    "ConvertedFile",
    "Evaluation",
    "ImageScores",
    "Layer",
    "Model",
    "convert",
    "load",
    "scores_of_logits",
]
