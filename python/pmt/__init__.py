"""pmt: train int8 networks without back-propagation."""

from pmt import corruptions, datasets, methods
from pmt._core import __version__
from pmt._util.native_files import get_cmake_dir, get_include
from pmt.baselines import backprop
from pmt.model import Confusion, Evaluation, ImageScores, Model
from pmt.model.loading import load
from pmt.net.input_stage import Filter, InputStage
from pmt.protocol.comparison import Comparison, compare
from pmt.train import callbacks
from pmt.train.engine import Engine
from pmt.train.learner import Learner
from pmt.train.options import PRESETS, TrainingOptions, preset
from pmt.train.run.folder import RunFolder
from pmt.train.run.result import RunResult
from pmt.train.zo_trainer import Cost, ZOTrainer

__all__ = [
    "PRESETS",
    "Comparison",
    "Confusion",
    "Cost",
    "Engine",
    "Evaluation",
    "Filter",
    "ImageScores",
    "InputStage",
    "Learner",
    "Model",
    "RunFolder",
    "RunResult",
    "TrainingOptions",
    "ZOTrainer",
    "__version__",
    "backprop",
    "callbacks",
    "compare",
    "corruptions",
    "datasets",
    "get_cmake_dir",
    "get_include",
    "load",
    "methods",
    "preset",
]


def __dir__() -> list[str]:
    """Return only the public names; modules that these imported are left out."""
    return sorted(__all__)
