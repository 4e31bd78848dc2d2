"""The public engine: losses of perturbed layers are those of models with these very weights."""

import numpy as np
import pytest
from networks import every_op, labels, pixels, residual_network

import pmt
from pmt import _core

NETWORKS = [residual_network, every_op]


@pytest.fixture
def model():
    return residual_network()


def set_one(model: pmt.Model, op: int, weights, bias) -> pmt.Model:
    changed = model.copy()
    weights = np.clip(model.core.weights(op).astype(int) + weights, -127, 127).astype(np.int8)
    bias = np.clip(model.core.bias(op).astype(np.int64) + bias, -(2**31), 2**31 - 1)
    changed.core.set_parameters(op, weights, bias.astype(np.int32))
    return changed


def drawn(seed: int, shape: tuple[int, ...], high: int, dtype=np.int8):
    return np.random.default_rng(seed).integers(-high, high + 1, shape).astype(dtype)


@pytest.mark.parametrize("network", NETWORKS)
@pytest.mark.parametrize("int8_logits", [False, True])
def test_shared_weights_and_biases_give_the_logits_of_a_model_that_holds_them(network, int8_logits):
    model = network()
    engine = pmt.Engine(model, int8_logits=int8_logits, threads=2)
    images = pixels(model, 3)
    before = model.image()
    for layer in engine.layers:
        op = model.select_layers(layer)[0]
        weights = drawn(op, (5, *engine.weights(layer).shape), 9)
        bias = drawn(op, (5, *engine.bias(layer).shape), 400, np.int32)
        found = engine.logits(images, layer, weights, bias=bias)
        wanted = [
            set_one(model, op, w, b).logits(images, int8_logits=int8_logits)
            for w, b in zip(weights, bias, strict=True)
        ]
        np.testing.assert_array_equal(found, wanted)
        np.testing.assert_array_equal(
            engine.logits(images, layer, weights),
            [set_one(model, op, w, 0).logits(images, int8_logits=int8_logits) for w in weights],
        )
        np.testing.assert_array_equal(
            engine.logits(images, layer, bias=bias),
            [set_one(model, op, 0, b).logits(images, int8_logits=int8_logits) for b in bias],
        )
    assert model.image() == before


def test_each_image_may_have_perturbations_of_its_own(model):
    engine, images = pmt.Engine(model), pixels(model, 4)
    for layer in engine.layers:
        weights = drawn(1, (3, 4, *engine.weights(layer).shape), 5)
        bias = drawn(2, (3, 4, *engine.bias(layer).shape), 300, np.int32)
        together = engine.logits(images, layer, weights, bias=bias)
        alone = [
            engine.logits(images[i : i + 1], layer, weights[:, i], bias=bias[:, i])
            for i in range(4)
        ]
        np.testing.assert_array_equal(together, np.concatenate(alone, axis=1))


@pytest.mark.parametrize("network", NETWORKS)
def test_nodes_are_moved_before_the_next_op_reads_them(network):
    model = network()
    engine, images = pmt.Engine(model), pixels(model, 2)
    last = model.core.ops()[-1]["index"]
    for layer in model.layers:
        nothing = np.zeros((2, 1, layer.output_shape[2]), np.int8)
        clean = model.logits(images, int8_logits=layer.index == last)
        np.testing.assert_array_equal(engine.logits(images, layer.name, nodes=nothing)[1], clean)
        by_channel = drawn(layer.index, (2, 2, layer.output_shape[2]), 20)
        by_node = np.broadcast_to(by_channel[:, :, None, None], (2, 2, *layer.output_shape))
        np.testing.assert_array_equal(
            engine.logits(images, layer.name, nodes=by_channel),
            engine.logits(images, layer.name, nodes=by_node),
        )


def test_moved_outputs_of_the_last_layer_are_clipped_logits(model):
    engine, images = pmt.Engine(model, "head"), pixels(model, 2)
    out = model.core.tensors()[model.core.output_tensor]
    op = model.core.ops()[-1]
    nodes = drawn(3, (4, 2, 1, 1, 4), 127)
    clean = np.stack([model.core.activations(i)[op["output"]] for i in model.prepare(images)])
    moved = np.clip(clean.astype(int) + nodes, *op["clamp"])
    wanted = (moved - out["zero_point"]) * np.float32(out["scale"])
    found = engine.logits(images, engine.layers[0], nodes=nodes)
    np.testing.assert_array_equal(found, wanted.reshape(4, 2, 4).astype(np.float32))


def test_losses_are_the_cores_and_threads_do_not_matter(model):
    images, classes = pixels(model, 6), labels(model, 6)
    one, three = pmt.Engine(model, threads=1), pmt.Engine(model, threads=3)
    layer = one.layers[1]
    weights = drawn(4, (7, *one.weights(layer).shape), 4)
    losses = one.losses(images, classes, layer, weights)
    logits = one.logits(images, layer, weights)
    for query in range(7):
        exact, _ = _core.cross_entropy(logits[query], classes)
        np.testing.assert_array_equal(losses[query], exact / 2**20)
    np.testing.assert_array_equal(three.losses(images, classes, layer, weights), losses)
    prepared = model.prepare(images)
    np.testing.assert_array_equal(one.losses(prepared, classes, layer, weights), losses)
    clean, _ = _core.cross_entropy(model.logits(images), classes)
    np.testing.assert_array_equal(one.losses(images, classes.astype(np.uint8)), clean / 2**20)


