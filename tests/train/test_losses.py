"""Losses by their option, of data without labels, of float targets, and of a user's own."""

import re
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from networks import labels, pixels, residual_network, smooth_network

import pmt
from pmt import _core
from pmt.cli.output import EpochLines, Output
from pmt.datasets import Dataset
from pmt.train.losses import LossNames
from pmt.train.run.config import RunConfig
from pmt.train.run.keep_best import part

NAMES = LossNames.of_core().words
OPTIONS: dict[str, Any] = {"batch": 4, "epochs": 2, "queries": 6, "preparation": "none"}


@pytest.fixture
def model():
    return residual_network()


def dataset(model: pmt.Model, count: int = 12, seed: int = 0) -> Dataset:
    names = tuple(str(c) for c in range(model.classes))
    return Dataset(pixels(model, count, seed), labels(model, count), names, "made")


def fitted(data: Dataset | None = None, **changes: Any) -> pmt.Model:
    model = residual_network()
    trainer = pmt.ZOTrainer(**{**OPTIONS, **changes})
    trainer.fit(model, data or dataset(model), progress=False)
    return model


def softmax(z: np.ndarray) -> np.ndarray:
    e = np.exp(z - z.max(axis=-1, keepdims=True))
    return e / e.sum(axis=-1, keepdims=True)


# Losses of logits (N, classes) with integer labels (N,), in double.
DEFINITIONS = {
    "cross_entropy": lambda z, y: -np.log(softmax(z)[np.arange(len(y)), y]),
    "squared_error": lambda z, y: ((z - np.eye(z.shape[1])[y]) ** 2).mean(axis=1),
    "binary_cross_entropy": lambda z, y: (np.logaddexp(0, z) - np.eye(z.shape[1])[y] * z).mean(
        axis=1
    ),
    "entropy": lambda z, y: -(softmax(z) * np.log(softmax(z))).sum(axis=1),
}


def test_the_losses_are_those_defined_here():
    assert set(NAMES) == set(DEFINITIONS)
    assert [n for n, t in _core.losses().items() if not t.has_gradient] == ["function"]
    assert [n for n, t in _core.losses().items() if not t.needs_labels] == ["entropy", "function"]


@pytest.mark.parametrize("name", NAMES)
def test_training_lowers_each_loss(name):
    model = smooth_network()
    data = dataset(model, 16)

    def loss() -> float:
        z = model.logits(data.images).astype(np.float64)
        return float(DEFINITIONS[name](z, data.labels).mean())

    before = loss()
    # A loss of steps shows its slope to large perturbations alone.
    large = {"mu_node": 8, "learning_rate": 0.3}
    trainer = pmt.ZOTrainer(loss=name, epochs=60, batch=16, queries=32, preparation="none", **large)
    trainer.fit(model, data, progress=False)
    assert loss() < before


def test_the_default_is_cross_entropy_to_the_byte():
    assert fitted().image() == fitted(loss="cross_entropy").image()
    assert fitted(loss="squared_error").image() != fitted().image()


def test_options_of_losses_are_checked():
    expected = (
        "loss='mse' is unknown; choose one of cross_entropy, squared_error, "
        "binary_cross_entropy, entropy"
    )
    with pytest.raises(ValueError, match=f"^{re.escape(expected)}$"):
        pmt.ZOTrainer(loss="mse")


# Without labels.


def test_entropy_needs_no_labels_and_reads_none():
    data = dataset(residual_network())
    bare = Dataset.unlabeled(data.images)
    assert repr(bare) == "Dataset('images', 12 images 8x8x3, no labels)"
    assert len(bare.subset([3, 1])) == 2
    options = {"loss": "entropy", "diversity": 1.0, "preparation": "align+head"}
    assert fitted(bare, **options).image() == fitted(data, **options).image()


def test_a_loss_that_needs_labels_says_so(model):
    bare = Dataset.unlabeled(pixels(model, 12), "camera")
    expected = (
        "data set 'camera' has no labels, which loss='cross_entropy' needs; use loss='entropy' "
        "or a callable that needs none, or label the images"
    )
    with pytest.raises(ValueError, match=f"^{re.escape(expected)}$"):
        fitted(bare, loss="cross_entropy")
    expected = "data set 'camera' has no labels: this takes an integer label for each image"
    with pytest.raises(ValueError, match=f"^{re.escape(expected)}$"):
        model.evaluate(bare)


