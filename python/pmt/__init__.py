"""pmt: train int8 networks without back-propagation."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pmt._util.lazy import lazy_names

if TYPE_CHECKING:
    from pmt import (
        backprop,
        callbacks,
        corruptions,
        datasets,
        errors,
        methods,
        plots,
        protocol,
        quantization,
        sheets,
        sklearn,
    )
    from pmt import baselines as baselines
    from pmt import firmware as firmware
    from pmt import formats as formats
    from pmt import model as model
    from pmt import net as net
    from pmt import profiling as profiling
    from pmt import train as train
    from pmt._core import __version__
    from pmt._util.native_files import get_cmake_dir, get_include
    from pmt.firmware.export import export, export_learner
    from pmt.model import Confusion, Evaluation, ImageScores, Model, predict
    from pmt.model.loading import list_models, load
    from pmt.net.input_stage import Filter, InputStage
    from pmt.protocol.comparison import Comparison, compare
    from pmt.quantization import from_keras, from_torch, quantize
    from pmt.train.choose import select
    from pmt.train.costs.work import Cost
    from pmt.train.engine import Engine
    from pmt.train.learner import Learner
    from pmt.train.options import PRESETS, TrainingOptions, preset
    from pmt.train.prepare import align, choose_input_stage, statistics
    from pmt.train.run.folder import RunFolder
    from pmt.train.run.result import RunResult
    from pmt.train.zo_trainer import ZOTrainer
else:
    # All is imported when it is named: quick, and the command soon handles Ctrl-C.
    __getattr__ = lazy_names(
        __name__,
        {
            "pmt._core": ["__version__"],
            "pmt._util.native_files": ["get_cmake_dir", "get_include"],
            "pmt.firmware.export": ["export", "export_learner"],
            "pmt.model": ["Confusion", "Evaluation", "ImageScores", "Model", "predict"],
            "pmt.model.loading": ["list_models", "load"],
            "pmt.net.input_stage": ["Filter", "InputStage"],
            "pmt.protocol.comparison": ["Comparison", "compare"],
            "pmt.quantization": ["from_keras", "from_torch", "quantize"],
            "pmt.train.choose": ["select"],
            "pmt.train.costs.work": ["Cost"],
            "pmt.train.engine": ["Engine"],
            "pmt.train.learner": ["Learner"],
            "pmt.train.options": ["PRESETS", "TrainingOptions", "preset"],
            "pmt.train.prepare": ["align", "choose_input_stage", "statistics"],
            "pmt.train.run.folder": ["RunFolder"],
            "pmt.train.run.result": ["RunResult"],
            "pmt.train.zo_trainer": ["ZOTrainer"],
        },
    )

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
    "predict",
    "preset",
    "protocol",
    "quantization",
    "quantize",
    "select",
    "sheets",
    "sklearn",
    "statistics",
]


def __dir__() -> list[str]:
    """Return only the public names; modules that these imported are left out."""
    return sorted(__all__)
