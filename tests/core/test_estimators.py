"""The estimators against exact gradients and the formulas of their variance.

On `smooth_network` the loss is smooth in the head's weights and in the convolution's nodes, and its
exact gradient is a matrix product, so the theory of random-direction estimates holds without the
rounding noise of an int8 network.
"""

import math

import numpy as np
import pytest
from networks import labels, pixels, smooth_network

from pmt import _core
from pmt.train.options import preset


def softmax(logits):
    e = np.exp(logits - logits.max(axis=1, keepdims=True))
    return e / e.sum(axis=1, keepdims=True)


def exact_gradients(model, images, y):
    """Gradients of the mean loss by the head's weights and biases and by each image's nodes."""
    tensors = model.core.tensors()
    x = np.stack([model.core.activations(image)[1] for image in images]).astype(np.float64)
    weights = model.core.weights(1).astype(np.float64)
    scale = tensors[1]["scale"] * model.core.weight_scales(1).astype(np.float64)
    flat = x.reshape(len(x), -1) - tensors[1]["zero_point"]
    logits = (flat @ weights.T + model.core.bias(1)) * scale
    error = softmax(logits)
    error[np.arange(len(y)), y] -= 1.0
    error *= scale
    nodes = (error @ weights).reshape(x.shape)
    return error.T @ flat / len(y), error.mean(axis=0), nodes


def estimates(model, images, y, layers, layer, steps, **options):
    chosen = preset("paper", **{"generator": "philox", "sharing": "per_sample", **options})
    trainer = _core.Trainer(model.core, chosen.to_core(), layers, len(y), 1)
    return [trainer.estimate(images, y, step, layer) for step in range(steps)]


@pytest.fixture(scope="module")
def problem():
    model = smooth_network()
    images = model.prepare(pixels(model, 1))
    return model, images, labels(model, 1)


def test_closed_form_is_the_exact_gradient_of_the_head():
    model = smooth_network()
    images, y = model.prepare(pixels(model, 5)), labels(model, 5)
    weights, bias, _ = exact_gradients(model, images, y)
    ((estimate_w, estimate_b),) = estimates(model, images, y, [1], 0, 1, rule="node")
    np.testing.assert_allclose(estimate_w.reshape(weights.shape), weights, rtol=2e-4, atol=2e-8)
    np.testing.assert_allclose(estimate_b, bias, rtol=2e-4, atol=2e-8)


def assert_unbiased(samples, exact):
    """The projection on the true gradient has mean 1."""
    projection = np.array(samples) @ exact / (exact @ exact)
    error = projection.std(ddof=1) / math.sqrt(len(samples))
    assert abs(projection.mean() - 1.0) < 3 * error + 0.01


@pytest.mark.parametrize(
    ("count", "layers", "options"),
    [
        *(
            (1, [1], {"baseline": baseline, "generator": generator, "train_bias": False})
            for baseline in ("clean", "leave_one_out")
            for generator in ("philox", "xorshift32")
        ),
        (4, [1], {"sharing": "batch"}),
        (2, [0, 1], {"scope": "model_wise"}),  # all layers from the same queries
    ],
)
def test_weight_perturbation_is_unbiased(count, layers, options):
    model = smooth_network()
    images, y = model.prepare(pixels(model, count)), labels(model, count)
    exact = exact_gradients(model, images, y)[0].ravel()
    found = estimates(
        model, images, y, layers, len(layers) - 1, 300, rule="weight", queries=16, **options
    )
    assert_unbiased([weights for weights, _ in found], exact)


def test_node_perturbation_applies_the_exact_chain_rule(problem):
    """grad W = s_x s_w / s_y * sum over positions of the node gradient times (x - zero point)."""
    model, images, y = problem
    tensors = model.core.tensors()
    nodes = exact_gradients(model, images, y)[2][0]
    effective = tensors[0]["scale"] * model.core.weight_scales(0) / tensors[1]["scale"]
    padded = np.pad(images[0].astype(np.float64), ((1, 1), (1, 1), (0, 0)))
    patches = np.lib.stride_tricks.sliding_window_view(padded, (3, 3), axis=(0, 1))
    exact = np.einsum("yxc,yxikl->ckli", nodes, patches) * effective[:, None, None, None]
    steps = 300
    samples = estimates(model, images, y, [0], 0, steps, rule="node", queries=16)
    assert_unbiased([w for w, _ in samples], exact.ravel())
    bias = np.array([b for _, b in samples])
    exact_bias = nodes.sum(axis=(0, 1)) * effective
    error = bias.std(axis=0, ddof=1) / math.sqrt(steps)
    assert (np.abs(bias.mean(axis=0) - exact_bias) < 4 * error + 1e-7).all()


def test_saturated_nodes_get_no_gradient(problem):
    model, images, y = problem
    graph = model.to_graph()
    graph.ops[0].bias = np.array([10**6, 0, 0, 0], np.int32)  # channel 0 stands at the clamp
    clamped = type(model).from_graph(graph)
    ((weights, bias),) = estimates(clamped, images, y, [0], 0, 1, rule="node", queries=16)
    assert (weights.reshape(4, -1)[0] == 0).all()
    assert bias[0] == 0
    assert (weights.reshape(4, -1)[1] != 0).any()


def test_bias_perturbation_estimates_the_bias_gradient(problem):
    model, images, y = problem
    exact = exact_gradients(model, images, y)[1]
    options = {"rule": "weight", "queries": 16, "baseline": "leave_one_out"}
    samples = np.array([b for _, b in estimates(model, images, y, [1], 0, 400, **options)])
    error = samples.std(axis=0, ddof=1) / math.sqrt(400)
    assert (np.abs(samples.mean(axis=0) - exact) < 4 * error + 0.02 * np.abs(exact)).all()