def test_the_surprisal_is_the_last_batch_s():
    model = smooth_network()
    data = dataset(model, 8)
    options = pmt.TrainingOptions(**{**OPTIONS, "loss": "entropy", "diversity": 1.0, "batch": 8})
    trainer = _core.Trainer(model.core, options.to_core(), model.select_layers("all"), 8, 3)
    mean = softmax(model.logits(data.images).astype(np.float64)).mean(axis=0)
    assert trainer.surprisal().tolist() == [0.0] * 3
    trainer.step(model.prepare(data.images), None, 0, 0.0)
    assert trainer.surprisal() == pytest.approx(-np.log(mean), rel=1e-5)


# Float targets.


def test_one_hot_targets_are_the_labels(model):
    data = dataset(model)
    hot = Dataset(data.images, np.eye(4, dtype=np.float32)[data.labels], data.class_names, "hot")
    for name in ("squared_error", "binary_cross_entropy"):
        assert fitted(hot, loss=name).image() == fitted(data, loss=name).image()


def test_targets_are_checked(model):
    targets = np.zeros((12, 4), np.float32)
    data = Dataset(pixels(model, 12), targets, tuple("abcd"), "tags")
    expected = (
        "data set 'tags' holds float targets, which loss='cross_entropy' does not take; use one of "
        "squared_error, binary_cross_entropy, a callable, or integer labels"
    )
    with pytest.raises(ValueError, match=f"^{re.escape(expected)}$"):
        fitted(data)
    targets[3, 1] = np.nan
    expected = "float targets hold a value that is not finite: each must be a number"
    with pytest.raises(ValueError, match=f"^{re.escape(expected)}$"):
        Dataset(data.images, targets, tuple("abcd"), "tags")


def test_a_head_is_solved_for_targets(model):
    targets = np.random.default_rng(4).uniform(0.0, 1.0, (12, 4)).astype(np.float32)
    data = Dataset(pixels(model, 12), targets, tuple("abcd"), "tags")
    options = {**OPTIONS, "loss": "binary_cross_entropy", "preparation": "align+head"}
    result = pmt.ZOTrainer(**options).fit(model, data, progress=False)
    assert [phase["phase"] for phase in result.phases] == ["head"]


def test_a_callable_has_no_head_without_labels():
    data = Dataset.unlabeled(pixels(residual_network(), 12))
    expected = (
        "preparation='align+head' trains the head on labels, which data set 'images' lacks; use "
        "preparation='align'"
    )
    with pytest.raises(ValueError, match=f"^{re.escape(expected)}$"):
        fitted(data, loss=own_entropy, preparation="align+head")


# A callable.


def own_entropy(logits: np.ndarray, labels: Any) -> np.ndarray:
    """Cross-entropy, in the core's fixed point."""
    z = logits.astype(np.float64)
    losses = -np.log(softmax(z)[:, np.arange(len(labels)), labels])
    return np.round(losses * 2**20) / 2**20


def own_top(logits: np.ndarray, labels: Any) -> np.ndarray:
    """The 0-1 error; of images without labels, how sure the network is not."""
    if labels is None:
        return -logits.max(axis=-1)
    return (logits.argmax(axis=-1) != labels).astype(float)


def test_a_callable_trains_as_the_built_in_does():
    """Weight perturbation of all layers: no gradient is exact, whatever the loss."""
    options = {"rule": "weight", "rounding": "nearest", "threads": 2}
    own, built_in = fitted(loss=own_entropy, **options), fitted(**options)
    apart = [
        np.abs(own.core.weights(x.index).astype(int) - built_in.core.weights(x.index)).max()
        for x in own.layers
    ]
    assert max(apart) <= 1
    assert own.image() == fitted(loss=own_entropy, **{**options, "threads": 1}).image()


