"""Written .tflite files: what LiteRT makes of them, and what our reader does."""

import json
from dataclasses import replace

import emulator
import litert_engine
import numpy as np
import pytest
from drawn_graphs import SEEDS, alone, drawn_graph, int8_outputs, random_images
from networks import residual_network, smooth_network

import pmt
from pmt.formats.layers import bounded_bias
from pmt.formats.tflite.exporter import tflite_model
from pmt.net.graph import Graph, Op, Tensor
from pmt.net.pixels import input_formula

tflite = pytest.importorskip("tflite")
pytest.importorskip("ai_edge_litert")


def steps_off(ours: np.ndarray, theirs: np.ndarray) -> np.ndarray:
    return np.abs(ours.reshape(-1).astype(int) - theirs.reshape(-1))


def test_every_layer_equals_xnnpack_and_poolings_differ_by_one_step_at_most():
    seen = set()
    for seed in SEEDS:
        graph = drawn_graph(seed, tflite=True)
        for op in graph.ops:
            if len(op.inputs) == 2:
                continue
            one = alone(graph, op)
            image = random_images(one, 1, seed)
            found = litert_engine.outputs(tflite_model(one), image)
            off = steps_off(emulator.run_op(one, one.ops[0], [image]), found)
            assert off.max() <= (op.kind in ("average_pool", "mean")), (seed, op.name)
            seen.add(op.kind)
    assert len(seen) == 8  # all but the two that read two tensors


@pytest.mark.parametrize("plain", [False, True])
def test_every_op_is_one_step_at_most_from_the_reference_kernels(plain):
    seen = set()
    for seed in SEEDS:
        graph = drawn_graph(seed, plain=plain, tflite=True)
        image = random_images(graph, 1, seed)[0]
        values = litert_engine.activations(tflite_model(graph), graph, image)
        for op in graph.ops:
            ours = emulator.run_op(graph, op, [values[i] for i in op.inputs])
            assert steps_off(ours, values[op.output]).max() <= 1, (seed, op.name)
            seen.add(op.kind)
    assert len(seen) == 10


@pytest.mark.parametrize("network", [residual_network, smooth_network])
def test_small_networks_equal_xnnpack(network):
    model = network()
    images = random_images(model.to_graph(), 20)
    found = litert_engine.outputs(tflite_model(model.to_graph()), images)
    np.testing.assert_array_equal(found, int8_outputs(model, images))


def test_the_bundled_model_equals_xnnpack_on_every_image():
    model, data = pmt.load("fashion_mnist_dscnn"), pmt.datasets.bundled("test")
    images = model.prepare(data.images)
    content = tflite_model(model.to_graph())
    np.testing.assert_array_equal(
        litert_engine.outputs(content, images), int8_outputs(model, images)
    )


def test_the_bundled_model_on_reference_kernels():
    model, data = pmt.load("fashion_mnist_dscnn"), pmt.datasets.bundled("test")
    images = model.prepare(data.images[:300])
    ours = int8_outputs(model, images)
    found = litert_engine.outputs(tflite_model(model.to_graph()), images, reference=True)
    assert steps_off(ours, found).max() <= 2
    assert (ours.argmax(1) == found.argmax(1)).mean() >= 0.99


def test_mcunet_equals_xnnpack_dead_channels_included(mcunet_path, cifar10_dir):
    model = pmt.load(mcunet_path)
    graph = model.to_graph()
    small = pmt.datasets.load(cifar10_dir, split="test").images[:12]
    images = model.prepare(small.repeat(4, axis=1).repeat(4, axis=2))
    content = tflite_model(graph)
    np.testing.assert_array_equal(
        litert_engine.outputs(content, images), int8_outputs(model, images)
    )
    values = litert_engine.activations(content, graph, images[0])
    for op in graph.ops:
        ours = emulator.run_op(graph, op, [values[i] for i in op.inputs])
        assert steps_off(ours, values[op.output]).max() <= 1, op.name


def test_resnet8_is_one_step_at_most_from_litert_in_every_op(resnet8_path, cifar10_dir):
    model = pmt.load(resnet8_path)
    graph = model.to_graph()
    images = model.prepare(pmt.datasets.load(cifar10_dir, split="test").images[:300])
    content = tflite_model(graph)
    ours = int8_outputs(model, images)
    found = litert_engine.outputs(content, images)
    assert (ours.argmax(1) == found.argmax(1)).mean() >= 0.99
    for image in images[:3]:
        values = litert_engine.activations(content, graph, image)
        for op in graph.ops:
            expected = emulator.run_op(graph, op, [values[i] for i in op.inputs])
            assert steps_off(expected, values[op.output]).max() <= 1, op.name


