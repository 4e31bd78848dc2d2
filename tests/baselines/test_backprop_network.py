"""The int8 network in torch: the core's bytes forward, the straight-through gradient backward."""

import numpy as np
import pytest
from drawn_graphs import drawn_graph, random_images
from networks import labels, pixels, residual_network, smooth_network
from unrounded_network import UnroundedNetwork

import pmt
from pmt import _core
from pmt.net.graph import Graph, Op, Tensor

torch = pytest.importorskip("torch")

from pmt.baselines.backprop import FloatNetwork, IntegerNetwork, exact_gradient  # noqa: E402

pytestmark = pytest.mark.usefixtures("one_torch_thread")


def int8_activations(network: IntegerNetwork, images: np.ndarray) -> dict[int, np.ndarray]:
    """Compute the bytes of every activation, by tensor."""
    with torch.no_grad():
        centered = network.activations(torch.from_numpy(images))
    zeros = [tensor.zero_point for tensor in network.graph.tensors]
    return {i: (values.numpy() + zeros[i]).astype(np.int8) for i, values in centered.items()}


def assert_the_cores_bytes(model: pmt.Model, images: np.ndarray) -> None:
    network = IntegerNetwork(model)
    found = int8_activations(network, images)
    for n, image in enumerate(images):
        for index, expected in enumerate(model.core.activations(image)):
            np.testing.assert_array_equal(
                found[index][n].ravel(), expected.ravel(), err_msg=f"tensor {index}"
            )
    logits = network(torch.from_numpy(images)).detach().numpy()
    np.testing.assert_array_equal(logits, model.core.logits(images))


@pytest.mark.parametrize("seed", range(60))
def test_drawn_graphs_have_the_cores_bytes(seed):
    graph = drawn_graph(seed)
    assert_the_cores_bytes(pmt.Model.from_graph(graph), random_images(graph, 2, seed))


def test_the_bundled_model_has_the_cores_bytes():
    model = pmt.load("fashion_mnist_dscnn")
    images = pmt.datasets.bundled("test").images[:64]
    assert_the_cores_bytes(model, model.prepare(images))


def test_mcunet_has_the_cores_bytes_dead_channels_included():
    model = pmt.load("cifar10_mcunet")
    assert sum(layer.dead_channels for layer in model.layers) > 0
    rng = np.random.default_rng(0)
    coarse = rng.integers(0, 256, (2, 16, 16, 3)).astype(np.uint8)
    assert_the_cores_bytes(model, model.prepare(coarse.repeat(8, axis=1).repeat(8, axis=2)))


def test_without_a_linear_head_the_logits_are_the_int8_output():
    graph = residual_network().to_graph()
    graph.ops, graph.output, graph.blocks = graph.ops[:-1], 7, {}
    graph.tensors.pop()
    images = random_images(graph, 3)
    assert_the_cores_bytes(pmt.Model.from_graph(graph), images)


def wide_network(taps: int) -> pmt.Model:
    """A dense layer whose accumulators pass 2**24: float32 sums would depend on their order."""
    rng = np.random.default_rng(0)
    head = Op(
        "fully_connected",
        "head",
        (0,),
        1,
        weights=rng.integers(90, 128, (3, taps)).astype(np.int8),
        bias=np.array([0, 2**24 + 1, -(2**31)], np.int32),
        weight_scales=np.array([2e-6, 3e-6, 4e-9], np.float32),
    )
    tensors = [Tensor("input", 1, 1, taps, 0.02, -128), Tensor("logits", 1, 1, 3, 1.0, 0)]
    return pmt.Model.from_graph(Graph(tensors, [head], 0, 1, (0.0,) * 4, (1.0,) * 4))


def test_accumulators_beyond_float32_are_summed_exactly():
    model = wide_network(5000)
    rng = np.random.default_rng(1)
    images = rng.integers(60, 128, (3, 1, 1, 5000)).astype(np.int8)
    assert (images.astype(np.int64) + 128).sum() // 3 * 100 > 2**24
    assert_the_cores_bytes(model, images)


