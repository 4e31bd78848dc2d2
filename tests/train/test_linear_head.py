"""The linear head solved alone, on features that are computed once."""

from dataclasses import replace

import numpy as np
import pytest
from interruptions import cut_and_resumed

import pmt
from pmt import _core, corruptions, datasets
from pmt.datasets import Dataset
from pmt.firmware import export
from pmt.protocol.stratification import folds, units_of
from pmt.train.prepare.linear_head import head_macs, solve_head
from pmt.train.prepare.preparation import Preparation

MODEL = "fashion_mnist_dscnn"
FORWARD = 1_561_440  # multiply-accumulates of an image, the head's included
HEAD = 1_280


@pytest.fixture
def model():
    return pmt.load(MODEL)


def noisy(count, split="train", seed=0):
    return corruptions.corrupt(datasets.bundled(split).take(count), "gaussian_noise", 5, seed=seed)


def options(**changes):
    return pmt.train.options.preset("default", **{"preparation": "head", **changes})


def parameters(model):
    return {
        layer.name: (
            model.core.weights(layer.index),
            model.core.bias(layer.index),
            model.core.weight_scales(layer.index),
        )
        for layer in model.layers
    }


def features_of(model, data):
    return model.core.inputs(model.prepare(data.images), model.core.op_count - 1)[:, 0, 0]


def without_head(model):
    """Return a copy whose last layer holds zeros, as a head for new classes does."""
    copy, last = model.copy(), model.core.op_count - 1
    copy.core.set_parameters(
        last, np.zeros_like(model.core.weights(last)), np.zeros_like(model.core.bias(last))
    )
    return copy


@pytest.mark.parametrize("threads", [1, 2])
def test_inputs_are_the_activations_that_a_layer_sees(model, threads):
    images = model.prepare(noisy(5).images)
    for index, op in enumerate(model.core.ops()):
        seen = model.core.inputs(images, index, threads)
        for image, one in zip(images, seen, strict=True):
            assert np.array_equal(one, model.core.activations(image)[op["inputs"][0]])


def test_inputs_of_an_op_that_is_not_there_are_refused(model):
    ops = model.core.op_count
    for op in (-1, ops):
        with pytest.raises(ValueError, match=f"op {op} must be 0..{ops - 1}"):
            model.core.inputs(model.prepare(noisy(1).images), op)


def digits() -> tuple[np.ndarray, np.ndarray]:
    """Return scikit-learn's digits in the size of the model, in a random order."""
    data = pytest.importorskip("sklearn.datasets").load_digits()
    images = np.pad(np.kron(data.images, np.ones((3, 3))), ((0, 0), (2, 2), (2, 2))) * (255 / 16)
    order = np.random.default_rng(0).permutation(len(images))
    return images.astype(np.uint8)[order, ..., None], data.target.astype(np.int64)[order]


def of_fashion(kind: str) -> tuple[Dataset, Dataset]:
    train, test = datasets.bundled("train"), datasets.bundled("test")
    if kind in corruptions.names():
        return corruptions.corrupt(train, kind, 5, seed=0), corruptions.corrupt(
            test, kind, 5, seed=1
        )
    return tuple(replace(one, images=TURNS[kind](one.images)) for one in (train, test))


def of_digits(kind: str) -> tuple[Dataset, Dataset]:
    images, labels = digits()
    images = TURNS[kind](images)
    train, test = datasets.bundled("train"), datasets.bundled("test")
    return (
        replace(train, images=images[:1000], labels=labels[:1000]),
        replace(test, images=images[1000:], labels=labels[1000:]),
    )


TURNS = {
    "mirrored": lambda images: np.ascontiguousarray(images[:, :, ::-1]),
    "inverted": lambda images: 255 - images,
    "rotated": lambda images: np.ascontiguousarray(np.rot90(images, 1, (1, 2))),
}
TASKS = {
    **{kind: of_fashion for kind in ("fog", "contrast", "impulse_noise", "jpeg_compression")},
    **{kind: of_fashion for kind in ("defocus_blur", "mirrored", "inverted")},
    **{f"digits {kind}": of_digits for kind in TURNS},
}


