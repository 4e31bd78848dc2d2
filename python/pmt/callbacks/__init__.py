"""Callbacks of a run: their events, how they stop it, and the ones that come with pmt."""

from __future__ import annotations

from pmt.callbacks.events import (
    Callback,
    CallbackLike,
    EpochEnd,
    Event,
    PhaseEnd,
    StepEnd,
    StopTraining,
)
from pmt.callbacks.ready_made import CsvLog, EarlyStopping, ProgressBar, TensorBoardLog

__all__ = [
    "Callback",
    "CallbackLike",
    "CsvLog",
    "EarlyStopping",
    "EpochEnd",
    "Event",
    "PhaseEnd",
    "ProgressBar",
    "StepEnd",
    "StopTraining",
    "TensorBoardLog",
]
