"""MeZO and DeepZero: their forwards, and what is known of their estimates."""

from __future__ import annotations

import numpy as np
import pytest
from networks import labels, pixels, residual_network
from toy_trainer import data

import pmt
from pmt import _core, methods
from pmt.firmware.export.task import make_task


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
    gradients = []
    for name in ("deepzero", "default"):
        options = methods.options_of(name).to_core()
        trainer = _core.Trainer(model.core, options, head, 20, 1)
        gradients.append(trainer.estimate(images, data.labels, 0, 0)[0].astype(np.float64))
    coordinates, exact = gradients
    cosine = coordinates @ exact / (np.linalg.norm(coordinates) * np.linalg.norm(exact))
    assert cosine > 0.999
    assert 0.99 < np.linalg.norm(coordinates) / np.linalg.norm(exact) < 1.01


def test_a_mask_of_epochs_is_one_of_their_steps():
    options = methods.options_of("deepzero_sparse", batch=50)
    assert (options.mask_epochs, options.mask_interval) == (5, 1)
    counted = options.for_samples(1_030)
    assert (counted.mask_epochs, counted.mask_interval) == (0, 5 * 20)
    assert methods.options_of("paper").for_samples(1_030) == methods.options_of("paper")


def test_a_mask_of_epochs_trains_as_one_of_their_steps():
    images = []
    for mask in ({"mask_epochs": 2}, {"mask_interval": 6}, {"mask_interval": 5}):
        model = residual_network()
        trainer = pmt.ZOTrainer(
            layers="all", sparsity=0.5, epochs=3, batch=4, queries=2, threads=1, **mask
        )
        trainer.fit(model, data(13), progress=False)
        images.append(model.image())
    assert images[0] == images[1]
    assert images[0] != images[2]


def test_a_mask_of_epochs_is_exported_as_steps():
    task = make_task(
        pmt.load("fashion_mnist_dscnn"),
        dataset=pmt.datasets.bundled("train").take(30),
        options=methods.options_of("deepzero_sparse", batch=10),
        layers="B2",
        steps=1,
        batch=None,
        learning_rates=None,
        inferences=0,
    )
    assert task.options.mask_interval == 15
