"""pmt: train int8 networks without back-propagation."""

from pmt import backprop, corruptions, datasets, methods
from pmt._core import __version__
from pmt.loading import load
from pmt.model import Evaluation, ImageScores, Model
from pmt.options import PRESETS, TrainingOptions, preset
from pmt.result import RunResult
from pmt.run_folder import RunFolder
from pmt.trainer import Cost, ZOTrainer

__all__ = [
    "PRESETS",
    "Cost",
    "Evaluation",
    "ImageScores",
    "Model",
    "RunFolder",
    "RunResult",
    "TrainingOptions",
    "ZOTrainer",
    "__version__",
    "backprop",
    "corruptions",
    "datasets",
    "load",
    "methods",
    "preset",
]
