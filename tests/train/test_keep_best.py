"""The best state of a run: how it is chosen, kept and resumed, and the steps back to it."""

from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest
from networks import residual_network
from toy_trainer import HEAD, Stop, Toy, data, flat, stop_at

import pmt
from pmt.model import ImageScores
from pmt.train.prepare.clean_statistics import measure_statistics, with_statistics
from pmt.train.run.keep_best import BestState, KeepBest, held_out_count, part
from pmt.train.run.observers import State
from pmt.train.run.store import FolderStore


def scores(*losses: float, right: int = 0) -> ImageScores:
    return ImageScores(np.array(losses), np.arange(len(losses)) < right)


def test_a_state_must_be_clearly_better_than_the_first_and_no_less_accurate():
    best = BestState()
    assert best.take(scores(1.0, 1.0, 1.0, 1.0, right=2), 2)
    half = scores(0.5, 0.5, 1.0, 1.0, right=2)  # by 1.7 standard errors
    assert not best.take(half, 2)
    assert best.is_better(half, 1)
    assert not best.take(scores(0.5, 0.5, 0.5, 0.5, right=1), 2)
    assert best.take(scores(0.5, 0.5, 0.5, 0.5, right=2), 2)
    assert best.take(scores(0.4, 0.5, 0.5, 0.5, right=2), 2)  # among these the least loss
    assert not best.take(scores(0.4, 0.5, 0.5, 0.5, right=3), 2)
    assert best.best is not None
    assert best.best.losses.tolist() == [0.4, 0.5, 0.5, 0.5]


@pytest.mark.parametrize(("kind", "is_reverted"), [("phase", True), ("epoch", False)])
def test_the_best_of_several_epochs_may_have_been_lucky(kind, is_reverted):
    run = SimpleNamespace(history=SimpleNamespace(best={"kind": kind}))
    judge = KeepBest(backtrack=True)
    judge.scored.best = judge.scored.start = scores(1.0, 1.0, 1.0, 1.0)

    def is_worse(state: ImageScores) -> bool:
        judged = State("epoch", {"held_out": state}, {})
        judge.judge(run, judged)
        return judged.worse

    assert is_worse(scores(1.2, 1.2, 1.0, 1.0)) is is_reverted  # by 1.7 standard errors
    assert is_worse(scores(1.3, 1.3, 1.2, 1.1))  # by 4.7


@pytest.mark.parametrize(
    ("samples", "share", "count"), [(1000, 0.2, 200), (20, 0.2, 4), (17, 0.2, 0), (8, 0.5, 4)]
)
def test_few_images_are_all_trained_on(samples, share, count):
    options = pmt.TrainingOptions(held_out_share=share)
    assert held_out_count(options, samples) == count
    assert held_out_count(options.replace(keep_best=False), samples) == 0


def test_held_out_images_are_balanced_and_not_trained_on():
    images = pmt.datasets.bundled("train").take(200)
    train, held_out = part(images, 40, seed=3)
    share = np.bincount(images.labels) / 5
    assert (np.abs(np.bincount(held_out.labels) - share) <= 1).all()
    both = np.concatenate([train.images, held_out.images])
    assert len(train) == 160
    assert sorted(i.tobytes() for i in both) == sorted(i.tobytes() for i in images.images)
    again = part(images, 40, seed=3)[1]
    assert (again.images == held_out.images).all()
    assert not (part(images, 40, seed=4)[1].images == held_out.images).all()


@pytest.mark.parametrize(
    ("losses", "best"),
    [
        ([(2.0, 0.1), (1.5, 0.2), (1.25, 0.3), (1.4, 0.9)], 2),
        ([(1.0, 0.5), (1.5, 0.6), (1.25, 0.6), (1.4, 0.6)], 0),
        ([(2.0, 0.1), (1.25, 0.2), (1.25, 0.3), (1.25, 0.3)], 1),
        ([(2.0, 0.5), (1.25, 0.4), (1.25, 0.4), (1.5, 0.5)], 3),
    ],
    ids=["the least loss", "the model as it was", "of equal losses the first", "no less accurate"],
)
def test_a_run_ends_in_its_best_state(tmp_path, losses, best):
    images = {}

    def keep(step, record):
        images[step / 3] = model.image()

    model = residual_network()
    images[0] = model.image()
    held_out = data(5, 9)
    kept = Toy(losses=losses).fit(model, data(), held_out=held_out, progress=keep)
    assert kept.kept.get("epoch", 0) == best
    assert kept.kept["held_out_loss"] == losses[best][0]
    assert kept.model is model
    assert model.image() == images[best]

    out = tmp_path / "run"
    run = iter(losses)
    for stop in (2, 4, 7):
        with pytest.raises(Stop):
            Toy(losses=run).run(held_out=held_out, out=out, progress=stop_at(stop))
        assert pmt.load(out).image() == pmt.load(out / "checkpoint.pmt").image()
    resumed = Toy(losses=run).run(held_out=held_out, out=out)
    again = Toy().run(held_out=held_out, out=out)
    weights = pmt.Model(images[best]).core.weights(HEAD)
    for result in (resumed, again):
        assert {k: v for k, v in result.kept.items() if k != "seconds"} == {
            k: v for k, v in kept.kept.items() if k != "seconds"
        }
        assert (result.model.core.weights(HEAD) == weights).all()
    assert pmt.load(out).metadata["training"] == {"step": 3 * best}
    marked = [r["best"] for r in pmt.RunFolder(out).read_metrics() if r["kind"] != "step"]
    assert len(marked) == 4
    assert marked[best]


