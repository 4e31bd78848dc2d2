"""Other engines that run the same network in the same process."""

from __future__ import annotations

from pathlib import Path

from pmt.model import Model
from pmt.research.benchmark.rivals.rival import Rival

__all__ = ["RIVALS", "Rival", "open_rivals"]

RIVALS = ("onnxruntime", "litert", "torch")


def open_rivals(name: str, model: Model, path: str | Path) -> list[Rival]:
    """Give an engine the model.

    Parameters
    ----------
    name : str
        One of ``RIVALS``.
    model : Model
        The network.
    path : str or pathlib.Path
        The file it was read from; a ``.tflite`` is what LiteRT then runs.

    Returns
    -------
    list of Rival
        The engine, ready to run; once for every mode worth comparing.

    Raises
    ------
    ValueError
        If the engine is unknown.
    ImportError
        If its packages are missing.
    """
    if name == "onnxruntime":
        from pmt.research.benchmark.rivals.onnx_runtime import OnnxRuntime

        return [OnnxRuntime(model), OnnxRuntime(model, exact=True)]
    if name == "litert":
        from pmt.research.benchmark.rivals.litert import LiteRT

        return [LiteRT(model, path)]
    if name == "torch":
        from pmt.research.benchmark.rivals.torch import TorchFloat

        return [TorchFloat(model)]
    raise ValueError(f"--against {name!r} is unknown; choose one of {', '.join(RIVALS)}")