def test_a_callable_gets_blocks_of_queries(model):
    data = dataset(model)
    seen = []

    def loss(logits: np.ndarray, labels: np.ndarray) -> np.ndarray:
        seen.append((logits.dtype, logits.shape, labels.dtype, labels.shape))
        return np.zeros(logits.shape[:2])

    pmt.ZOTrainer(loss=loss, **{**OPTIONS, "epochs": 1}, threads=1).fit(model, data, progress=False)
    assert {(d, s[1:], t, u) for d, s, t, u in seen} == {
        (np.dtype(np.float32), (1, 4), np.dtype(np.int64), (1,))
    }
    # Three steps of four images, six layers of six queries and the clean loss.
    assert sum(s[0] for _, s, _, _ in seen) == 3 * 4 * (6 * 6 + 1)


def test_a_callable_may_do_without_labels_or_take_targets(model):
    seen = []

    def loss(logits: np.ndarray, labels: Any) -> np.ndarray:
        seen.append(labels)
        return -logits.max(axis=2)

    fitted(Dataset.unlabeled(pixels(model, 12)), loss=loss)
    assert all(labels is None for labels in seen)
    seen.clear()
    targets = np.arange(48, dtype=np.float32).reshape(12, 4)
    fitted(Dataset(pixels(model, 12), targets, tuple("abcd"), "tags"), loss=loss)
    assert {one.shape for one in seen} == {(1, 4)}
    assert all(b - a == 1 for one in seen for a, b in pairwise(one[0]))


def _nan(logits: np.ndarray, labels: Any) -> np.ndarray:
    losses = np.zeros(logits.shape[:2])
    losses[-1] = np.nan
    return losses