WORSE = [(1.0, 0.5), (0.8, 0.5), (0.9, 0.5), (0.7, 0.5)]


def test_a_worse_epoch_is_taken_back_and_the_rate_cut(tmp_path):
    folders = []
    for stops in ((), (4,), (6,), (2, 7)):
        out = tmp_path / f"run{len(folders)}"
        losses = iter(WORSE)
        arguments = {"held_out": data(5, 9), "out": out}
        for stop in stops:
            with pytest.raises(Stop):
                Toy(losses=losses, keep_best=True).run(**arguments, progress=stop_at(stop))
        Toy(losses=losses, keep_best=True).run(**arguments)
        folders.append(pmt.RunFolder(out))
    records = folders[0].read_metrics()
    epochs = [r for r in records if r["kind"] == "epoch"]
    assert [r.get("taken_back", False) for r in epochs] == [False, True, False]
    rates = [r["rate"] for r in records if r["kind"] == "step"]
    assert rates == [1.0] * 6 + [0.333333] * 3
    for folder in folders[1:]:
        assert pmt.load(folder.path).image() == pmt.load(folders[0].path).image()
        assert folder.checkpoint.read_bytes() == folders[0].checkpoint.read_bytes()


def test_every_worse_epoch_cuts_the_rate_again(tmp_path):
    losses = [(1.0, 0.5), *[(2.0, 0.5)] * 6]
    out = tmp_path / "run"
    result = Toy(losses=losses, keep_best=True, epochs=6).run(held_out=data(5, 9), out=out)
    assert [epoch["taken_back"] for epoch in result.epochs] == [True] * 6
    rates = [r["rate"] for r in pmt.RunFolder(out).read_metrics() if r["kind"] == "step"]
    assert rates[::3] == [1.0, 0.333333, 0.111111, 0.037037, 0.0123457, 0.00411523]
    assert rates[1::3] == rates[2::3] == rates[::3]


def test_the_best_model_is_never_newer_than_the_checkpoint(tmp_path, monkeypatch):
    steps = []
    keep = FolderStore.keep

    def looked_at(store, run, refit=False):
        keep(store, run, refit)
        files = (store.folder.best, store.folder.checkpoint)
        steps.append([pmt.load(path).metadata["training"]["step"] for path in files])

    monkeypatch.setattr(FolderStore, "keep", looked_at)
    losses = [(2.0, 0.1), (1.5, 0.2), (1.25, 0.3), (1.0, 0.9)]
    Toy(losses=losses).run(held_out=data(5, 9), out=tmp_path / "run")
    assert steps == [[0, 0], [3, 3], [6, 6], [9, 9]]


def test_without_backtrack_a_worse_epoch_goes_on(tmp_path):
    Toy(losses=WORSE).run(held_out=data(5, 9), out=tmp_path / "run")
    records = pmt.RunFolder(tmp_path / "run").read_metrics()
    assert [r["rate"] for r in records if r["kind"] == "step"] == [1.0] * 9
    assert "taken_back" not in {name for record in records for name in record}


def test_the_verdict_names_the_state(tmp_path):
    def verdict(losses) -> str:
        result = Toy(losses=losses).run(held_out=data(5, 9))
        assert str(result).splitlines()[-1] == result.verdict()
        return result.verdict()

    assert verdict([(2.0, 0.1), (1.5, 0.2), (1.25, 0.3), (1.4, 0.9)]) == (
        "kept epoch 2, the best on the 5 held-out images"
    )
    assert verdict(flat(4)) == (
        "kept the original model: on the 5 held-out images no phase was better by more than two "
        "standard errors, no epoch by more than three"
    )
    assert Toy(losses=flat(4)).run().verdict() == ""


