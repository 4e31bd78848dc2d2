"""LiteRT on the bytes of a .tflite file."""

from typing import Any

import numpy as np

from pmt.net.graph import Graph


def interpreter(content: bytes, *, reference: bool = False) -> Any:
    """The engine as it comes, with XNNPACK; or its reference kernels, with every tensor kept."""
    from ai_edge_litert.interpreter import Interpreter, OpResolverType

    if not reference:
        engine = Interpreter(model_content=content)
    else:
        engine = Interpreter(
            model_content=content,
            experimental_op_resolver_type=OpResolverType.BUILTIN_REF,
            experimental_preserve_all_tensors=True,
        )
    engine.allocate_tensors()
    return engine


def outputs(content: bytes, images: np.ndarray, *, reference: bool = False) -> np.ndarray:
    """Int8 outputs (N, ...) of int8 images, one by one."""
    engine = interpreter(content, reference=reference)
    source, target = engine.get_input_details()[0], engine.get_output_details()[0]
    rows = []
    for image in images:
        engine.set_tensor(source["index"], image[None])
        engine.invoke()
        rows.append(engine.get_tensor(target["index"]).reshape(-1))
    return np.array(rows)


def activations(content: bytes, graph: Graph, image: np.ndarray) -> list[np.ndarray]:
    """Every activation (1, height, width, channels) of one int8 image, by reference kernels."""
    engine = interpreter(content, reference=True)
    engine.set_tensor(graph.input, image[None])
    engine.invoke()
    return [
        engine.get_tensor(index).reshape(1, tensor.height, tensor.width, tensor.channels)
        for index, tensor in enumerate(graph.tensors)
    ]
