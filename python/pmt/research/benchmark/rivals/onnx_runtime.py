"""ONNX Runtime on the network as an int8 QDQ model."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt

from pmt.formats.onnx.exporter import onnx_model
from pmt.model import Model
from pmt.research.benchmark.rivals.rival import missing

__all__ = ["OnnxRuntime"]


class OnnxRuntime:
    """Sessions of the CPU provider, one for each number of threads.

    Activations are uint8, which ONNX Runtime has the faster kernels for. On x86 without VNNI its
    products saturate unless ``exact`` asks for its slower kernels.
    """

    takes_batches = True

    def __init__(self, model: Model, *, exact: bool = False) -> None:
        try:
            import onnxruntime
        except ImportError:
            raise missing("onnxruntime") from None
        self.runtime = onnxruntime
        self.exact = exact
        mode = ", exact" if exact else ""
        self.title = f"ONNX Runtime {onnxruntime.__version__}, int8{mode}"
        try:
            self.serialised = onnx_model(model.to_graph(), unsigned=True)
        except ImportError:
            raise missing("onnx") from None
        self.sessions: dict[int, Any] = {}

    def runner(
        self, images: npt.NDArray[np.int8], batch: int, threads: int
    ) -> Callable[[], npt.NDArray[np.generic]]:
        """Prepare a forward; see :class:`pmt.research.benchmark.rivals.Rival`."""
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
                self.serialised, options, providers=["CPUExecutionProvider"]
            )
        return self.sessions[threads]
