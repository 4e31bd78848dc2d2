"""Training computes what docs/reference/integers.md says, by the page's own functions."""

from types import SimpleNamespace

import numpy as np
import pytest

import pmt
from pages import code_blocks
from pmt import _core

f32 = np.float32
SEED, STEP, RATE = 7, 3, f32(0.5)


@pytest.fixture(scope="module")
def page():
    (listing,) = (text for kind, text in code_blocks("reference/integers.md") if kind == "python")
    functions = {}
    exec(listing, functions)
    return SimpleNamespace(**functions)


@pytest.mark.parametrize("generator", ["philox", "xorshift32"])
@pytest.mark.parametrize("stream", [(1, 2, 3, 4, 5, 0), (4294967295, 70000, 41, 4095, 255, 2)])
def test_signs(page, generator, stream):
    drawn = _core.signs(generator, *stream, 300)
    of_page = page.philox_signs if generator == "philox" else page.xorshift_signs
    assert of_page(stream, 300) == drawn.tolist()


def test_losses(page):
    logits = np.random.default_rng(0).normal(0, 12, (200, 10)).astype(f32)
    logits[:3] = [[*[0] * 9, 200], [*[1e30] * 2, *[-1e30] * 8], [0.125] * 10]
    losses = []
    for row in logits:
        below = row - row.max()
        total = f32(0)
        for value in below:
            total = total + page.exp(value)
        loss = page.log(total) - below[7]
        losses.append(int(min(max(loss, 0), 1024) * f32(2**20) + f32(0.5)))
    assert losses == _core.cross_entropy(logits, np.full(200, 7))[0].tolist()


def added(values):
    """Return a sum in float32, from the first to the last."""
    return np.cumsum(values, dtype=f32)[-1]


def divided(sums, divisor):
    """Return quotients as integers, halves away from 0."""
    return np.sign(sums) * ((np.abs(sums) + divisor // 2) // divisor)


def one_step(page, layer, data, **options):
    """Return weights and biases before a step, after it by the page, and after it by the core."""
    model = pmt.load("fashion_mnist_dscnn")
    (op,) = model.select_layers(layer)
    chosen = pmt.preset("default", layers=layer, seed=SEED, rule="weight", **options)
    engine = pmt.Engine(model, layers=layer)
    images, labels = model.prepare(data.images), data.labels
    weights, bias = engine.weights(layer), engine.bias(layer)
    shared, queries, n = chosen.sharing == "batch", chosen.queries, len(labels)
    pairs = chosen.pairs == "antithetic"
    directions = queries // 2 if pairs else queries

    def signs(purpose, shape):
        of = page.philox_signs if chosen.generator == "philox" else page.xorshift_signs
        drawn = {
            (q, i): of((SEED, STEP, op, q, i, purpose), int(np.prod(shape)))
            for q in range(directions)
            for i in range(1 if shared else n)
        }
        every = [[drawn[q, 0 if shared else i] for i in range(n)] for q in range(directions)]
        every = np.reshape(every, (directions, n, *shape))
        return np.stack([every, -every], 1).reshape(queries, n, *shape) if pairs else every

    of_weights = signs(page.WEIGHT_SIGNS, weights.shape)
    of_bias = signs(page.BIAS_SIGNS, bias.shape)
    mu_bias = _core.bias_steps(model.core, op, chosen.mu_weight)
    moved = {"bias": (of_bias * mu_bias).astype(np.int32)}
    perturbed = (of_weights * chosen.mu_weight).astype(np.int8)
    losses = engine.losses(images, labels, layer, perturbed, **moved)
    fixed = np.rint(losses.astype(float) * 2**20).astype(np.int64)
    if chosen.baseline == "clean":
        clean = np.rint(engine.losses(images, labels).astype(float) * 2**20).astype(np.int64)
        differences, divisor = fixed - clean, queries
    else:
        differences = fixed - divided(fixed.sum(0), queries)
        divisor = queries if pairs else queries - 1
    images_counted = n
    if shared:
        differences = divided(differences.sum(1, keepdims=True), n)
        of_weights, of_bias, images_counted = of_weights[:, :1], of_bias[:, :1], 1
    sums = np.einsum("qn,qn...->...", differences, of_weights)
    bias_sums = np.einsum("qn,qnc->c", differences, of_bias)

    graph = model.to_graph()
    record = graph.ops[op]
    s_x, s_y = (f32(graph.tensors[i].scale) for i in (record.inputs[0], record.output))
    s_w = model.weight_scales(op)
    alive = s_w >= 1e-6
    mean = f32(1) / (f32(2**20) * f32(images_counted) * f32(divisor))
    factor = mean / f32(chosen.mu_weight) * (f32(1) / (s_w * s_w))
    s_b = s_x * s_w
    bias_factor = mean / mu_bias.astype(f32) * (f32(1) / (s_b * s_b))
    channels = np.moveaxis(sums, -1 if record.kind == "depthwise_conv2d" else 0, 0)
    channels = channels.reshape(len(s_w), -1)
    rate, bias_rate = RATE, RATE * f32(chosen.bias_rate)
    if chosen.step == "normalized":
        values = channels.astype(f32) * factor[:, None]
        squares = added([added(row * row) for row in values[alive]])
        rate = RATE / np.sqrt(squares / f32(values[alive].size))
        values = bias_sums.astype(f32) * bias_factor * (s_b / s_y)
        squares = added(values[alive] ** 2)
        bias_rate = RATE * f32(chosen.bias_rate) / np.sqrt(squares / f32(alive.sum()))
    at = (None, None, slice(None)) if record.kind == "depthwise_conv2d" else (slice(None),)
    at += (None,) * (weights.ndim - len(at))
    updates = (sums.astype(f32) * (factor * rate)[at]).reshape(-1)
    stream = (SEED, STEP, op, 0, 0, page.ROUNDING)
    stochastic = chosen.rounding == "stochastic"
    steps = [
        page.rounded(u, stream, i) if stochastic else np.rint(u) for i, u in enumerate(updates)
    ]
    new = np.clip(weights - np.reshape(steps, weights.shape), -127, 127)
    new_bias = bias - np.rint(bias_sums.astype(f32) * (bias_factor * bias_rate)).astype(np.int64)

    trainer = _core.Trainer(model.core, chosen.to_core(), [op], n)
    trainer.step(images, labels, STEP, float(RATE))
    return (weights, bias), (new, new_bias), (model.weights(op), model.bias(op))


@pytest.mark.parametrize(
    ("layer", "options"),
    [
        ("depthwise2", {"queries": 6}),
        ("conv1", {"queries": 5, "rounding": "nearest", "generator": "xorshift32"}),
        ("depthwise1", {"queries": 4, "sharing": "batch", "baseline": "clean"}),
        ("depthwise2", {"queries": 6, "pairs": "antithetic", "step": "gradient"}),
    ],
)
def test_a_step(page, layer, options):
    data = pmt.corruptions.corrupt(pmt.datasets.bundled("train").take(4), "fog", 5)
    before, of_page, of_core = one_step(page, layer, data, **options)
    for expected, found, start in zip(of_page, of_core, before, strict=True):
        np.testing.assert_array_equal(found, expected)
        assert (found != start).any()