def test_parameters_come_back_as_they_were_stored():
    model = pmt.load("fashion_mnist_dscnn")
    for network in (IntegerNetwork(model), FloatNetwork(model)):
        for layer in model.layers:
            weights, bias = network.parameters_as_integers(layer.index)
            assert (weights.dtype, bias.dtype) == (np.int8, np.int32)
            np.testing.assert_array_equal(weights.ravel(), model.core.weights(layer.index).ravel())
            np.testing.assert_allclose(bias, model.core.bias(layer.index), atol=1)


def test_weights_are_rounded_in_the_forward_pass_and_biases_too():
    model = residual_network()
    images = torch.from_numpy(model.prepare(pixels(model, 4)))
    network = IntegerNetwork(model)
    expected = network(images)
    rng = np.random.default_rng(0)
    with torch.no_grad():
        for parameter in network.parameters():
            parameter += torch.from_numpy(rng.uniform(-0.49, 0.49, parameter.shape))
    assert torch.equal(network(images), expected)


def assert_derivative(model: pmt.Model, images: np.ndarray, wanted: np.ndarray, index: int):
    """Every sample's derivative along random directions, against differences in float64."""
    unrounded = UnroundedNetwork(model.to_graph(), images, wanted)
    op = unrounded.graph.ops[index]
    found = exact_gradient(model, images, wanted, index, chunk=2)
    rng = np.random.default_rng(index)
    for _ in range(2):
        weights, bias = rng.normal(size=op.weights.shape), rng.normal(size=op.bias.shape)
        forth, back = (
            unrounded.loss(index, op.weights + step * weights, op.bias + step * bias)
            for step in (1e-4, -1e-4)
        )
        derivative = (forth - back) / 2e-4
        along = found.sample_weights @ weights.ravel() + found.sample_bias @ bias
        np.testing.assert_allclose(along, derivative, rtol=2e-4, atol=1e-6)
    np.testing.assert_allclose(found.losses, unrounded.loss(index, op.weights, op.bias), rtol=1e-4)


@pytest.mark.parametrize("seed", range(24))
def test_gradients_of_drawn_graphs_are_the_derivative_with_rounding_frozen(seed):
    model = pmt.Model.from_graph(drawn_graph(seed))
    images = random_images(model.to_graph(), 3, seed)
    for layer in model.layers:
        assert_derivative(model, images, labels(model, 3), layer.index)


@pytest.mark.parametrize("index", [0, 2, 5])
def test_gradients_of_a_residual_network(index):
    model = residual_network()
    assert_derivative(model, model.prepare(pixels(model, 3)), labels(model, 3), index)


def test_the_batch_gradient_is_the_mean_of_the_samples():
    model = residual_network()
    images, wanted = model.prepare(pixels(model, 6)), labels(model, 6)
    network = IntegerNetwork(model)
    logits = network(torch.from_numpy(images))
    torch.nn.functional.cross_entropy(logits, torch.from_numpy(wanted)).backward()
    for layer in model.layers:
        found = exact_gradient(model, images, wanted, layer.name, chunk=4)
        key = str(layer.index)
        whole = network.weights[key].grad.numpy().ravel()
        np.testing.assert_allclose(found.weights, whole, rtol=1e-4, atol=1e-7)
        np.testing.assert_allclose(found.bias, network.biases[key].grad, rtol=1e-4, atol=1e-8)
        np.testing.assert_allclose(found.weights, found.sample_weights.mean(axis=0), atol=1e-7)


def test_the_gradient_of_the_head_is_the_cores_closed_form():
    model = residual_network()
    images, wanted = model.prepare(pixels(model, 6)), labels(model, 6)
    core = _core.Trainer(model.core, pmt.TrainingOptions().to_core(), [7], 6)
    assert core.layers()[0]["estimator"] == "closed_form"
    weights, bias = core.estimate(images, wanted, 0, 0)
    found = exact_gradient(model, images, wanted, "head")
    np.testing.assert_allclose(found.weights, weights.ravel(), rtol=1e-3, atol=1e-6)
    np.testing.assert_allclose(found.bias, bias, rtol=1e-3, atol=1e-7)


