"""Small ONNX models, node by node, and what ONNX Runtime computes of them."""

import warnings
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytest.importorskip("onnx")
import onnx
from onnx import TensorProto, helper, numpy_helper


class Network:
    """A graph in the making: every method call adds a node and returns its output's name."""

    def __init__(self, seed: int = 0, *, opset: int = 17) -> None:
        self.rng = np.random.default_rng(seed)
        self.opset = opset
        self.nodes: list[Any] = []
        self.constants: list[Any] = []

    def constant(self, values: Any, dtype: Any = None) -> str:
        name = f"c{len(self.constants)}"
        array = np.asarray(values, dtype)
        if array.dtype == np.float64 and dtype is None:
            array = array.astype(np.float32)
        self.constants.append(numpy_helper.from_array(array, name))
        return name

    def weights(self, *shape: int, scale: float = 0.4) -> str:
        return self.constant(self.rng.normal(0, scale, shape).astype(np.float32))

    def add(self, kind: str, inputs: Sequence[str], *, output: str = "", **attributes: Any) -> str:
        output = output or f"v{len(self.nodes)}"
        self.nodes.append(
            helper.make_node(kind, list(inputs), [output], name=f"n{len(self.nodes)}", **attributes)
        )
        return output

    def conv(
        self, x: str, channels: int, out: int, side: int = 3, *, group: int = 1, **attributes: Any
    ) -> str:
        inputs = [x, self.weights(out, channels // group, side, side), self.weights(out)]
        return self.add("Conv", inputs, group=group, **attributes)

    def batch_norm(self, x: str, channels: int, **attributes: Any) -> str:
        draw = self.rng.uniform
        parts = [draw(-1, 1, channels), draw(-1, 1, channels), draw(-1, 1, channels)]
        inputs = [x, *map(self.constant, [*parts, draw(0.5, 2, channels)])]
        return self.add("BatchNormalization", inputs, epsilon=1e-3, **attributes)

    def quantized(self, x: str, scale: Any, zero: Any, **axis: int) -> str:
        """Quantize to int8 and back."""
        parts = [self.constant(np.float32(scale)), self.constant(np.asarray(zero, np.int8))]
        steps = self.add("QuantizeLinear", [x, *parts], **axis)
        return self.add("DequantizeLinear", [steps, *parts], **axis)

    def head(self, x: str, features: int, classes: int = 4) -> str:
        flat = self.add("Flatten", [x])
        inputs = [flat, self.weights(classes, features), self.weights(classes)]
        return self.add("Gemm", inputs, transB=1)

    def model(
        self,
        output: str,
        shape: Sequence[int | str] = ("n", 3, 8, 8),
        *,
        dtype: int = TensorProto.FLOAT,
        out_dtype: int = TensorProto.FLOAT,
    ) -> Any:
        graph = helper.make_graph(
            self.nodes,
            "test",
            [helper.make_tensor_value_info("x", dtype, list(shape))],
            [helper.make_tensor_value_info(output, out_dtype, None)],
            self.constants,
        )
        opsets = [helper.make_opsetid("", self.opset)]
        return helper.make_model(graph, opset_imports=opsets, ir_version=8)

    def save(self, path: Path, output: str, *args: Any, **options: Any) -> Path:
        onnx.save(self.model(output, *args, **options), path)
        return path


def quantized_statically(
    source: Path, batches: Iterable[np.ndarray], activations: str = "QInt8", **options: Any
) -> Path:
    """Return ``int8.onnx`` beside a float file, which ONNX Runtime quantized on some batches."""
    pytest.importorskip("onnxruntime")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        from onnxruntime.quantization import CalibrationDataReader, QuantType, quantize_static

        left = iter(batches)

        class Batches(CalibrationDataReader):
            def get_next(self):
                batch = next(left, None)
                return None if batch is None else {"x": batch}

        path = source.with_name("int8.onnx")
        types = {"activation_type": QuantType[activations], "weight_type": QuantType.QInt8}
        quantize_static(source, path, Batches(), **types, **options)
    return path


def session(path: Path, *, optimized: bool = False) -> Any:
    """An ONNX Runtime session on one thread, node by node unless optimized."""
    runtime = pytest.importorskip("onnxruntime")
    options = runtime.SessionOptions()
    options.intra_op_num_threads = 1
    options.log_severity_level = 4
    levels = runtime.GraphOptimizationLevel
    options.graph_optimization_level = (
        levels.ORT_ENABLE_ALL if optimized else levels.ORT_DISABLE_ALL
    )
    return runtime.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])


def run(path: Path, inputs: np.ndarray, *, optimized: bool = False) -> np.ndarray:
    """The output of ONNX Runtime, ``(N, ...)``; ``inputs`` as the file wants them."""
    ready = session(path, optimized=optimized)
    (given,) = ready.get_inputs()
    batch = given.shape[0]
    step = batch if isinstance(batch, int) else len(inputs)
    parts = [
        ready.run(None, {given.name: inputs[i : i + step]})[0] for i in range(0, len(inputs), step)
    ]
    return np.concatenate(parts)
