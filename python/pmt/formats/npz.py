"""A network as plain NumPy arrays in one .npz file."""

from __future__ import annotations

import json
from dataclasses import asdict
from typing import Any

import numpy as np
import numpy.typing as npt

from pmt._util.npz import npz_bytes
from pmt.net.graph import Graph, Op, check_graph, is_layer

__all__ = ["layer_arrays", "npz_arrays"]

_ARRAYS = ("weights", "bias", "weight_scales")


def npz_arrays(graph: Graph) -> bytes:
    """Return a graph as an .npz file that ``numpy.load`` reads without pickles.

    Parameters
    ----------
    graph : Graph
        The network.

    Returns
    -------
    bytes
        The arrays of every layer, see :func:`layer_arrays`, as ``LAYER/ARRAY``, and ``graph``, a
        string of JSON: ``tensors`` and ``ops`` with every field of :class:`pmt.net.graph.Tensor`
        and :class:`pmt.net.graph.Op` but the arrays, ``input``, ``output``, ``input_mean``,
        ``input_std``, ``blocks`` and ``metadata``. Equal graphs give equal bytes.

    Raises
    ------
    ValueError
        If the graph contradicts itself.
    """
    check_graph(graph)
    arrays: dict[str, npt.NDArray[Any]] = {"graph": np.array(_structure(graph))}
    for op in graph.ops:
        if is_layer(op):
            for name, values in layer_arrays(graph, op).items():
                arrays[f"{op.name}/{name}"] = values
    return npz_bytes(arrays)


def layer_arrays(graph: Graph, op: Op) -> dict[str, npt.NDArray[Any]]:
    """Return the arrays of one layer.

    Parameters
    ----------
    graph : Graph
        The network.
    op : Op
        One of its layers.

    Returns
    -------
    dict of str to ndarray
        ``weights`` (int8, as in :class:`pmt.net.graph.Op`), ``bias`` (int32, (out,)),
        ``weight_scales`` and ``bias_scales`` (float32, (out,)); of the activations that the layer
        reads and writes, scalars each, ``input_scale`` and ``output_scale`` (float32),
        ``input_zero_point`` and ``output_zero_point`` (int32). Real values are
        ``scale * (q - zero_point)``, with zero point 0 for weights and biases.
    """
    assert op.weights is not None
    assert op.weight_scales is not None
    source, target = graph.tensors[op.inputs[0]], graph.tensors[op.output]
    scales = op.weight_scales.astype(np.float32)
    bias = np.zeros(len(scales), np.int32) if op.bias is None else op.bias
    return {
        "weights": op.weights,
        "bias": bias,
        "weight_scales": scales,
        "bias_scales": np.float32(source.scale) * scales,
        "input_scale": np.array(source.scale, np.float32),
        "input_zero_point": np.array(source.zero_point, np.int32),
        "output_scale": np.array(target.scale, np.float32),
        "output_zero_point": np.array(target.zero_point, np.int32),
    }


def _structure(graph: Graph) -> str:
    fields = Op.__dataclass_fields__
    ops = [{name: getattr(op, name) for name in fields if name not in _ARRAYS} for op in graph.ops]
    structure = {
        "tensors": [asdict(tensor) for tensor in graph.tensors],
        "ops": ops,
        "input": graph.input,
        "output": graph.output,
        "input_mean": graph.input_mean,
        "input_std": graph.input_std,
        "blocks": graph.blocks,
        "metadata": graph.metadata,
    }
    return json.dumps(structure, ensure_ascii=False, allow_nan=False)
