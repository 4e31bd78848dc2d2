"""MCUNet: the float network that its published int8 weights stand for, with a new head."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from pmt import importers
from pmt.graph import Graph, Op
from pmt.quantization import FloatGraph, FloatOp, FloatTensor
from pmt.quantization.float_graph import Activation


def float_graph(archive: Path, classes: int) -> FloatGraph:
    """Read a tiny-training ``.pkl`` and give every int8 value the real number it means."""
    graph = importers.read(archive, classes=classes)
    return FloatGraph(
        tensors=[FloatTensor(t.name, t.height, t.width, t.channels) for t in graph.tensors],
        ops=[_float_op(graph, op) for op in graph.ops],
        input=graph.input,
        output=graph.output,
        input_mean=graph.input_mean,
        input_std=graph.input_std,
        blocks=graph.blocks,
        metadata=graph.metadata,
    )


def _float_op(graph: Graph, op: Op) -> FloatOp:
    result = FloatOp(
        op.kind,
        op.name,
        op.inputs,
        op.output,
        kernel=op.kernel,
        stride=op.stride,
        padding=op.padding,
        activation=_activation(graph, op),
    )
    if op.weights is not None:
        assert op.weight_scales is not None
        assert op.bias is not None
        depthwise = op.kind == "depthwise_conv2d"
        scales = op.weight_scales.reshape(
            (-1,) if depthwise else (-1,) + (1,) * (op.weights.ndim - 1)
        )
        result.weights = op.weights.astype(np.float32) * scales
        input_scale = graph.tensors[op.inputs[0]].scale
        result.bias = (op.bias * input_scale * op.weight_scales.astype(np.float64)).astype(
            np.float32
        )
    return result


def _activation(graph: Graph, op: Op) -> Activation:
    """Where int8 has no negative value, saturation is the ReLU6 of the float network."""
    not_negative = graph.tensors[op.output].zero_point == -128
    return "relu6" if not_negative and op.weights is not None else "none"
