"""The head judged by cross-validation, where few images are held out."""

from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from toy_trainer import Stop, data, stop_at

import pmt
from pmt.model import ImageScores
from pmt.train.prepare.preparation import Phase, PhaseWork
from pmt.train.run.head import CrossValidation
from pmt.train.run.observers import State

SHORT = {"layers": "B1,head", "epochs": 1, "queries": 2, "batch": 10, "learning_rate": 0.01}


def scores(*losses: float) -> ImageScores:
    return ImageScores(np.array(losses), np.ones(len(losses), np.bool_))


def judged(validation: CrossValidation, phase: Phase | None, score, model=None) -> State:
    """Show the judge a state."""
    heads = phase.run if phase is not None else None
    trainer = SimpleNamespace(preparation=SimpleNamespace(solve_head=heads))
    model = model or pmt.load("fashion_mnist_dscnn")
    run: Any = SimpleNamespace(model=model, original=model, score=score, trainer=trainer)
    name, work = ("start" if phase is None else phase.name), PhaseWork(0, {"head_strength": 7.0})
    state = State(name, {}, {}, phase, work=work)
    validation.judge(run, state)
    return state


def test_every_image_is_scored_by_a_model_that_was_prepared_without_it():
    images = replace(pmt.datasets.bundled("train").take(23), labels=np.arange(23) % 5)
    prepared: dict[int, list[bytes]] = {}
    seen: list[bytes] = []

    def run(one, others, strength=None):
        prepared.setdefault(id(one), []).extend(image.tobytes() for image in others.images)
        return PhaseWork(1000)

    def score(one, fold):
        own = [image.tobytes() for image in fold.images]
        if id(one) in prepared:
            both = prepared.pop(id(one))
            assert len(both) == 2 * (23 - len(own))  # two phases
            assert not set(own) & set(both)
            seen.extend(own)
        return scores(*[float(len(own))] * len(own))

    validation = CrossValidation(images, 10)
    assert sorted(len(fold) for fold in validation.folds) == [2] * 7 + [3] * 3
    start = judged(validation, None, score)
    assert start.figures == {"out_of_fold_loss": 23.0, "out_of_fold_accuracy": 1.0}
    assert start.better is None
    aligned = judged(validation, Phase("aligned", 0, run), score)
    assert (aligned.better, aligned.figures) == (None, {})
    validation.after_state(SimpleNamespace(score=score), aligned)  # type: ignore[arg-type]
    head = judged(validation, Phase("head", 0, run), score)
    assert head.better
    assert head.figures["out_of_fold_loss"] == pytest.approx((7 * 2 * 2 + 3 * 3 * 3) / 23)
    assert sorted(seen) == sorted(image.tobytes() for image in images.images)


def test_folds_are_balanced_over_the_classes():
    images = pmt.datasets.bundled("train").take(200)
    images = replace(images, labels=np.arange(200) % 10)
    for fold in CrossValidation(images, 10).folds:
        assert np.bincount(images.labels[fold], minlength=10).tolist() == [2] * 10


def test_a_head_must_be_better_than_an_aligned_model_that_was_kept():
    found = iter([*[scores(2.0, 2.0)], *[scores(0.5)] * 2, *[scores(1.0)] * 2, *[scores(0.25)] * 2])
    validation = CrossValidation(replace(data(2), labels=np.zeros(2, np.int64)), 10)
    model = pmt.load("fashion_mnist_dscnn")
    run: Any = SimpleNamespace(score=lambda *_: next(found), original=model)
    head = Phase("head", 0, lambda *_, **strength: PhaseWork(0))
    judged(validation, None, run.score)
    validation.after_state(run, State("aligned", {}, {}, replace(head, name="aligned"), True))
    assert not judged(validation, head, run.score).better
    assert judged(validation, head, run.score).better


def foggy(count: int) -> pmt.datasets.Dataset:
    return pmt.corruptions.corrupt(pmt.datasets.bundled("train").take(count), "fog", 5)


def test_fewer_than_thirty_held_out_images_do_not_judge_the_head():
    trainer = pmt.ZOTrainer(**SHORT)
    model = pmt.load("fashion_mnist_dscnn")
    images = foggy(1000)
    by_class = [np.flatnonzero(images.labels == label)[:6] for label in range(10)]
    images = images.subset(np.sort(np.concatenate(by_class)))
    before = model.evaluate(images)
    result = trainer.fit(model, images, progress=False)
    start, head = result.phases
    assert result.held_out == 12
    assert start["out_of_fold_loss"] == before.loss
    assert start["out_of_fold_accuracy"] == before.accuracy
    assert head["out_of_fold_loss"] < before.loss
    assert head["best"]
    assert "then its head was trained on all images" in result.verdict()
    if result.kept.get("phase") == "head":
        assert result.verdict().startswith(
            "kept the model with its head trained, the best on all images by cross-validation"
        )


@pytest.mark.parametrize(("count", "given"), [(150, False), (60, True)])
def test_thirty_held_out_images_judge_the_head_and_so_do_those_that_are_given(count, given):
    trainer = pmt.ZOTrainer(**SHORT)
    held_out = pmt.datasets.bundled("test").take(20) if given else None
    result = trainer.fit(
        pmt.load("fashion_mnist_dscnn"), foggy(count), held_out=held_out, progress=False
    )
    assert result.held_out == (20 if given else 30)
    assert [set(phase) & {"out_of_fold_loss"} for phase in result.phases] == [set(), set()]


def test_a_head_that_is_not_better_is_taken_back():
    model = pmt.load("fashion_mnist_dscnn")
    before = model.image()
    # Few clean images have nothing to teach the head; the epoch changes next to nothing.
    trainer = pmt.ZOTrainer(**{**SHORT, "learning_rate": 1e-6})
    result = trainer.fit(model, pmt.datasets.bundled("train").take(60), progress=False)
    start, head = result.phases
    assert head["out_of_fold_loss"] > start["out_of_fold_loss"]
    assert result.epochs[0]["held_out_loss"] == pytest.approx(start["held_out_loss"], abs=0.002)
    assert result.verdict() == (
        "kept the original model: on the 12 held-out images no phase was better by more than two "
        "standard errors, its head by cross-validation, no epoch by more than three"
    )
    assert model.image() == before


def test_a_resumed_run_ends_as_a_whole_one(tmp_path):
    trainer, images = pmt.ZOTrainer(**SHORT), foggy(60)
    whole = pmt.load("fashion_mnist_dscnn")
    trainer.fit(whole, images, progress=False)

    def killed(event):
        if event.record.get("phase") == "head":
            raise Stop

    model = pmt.load("fashion_mnist_dscnn")
    with pytest.raises(Stop):
        trainer.fit(model, images, out=tmp_path / "run", progress=False, callbacks=[killed])
    for stop in (1, 3):
        with pytest.raises(Stop):
            trainer.fit(
                pmt.load("fashion_mnist_dscnn"),
                images,
                out=tmp_path / "run",
                progress=stop_at(stop),
            )
    model = pmt.load("fashion_mnist_dscnn")
    trainer.fit(model, images, out=tmp_path / "run", progress=False)
    assert model.image() == whole.image()
