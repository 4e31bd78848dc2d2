"""Before the first step: alignment to new images, and the linear head trained alone."""

from pmt.train.prepare.alignment import Alignment, align, align_model
from pmt.train.prepare.clean_statistics import (
    CleanStatistics,
    MeasuredModel,
    measure_statistics,
    store_statistics,
    with_statistics,
    without_statistics,
)
from pmt.train.prepare.preparation import PREPARATIONS

__all__ = [
    "PREPARATIONS",
    "Alignment",
    "CleanStatistics",
    "MeasuredModel",
    "align",
    "align_model",
    "measure_statistics",
    "store_statistics",
    "with_statistics",
    "without_statistics",
]