def watch(losses, **arguments):
    """Fit with images to watch, of such losses and accuracies."""
    toy = Toy(losses=losses)
    return toy.run(valid=data(5, 9), **{"progress": False, **arguments})


def test_a_run_that_ends_worse_than_it_began_says_so_where_nothing_is_kept():
    losses = [(1.0, 0.5), (1.5, 0.4), (1.5, 0.4), (1.5, 0.4)]
    message = (
        r"training has made the model worse: accuracy 0\.5000 -> 0\.4000, loss 1\.0000 -> 1\.5000 "
        r"on the 10 images that are watched; a learning_rate below 1 may help, and keep_best=True "
        r"keeps the best state$"
    )
    with pytest.warns(UserWarning, match=message):
        watch(losses)


def test_the_warning_outlives_a_kill_behind_the_last_epoch(tmp_path, monkeypatch):
    losses = iter([(1.0, 0.5), (1.5, 0.4), (1.5, 0.4), (1.5, 0.3), (1.5, 0.3)])

    def killed(self):
        raise Stop

    monkeypatch.setattr(pmt.RunFolder, "finish", killed)
    with pytest.raises(Stop):
        watch(losses, out=tmp_path)
    monkeypatch.undo()
    with pytest.warns(UserWarning, match=r"accuracy 0\.5000 -> 0\.3000"):
        watch(losses, out=tmp_path)


@pytest.fixture(scope="module")
def watched():
    return pmt.corruptions.corrupt(pmt.datasets.bundled("test").take(60), "fog", 5, seed=1)


@pytest.fixture(scope="module")
def foggy():
    return pmt.corruptions.corrupt(pmt.datasets.bundled("train").take(200), "fog", 5)


def fit(images, held_out=None, model=None, **arguments) -> pmt.RunResult:
    """Train the first block and the head of a model, by default of the bundled one."""
    trainer = pmt.ZOTrainer(layers="B1,head", epochs=1, queries=2)
    model = model or pmt.load("fashion_mnist_dscnn")
    return trainer.fit(model, images, held_out=held_out, progress=False, **arguments)


def test_a_choice_on_fewer_than_four_images_is_refused(foggy):
    message = "^held_out has 3 images: a choice needs 4 or more, better 100; give more, or leave it"
    with pytest.raises(ValueError, match=message):
        fit(foggy.take(40), held_out=foggy[40:43])
    assert fit(foggy.take(40), held_out=foggy[40:44]).held_out == 4


@pytest.mark.filterwarnings("ignore:.* in valid are also in data")
def test_the_phases_are_states_of_their_own():
    model = pmt.load("fashion_mnist_dscnn")
    noisy = pmt.corruptions.corrupt(pmt.datasets.bundled("train").take(200), "gaussian_noise", 5)
    trainer = pmt.ZOTrainer(layers="B1,head", epochs=1, queries=2)
    result = trainer.fit(model, noisy, valid=noisy, progress=False)
    assert [phase["phase"] for phase in result.phases] == ["start", "head"]
    assert result.held_out == 40
    head = result.phases[1]
    assert head["head_strength"] == 1.0
    least = trainer.preparation.cost(model, 160).macs + head["head_choice_macs"]
    assert (least, head["macs"]) == (367_210_080, 387_232_480)
    assert (head["forwards"], head["changed"]) == (0, 0)
    assert head["valid_loss"] < result.before["valid_loss"]
    assert result.after["valid_loss"] == model.evaluate(noisy).loss
    assert result.notes == [
        "not aligned: the model holds no statistics of clean images; `pmt statistics MODEL --data "
        "CLEAN --out MODEL.pmt` adds them"
    ]


@pytest.mark.parametrize(("corruption", "kept"), [("fog", True), ("gaussian_noise", False)])
def test_the_head_without_alignment_is_tried_too(corruption, kept):
    model = pmt.load("fashion_mnist_dscnn")
    clean = pmt.datasets.bundled("train")
    model = with_statistics(model, measure_statistics(model, clean.images[:256]))
    train = pmt.corruptions.corrupt(clean, corruption, 5, seed=0)
    test = pmt.corruptions.corrupt(pmt.datasets.bundled("test"), corruption, 5, seed=1)
    result = fit(train, model=model, valid=test)
    phases = {phase["phase"]: phase for phase in result.phases}
    assert list(phases) == ["start", "aligned", "input", "head", "head_alone"]
    assert phases["head_alone"]["best"] is kept
    better, other = ("head_alone", "head") if kept else ("head", "head_alone")
    assert phases[better]["valid_accuracy"] > phases[other]["valid_accuracy"]
    # The run goes on from the better one.
    started = phases[better]["held_out_loss"]
    assert result.epochs[0]["held_out_loss"] == pytest.approx(started, abs=0.02)
    assert result.after["valid_accuracy"] > phases[other]["valid_accuracy"]


