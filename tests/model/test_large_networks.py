"""Networks of as many ops as an image may have: looked at in seconds."""

from __future__ import annotations

import time

import numpy as np
import pytest

from pmt.cli import main
from pmt.model import Model
from pmt.net.graph import Graph, Op, Tensor


def deep_network(ops: int, *, residual: bool) -> Model:
    """Return a chain of 1x1 convolutions; residual, every third op is an addition."""
    tensors = [Tensor("input", 8, 8, 4, 0.1, 0)]
    built: list[Op] = []
    while len(built) < ops:
        source, index = len(tensors) - 1, len(built)
        last = index == ops - 1
        tensors.append(Tensor(f"t{index}", 8, 8, 3 if last else 4, 0.1, 0))
        if residual and index % 3 == 2 and not last:
            built.append(Op("add", f"op{index}", (source, source - 2), source + 1))
            continue
        channels = tensors[-1].channels
        weights = np.ones((channels, 1, 1, 4), np.int8)
        scales = np.full(channels, 0.01, np.float32)
        conv = Op("conv2d", f"op{index}", (source,), source + 1)
        conv.weights, conv.weight_scales = weights, scales
        built.append(conv)
    layers = [index for index, op in enumerate(built) if op.kind == "conv2d"]
    blocks = {"all": layers, "head": layers[-1:]}
    graph = Graph(tensors, built, 0, ops, (0.0,) * 4, (1.0,) * 4, blocks)
    return Model.from_graph(graph)


@pytest.mark.parametrize("ops", [256, 1000])
@pytest.mark.parametrize("residual", [False, True])
def test_info_of_many_ops_takes_less_than_two_seconds(tmp_path, capsys, ops, residual):
    path = tmp_path / "deep.pmt"
    deep_network(ops, residual=residual).save(path)
    start = time.process_time()
    assert main(["info", str(path)]) == 0
    assert time.process_time() - start < 2
    training = capsys.readouterr().out.splitlines()[-1]
    peaks = {(256, False): 816, (256, True): 1072, (1000, False): 816, (1000, True): 1328}
    assert training.startswith(f"training  {peaks[ops, residual]:,} bytes of activations, ")
