"""Callbacks of a run: their events, how they stop it, and the ones that come with pmt."""

from pmt.callbacks.events import (
    Callback,
    CallbackLike,
    EarlyStopping,
    EpochEnd,
    Event,
    PhaseEnd,
    StepEnd,
    StopTraining,
    TensorBoardLog,
)

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