def test_forwards_and_macs_are_counted(model):
    engine, images = pmt.Engine(model), pixels(model, 3)
    macs = [op["macs"] for op in model.core.ops()]
    engine.logits(images)
    assert (engine.forwards, engine.macs) == (0, 3 * sum(macs))
    layer = engine.layers[2]
    op = model.select_layers(layer)[0]
    engine.logits(images, layer, np.zeros((5, *engine.weights(layer).shape), np.int8))
    assert engine.forwards == 15
    assert repr(pmt.Engine(model, "B1")) == (
        "<pmt.Engine residual: stem, expand; 0 perturbed forwards>"
    )
    assert engine.macs == 3 * sum(macs) + 3 * (sum(macs[:op]) + 5 * sum(macs[op:]))


def test_weights_and_biases_are_copies_that_can_be_set(model):
    engine = pmt.Engine(model, layers="head")
    (layer,) = engine.layers
    weights, bias = engine.weights(layer), engine.bias(layer)
    weights[:], bias[:] = 3, 40
    assert not (engine.weights(layer) == 3).all()
    engine.set_weights(layer, weights)
    assert (engine.weights(layer) == 3).all()
    engine.set_bias(layer, bias)
    np.testing.assert_array_equal(model.core.bias(model.select_layers("head")[0]), bias)


def test_random_numbers_are_a_function_of_seed_layer_and_step(model):
    draws = {
        (seed, layer, step): pmt.Engine(model, seed=seed).random(layer, step).integers(1 << 62)
        for seed in (1, 2)
        for layer in ("stem", "head")
        for step in (0, 1)
    }
    assert len(set(draws.values())) == 8
    assert pmt.Engine(model, seed=2).random("head", 1).integers(1 << 62) == draws[2, "head", 1]


def test_no_queries_and_no_images_are_empty_arrays(model):
    engine = pmt.Engine(model)
    layer = engine.layers[0]
    shape = engine.weights(layer).shape
    nothing = engine.logits(pixels(model, 2), layer, np.zeros((0, *shape), np.int8))
    assert nothing.shape == (0, 2, 4)
    assert engine.logits(pixels(model, 2)[:0], layer, np.zeros((3, *shape), np.int8)).shape == (
        3, 0, 4,
    )  # fmt: skip


@pytest.mark.parametrize(
    ("error", "text", "call"),
    [
        (
            ValueError,
            "layer='stem' is none of the engine's layers: head",
            lambda e, x, y: e.losses(x, y, "stem", np.zeros((1, 1), np.int8)),
        ),
        (
            ValueError,
            "weights of layer 'head' must have shape (2, 4, 8) or (2, 3, 4, 8); got (2, 8)",
            lambda e, x, y: e.losses(x, y, "head", np.zeros((2, 8), np.int8)),
        ),
        (
            TypeError,
            "weights of layer 'head' must be a NumPy array of int8; got int64; convert it by "
            "numpy.asarray(weights, numpy.int8)",
            lambda e, x, y: e.losses(x, y, "head", np.zeros((2, 4, 8), np.int64)),
        ),
        (
            ValueError,
            "nodes of layer 'head' must have shape (2, 3, 4) or (2, 3, 1, 1, 4) or (2, 1, 4) or "
            "(2, 1, 1, 1, 4); got (2, 4)",
            lambda e, x, y: e.losses(x, y, "head", nodes=np.zeros((2, 4), np.int8)),
        ),
        (
            ValueError,
            "layer='head': give weights or bias (or both), or nodes alone, as perturbations",
            lambda e, x, y: e.losses(x, y, "head"),
        ),
        (
            ValueError,
            "layer is missing: name the layer that is perturbed",
            lambda e, x, y: e.losses(x, y, weights=np.zeros((2, 4, 8), np.int8)),
        ),
        (
            ValueError,
            "labels must be integers of shape (3,), one for each image; got int64 of shape (2,)",
            lambda e, x, y: e.losses(x, y[:2]),
        ),
        (
            ValueError,
            "weights of layer 'head' must have shape (4, 8); got (8, 4)",
            lambda e, x, y: e.set_weights("head", np.zeros((8, 4), np.int8)),
        ),
    ],
)
def test_errors_say_what_must_be(model, error, text, call):
    engine = pmt.Engine(model, "head")
    images, classes = pixels(model, 3), labels(model, 3)
    with pytest.raises(error) as caught:
        call(engine, images, classes)
    assert str(caught.value) == text


@pytest.mark.parametrize("call", ["losses", "logits"])
def test_floats_that_look_like_pixels_bring_the_warning_of_evaluate(model, call):
    images = pixels(model, 3)
    floats = (images / 255).astype(np.float32)
    with pytest.warns(UserWarning, match="look like pixels") as expected:
        model.logits(floats)
    engine, given = pmt.Engine(model), (labels(model, 3),) if call == "losses" else ()
    with pytest.warns(UserWarning, match="look like pixels") as caught:
        getattr(engine, call)(floats, *given)
    assert [str(one.message) for one in caught] == [str(one.message) for one in expected]
    assert caught[0].filename == __file__
    getattr(engine, call)(images, *given)
