"""Other engines that run the same network in the same process."""

from collections.abc import Callable
from importlib import metadata
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from pmt._util.extras import import_extra
from pmt.formats.onnx.exporter import onnx_model
from pmt.formats.tflite.exporter import tflite_model
from pmt.model import Model
from pmt_lab.files import did_you_mean

RIVALS = ("onnxruntime", "litert", "torch")

Array = npt.NDArray[np.generic]


class Rival:
    """An engine with a network.

    ``title`` says what runs, with its version; ``takes_batches`` whether several images at once.
    """

    title: str
    takes_batches = True

    def runner(
        self, images: npt.NDArray[np.int8], batch: int, threads: int
    ) -> Callable[[], npt.NDArray[Any]]:
        """Prepare a forward of images, ``batch`` at once.

        The images are brought into the engine's own layout and type here, not in the call. The
        call returns one row of outputs per image.
        """
        forward = self._forward((batch, *images.shape[1:]), threads)
        own = self._prepared(images)
        parts = [own[i : i + batch] for i in range(0, len(images), batch)]
        return lambda: np.concatenate([forward(part) for part in parts]).reshape(len(images), -1)

    def int8_outputs(self, outputs: npt.NDArray[Any]) -> Array | None:
        """Turn outputs into the network's int8 outputs; None where they are something else."""
        return None

    def _prepared(self, images: npt.NDArray[np.int8]) -> Any:
        """Return images as the engine takes them."""
        return images

    def _forward(self, shape: tuple[int, ...], threads: int) -> Callable[[Any], Array]:
        """Return the function that runs prepared images of this shape."""
        raise NotImplementedError


def open_rivals(name: str, model: Model, path: str | Path) -> list[Rival]:
    """Give an engine of :data:`RIVALS` the model; return it once for every mode worth comparing.

    ``path`` is the file that the model was read from; a ``.tflite`` is what LiteRT then runs. A
    ValueError says that the engine is unknown, an ImportError that its packages are missing.
    """
    if name == "onnxruntime":
        return [OnnxRuntime(model), OnnxRuntime(model, exact=True)]
    if name == "litert":
        return [LiteRT(model, path)]
    if name == "torch":
        import_extra("torch", "--against needs the package torch", "torch")
        from pmt_lab.benchmark.torch_rival import TorchFloat

        return [TorchFloat(model)]
    raise ValueError(f"--against {name!r} is unknown{did_you_mean(name, RIVALS)}")


class OnnxRuntime(Rival):
    """ONNX Runtime's CPU provider on the network as an int8 QDQ model.

    Activations are uint8, which ONNX Runtime has the faster kernels for. On x86 without VNNI its
    products saturate unless ``exact`` asks for its slower kernels.
    """

    def __init__(self, model: Model, *, exact: bool = False) -> None:
        self.runtime = _package("onnxruntime")
        _package("onnx")
        self.exact = exact
        self.title = f"ONNX Runtime {self.runtime.__version__}, int8{', exact' if exact else ''}"
        self.serialized = onnx_model(model.to_graph(), unsigned=True)
        self.sessions: dict[int, Any] = {}

    def int8_outputs(self, outputs: npt.NDArray[Any]) -> Array | None:
        """Return the outputs without the offset of uint8."""
        return outputs.astype(np.int16) - 128

    def _prepared(self, images: npt.NDArray[np.int8]) -> Any:
        values = (images.astype(np.int16) + 128).astype(np.uint8)
        return np.ascontiguousarray(values.transpose(0, 3, 1, 2))

    def _forward(self, shape: tuple[int, ...], threads: int) -> Callable[[Any], Array]:
        if threads not in self.sessions:
            options = self.runtime.SessionOptions()
            options.intra_op_num_threads = threads
            options.inter_op_num_threads = 1
            options.add_session_config_entry("session.x64quantprecision", str(int(self.exact)))
            self.sessions[threads] = self.runtime.InferenceSession(
                self.serialized, options, providers=["CPUExecutionProvider"]
            )
        session = self.sessions[threads]
        name = session.get_inputs()[0].name
        return lambda part: session.run(None, {name: part})[0]


class LiteRT(Rival):
    """LiteRT (once TensorFlow Lite) with XNNPACK, its default on CPUs.

    A model that came from a ``.tflite`` file is run as that file; another is written as one.
    """

    def __init__(self, model: Model, path: str | Path) -> None:
        self.module = _package("ai_edge_litert.interpreter", "ai-edge-litert")
        self.title = f"LiteRT {metadata.version('ai-edge-litert')} with XNNPACK, int8"
        from_file = Path(path).suffix.lower() == ".tflite"
        self.content = Path(path).read_bytes() if from_file else tflite_model(model.to_graph())
        output = model.core.tensors()[model.core.output_tensor]
        found = self._interpreter((1, *model.input_shape), 1).get_output_details()[0]
        # A file may go on after what pmt reads as its output, with a softmax.
        self.same_output = bool(np.isclose(found["quantization"][0], output["scale"]))
        self.takes_batches = self._resizes(model.input_shape)

    def int8_outputs(self, outputs: npt.NDArray[Any]) -> Array | None:
        """Return the outputs as they are, unless the file does not end where pmt's network does."""
        return outputs if self.same_output else None

    def _forward(self, shape: tuple[int, ...], threads: int) -> Callable[[Any], Array]:
        interpreter = self._interpreter(shape, threads)
        source = interpreter.get_input_details()[0]["index"]
        target = interpreter.get_output_details()[0]["index"]

        def run(part: Any) -> Array:
            interpreter.set_tensor(source, part)
            interpreter.invoke()
            made: Array = interpreter.get_tensor(target)
            return made

        return run

    def _interpreter(self, shape: tuple[int, ...], threads: int) -> Any:
        interpreter = self.module.Interpreter(model_content=self.content, num_threads=threads)
        if shape[0] != 1:
            interpreter.resize_tensor_input(interpreter.get_input_details()[0]["index"], shape)
        interpreter.allocate_tensors()
        return interpreter

    def _resizes(self, shape: tuple[int, int, int]) -> bool:
        try:
            return len(self.runner(np.zeros((2, *shape), np.int8), 2, 1)()) == 2
        except (RuntimeError, ValueError):
            return False


def _package(module: str, package: str = "") -> Any:
    return import_extra(module, f"--against needs the package {package or module}", "bench")