def test_an_alternative_must_be_clearly_better_than_the_best():
    state = BestState()
    for losses in ([3.0, 3.0, 3.0, 3.1], [1.0, 1.0, 1.0, 1.2]):
        assert state.take(scores(*losses), 1)
    assert not state.is_better(scores(0.5, 1.4, 0.5, 1.4), 1, is_alternative=True)
    assert state.is_better(scores(0.5, 1.4, 0.5, 1.4), 1)
    assert state.is_better(scores(0.5, 0.6, 0.5, 0.7), 1, is_alternative=True)


def test_the_head_of_the_best_state_learns_from_all_images(foggy, watched, tmp_path):
    images = []
    for out in (None, tmp_path / "run", tmp_path / "run"):
        result = fit(foggy, valid=watched, out=out)
        model = result.model
        assert result.verdict().endswith("; then its head was trained on all images")
        assert result.refit["valid_loss"] == model.evaluate(watched).loss
        assert result.after["valid_loss"] == result.refit["valid_loss"]
        images.append(model.core.weights(model.layers[-1].index))
    assert (images[0] == images[1]).all()
    assert (images[0] == images[2]).all()
    by_hand = fit(*part(foggy, 40, seed=1)).model
    assert not (by_hand.core.weights(by_hand.layers[-1].index) == images[0]).all()
    assert pmt.load(tmp_path / "run").metadata["training"] == {"refit": True, "step": 6}


def test_a_run_killed_between_the_model_and_its_record_does_not_train_the_head_twice(
    foggy, tmp_path, monkeypatch
):
    whole = fit(foggy).model
    save = pmt.RunFolder.save_best

    def killed(self, model, *, step, refit=False):
        save(self, model, step=step, refit=refit)
        if refit:
            raise Stop

    monkeypatch.setattr(pmt.RunFolder, "save_best", killed)
    with pytest.raises(Stop):
        fit(foggy, out=tmp_path / "run")
    monkeypatch.undo()
    model = fit(foggy, out=tmp_path / "run").model
    for layer in model.layers:
        assert (model.core.weights(layer.index) == whole.core.weights(layer.index)).all()


def test_a_refit_head_outlives_a_kill_behind_its_record(foggy, watched, tmp_path):

    def killed(event):
        if event.record.get("phase") == "refit":
            raise Stop

    arguments = {"valid": watched, "out": tmp_path / "run"}
    with pytest.raises(Stop):
        fit(foggy, **arguments, callbacks=[killed])
    result = fit(foggy, **arguments)
    assert result.model.evaluate(watched).loss == result.after["valid_loss"]
    # The model that the folder's name stands for may come back as the model of the run.
    assert fit(foggy, None, pmt.load(tmp_path / "run"), **arguments).after == result.after


def test_a_head_that_does_harm_is_taken_back_before_the_first_step():
    model = pmt.load("fashion_mnist_dscnn")
    clean = pmt.datasets.bundled("test").take(60)
    others = pmt.datasets.bundled("train").take(60)
    wrong = replace(others, labels=(others.labels + 1) % 10)
    before = model.image()
    trainer = pmt.ZOTrainer(layers="B1,head", epochs=1, learning_rate=1e-6)
    result = trainer.fit(model, wrong, held_out=clean, progress=False)
    start, head = result.phases
    assert head["held_out_loss"] > 2 * start["held_out_loss"]
    # The epoch began with the model as it was, whose loss is that of the start.
    assert result.epochs[0]["held_out_loss"] == pytest.approx(start["held_out_loss"], abs=0.002)
    assert result.verdict().startswith("kept the original model")
    assert model.image() == before


def test_floats_are_not_kept():
    pytest.importorskip("torch")
    message = (
        "keep_best=True does not go with arithmetic='float32': a .pmt holds no float network; use "
        "arithmetic='int8', or keep_best=False, which ends with the last step"
    )
    with pytest.raises(ValueError, match=message):
        pmt.backprop.BackpropTrainer(arithmetic="float32", keep_best=True)
