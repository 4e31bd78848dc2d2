"""Inference engines as trainers: whatever gives the loss of a batch for given weights will do.

:class:`EngineTrainer` is zeroth-order training by weight perturbation over an :class:`Engine`;
:class:`CoreEngine` and :class:`TFLiteMicroEngine` are two of them. ``docs/guides/engines.md`` says
what makes an engine, and how far the two agree.
"""

from pmt.baselines.engines.engine import CoreEngine, Engine
from pmt.baselines.engines.tflite_micro import TFLiteMicroEngine
from pmt.baselines.engines.trainer import EngineTrainer

__all__ = ["CoreEngine", "Engine", "EngineTrainer", "TFLiteMicroEngine"]
