"""LiteRT (once TensorFlow Lite) with XNNPACK, its default on CPUs."""

from __future__ import annotations

from collections.abc import Callable
from importlib import metadata
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from pmt.formats.tflite.exporter import tflite_model
from pmt.model import Model
from pmt.research.benchmark.rivals.rival import missing

__all__ = ["LiteRT"]


class LiteRT:
    """An interpreter for each number of images and of threads.

    A model that came from a ``.tflite`` file is run as that file; another is written as one.
    """

    def __init__(self, model: Model, path: str | Path) -> None:
        try:
            from ai_edge_litert import interpreter
        except ImportError:
            raise missing("ai-edge-litert") from None
        self.module = interpreter
        self.title = f"LiteRT {metadata.version('ai-edge-litert')} with XNNPACK, int8"
        from_file = Path(path).suffix.lower() == ".tflite"
        self.content = Path(path).read_bytes() if from_file else tflite_model(model.to_graph())
        output = model.core.tensors()[model.core.output_tensor]
        found = self._interpreter((1, *model.input_shape), 1).get_output_details()[0]
        # A file may go on after what pmt reads as its output, with a softmax.
        self.same_output = bool(np.isclose(found["quantization"][0], output["scale"]))
        self.takes_batches = self._resizes(model.input_shape)

    def runner(
        self, images: npt.NDArray[np.int8], batch: int, threads: int
    ) -> Callable[[], npt.NDArray[np.generic]]:
        """Prepare a forward; see :class:`pmt.research.benchmark.rivals.Rival`."""
        interpreter = self._interpreter((batch, *images.shape[1:]), threads)
        source = interpreter.get_input_details()[0]["index"]
        target = interpreter.get_output_details()[0]["index"]
        parts = [images[i : i + batch] for i in range(0, len(images), batch)]

        def run() -> npt.NDArray[np.generic]:
            outputs = []
            for part in parts:
                interpreter.set_tensor(source, part)
                interpreter.invoke()
                outputs.append(interpreter.get_tensor(target))
            return np.concatenate(outputs).reshape(len(images), -1)

        return run

    def int8_outputs(self, outputs: npt.NDArray[np.generic]) -> npt.NDArray[np.generic] | None:
        """Return the outputs as they are, unless the file does not end where pmt's network does."""
        return outputs if self.same_output else None

    def _interpreter(self, shape: tuple[int, ...], threads: int) -> Any:
        interpreter = self.module.Interpreter(model_content=self.content, num_threads=threads)
        if shape[0] != 1:
            interpreter.resize_tensor_input(interpreter.get_input_details()[0]["index"], shape)
        interpreter.allocate_tensors()
        return interpreter

    def _resizes(self, shape: tuple[int, int, int]) -> bool:
        images = np.zeros((2, *shape), np.int8)
        try:
            return len(self.runner(images, 2, 1)()) == 2
        except (RuntimeError, ValueError):
            return False
