"""Other engines that run the same network in the same process."""

from __future__ import annotations

from collections.abc import Callable
from importlib import metadata
from pathlib import Path
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from pmt._util.extras import missing_extra
from pmt._util.text import did_you_mean
from pmt.formats.onnx.exporter import onnx_model
from pmt.formats.tflite.exporter import tflite_model
from pmt.model import Model

__all__ = ["RIVALS", "Rival", "open_rivals"]

RIVALS = ("onnxruntime", "litert", "torch")


class Rival(Protocol):
    """An engine with a network.

    ``title`` says what runs, with its version; ``takes_batches`` whether several images at once.
    """

    title: str
    takes_batches: bool

    def runner(
        self, images: npt.NDArray[np.int8], batch: int, threads: int
    ) -> Callable[[], npt.NDArray[np.generic]]:
        """Prepare a forward of images, ``batch`` at once.

        The images are brought into the engine's own layout and type here, not in the call. The
        call returns one row of outputs per image.
        """
        ...

    def int8_outputs(self, outputs: npt.NDArray[np.generic]) -> npt.NDArray[np.generic] | None:
        """Turn outputs into the network's int8 outputs; None where they are something else."""
        ...


def open_rivals(name: str, model: Model, path: str | Path) -> list[Rival]:
    """Give an engine of :data:`RIVALS` the model; return it once for every mode worth comparing.

    ``path`` is the file that the model was read from; a ``.tflite`` is what LiteRT then runs.

    Raises
    ------
    ValueError, ImportError
        If the engine is unknown, or its packages are missing.
    """
    if name == "onnxruntime":
        return [OnnxRuntime(model), OnnxRuntime(model, exact=True)]
    if name == "litert":
        return [LiteRT(model, path)]
    if name == "torch":
        from pmt_lab.benchmark.torch_rival import TorchFloat

        return [TorchFloat(model)]
    raise ValueError(f"--against {name!r} is unknown{did_you_mean(name, RIVALS)}")


class OnnxRuntime:
    """ONNX Runtime's CPU provider on the network as an int8 QDQ model.

    Activations are uint8, which ONNX Runtime has the faster kernels for. On x86 without VNNI its
    products saturate unless ``exact`` asks for its slower kernels.
    """

    takes_batches = True

    def __init__(self, model: Model, *, exact: bool = False) -> None:
        try:
            import onnxruntime
        except ImportError:
            raise _missing("onnxruntime") from None
        self.runtime = onnxruntime
        self.exact = exact
        mode = ", exact" if exact else ""
        self.title = f"ONNX Runtime {onnxruntime.__version__}, int8{mode}"
        try:
            self.serialized = onnx_model(model.to_graph(), unsigned=True)
        except ImportError:
            raise _missing("onnx") from None
        self.sessions: dict[int, Any] = {}

    def runner(
        self, images: npt.NDArray[np.int8], batch: int, threads: int
    ) -> Callable[[], npt.NDArray[np.generic]]:
        """Prepare a forward; see :class:`Rival`."""
        session = self._session(threads)
        name = session.get_inputs()[0].name
        values = (images.astype(np.int16) + 128).astype(np.uint8)
        nchw = np.ascontiguousarray(values.transpose(0, 3, 1, 2))
        parts = [nchw[i : i + batch] for i in range(0, len(nchw), batch)]

        def run() -> npt.NDArray[np.generic]:
            outputs = [session.run(None, {name: part})[0] for part in parts]
            return np.concatenate(outputs).reshape(len(images), -1)

        return run

    def int8_outputs(self, outputs: npt.NDArray[np.generic]) -> npt.NDArray[np.generic] | None:
        """Return the outputs without the offset of uint8."""
        return outputs.astype(np.int16) - 128

    def _session(self, threads: int) -> Any:
        if threads not in self.sessions:
            options = self.runtime.SessionOptions()
            options.intra_op_num_threads = threads
            options.inter_op_num_threads = 1
            options.add_session_config_entry("session.x64quantprecision", str(int(self.exact)))
            self.sessions[threads] = self.runtime.InferenceSession(
                self.serialized, options, providers=["CPUExecutionProvider"]
            )
        return self.sessions[threads]


class LiteRT:
    """LiteRT (once TensorFlow Lite) with XNNPACK, its default on CPUs.

    A model that came from a ``.tflite`` file is run as that file; another is written as one.
    """

    def __init__(self, model: Model, path: str | Path) -> None:
        try:
            from ai_edge_litert import interpreter
        except ImportError:
            raise _missing("ai-edge-litert") from None
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
        """Prepare a forward; see :class:`Rival`."""
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


def _missing(package: str) -> ImportError:
    return missing_extra(f"--against needs the package {package}", "bench")
