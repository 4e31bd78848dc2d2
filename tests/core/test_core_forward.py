"""The core's forward pass against the NumPy emulation, tensor by tensor."""

import emulator
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from networks import pixels, residual_network, smooth_network

import pmt
from pmt import _core
from pmt.net.graph import Graph, Op, Tensor


def assert_every_tensor_equal(model: pmt.Model, images: np.ndarray) -> None:
    graph = model.to_graph()
    expected = emulator.run(graph, images)
    for n, image in enumerate(images):
        for index, tensor in enumerate(model.core.activations(image)):
            np.testing.assert_array_equal(
                tensor,
                np.asarray(expected[index])[n].reshape(tensor.shape),
                err_msg=f"tensor {index}",
            )
    np.testing.assert_array_equal(model.core.logits(images), emulator.logits(graph, images))


def random_int8(model: pmt.Model, count: int) -> np.ndarray:
    rng = np.random.default_rng(7)
    return rng.integers(-128, 128, (count, *model.input_shape)).astype(np.int8)


@pytest.mark.parametrize("network", [smooth_network, residual_network])
def test_small_networks_equal_the_emulation(network):
    model = network()
    assert_every_tensor_equal(model, random_int8(model, 3))


def test_resnet8_equals_the_emulation_on_random_and_real_images(resnet8_path, cifar10_dir):
    model = pmt.load(resnet8_path)
    real = pmt.datasets.load(cifar10_dir, split="test").take(2)
    assert_every_tensor_equal(model, random_int8(model, 2))
    assert_every_tensor_equal(model, model.prepare(real.images))


def test_mcunet_equals_the_emulation_dead_channels_included(mcunet_path, cifar10_dir):
    model = pmt.load(mcunet_path)
    assert len(model.layers) == 43
    assert model.macs == 22_613_504
    assert sum(layer.dead_channels for layer in model.layers) == 62
    real = pmt.datasets.load(cifar10_dir, split="test").take(1)
    upscaled = real.images.repeat(4, axis=1).repeat(4, axis=2)
    assert_every_tensor_equal(model, random_int8(model, 1))
    assert_every_tensor_equal(model, model.prepare(upscaled))


def test_resnet8_has_its_published_accuracy(resnet8_path, cifar10_dir):
    evaluation = pmt.load(resnet8_path).evaluate(pmt.datasets.load(cifar10_dir, split="test"))
    assert evaluation.n == 1000
    assert abs(evaluation.accuracy - 0.877) <= 0.005


@settings(max_examples=40, deadline=None)
@given(
    height=st.integers(3, 9),
    width=st.integers(3, 9),
    channels=st.integers(1, 9),
    out=st.integers(1, 37),
    kernel=st.tuples(st.integers(1, 3), st.integers(1, 3)),
    stride=st.integers(1, 2),
    pad=st.tuples(*[st.integers(0, 2)] * 4),
    zero=st.integers(-128, 127),
    depthwise=st.booleans(),
    seed=st.integers(0, 2**32 - 1),
)
def test_any_convolution_equals_the_emulation(
    height, width, channels, out, kernel, stride, pad, zero, depthwise, seed
):
    rng = np.random.default_rng(seed)
    padding = tuple(min(p, k - 1) for p, k in zip(pad, (*kernel, *kernel), strict=True))
    out_h = (height + padding[0] + padding[2] - kernel[0]) // stride + 1
    out_w = (width + padding[1] + padding[3] - kernel[1]) // stride + 1
    multiplier = out if not depthwise else 1 + out % 3
    channels_out = channels * multiplier if depthwise else out
    shape = (*kernel, channels_out) if depthwise else (out, *kernel, channels)
    scales = rng.uniform(1e-4, 2e-2, channels_out).astype(np.float32)
    bias = rng.integers(-(2**15), 2**15, channels_out).astype(np.int32)
    scales[0], bias[0] = 3.9e-9, rng.choice([-(2**31), 2**31 - 1])  # a dead channel
    graph = Graph(
        tensors=[
            Tensor("x", height, width, channels, 0.013, zero),
            Tensor("y", out_h, out_w, channels_out, 0.07, -zero - 1),
        ],
        ops=[
            Op(
                "depthwise_conv2d" if depthwise else "conv2d",
                "layer",
                (0,),
                1,
                kernel=kernel,
                stride=(stride, stride),
                padding=padding,
                weights=rng.integers(-127, 128, shape).astype(np.int8),
                bias=bias,
                weight_scales=scales,
            )
        ],
        input=0,
        output=1,
        input_mean=(0.0,) * min(channels, 4),
        input_std=(1.0,) * min(channels, 4),
    )
    model = pmt.Model.from_graph(graph)
    images = rng.integers(-128, 128, (2, height, width, channels)).astype(np.int8)
    expected = emulator.run(graph, images)[1]
    for n in range(2):
        np.testing.assert_array_equal(model.core.activations(images[n])[1], np.asarray(expected)[n])