def test_node_perturbation_comes_close_to_the_gradient_of_a_smooth_network():
    model = smooth_network()
    images, wanted = model.prepare(pixels(model, 4)), labels(model, 4)
    exact = exact_gradient(model, images, wanted, "conv").weights
    options = pmt.TrainingOptions(queries=4096, rule="node", mu_node=1)
    core = _core.Trainer(model.core, options.to_core(), [0], 4)
    estimate = sum(core.estimate(images, wanted, step, 0)[0].ravel() for step in range(4)) / 4
    assert estimate @ exact / np.linalg.norm(estimate) / np.linalg.norm(exact) > 0.99
    assert estimate @ exact / (exact @ exact) == pytest.approx(1.0, abs=0.03)


def test_a_value_on_its_bound_passes_and_a_clipped_one_does_not():
    # One weight, one input: node = x, clamp at 5; the head passes it on to the first of two logits.
    tensors = [Tensor("input", 1, 1, 1, 1.0, 0), Tensor("node", 1, 1, 1, 1.0, 0)]
    tensors.append(Tensor("logits", 1, 1, 2, 1.0, 0))
    one = np.ones(1, np.float32)
    node = Op("conv2d", "node", (0,), 1, clamp=(-5, 5), weights=np.ones((1, 1, 1, 1), np.int8),
              bias=np.zeros(1, np.int32), weight_scales=one)  # fmt: skip
    head = Op("fully_connected", "head", (1,), 2, weights=np.array([[1], [0]], np.int8),
              bias=np.zeros(2, np.int32), weight_scales=np.repeat(one / 64, 2))  # fmt: skip
    model = pmt.Model.from_graph(Graph(tensors, [node, head], 0, 2, (0.0,), (1.0,)))
    images = np.array([4, 5, 6, -5, -6], np.int8).reshape(-1, 1, 1, 1)
    found = exact_gradient(model, images, np.zeros(5, np.int64), "node").sample_weights[:, 0]
    assert (found != 0).tolist() == [True, True, False, True, False]


def test_the_float_network_has_nearly_the_same_loss_and_gradient():
    model = pmt.load("fashion_mnist_dscnn")
    data = pmt.datasets.bundled("test").take(100)
    images, wanted = torch.from_numpy(model.prepare(data.images)), torch.tensor(data.labels)
    integers, floats = IntegerNetwork(model), FloatNetwork(model)
    for network in (integers, floats):
        torch.nn.functional.cross_entropy(network(images), wanted).backward()
    for layer in model.layers:
        key = str(layer.index)
        scales = model.core.weight_scales(layer.index)
        shape = (-1,) if layer.kind == "depthwise_conv2d" else (-1, *[1] * 3)
        # By a weight step: the real gradient times the step.
        real = floats.weights[key].grad.numpy()
        real = (real * scales.reshape(shape[: real.ndim])).ravel()
        found = integers.weights[key].grad.numpy().ravel()
        cosine = found @ real / np.linalg.norm(found) / np.linalg.norm(real)
        assert cosine > 0.9, layer.name
        assert np.linalg.norm(found) / np.linalg.norm(real) == pytest.approx(
            1, abs=0.35
        )  # bounds pass here


def test_the_float_network_is_the_dequantized_graph():
    model = residual_network()
    images = pixels(model, 3)
    floats = FloatNetwork(model)
    found = floats(torch.from_numpy(model.prepare(images))).detach().numpy()
    expected = pmt.quantization.float_logits(pmt.quantization.dequantize(model.to_graph()), images)
    np.testing.assert_allclose(found, expected, rtol=0.02, atol=0.02)


def test_what_names_no_single_layer_is_refused():
    model = smooth_network()
    images, wanted = model.prepare(pixels(model, 2)), labels(model, 2)
    with pytest.raises(ValueError, match="layer='all' are 2 layers; name one"):
        exact_gradient(model, images, wanted, "all")
    with pytest.raises(ValueError, match="2 images and 1 labels"):
        exact_gradient(model, images, wanted[:1], "conv")
    with pytest.raises(ValueError, match="chunk=0 must be 1 or more"):
        exact_gradient(model, images, wanted, "conv", chunk=0)