@pytest.mark.parametrize(
    ("loss", "kind", "expected"),
    [
        (
            _nan,
            ValueError,
            r"loss _nan returned nan; every loss must be a finite number, and counts as -1024 to "
            r"1024",
        ),
        (
            lambda z, y: z,
            ValueError,
            r"loss <lambda> must return a loss for each query and sample, shape \(\d, 1\) for "
            r"logits \(\d, 1, 4\); got \(\d, 1, 4\)",
        ),
        (lambda z, y: "no", TypeError, r"loss <lambda> must return an array of numbers; got str"),
        (lambda z, y: 1 // 0, ZeroDivisionError, r"integer division or modulo by zero"),
    ],
    ids=["nan", "shape", "type", "exception"],
)
@pytest.mark.parametrize("threads", [1, 3])
def test_a_callable_that_fails_changes_nothing(model, loss, kind, expected, threads):
    image = model.image()
    trainer = pmt.ZOTrainer(loss=loss, **OPTIONS, threads=threads)
    with pytest.raises(kind, match=f"^{expected}$"):
        trainer.fit(model, dataset(model), progress=False)
    assert model.image() == image


def test_a_run_holds_the_callable_s_name_and_needs_it_to_go_on(model, tmp_path):
    options = {**OPTIONS, "epochs": 1}
    pmt.ZOTrainer(loss=own_entropy, **options).fit(
        model, dataset(model), out=tmp_path / "run", progress=False
    )
    config = RunConfig.read(tmp_path / "run" / "config.toml")
    assert config.options.loss == "python:own_entropy"
    expected = (
        "loss='python:own_entropy' is a Python callable, which no file holds; pass it: "
        "pmt.ZOTrainer(..., loss=own_entropy)"
    )
    with pytest.raises(ValueError, match=f"^{re.escape(expected)}$"):
        pmt.ZOTrainer(config.options)
    assert pmt.ZOTrainer(config.options, loss=own_entropy).options == config.options


def test_options_hold_no_callable():
    expected = "pass it to the trainer: pmt.ZOTrainer(options, loss=...)"
    with pytest.raises(TypeError, match=re.escape(expected)):
        pmt.TrainingOptions(loss=own_entropy)


# The state that is kept, and the images that are watched.

CHOICE = {**OPTIONS, "keep_best": True, "learning_rate": 0.3}


def without_class_labels(kind: str, count: int = 24) -> Dataset:
    model = residual_network()
    if kind == "unlabeled":
        return Dataset.unlabeled(pixels(model, count), "camera")
    targets = np.eye(4, dtype=np.float32)[labels(model, count)]
    return Dataset(pixels(model, count), targets, tuple("abcd"), "tags")


NO_CHOICE = {
    "unlabeled": "no state is chosen: the training images have no class labels",
    "targets": "no state is chosen: targets are trained, and states are compared by class labels",
}


@pytest.mark.parametrize(("loss", "kind"), [("entropy", "unlabeled"), ("squared_error", "targets")])
def test_without_class_labels_nothing_is_held_out(loss, kind):
    model, data = residual_network(), without_class_labels(kind)
    trainer = pmt.ZOTrainer(**CHOICE, loss=loss)
    assert trainer.held_out_images(data) == 0
    result = trainer.fit(model, data, progress=False)
    assert (result.held_out, result.kept, result.notes) == (0, {}, [NO_CHOICE[kind]])
    assert str(result).endswith(NO_CHOICE[kind])
    assert "train_accuracy" not in result.epochs[-1]
    assert "train acc" not in str(result)
    assert model.image() == fitted(data, **{**CHOICE, "keep_best": False}, loss=loss).image()
    plain = pmt.ZOTrainer(**{**CHOICE, "keep_best": False}, loss=loss)
    assert plain.fit(residual_network(), data, progress=False).notes == []


@pytest.mark.parametrize(
    ("loss", "kind"),
    [("entropy", "unlabeled"), (own_top, "unlabeled"), ("squared_error", "targets")],
)
def test_images_with_class_labels_choose_among_states_of_training_without(loss, kind):
    model, data = residual_network(), without_class_labels(kind)
    chosen_on, valid = dataset(model, 8, 5), dataset(model, 8, 6)
    before = model.evaluate(chosen_on)
    result = pmt.ZOTrainer(**CHOICE, loss=loss).fit(
        model, data, held_out=chosen_on, valid=valid, progress=False
    )
    assert result.notes == []
    assert result.held_out == 8
    start = result.phases[0]
    assert (start["held_out_loss"], start["held_out_accuracy"]) == (before.loss, before.accuracy)
    assert model.evaluate(chosen_on).loss == result.kept["held_out_loss"] <= before.loss


@pytest.mark.parametrize(
    ("loss", "chooses"),
    [
        *((name, DEFINITIONS[name]) for name in ("squared_error", "binary_cross_entropy")),
        ("entropy", DEFINITIONS["cross_entropy"]),
        (own_top, own_top),
    ],
)
def test_with_class_labels_the_loss_that_is_trained_chooses_if_it_reads_them(model, loss, chooses):
    valid = dataset(model, 9, 6)
    watched = model.evaluate(valid).loss
    trainer, data = pmt.ZOTrainer(**CHOICE, loss=loss), dataset(model, 24)
    held_out = part(data, 5, trainer.options.seed)[1]

    def measured() -> float:
        logits = model.logits(held_out.images).astype(float)
        return float(chooses(logits, held_out.labels).mean())

    start = measured()
    result = trainer.fit(model, data, valid=valid, progress=False)
    assert result.phases[0]["valid_loss"] == watched
    assert (result.held_out, result.notes) == (5, [])
    assert result.phases[0]["held_out_loss"] == pytest.approx(start, abs=2e-5)
    assert measured() == pytest.approx(result.kept["held_out_loss"], abs=2e-5)


@pytest.mark.parametrize("argument", ["valid", "held_out"])
@pytest.mark.parametrize(
    ("kind", "found"),
    [("unlabeled", "'camera' has no labels"), ("targets", "'tags' has float targets")],
)
def test_images_that_are_measured_have_class_labels(argument, kind, found, tmp_path):
    data, given = without_class_labels("unlabeled"), {argument: without_class_labels(kind, 8)}
    trainer = pmt.ZOTrainer(**{**OPTIONS, "loss": "entropy"})
    expected = (
        f"{argument}: data set {found}, and what is measured is accuracy and cross-entropy; give "
        f"images with class labels, or leave {argument} out"
    )
    with pytest.raises(ValueError, match=f"^{re.escape(expected)}$"):
        trainer.fit(residual_network(), data, out=tmp_path / "run", progress=False, **given)
    assert not (tmp_path / "run").exists()


def test_a_run_without_labels_that_does_harm_is_told_what_helps(model):
    valid = dataset(model, 32)
    # Classes as the model has them: every change of a prediction is an error.
    valid = Dataset(valid.images, model.logits(valid.images).argmax(1), valid.class_names, "own")
    trainer = pmt.ZOTrainer(**{**OPTIONS, "loss": lambda z, y: -z[:, :, 3]}, learning_rate=5.0)
    remedy = "learning_rate below 5 may help, and held_out=..., images with class labels, keeps"
    with pytest.warns(UserWarning, match=re.escape(remedy)):
        trainer.fit(model, without_class_labels("unlabeled"), valid=valid, progress=False)


def test_the_head_is_left_alone_by_a_loss_that_reads_no_labels(model):
    preparation = pmt.ZOTrainer(loss="entropy", preparation="head").preparation
    assert preparation.phases(model, 8) == []
    assert preparation.notes(model, dataset(model, 8)) == [
        "head not trained alone: loss='entropy' reads no labels"
    ]
    for loss in ("squared_error", own_entropy):
        preparation = pmt.ZOTrainer(loss=loss, preparation="head").preparation
        assert [phase.name for phase in preparation.phases(model, 8)] == ["head"]
        assert preparation.notes(model, dataset(model, 8)) == []


def test_a_run_without_labels_shows_and_plots_what_it_has(tmp_path, capsys):
    model, data = residual_network(), without_class_labels("unlabeled")
    trainer = pmt.ZOTrainer(**{**OPTIONS, "loss": "entropy", "epochs": 1})
    out = tmp_path / "run"
    lines = EpochLines(pmt.RunFolder(out), trainer.schedule(model, len(data)), Output(None))
    result = trainer.fit(model, data, out=out, progress=lines.after_step)
    lines.finish()
    title, epoch = capsys.readouterr().out.splitlines()
    assert "train acc" in title
    loss = result.epochs[0]["train_loss"]
    assert epoch.split()[:3] == ["1", f"{loss:.4f}", f"{result.epochs[0]['changed']:,}"]
    matplotlib = pytest.importorskip("matplotlib")
    matplotlib.use("Agg")
    from matplotlib.figure import Figure

    ax = result.plot(Figure(layout="constrained").add_subplot())
    assert [line.get_label() for line in ax.lines] == ["loss, training images"]
    assert [len(axes.lines) for axes in ax.figure.axes] == [1, 0]


@pytest.mark.parametrize("name", sorted(set(NAMES) - {"entropy"}))
def test_the_loss_that_is_trained_chooses_the_state(model, name):
    data = dataset(model)
    trainer = pmt.ZOTrainer(**{**OPTIONS, "loss": name, "batch": len(data)})
    stepper = trainer.stepper(model, len(data))
    scores = stepper.score_by_loss(model, data, 1)
    expected = DEFINITIONS[name](model.logits(data.images).astype(float), data.labels)
    np.testing.assert_allclose(scores.losses, expected, atol=2e-5)
    assert (scores.correct == model.score_images(data).correct).all()
    # As a step has them, before its update.
    taken = stepper.step(model.prepare(data.images), data.labels, 0, 0.1)
    assert scores.losses.sum() * _core.LOSS_ONE == taken["loss_sum"]
    assert scores.correct.sum() == taken["correct"]


def test_a_collapse_of_the_entropy_is_not_kept():
    data = pmt.datasets.bundled("train").take(60)
    model = pmt.load("fashion_mnist_dscnn")
    before = model.image()
    options = {"loss": "entropy", "preparation": "none", "batch": 10, "queries": 4, "epochs": 2}
    trainer = pmt.ZOTrainer(**options, learning_rate=20.0, keep_best=False)
    result = trainer.fit(model, Dataset.unlabeled(data.images), held_out=data, progress=False)
    assert result.epochs[-1]["train_loss"] < 0.1
    assert result.epochs[-1]["held_out_accuracy"] < 0.5
    assert result.verdict().startswith("kept the original model")
    assert model.image() == before


def test_logits_of_another_shape_are_refused(model):
    core = pmt.ZOTrainer(**OPTIONS).stepper(model, 8).core
    with pytest.raises(ValueError, match=r"logits must be \(N, 4\) for this model; got \(2, 3\)"):
        core.losses(np.zeros((2, 3), np.float32), np.zeros(2, np.int64))
    with pytest.raises(ValueError, match=r"labels must have shape \(2,\), one for each image"):
        core.losses(np.zeros((2, 4), np.float32), np.zeros(3, np.int64))
