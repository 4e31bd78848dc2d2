"""Training computes what docs/reference/integers.md says; what a step keeps for the next."""

from types import SimpleNamespace

import numpy as np
import pytest
from networks import bright_dataset, random_dataset, residual_network

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


@pytest.mark.parametrize("count", [1, 2, 6, 1001])
@pytest.mark.parametrize(("seed", "epoch"), [(1, 0), (4294967295, 70000)])
def test_orders(page, seed, epoch, count):
    order = _core.sample_order(seed, epoch, count).tolist()
    assert page.sample_order(seed, epoch, count) == order
    assert sorted(order) == list(range(count))


@pytest.mark.parametrize("final", [0.0, 0.1, 1.0])
@pytest.mark.parametrize("steps", [1, 7, 1000, 2**24 + 1])
def test_learning_rates(page, steps, final):
    for step in {0, steps // 3, steps // 2, steps - 1, steps}:
        rate = page.learning_rate(0.3, final, steps, step)
        assert float(rate) == _core.learning_rate(0.3, final, steps, step)


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


OPTIONS = {"layers": "B2,B3", "epochs": 2, "batch": 4, "queries": 6}


def test_plain_descent_leaves_nothing_beside_the_model(tmp_path):
    model = residual_network()
    pmt.ZOTrainer(**OPTIONS).fit(model, random_dataset(model, 12), out=tmp_path, progress=False)
    assert not list(tmp_path.glob("*.npz"))


def test_a_mean_prediction_of_another_training_is_refused():
    model = residual_network()

    def trainer(**changes) -> _core.Trainer:
        options = pmt.preset("default", queries=2, loss="entropy", **changes).to_core()
        return _core.Trainer(model.core, options, [2], 1)

    assert trainer().surprisal().size == 0
    own = trainer(diversity=0.5)
    values = own.surprisal()
    assert values.tolist() == [0.0] * model.classes
    for wrong in (values[:-1], np.full_like(values, np.nan)):
        with pytest.raises(ValueError, match="the mean prediction is damaged or of another"):
            own.restore_surprisal(wrong)
    assert (own.surprisal() == values).all()
    with pytest.raises(TypeError, match="values must be a C-contiguous NumPy array of float32"):
        own.restore_surprisal(values.astype(np.float64))


def test_the_device_counts_what_biases_alone_take():
    model = residual_network()

    def arena(**changes) -> int:
        options = pmt.preset("default", queries=2, rule="weight", **changes).to_core()
        return _core.DeviceMemory(model.core, options, [2, 3], 1).arena_bytes

    # Without perturbed weights, and less room for sums.
    assert arena(train_weights=False) <= arena() - 144


@pytest.mark.filterwarnings("ignore:.* in valid are also in data")
@pytest.mark.parametrize(
    "changes",
    [{}, {"rule": "by_dimension", "learning_rate": 0.5, "bias_rate": 1.0, "head_rate": 1.0}],
)
def test_biases_alone_leave_the_weights_and_learn(changes):
    model = residual_network()
    before = model.copy()
    bright = bright_dataset()
    trainer = pmt.methods.trainer(
        "bias_only", epochs=8, batch=20, queries=16, keep_best=False, **changes
    )
    result = trainer.fit(model, bright, valid=bright, progress=False)
    assert result.epochs[-1]["valid_loss"] < 0.85 * result.before["valid_loss"]
    for layer in model.layers:
        assert (model.core.weights(layer.index) == before.core.weights(layer.index)).all()
        assert (model.core.bias(layer.index) != before.core.bias(layer.index)).any()


def updated_head(rounding: str, weight_sum: int, bias_sum: int):
    """Update the residual network's head, 4 classes of 8 weights, from zeros; all sums alike."""
    model = residual_network()
    options = pmt.preset(
        "default",
        rule="weight",
        queries=4,
        mu_weight=2,
        baseline="clean",
        step="gradient",
        rounding=rounding,
        quantization_aware_scaling=False,
        gradient_norm_scaling="none",
        seed=3,
    )
    head = model.layers[-1]
    sums = (np.full(32, weight_sum), np.full(4, bias_sum), 5, 5)
    weights, bias = np.zeros((4, 8), np.int8), np.zeros(4, np.int32)
    new = _core.updated(model.core, options.to_core(), head.index, 1, 1.0, sums, weights, bias)
    assert (weights == 0).all()
    assert (bias == 0).all()
    return *new, _core.bias_steps(model.core, head.index, 2)


def test_an_update_divides_sums_by_queries_sets_and_perturbations():
    one = _core.LOSS_ONE * 5 * 4  # in units of the loss, over the sets of signs and the queries
    weights, bias, steps = updated_head("nearest", 3 * 2 * one, 7 * one)
    assert weights.shape == (4, 8)
    assert (weights == -3).all()
    assert (steps >= 1).all()
    assert bias.tolist() == [-round(7 / step) for step in steps.tolist()]
    assert (updated_head("nearest", -1000 * 2 * one, 0)[0] == 127).all()


def test_stochastic_rounding_reads_sixteen_bits_a_weight():
    """Sixteen signs at a time of the stream for rounding: a word's bits, the lowest first."""
    one = _core.LOSS_ONE * 5 * 4
    weights, _, _ = updated_head("stochastic", one, 0)  # half a step each
    head = residual_network().layers[-1].index
    signs = _core.signs("philox", 3, 1, head, 0, 0, 3, 16 * 32).reshape(32, 16)
    words = [sum(1 << i for i in range(16) if row[i] < 0) for row in signs]
    expected = [-((0x8000 + word) >> 16) for word in words]
    assert set(expected) == {0, -1}
    assert weights.reshape(-1).tolist() == expected


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"weights": np.zeros(31, np.int8)}, "weights, bias and their sums must have the layer's"),
        ({"sums": (np.zeros(32, np.int64), np.zeros(4, np.int64), 0, 1)}, "samples and sets"),
        ({"op": 4}, "op 4 is not a layer with weights"),
        ({"bias": np.zeros(4)}, "bias must be a C-contiguous NumPy array of int32"),
    ],
)
def test_an_update_of_other_sizes_is_refused(changes, message):
    model = residual_network()
    given = {
        "op": model.layers[-1].index,
        "step": 0,
        "learning_rate": 1.0,
        "sums": (np.zeros(32, np.int64), np.zeros(4, np.int64), 1, 1),
        "weights": np.zeros(32, np.int8),
        "bias": np.zeros(4, np.int32),
        **changes,
    }
    options = pmt.preset("default", rule="weight").to_core()
    with pytest.raises((ValueError, TypeError), match=message):
        _core.updated(model.core, options, **given)