@pytest.mark.parametrize("task", TASKS)
def test_a_new_head_is_that_of_scikit_learn(task):
    """Both minimize the same sum; ours is int8. Each holds on a thousand images."""
    linear = pytest.importorskip("sklearn.linear_model")
    model = pmt.load(MODEL)
    train, test = TASKS[task](task.removeprefix("digits "))
    known, new = features_of(model, train).astype(float), features_of(model, test).astype(float)
    variances = known.var(axis=0)
    spreads = np.sqrt((variances + variances.mean()) / 2)

    def inputs(features):
        return np.c_[(features - known.mean(axis=0)) / spreads, np.ones(len(features))]

    solved = without_head(model)
    strength = solve_head(solved, train).strength
    theirs = linear.LogisticRegression(
        C=10 / (strength * len(train)), fit_intercept=False, max_iter=5000
    ).fit(inputs(known), train.labels)
    exact = theirs.score(inputs(new), test.labels)
    assert solved.evaluate(test).accuracy == pytest.approx(exact, abs=0.005)
    weights = (theirs.coef_[:, :-1] / spreads).ravel()
    found = (solved.weights("head") * solved.weight_scales("head")[:, None]).ravel()
    assert weights @ found > 0.999 * np.linalg.norm(weights) * np.linalg.norm(found)


def test_an_old_head_that_fits_is_better_than_none():
    data, test = noisy(60), noisy(1000, "test", seed=1)
    model = pmt.load(MODEL)
    new = without_head(model)
    for one in (model, new):
        solve_head(one, data)
    assert model.evaluate(test).accuracy > new.evaluate(test).accuracy + 0.1


def test_the_head_learns_and_nothing_else_changes():
    data, test = noisy(600), noisy(500, "test", seed=1)
    model = pmt.load(MODEL)
    before, loss = parameters(model), model.evaluate(test).loss
    solve_head(model, data)
    after = parameters(model)
    changed = [n for n in before if not np.array_equal(before[n][0], after[n][0])]
    assert changed == [model.layers[-1].name]
    assert model.evaluate(test).loss < loss - 0.1


def with_output_range(model, factor):
    """Return a copy whose output scale is multiplied by a factor."""
    graph = model.to_graph()
    output = graph.tensors[graph.output]
    graph.tensors[graph.output] = replace(output, scale=factor * output.scale)
    return pmt.Model.from_graph(graph)


def int8_accuracy(model, data):
    logits = model.logits(data.images, int8_logits=True)
    return np.mean(logits.argmax(axis=1) == data.labels)


@pytest.mark.parametrize("keep_best", [False, True])
def test_the_int8_output_holds_the_logits_of_a_solved_head(keep_best):
    data, test = noisy(400), noisy(500, "test", seed=1)
    trainer = pmt.ZOTrainer(options(layers="head", epochs=1, queries=2, keep_best=keep_best))
    whole, narrow = (with_output_range(pmt.load(MODEL), factor) for factor in (2.0, 0.015))
    assert int8_accuracy(narrow, test) < whole.evaluate(test).accuracy - 0.1
    for model in (whole, narrow):
        trainer.fit(model, data, progress=False)
    accuracy = narrow.evaluate(test).accuracy
    assert abs(int8_accuracy(narrow, test) - accuracy) < 0.02
    assert abs(whole.evaluate(test).accuracy - accuracy) < 0.03
    logits, cut = narrow.logits(data.images), narrow.logits(data.images, int8_logits=True)
    assert np.abs(logits - cut).max() <= 0.51 * narrow.to_graph().tensors[-1].scale
    assert whole.to_graph().tensors[-1].scale == 2 * pmt.load(MODEL).to_graph().tensors[-1].scale


def test_the_int8_output_tells_small_logits_apart():
    data = noisy(200)
    model = with_output_range(pmt.load(MODEL), 40.0)
    step = model.to_graph().tensors[-1].scale
    solve_head(model, data)
    logits, coarse = model.logits(data.images), model.logits(data.images, int8_logits=True)
    fitted = model.to_graph().tensors[-1].scale
    assert fitted < step / 20
    assert np.abs(logits - coarse).max() <= 0.51 * fitted
    kept = with_output_range(pmt.load(MODEL), 40.0)
    solve_head(kept, data, loss="squared_error")  # whose targets may be larger than its outputs
    assert kept.to_graph().tensors[-1].scale == step


