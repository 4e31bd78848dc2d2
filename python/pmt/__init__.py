"""pmt: train int8 networks without back-propagation."""

from __future__ import annotations

import logging
import sys
from typing import TYPE_CHECKING

from pmt import callbacks, corruptions, datasets, errors, methods
from pmt._core import __version__
from pmt._util.lazy import lazy_names
from pmt._util.native_files import get_cmake_dir, get_include
from pmt.baselines import backprop
from pmt.model import Confusion, Evaluation, ImageScores, Model
from pmt.model.loading import list_models, load
from pmt.net.input_stage import Filter, InputStage
from pmt.protocol.comparison import Comparison, compare
from pmt.train.costs.work import Cost
from pmt.train.engine import Engine
from pmt.train.learner import Learner
from pmt.train.options import PRESETS, TrainingOptions, preset
from pmt.train.prepare import align, choose_input_stage, statistics
from pmt.train.run.folder import RunFolder
from pmt.train.run.result import RunResult
from pmt.train.zo_trainer import ZOTrainer

if TYPE_CHECKING:
    from pmt import plots, protocol, quantization, sheets, sklearn
    from pmt.firmware.export import export, export_learner
    from pmt.quantization import from_keras, from_torch, quantize_model
    from pmt.train.choose import select_block
else:
    __getattr__ = lazy_names(
        __name__,
        {
            "export": "pmt.firmware.export",
            "export_learner": "pmt.firmware.export",
            "from_keras": "pmt.quantization",
            "from_torch": "pmt.quantization",
            "quantize_model": "pmt.quantization",
            "select_block": "pmt.train.choose",
        },
    )

logging.getLogger(__name__).addHandler(logging.NullHandler())

# So that `from pmt.backprop import BackpropTrainer` finds what `pmt.backprop` is.
sys.modules[f"{__name__}.backprop"] = backprop

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
    "align",
    "backprop",
    "callbacks",
    "choose_input_stage",
    "compare",
    "corruptions",
    "datasets",
    "errors",
    "export",
    "export_learner",
    "from_keras",
    "from_torch",
    "get_cmake_dir",
    "get_include",
    "list_models",
    "load",
    "methods",
    "plots",
    "preset",
    "protocol",
    "quantization",
    "quantize_model",
    "select_block",
    "sheets",
    "sklearn",
    "statistics",
]


def __dir__() -> list[str]:
    """Return only the public names; modules that these imported are left out."""
    return sorted(__all__)