def test_what_the_file_says():
    model = residual_network()
    content = tflite_model(model.to_graph())
    assert content == tflite_model(model.to_graph())
    file = tflite.Model.GetRootAs(content, 0)
    assert (file.Version(), content[4:8]) == (3, b"TFL3")
    described = f"pmt {pmt.__version__}: residual; input int8 = pixel - 128"
    assert file.Description().decode() == described
    versions = {
        file.OperatorCodes(i).BuiltinCode(): file.OperatorCodes(i).Version()
        for i in range(file.OperatorCodesLength())
    }
    assert versions == {0: 2, 3: 3, 4: 3, 9: 4, 40: 2}  # add, conv, depthwise, dense, mean
    graph = file.Subgraphs(0)
    names = [graph.Tensors(i).Name().decode() for i in range(graph.TensorsLength())]
    tensors = [tensor.name for tensor in model.to_graph().tensors]
    assert names[: len(tensors)] == tensors
    assert {"stem/weights", "stem/bias", "head/weights"} <= set(names)
    entry = file.Metadata(0)
    assert entry.Name() == b"pmt"
    told = json.loads(file.Buffers(entry.Buffer()).DataAsNumpy().tobytes())
    assert told["metadata"] == {"name": "residual"}
    assert told["blocks"]["B2"] == ["depth", "project"]
    assert told["input_std"] == [128.0, 128.0, 128.0]


def test_constants_are_aligned():
    content = tflite_model(drawn_graph(3, tflite=True))
    file = tflite.Model.GetRootAs(content, 0)
    start = np.frombuffer(content, np.uint8).__array_interface__["data"][0]
    places = []
    for i in range(1, file.BuffersLength()):
        data = file.Buffers(i).DataAsNumpy()
        places.append((data.__array_interface__["data"][0] - start) % 16)
    assert len(places) > 10
    assert set(places) == {0}


def test_the_signature_runs():
    model = residual_network()
    images = random_images(model.to_graph(), 1)
    engine = litert_engine.interpreter(tflite_model(model.to_graph()))
    found = engine.get_signature_runner("serving_default")(input=images)["output"]
    np.testing.assert_array_equal(found, int8_outputs(model, images))


def test_batches_are_taken():
    for seed in SEEDS[:20]:
        graph = drawn_graph(seed, tflite=True)
        images = random_images(graph, 3, seed)
        content = tflite_model(graph)
        engine = litert_engine.interpreter(content)
        engine.resize_tensor_input(engine.get_input_details()[0]["index"], images.shape)
        engine.allocate_tensors()
        engine.set_tensor(engine.get_input_details()[0]["index"], images)
        engine.invoke()
        found = engine.get_tensor(engine.get_output_details()[0]["index"]).reshape(3, -1)
        np.testing.assert_array_equal(found, litert_engine.outputs(content, images))


def test_an_average_pool_of_another_padding_is_refused():
    x, y = (Tensor(name, 4, 4, 1, 0.1, 0) for name in "xy")
    pool = Op("average_pool", "pool", (0,), 1, kernel=(2, 2), padding=(1, 0, 0, 1))
    with pytest.raises(
        ValueError,
        match=r"op 'pool': a \.tflite file holds no average pool with the padding \(1, 0",
    ):
        tflite_model(Graph([x, y], [pool], 0, 1, (0.0,), (1.0,)))


def test_biases_move_only_where_a_sum_could_wrap():
    lowest, highest = -(2**31), 2**31 - 1
    op = Op(
        "fully_connected", "head", (0,), 1,
        weights=np.array([[0, 0], [3, -4], [3, -4], [3, -4]], np.int8),
        bias=np.array([lowest, lowest, highest, 12345], np.int32),
    )  # fmt: skip
    # 7 steps of weight by at most 255 of input, from zero point -128.
    bounded = bounded_bias(op, Tensor("x", 1, 1, 2, 0.1, -128))
    assert bounded.tolist() == [lowest, lowest + 1785, highest - 1785, 12345]
    assert bounded_bias(replace(op, bias=None), Tensor("x", 1, 1, 2, 0.1, 0)).tolist() == [0] * 4


@pytest.mark.parametrize(
    ("shape", "scale", "zero_point", "mean", "std", "formula"),
    [
        ((4, 4, 3), 1 / 255, -128, (0.0,) * 3, (255.0,) * 3, "int8 = pixel - 128"),
        ((4, 4, 3), 1 / 255, 3, (-5.0,) * 3, (255.0,) * 3, "int8 = pixel + 8"),
        (
            (4, 4, 3),
            1 / 255,
            -14,
            (123.675, 116.28, 103.53),
            (58.395, 57.12, 57.375),
            "int8 = round((pixel - mean) / std / 0.00392156886) - 14, mean (123.675, 116.28, "
            "103.53), std (58.395, 57.12, 57.375), of pixels 0..255 for each channel",
        ),
        # no pixels
        *(
            (shape, 0.25, -3, (125.0,) * 3, (4.0,) * 3, "int8 = round(real / 0.25) - 3")
            for shape in ((1, 1, 36), (1, 128, 3), (3, 3, 256))
        ),
    ],
)
def test_the_formula_of_the_input(shape, scale, zero_point, mean, std, formula):
    tensor = Tensor("x", *shape, float(np.float32(scale)), zero_point)
    assert input_formula(Graph([tensor], [], 0, 0, mean, std)) == formula