def test_a_run_with_a_wider_output_resumes(tmp_path):
    data, valid = noisy(150), noisy(100, "test", seed=1)
    trainer = pmt.ZOTrainer(options(layers="B1,head", queries=2, epochs=1))
    start = with_output_range(pmt.load(MODEL), 0.125)
    whole = trainer.fit(start.copy(), data, valid=valid, progress=False)
    assert whole.model.to_graph().tensors != start.to_graph().tensors
    resumed = cut_and_resumed(trainer, start, data, valid, tmp_path / "cut")
    assert resumed.model.image() == whole.model.image()


def test_a_model_that_was_interrupted_in_the_refit_resumes_its_run(tmp_path):
    def stop(event):
        if getattr(event, "record", {}).get("phase") == "refit":
            raise KeyboardInterrupt

    data = noisy(150)
    trainer = pmt.ZOTrainer(options(layers="head", queries=2, epochs=1))
    whole = trainer.fit(pmt.load(MODEL), data, progress=False)
    assert whole.refit
    model = pmt.load(MODEL)
    with pytest.raises(KeyboardInterrupt):
        trainer.fit(model, data, progress=False, out=tmp_path / "run", callbacks=[stop])
    resumed = trainer.fit(model, data, progress=False, out=tmp_path / "run")
    assert resumed.model.image() == whole.model.image()


def test_its_losses_are_those_on_its_own_images_and_of_heads_solved_without_them():
    data = noisy(150)
    model = pmt.load(MODEL, classes=10)
    work = solve_head(model, data)
    assert (work.loss, work.out_of_fold_loss) == pytest.approx((0.1503, 0.4804), abs=1e-4)
    # Those of the int8 heads are nearly the same.
    assert model.evaluate(data).loss == pytest.approx(work.loss, abs=2e-3)
    losses = []
    for fold in folds(data.labels, 3, units_of(data)):
        others = np.setdiff1d(np.arange(150), fold)
        model = pmt.load(MODEL, classes=10)
        solve_head(model, data.subset(others), strength=work.strength)
        losses.append(model.evaluate(data.subset(fold)).loss)
    assert np.mean(losses) == pytest.approx(work.out_of_fold_loss, abs=2e-2)


def test_solving_again_from_the_same_head_gives_the_same_bytes():
    first, second = pmt.load(MODEL), pmt.load(MODEL)
    work = solve_head(first, noisy(100))
    again = solve_head(second, noisy(100), strength=work.strength)
    assert first.image() == second.image()
    assert again == replace(work, choice_macs=0, macs=again.macs, out_of_fold_loss=None)
    assert again.macs > head_macs(first, 100) == 100 * FORWARD


def test_a_head_of_other_classes_forgets_the_old_one():
    data = datasets.bundled("train").take(300)
    turned = replace(data, labels=(data.labels + 3) % 10)
    model = pmt.load(MODEL)
    before = model.evaluate(turned).accuracy
    assert solve_head(model, turned).strength < 1
    assert before < 0.1
    assert model.evaluate(turned).accuracy > 0.9


def test_where_nothing_can_be_held_out_the_strength_is_the_default():
    assert solve_head(pmt.load(MODEL), datasets.bundled("train").take(5)).strength == 10.0


@pytest.mark.parametrize("loss", ["squared_error", "binary_cross_entropy"])
def test_other_losses_take_labels_and_targets_alike(loss):
    """A label is a vector of zeros and a one."""
    data, test = noisy(400), noisy(500, "test", seed=1)
    by_labels, by_targets = pmt.load(MODEL), pmt.load(MODEL)
    before = by_labels.evaluate(test).accuracy
    solve_head(by_labels, data, loss=loss, strength=0.3)
    hot = np.eye(10, dtype=np.float32)[data.labels]
    targets = Dataset.with_targets(data.images, hot)
    solve_head(by_targets, targets, loss=loss, strength=0.3)
    assert by_labels.image() == by_targets.image()
    assert by_labels.evaluate(test).accuracy > before + 0.05


def test_values_are_regressed_by_the_exact_least_squares(model):
    """Targets that are linear in the features are found again."""
    data = noisy(500)
    features = features_of(model, data).astype(float)
    way = np.random.default_rng(2).normal(size=(features.shape[1], 10)) / 50
    values = ((features - features.mean(axis=0)) @ way).astype(np.float32)
    solve_head(model, Dataset.with_targets(data.images, values), loss="squared_error")
    found = model.core.logits(model.prepare(data.images))
    assert np.abs(found - values).mean() < 0.05 * np.abs(values).mean()


