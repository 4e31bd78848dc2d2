"""Written ONNX files: what ONNX Runtime makes of them."""

from dataclasses import replace
from typing import Any

import emulator
import numpy as np
import pytest
from drawn_graphs import SEEDS, alone, drawn_graph, int8_outputs, random_images
from networks import residual_network

import pmt
from pmt.formats.onnx.exporter import onnx_model

onnx = pytest.importorskip("onnx")
onnxruntime = pytest.importorskip("onnxruntime")


def outputs(serialized: bytes, images: np.ndarray) -> np.ndarray:
    """Int8 outputs (N, height, width, channels); without VNNI only exact mode does not saturate."""
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    options.add_session_config_entry("session.x64quantprecision", "1")
    session = onnxruntime.InferenceSession(serialized, options, providers=["CPUExecutionProvider"])
    nchw = np.ascontiguousarray(images.transpose(0, 3, 1, 2))
    return session.run(["output"], {"input": nchw})[0].transpose(0, 2, 3, 1)


def test_every_layer_equals_onnx_runtime_and_poolings_differ_by_one_step_at_most():
    seen = set()
    for seed in SEEDS[:30]:
        graph = drawn_graph(seed)
        for op in graph.ops:
            if len(op.inputs) == 2:
                continue
            one = alone(graph, op)
            image = random_images(one, 1, seed)
            found = outputs(onnx_model(one), image).astype(int)
            off = np.abs(found - emulator.run_op(one, one.ops[0], [image]))
            assert off.max() <= (op.kind in ("average_pool", "mean")), (seed, op.name)
            seen.add(op.kind)
    assert len(seen) == 8


def test_drawn_networks_are_sound_and_agree_in_every_op_whose_inputs_agree():
    seen = set()
    for seed in SEEDS[:30]:
        graph = drawn_graph(seed)
        images = random_images(graph, 2, seed)
        model = pmt.Model.from_graph(graph)
        ours = [
            np.stack(values) for values in zip(*map(model.core.activations, images), strict=True)
        ]
        differ = set()
        for place, op in enumerate(graph.ops):
            first = replace(graph, ops=graph.ops[: place + 1], output=op.output, blocks={})
            serialized = onnx_model(first)
            onnx.checker.check_model(onnx.load_from_string(serialized), full_check=True)
            off = np.abs(outputs(serialized, images).ravel().astype(int) - ours[op.output].ravel())
            if off.any():
                differ.add(op.output)
            if differ.isdisjoint(op.inputs):
                assert off.max() <= (op.kind in ("average_pool", "mean")), (seed, op.name)
                seen.add(op.kind)
    assert len(seen) == 10


def test_resnet8_has_the_same_classes(resnet8_path, cifar10_dir):
    model = pmt.load(resnet8_path)
    images = model.prepare(pmt.datasets.load(cifar10_dir, split="test").images[:300])
    found = outputs(onnx_model(model.to_graph()), images).reshape(300, -1).astype(int)
    ours = int8_outputs(model, images)
    assert (found == ours).mean() >= 0.95
    assert (found.argmax(1) == ours.argmax(1)).mean() >= 0.99


def test_what_the_file_says():
    serialized = onnx_model(residual_network().to_graph())
    model: Any = onnx.load_from_string(serialized)
    assert serialized == onnx_model(residual_network().to_graph())
    assert (model.producer_name, model.producer_version) == ("pmt", pmt.__version__)
    assert model.doc_string == "input int8 = pixel - 128"
    assert [end.name for end in (*model.graph.input, *model.graph.output)] == ["input", "output"]
    constants = {constant.name for constant in model.graph.initializer}
    assert {"stem/weights_q", "stem/weights_scale", "stem/bias_q", "head/weights_q"} <= constants
    unsigned = onnx.load_from_string(onnx_model(residual_network().to_graph(), unsigned=True))
    assert unsigned.doc_string == "input int8 = pixel - 128, + 128 as uint8"
