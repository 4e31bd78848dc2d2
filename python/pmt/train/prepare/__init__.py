"""Before the first step: an input stage, alignment to new images, and the solved head."""

from pmt.train.prepare.alignment import Alignment, align
from pmt.train.prepare.clean_statistics import (
    CleanStatistics,
    MeasuredModel,
    measure_statistics,
    statistics,
    store_statistics,
    with_statistics,
    without_statistics,
)
from pmt.train.prepare.input_choice import InputChoice, Trial, choose_input_stage
from pmt.train.prepare.preparation import PREPARATIONS
from pmt.train.prepare.unlabeled import AlignedModel, align_model

__all__ = [
    "PREPARATIONS",
    "AlignedModel",
    "Alignment",
    "CleanStatistics",
    "InputChoice",
    "MeasuredModel",
    "Trial",
    "align",
    "align_model",
    "choose_input_stage",
    "measure_statistics",
    "statistics",
    "store_statistics",
    "with_statistics",
    "without_statistics",
]