@pytest.mark.parametrize(
    ("changes", "trained"),
    [
        ({}, True),
        ({"layers": "B1,head"}, True),
        ({"layers": "B1"}, False),
        ({"preparation": "none"}, False),
        ({"rule": "weight"}, True),
        ({"loss": "squared_error"}, True),
        ({"loss": "entropy"}, False),
    ],
)
def test_only_a_head_among_the_trained_layers_is_solved(changes, trained):
    cost = Preparation(options(**changes)).cost(pmt.load(MODEL), 100)
    assert (cost.macs > 0) is trained


def test_the_head_before_training_is_part_of_the_run(tmp_path):
    data, valid = noisy(150), noisy(100, "test", seed=1)
    trainer = pmt.ZOTrainer(
        options(
            layers="B1,head",
            queries=2,
            epochs=1,
            learning_rate=0.05,
            final_learning_rate=1.0,
            keep_best=False,
        )
    )
    start = pmt.load(MODEL)
    whole = trainer.fit(start.copy(), data, valid=valid, out=tmp_path / "whole", progress=False)
    by_hand = start.copy()
    work = solve_head(by_hand, data)
    plain = pmt.ZOTrainer(trainer.options.replace(preparation="none"))
    after = plain.fit(by_hand, data, progress=False)
    assert whole.model.image() == after.model.image()
    assert [phase.get("head_strength") for phase in whole.phases] == [None, work.strength]
    assert whole.epochs[-1]["macs"] == after.epochs[-1]["macs"] + work.macs + work.choice_macs
    assert whole.epochs[-1]["forwards"] == after.epochs[-1]["forwards"]
    resumed = cut_and_resumed(trainer, start, data, valid, tmp_path / "cut")
    assert resumed.model.image() == whole.model.image()
    assert resumed.epochs == [
        {**again, "seconds": one["seconds"]}
        for again, one in zip(whole.epochs, resumed.epochs, strict=True)
    ]


@pytest.mark.parametrize(("layers", "trained"), [("B1", False), ("B1,head", True)])
def test_an_export_solves_the_head_only_where_it_is_exported(tmp_path, layers, trained):
    start = pmt.load(MODEL)
    data = noisy(60)
    chosen = options(queries=2, batch=2)
    export.export(
        start,
        out=tmp_path / "out",
        target="qemu-mps2-an500",
        dataset=data,
        options=chosen,
        layers=layers,
        steps=1,
    )
    exported = pmt.load(tmp_path / "out" / "model" / "model.pmt")
    expected = start.copy()
    if trained:
        solve_head(expected, data)
    for name, arrays in parameters(expected).items():
        for found, array in zip(parameters(exported)[name], arrays, strict=True):
            assert np.array_equal(found, array)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"op": 0}, "op 0 is not a linear head"),
        ({"op": 99}, "op 99 is not a layer with weights"),
        ({"strength": -1.0}, "strength must be a finite number of 0 or more"),
        ({"strength": float("nan")}, "strength must be a finite number of 0 or more"),
        (
            {"inputs": np.zeros((4, 3), np.int8)},
            r"inputs must have shape \(N, 128\) for this layer",
        ),
        ({"inputs": np.zeros((0, 128), np.int8)}, "N at least 1"),
        ({"labels": np.full(4, 10)}, r"labels must be 0..9 for this model; labels\[0\] is 10"),
        ({"labels": np.zeros(3, np.int64)}, r"labels must have shape \(4,\)"),
        (
            {"labels": np.zeros((4, 10), np.float32)},
            "only squared_error and binary_cross_entropy take targets for labels",
        ),
        ({"labels": np.full((4, 10), np.nan, np.float32)}, "labels of float32 must be finite"),
        ({"loss": "entropy"}, "loss must be cross_entropy, squared_error or binary_cross_entropy"),
        ({"loss": "hinge"}, "'hinge' is unknown"),
        ({"folds": np.zeros(3, np.uint8)}, r"folds must have shape \(4,\)"),
    ],
)
def test_what_cannot_be_solved_is_refused_and_changes_nothing(model, changes, message):
    before = model.image()
    arguments = {
        "op": model.core.op_count - 1,
        "inputs": np.zeros((4, 128), np.int8),
        "labels": np.zeros(4, np.int64),
        "loss": "cross_entropy",
        **changes,
    }
    with pytest.raises(ValueError, match=message):
        _core.solve_head(model.core, **arguments)
    assert model.image() == before