def test_threads_do_not_change_logits():
    model = residual_network()
    images = pixels(model, 7)
    one = model.logits(images, threads=1)
    for threads in (2, 5):
        np.testing.assert_array_equal(model.logits(images, threads=threads), one)


@pytest.mark.parametrize("name", ["cifar10_mcunet", "cifar10_small"])
def test_images_at_once_do_not_change_a_byte(name):
    """Both take few images through the first ops, and more at once through the others."""
    model = pmt.load(name)
    images = random_int8(model, 11)
    assert _core.Profiler(model.core, images).images > 5
    alone = [model.core.logits(image[None]) for image in images]
    for threads in (1, 2):
        np.testing.assert_array_equal(model.core.logits(images, threads), np.concatenate(alone))
    for op in (3, model.core.op_count - 1):
        alone = [model.core.inputs(image[None], op) for image in images]
        np.testing.assert_array_equal(model.core.inputs(images, op), np.concatenate(alone))


def test_int8_logits_are_the_scaled_output():
    model = residual_network()
    images = pixels(model, 3)
    outputs = np.stack([model.core.activations(i)[8].ravel() for i in model.prepare(images)])
    np.testing.assert_allclose(
        model.logits(images, int8_logits=True), outputs.astype(np.float32) * np.float32(0.1)
    )


def test_wrong_arrays_are_refused_with_shape_and_dtype():
    model = residual_network()
    with pytest.raises(
        TypeError, match="images is an array of float64: must be a NumPy array of uint8"
    ):
        model.logits(np.zeros((1, 8, 8, 3), np.float64))
    with pytest.raises(
        ValueError, match=r"shape \(N, 8, 8, 3\) for this model; got \(1, 9, 8, 3\)"
    ):
        model.logits(np.zeros((1, 9, 8, 3), np.uint8))
    with pytest.raises(TypeError, match="images must be a C-contiguous NumPy array of int8; got"):
        model.core.logits(np.zeros((1, 8, 8, 3), np.float32))
    with pytest.raises(ValueError, match="images must be C-contiguous"):
        model.core.logits(np.zeros((1, 3, 8, 8), np.int8).transpose(0, 2, 3, 1))
    with pytest.raises(ValueError, match=r"labels \(N,\); got \(6,\) and \(2, 1\)$"):
        _core.cross_entropy(np.zeros(6, np.float32), np.zeros((2, 1), np.int64))


def test_cross_entropy_in_fixed_point():
    logits = np.array([[0, 0], [1000, 0], [0, 1000], [2, -1]], np.float32)
    losses, correct = _core.cross_entropy(logits, np.array([0, 0, 0, 1]))
    expected = [np.log(2), 0, 1000, np.log1p(np.exp(3))]
    np.testing.assert_allclose(losses / _core.LOSS_ONE, expected, atol=2e-6)
    assert correct == 2
