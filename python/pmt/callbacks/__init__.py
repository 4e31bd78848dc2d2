"""Callbacks of a run: their events, how they stop it, and the ones that come with pmt."""

from pmt.callbacks.events import (
    Callback,
    CallbackLike,
    EpochEnd,
    Event,
    PhaseEnd,
    StepEnd,
    StopTraining,
)
from pmt.callbacks.ready_made import EarlyStopping, TensorBoardLog

__all__ = [
    "Callback",
    "CallbackLike",
    "EarlyStopping",
    "EpochEnd",
    "Event",
    "PhaseEnd",
    "StepEnd",
    "StopTraining",
    "TensorBoardLog",
]
