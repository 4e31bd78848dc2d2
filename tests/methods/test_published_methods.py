"""MeZO and DeepZero: their forwards, and what is known of their estimates."""

import hashlib

import numpy as np
import pytest
from networks import labels, pixels, residual_network
from toy_trainer import data

import pmt
from pmt import _core, methods


@pytest.fixture(scope="module")
def mcunet():
    return pmt.load("cifar10_mcunet")


@pytest.mark.parametrize("layers", ["B2", "paper14", "all"])
def test_mezo_takes_two_forwards_whatever_is_trained(mcunet, layers):
    cost = methods.trainer("mezo", layers=layers).cost(mcunet, samples=1)
    assert cost.forwards == 2


def test_deepzero_takes_one_forward_for_each_weight(mcunet):
    """The 18,560 of block 2 are the paper's figure."""
    full = methods.trainer("deepzero", layers="B2").cost(mcunet, samples=1)
    assert full.forwards == 18_560
    sparse = methods.trainer("deepzero_sparse", layers="B2").cost(mcunet, samples=1)
    assert sparse.forwards == 1_856


def test_a_run_counts_the_forwards_of_the_methods():
    model = residual_network()
    (head,) = (layer for layer in model.layers if layer.index == model.select_layers("head")[0])
    for name, a_step in [("mezo", 2), ("deepzero", head.weights)]:
        result = methods.trainer(name, layers="head", epochs=2, batch=4, threads=1).fit(
            residual_network(), data(9), progress=False
        )
        assert result.epochs[-1]["forwards"] == 2 * 2 * 4 * a_step


def test_mezo_perturbs_all_layers_by_one_direction_for_the_batch():
    """The gradients of all weights are one loss difference, over 2 mu, by their signs."""
    model = residual_network()
    options = methods.options_of("mezo", layers="all", mu_weight=4)
    layers = model.select_layers("all")
    trainer = _core.Trainer(model.core, options.to_core(), layers, 6, 1)
    images, classes = model.prepare(pixels(model, 6)), labels(model, 6)
    sizes = []
    for position in range(len(layers)):
        weights, _ = trainer.estimate(images, classes, 3, position)
        assert (weights != 0).all()
        sizes.append(np.unique(np.abs(weights)))
    assert np.concatenate(sizes).tolist() == [sizes[0][0]] * len(layers)


def test_coordinates_give_the_exact_gradient_of_a_linear_layer():
    """Beside the closed form, up to the curvature of the loss within one weight step."""
    model = pmt.load("fashion_mnist_dscnn")
    head = model.select_layers("head")
    data = pmt.datasets.bundled("train").take(20)
    images = model.prepare(data.images)
    trainer = _core.Trainer(model.core, pmt.TrainingOptions().to_core(), head, 20, 1)
    exact = trainer.estimate(images, data.labels, 0, 0)[0].astype(np.float64)
    stepper = methods.trainer("deepzero", layers="head").stepper(model, 20)
    stepper.step(images, data.labels, 0, 0.5)
    (coordinates,) = (values.reshape(-1) for values in stepper.state().values())
    cosine = coordinates @ exact / (np.linalg.norm(coordinates) * np.linalg.norm(exact))
    assert cosine > 0.999
    assert 0.99 < np.linalg.norm(coordinates) / np.linalg.norm(exact) < 1.01


@pytest.mark.parametrize(
    ("name", "samples", "epochs", "weights"),
    [
        ("deepzero", 40, 1, "76a0b66adb22667e395d0b1dadc0100e"),
        ("deepzero_sparse", 200, 3, "8aace72551573d4f9e8fd189f2fdc245"),
    ],
)
def test_deepzero_leaves_the_bytes_of_the_cores_own(name, samples, epochs, weights):
    """Those that the core left while it had coordinates and masks itself (570ef737)."""
    model = pmt.load("fashion_mnist_dscnn")
    train = pmt.datasets.bundled("train").take(samples)
    noisy = pmt.corruptions.corrupt(train, "gaussian_noise", 5)
    trainer = methods.trainer(name, layers="head", epochs=epochs, batch=20)
    trainer.fit(model, noisy, progress=False)
    trained = model.core.weights(model.select_layers("head")[0])
    assert hashlib.md5(trained.tobytes()).hexdigest() == weights


def test_a_sparse_draw_lasts_its_epochs_and_changes_a_tenth_of_the_weights():
    options = {"layers": "head", "batch": 4, "momentum": 0.0, "mask_epochs": 2}
    model = residual_network()
    stepper = methods.trainer("deepzero_sparse", **options).stepper(model, 12)
    images, classes = model.prepare(pixels(model, 4)), labels(model, 4)
    queried = []
    for step in range(12):
        stepper.step(images, classes, step, 0.5)
        (gradient,) = stepper.state().values()
        queried.append(frozenset(np.flatnonzero(gradient)))
    weights = gradient.size
    assert all(len(one) <= round(weights / 10) for one in queried)
    assert len(set().union(*queried[:6])) <= round(weights / 10) < len(set().union(*queried))


def test_deepzero_moves_weights_at_their_bounds_inwards():
    model = residual_network()
    engine = pmt.Engine(model, "head")
    (head,) = engine.layers
    engine.set_weights(head, np.full_like(engine.weights(head), 127))
    images, classes = model.prepare(pixels(model, 4)), labels(model, 4)
    stepper = methods.trainer("deepzero", layers="head", momentum=0.0).stepper(model, 4)
    one = np.zeros((1, *engine.weights(head).shape), np.int8)
    one[0, 1, 2] = -1
    clean = engine.losses(images, classes)
    expected = (clean - engine.losses(images, classes, head, one)[0]).mean()
    stepper.step(images, classes, 0, 0.5)
    (gradient,) = stepper.state().values()
    assert gradient[1, 2] == pytest.approx(expected, abs=1e-12)
