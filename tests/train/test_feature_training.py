"""Training of models that end in features: float targets, custom losses, refusals."""

import re
from typing import Any

import numpy as np
import pytest
from networks import labels, pixels, residual_network, smooth_network

import pmt
from pmt import _core
from pmt.datasets import Dataset

OPTIONS: dict[str, Any] = {"batch": 8, "epochs": 6, "queries": 16, "learning_rate": 0.3}


def exact(text: str) -> str:
    return f"^{re.escape(text)}$"


def task(layer: str, images: int = 32) -> tuple[pmt.Model, Dataset]:
    """A part of a network, and as targets the features of one with other weights in its stem."""
    model = residual_network().features(layer)
    teacher = model.copy()
    weights = teacher.weights("stem").astype(np.int64)
    noise = np.random.default_rng(3).integers(-25, 26, weights.shape)
    teacher.set_weights("stem", np.clip(weights + noise, -127, 127).astype(np.int8))
    shown = pixels(model, images)
    return model, Dataset.with_targets(shown, teacher.outputs(shown))


def error(model: pmt.Model, data: Dataset) -> float:
    return float(((model.logits(data.images) - data.labels) ** 2).mean())


def squares(outputs: np.ndarray, targets: np.ndarray) -> np.ndarray:
    return ((outputs.astype(np.float64) - targets) ** 2).mean(axis=2)


@pytest.mark.parametrize("layer", ["sum", "pooled", "stem"])
@pytest.mark.parametrize("loss", ["squared_error", squares])
def test_training_brings_features_nearer_to_their_targets(layer, loss):
    model, data = task(layer)
    before = error(model, data)
    result = pmt.ZOTrainer(loss=loss, **OPTIONS).fit(model, data, progress=False)
    assert error(model, data) < 0.9 * before
    assert "train_accuracy" not in result.epochs[-1]
    assert "head not trained alone" in str(result)
    assert "no state is chosen: targets are trained, and states are compared by" in str(result)


def test_the_loss_of_a_step_is_that_of_the_whole_map():
    model, data = task("sum", images=4)
    seen = []

    def watched(outputs: np.ndarray, targets: np.ndarray) -> np.ndarray:
        seen.append((outputs.shape[1:], targets.shape))
        return squares(outputs, targets)

    for loss in ("squared_error", watched):
        copy = model.copy()
        options = {**OPTIONS, "batch": 4, "epochs": 1, "keep_best": False}
        result = pmt.ZOTrainer(loss=loss, **options).fit(copy, data, progress=False)
        assert result.epochs[0]["train_loss"] == pytest.approx(error(model, data), rel=1e-4)
    assert set(seen) == {((1, 512), (1, 512))}


@pytest.mark.parametrize(
    ("loss", "kind", "message"),
    [
        (
            "cross_entropy",
            "targets",
            "loss='cross_entropy' reads logits of classes, and the model gives 8x8x8 features; use "
            "one of squared_error, binary_cross_entropy, a callable",
        ),
        (
            "entropy",
            "unlabeled",
            "loss='entropy' reads logits of classes, and the model gives 8x8x8 features; use one "
            "of squared_error, binary_cross_entropy, a callable",
        ),
        (
            "squared_error",
            "labels",
            "data set 'made' has class labels, and the model gives 8x8x8 features; give float "
            "targets, Dataset.with_targets(x, y), or a callable loss that needs no labels, and "
            "Dataset.unlabeled(x)",
        ),
        (
            squares,
            "labels",
            "data set 'made' has class labels, and the model gives 8x8x8 features; give float "
            "targets, Dataset.with_targets(x, y), or a callable loss that needs no labels, and "
            "Dataset.unlabeled(x)",
        ),
        (
            "squared_error",
            "unlabeled",
            "data set 'images' has no labels, which loss='squared_error' needs; use "
            "loss='entropy' or a callable that needs none, or label the images",
        ),
        (
            "squared_error",
            "few",
            "data set 'targets' holds 3 targets per image, the model has 512 outputs; give one "
            "target per output",
        ),
    ],
)
def test_losses_and_labels_that_do_not_go_with_features_are_refused(loss, kind, message):
    model, data = task("sum")
    kinds = {
        "targets": data,
        "unlabeled": Dataset.unlabeled(data.images),
        "labels": Dataset.from_arrays(data.images, labels(model, 32) % 3, name="made"),
        "few": Dataset.with_targets(data.images, data.labels[:, :3]),
    }
    with pytest.raises(ValueError, match=exact(message)):
        pmt.ZOTrainer(loss=loss, **OPTIONS).fit(model, kinds[kind], progress=False)


@pytest.mark.parametrize("argument", ["valid", "held_out"])
@pytest.mark.parametrize("given", ["8 features", "1 output"])
def test_images_to_measure_on_are_refused(given, argument):
    model = smooth_network(classes=1) if given == "1 output" else task("pooled")[0]
    images = pixels(model, 32)
    data = Dataset.with_targets(images, model.outputs(images))
    message = (
        f"{argument}: what is measured is accuracy and cross-entropy, and the model gives {given}; "
        f"leave {argument} out, and measure model.outputs(images)"
    )
    with pytest.raises(ValueError, match=exact(message)):
        pmt.ZOTrainer(loss="squared_error", **OPTIONS).fit(model, data, **{argument: data})


def test_the_engine_returns_features_and_no_cross_entropy():
    model, data = task("sum")
    engine = pmt.Engine(model)
    nodes = np.zeros((3, 1, 8), np.int8)
    found = engine.logits(data.images[:5], "stem", nodes=nodes)
    assert found.shape == (3, 5, 512)
    np.testing.assert_array_equal(found[1], model.logits(data.images[:5]))
    message = (
        "the model gives 8x8x8 features, which have no cross-entropy; engine.logits returns them "
        "for a score of your own"
    )
    with pytest.raises(ValueError, match=exact(message)):
        engine.losses(data.images[:5], np.zeros(5, np.int64))


@pytest.mark.parametrize("layer", ["sum", "pooled", "project"])
def test_all_kernels_and_threads_train_the_same_bytes(layer, monkeypatch):
    found = {}
    for kernels in _core.available_kernels():
        monkeypatch.setenv("PMT_ISA", kernels)
        for threads in (1, 3):
            for rule in ("pooled", "weight"):
                model, data = task(layer, images=6)
                options = {**OPTIONS, "batch": 3, "epochs": 2, "rule": rule, "threads": threads}
                pmt.ZOTrainer(loss="squared_error", **options).fit(model, data, progress=False)
                outputs = model.outputs(data.images).tobytes()
                found.setdefault(rule, set()).add((model.image(), outputs))
    assert [len(bytes_) for bytes_ in found.values()] == [1, 1]
