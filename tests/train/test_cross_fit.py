"""Steps by heads that have not seen their images."""

from dataclasses import replace

import numpy as np
import pytest
from interruptions import cut_and_resumed

import pmt
from pmt._util.progress import ProgressLine
from pmt.cli import main
from pmt.datasets import Dataset
from pmt.firmware.export.task import make_task
from pmt.methods import trainer as trainer_of
from pmt.train.prepare.linear_head import head_op, solve_head
from pmt.train.run import head
from pmt.train.schedule import Schedule
from pmt.train.stepper import CoreStepper

MODEL = "fashion_mnist_dscnn"
SHORT = {"layers": "B1,head", "queries": 2, "batch": 10, "preparation": "head"}


def noisy(count, split="train", seed=0):
    images = pmt.datasets.bundled(split).take(count)
    return pmt.corruptions.corrupt(images, "gaussian_noise", 5, seed=seed)


def head_of(model):
    op = head_op(model)
    return np.array(model.core.weights(op)), np.array(model.core.weight_scales(op))


def is_equal(head, other):
    return all((a == b).all() for a, b in zip(head, other, strict=True))


def test_the_head_of_each_half_is_solved_on_the_other_half():
    model, data, heads = pmt.load(MODEL), noisy(60), []
    start = model.copy()
    trainer = pmt.ZOTrainer(**SHORT, keep_best=False, epochs=1, cross_fit="always", head_rate=1e-9)
    schedule = trainer.schedule(model, 60)
    schedule.keep_together(np.arange(60), data)
    trainer.fit(model, data, progress=lambda *_: heads.append(head_of(model)))
    assert [is_equal(heads[0], head) for head in heads] == [True] * 3 + [False] * 3
    # After the last step the epoch has ended, with a head of all images.
    assert [is_equal(heads[3], head) for head in heads] == [False] * 3 + [True] * 2 + [False]
    whole = start.copy()
    strength = solve_head(whole, data).strength
    halves = [[schedule.indices(i) for i in part] for part in (range(3), range(3, 6))]
    halves = [np.sort(np.concatenate(half)) for half in halves]
    assert sorted([*halves[0], *halves[1]]) == list(range(60))
    first = start.copy()  # its other layers are those of the first step
    solve_head(first, data.subset(halves[1]), strength=strength)
    assert is_equal(heads[0], head_of(first))


def test_a_state_has_its_head_solved_on_all_images():
    model, data = pmt.load(MODEL), noisy(60)
    before = head_of(model)
    trainer = pmt.ZOTrainer(**SHORT, keep_best=False, epochs=2, cross_fit="always")
    result = trainer.fit(model, data, progress=False)
    again = model.copy()
    again.core.set_parameters(head_op(model), before[0], pmt.load(MODEL).core.bias(head_op(model)))
    again.core.set_weight_scales(head_op(model), before[1])
    solve_head(again, data, strength=result.phases[-1]["head_strength"])
    assert again.image() == model.image()


def test_a_head_that_fits_its_own_images_hides_their_loss_no_longer():
    data, losses = noisy(60), []
    for cross_fit in ("never", "always"):
        trainer = pmt.ZOTrainer(**SHORT, keep_best=False, epochs=1, cross_fit=cross_fit)
        losses.append(trainer.fit(pmt.load(MODEL), data, progress=False).epochs[0]["train_loss"])
    assert losses == pytest.approx([0.2334, 0.6338], abs=1e-4)


def test_an_interrupted_run_goes_on_with_the_same_bytes(tmp_path):
    data, valid = noisy(150), noisy(50, "test", seed=1)
    trainer = pmt.ZOTrainer(**SHORT, epochs=2, cross_fit="always")
    whole = trainer.fit(pmt.load(MODEL), data, valid=valid, progress=False)
    resumed = cut_and_resumed(trainer, pmt.load(MODEL), data, valid, tmp_path / "cut")
    assert resumed.model.image() == whole.model.image()
    assert [r["macs"] for r in resumed.epochs] == [r["macs"] for r in whole.epochs]


@pytest.mark.parametrize(
    ("budget", "expected"),
    [
        (6 * 10**9, [(3.75, 5_924_071_200), (2.6667, 5_476_844_160)]),
        (15 * 10**8, [(0.8333, 1_471_466_400), (0.5, 1_263_317_880)]),
    ],
)
def test_the_work_of_the_heads_is_counted_and_fits_the_budget(budget, expected):
    macs = []
    for cross_fit in ("never", "always"):
        trainer = pmt.ZOTrainer(**SHORT, macs=budget, cross_fit=cross_fit)
        result = trainer.fit(pmt.load(MODEL), noisy(150), progress=False)
        # A budget plans without the choice of the head's strength, which the record names.
        spent = result.epochs[-1]["macs"] - result.phases[-1]["head_choice_macs"]
        macs.append((result.epochs[-1]["epoch"], spent))
    assert macs == expected


@pytest.mark.parametrize("at", [0, 1, 7, 8, 14, 15])
def test_a_step_that_is_interrupted_is_taken_by_the_same_head(tmp_path, monkeypatch, at):
    data = noisy(150)
    trainer = pmt.ZOTrainer(**SHORT, keep_best=False, epochs=2, cross_fit="always")
    whole = trainer.fit(pmt.load(MODEL), data, progress=False)
    step = CoreStepper.step

    def interrupted(self, images, labels, number, rate):
        if number == at:
            raise KeyboardInterrupt
        return step(self, images, labels, number, rate)

    monkeypatch.setattr(CoreStepper, "step", interrupted)
    with pytest.raises(KeyboardInterrupt):
        trainer.fit(pmt.load(MODEL), data, progress=False, out=tmp_path / "run")
    monkeypatch.undo()
    resumed = trainer.fit(pmt.load(MODEL), data, progress=False, out=tmp_path / "run")
    assert resumed.model.image() == whole.model.image()
    assert [r["macs"] for r in resumed.epochs] == [r["macs"] for r in whole.epochs]


def test_images_of_a_group_are_seen_together():
    losses, copied = [], np.repeat(np.arange(40), 3)
    data = noisy(40).subset(copied)
    moved = np.random.default_rng(0).integers(0, 2, data.images.shape, np.uint8)
    data = Dataset(data.images ^ moved, data.labels, data.class_names, "near copies")
    for groups in (None, copied):
        trainer = pmt.ZOTrainer(**SHORT, keep_best=False, epochs=1, cross_fit="always")
        result = trainer.fit(pmt.load(MODEL), data, groups=groups, progress=False)
        losses.append(result.epochs[0]["train_loss"])
    assert losses == pytest.approx([0.1135, 0.5686], abs=1e-4)


@pytest.mark.parametrize(
    ("changes", "note"),
    [
        ({"layers": "head"}, "cross_fit had no effect: only the head is trained"),
        ({"loss": "entropy"}, "cross_fit had no effect: no head is solved"),
    ],
)
def test_a_run_says_why_it_had_no_effect(changes, note):
    trainer = pmt.ZOTrainer(**{**SHORT, **changes}, epochs=1, cross_fit="always")
    assert note in trainer.fit(pmt.load(MODEL), noisy(60), progress=False).notes


def test_the_batch_of_a_preset_shrinks_to_half_of_few_images():
    trainer = pmt.ZOTrainer(
        layers="B1,head", queries=2, epochs=1, cross_fit="always", keep_best=False
    )
    with pytest.warns(pmt.errors.OptionWarning, match=r"25, the default, is larger than"):
        result = trainer.fit(pmt.load(MODEL), noisy(30), progress=False)
    assert len(result.epochs) == 1


def test_an_epoch_of_one_step_has_no_halves():
    message = (
        "^cross_fit='always' takes the halves of an epoch in turn: batch=10 leaves one step for 19 "
        "training images; use a smaller batch, or cross_fit='never'$"
    )
    with pytest.raises(ValueError, match=message):
        pmt.ZOTrainer(**SHORT, keep_best=False, cross_fit="always").fit(pmt.load(MODEL), noisy(19))


@pytest.mark.parametrize("changes", [{"preparation": "none"}, {"layers": "B1"}])
def test_without_a_solved_head_it_changes_nothing(changes):
    images = []
    for cross_fit in ("never", "always"):
        options = pmt.preset("default", **{**SHORT, "epochs": 1, "cross_fit": cross_fit, **changes})
        result = pmt.ZOTrainer(options).fit(pmt.load(MODEL), noisy(60), progress=False)
        images.append(result.model.image())
    assert images[0] == images[1]


def test_back_propagation_takes_such_steps_in_int8_alone():
    pytest.importorskip("torch")
    losses = []
    for cross_fit in ("never", "always"):
        options = {"layers": "B1,head", "preparation": "head", "batch": 10, "epochs": 1}
        trainer = trainer_of("bp_int8", **options, cross_fit=cross_fit)
        result = trainer.fit(pmt.load(MODEL), noisy(60), progress=False)
        losses.append(result.epochs[0]["train_loss"])
    assert losses == pytest.approx([0.2478, 0.6293], abs=1e-4)
    for changes in ({"arithmetic": "float32"}, {"rounding": "shadow"}):
        with pytest.raises(
            ValueError, match=r"^cross_fit='always' solves the head in int8, and float"
        ):
            trainer_of("bp_int8", cross_fit="always", **changes)


AUTOMATIC = (
    "the steps went by cross-fitted heads, as the solved head fits its own images much better than "
    "others: the training loss is that of images that the head has not seen"
)


def new_classes(count):
    return pmt.load(MODEL, classes=10), pmt.datasets.bundled("train").take(count)


def test_a_head_that_fits_its_own_images_alone_is_cross_fitted_unasked(monkeypatch):
    monkeypatch.setattr(head, "ENOUGH_IMAGES", 100)
    results = {}
    for cross_fit in ("auto", "always", "never"):
        trainer = pmt.ZOTrainer(**SHORT, keep_best=False, macs=6 * 10**9, cross_fit=cross_fit)
        results[cross_fit] = trainer.fit(*new_classes(150), progress=False)
    auto, always, never = (results[name] for name in ("auto", "always", "never"))
    solved = auto.phases[-1]
    losses = (solved["head_loss"], solved["head_out_of_fold_loss"])
    assert losses == pytest.approx((0.0521, 0.2890), abs=1e-4)
    assert auto.model.image() == always.model.image() != never.model.image()
    assert auto.epochs[-1]["macs"] == always.epochs[-1]["macs"]
    assert (AUTOMATIC in auto.notes, always.notes, never.notes) == (True, [], [])


@pytest.mark.parametrize(
    ("enough", "changes"),
    [
        (101, {"epochs": 1}),  # fewer images
        (100, {"epochs": 1, "batch": 60}),  # an epoch of one step
        (100, {"macs": 5 * 10**8}),  # less than an epoch
    ],
)
def test_it_is_not_where_it_could_not_help(monkeypatch, enough, changes):
    monkeypatch.setattr(head, "ENOUGH_IMAGES", enough)
    images = []
    for cross_fit in ("auto", "never"):
        options = {**SHORT, "keep_best": False, "cross_fit": cross_fit, **changes}
        result = pmt.ZOTrainer(**options).fit(*new_classes(100), progress=False)
        assert result.notes == []
        images.append(result.model.image())
    assert images[0] == images[1]


def test_nor_where_its_loss_on_others_is_nearly_as_low(monkeypatch):
    monkeypatch.setattr(head, "ENOUGH_IMAGES", 100)
    trainer = pmt.ZOTrainer(**SHORT, keep_best=False, epochs=1)
    result = trainer.fit(pmt.load(MODEL), noisy(150, seed=2), progress=False)
    solved = result.phases[-1]
    losses = (solved["head_loss"], solved["head_out_of_fold_loss"])
    assert losses == pytest.approx((0.2669, 0.5163), abs=1e-4)
    assert AUTOMATIC not in result.notes


@pytest.mark.parametrize("budget", [0, 6 * 10**9])
def test_a_run_that_chose_it_goes_on_with_the_same_bytes(tmp_path, monkeypatch, budget):
    monkeypatch.setattr(head, "ENOUGH_IMAGES", 100)
    length = {"macs": budget} if budget else {"epochs": 2}
    trainer = pmt.ZOTrainer(**SHORT, **length)
    (model, data), valid = new_classes(150), pmt.datasets.bundled("test").take(50)
    whole = trainer.fit(model.copy(), data, valid=valid, progress=False)
    assert AUTOMATIC in whole.notes
    resumed = cut_and_resumed(trainer, model, data, valid, tmp_path / "cut")
    assert resumed.model.image() == whole.model.image()
    assert [r["macs"] for r in resumed.epochs] == [r["macs"] for r in whole.epochs]
    again = trainer.fit(model.copy(), data, valid=valid, progress=False, out=tmp_path / "cut")
    assert again.model.image() == whole.model.image()


def test_a_group_may_be_larger_than_the_images_that_a_half_leaves():
    message = (
        "^cross_fit='always' solves heads on images apart from those of half an epoch: of 150 "
        "training images one group, or copies of an image, are more than such a half; use "
        "cross_fit='never', or smaller groups$"
    )
    trainer = pmt.ZOTrainer(**SHORT, keep_best=False, cross_fit="always", epochs=1)
    with pytest.raises(ValueError, match=message):
        trainer.fit(*new_classes(150), groups=np.repeat([0, 1], [71, 79]))


@pytest.mark.parametrize(("largest", "chosen"), [(33, True), (34, False), (100, False)])
def test_it_is_not_chosen_where_a_half_may_leave_few_images(monkeypatch, largest, chosen):
    monkeypatch.setattr(head, "ENOUGH_IMAGES", 100)
    groups = np.maximum(np.arange(150) - largest, -1)
    trainer = pmt.ZOTrainer(**SHORT, keep_best=False, epochs=1)
    result = trainer.fit(*new_classes(150), groups=groups, progress=False)
    assert (AUTOMATIC in result.notes) == chosen


@pytest.mark.parametrize("cross_fit", ["auto", "always"])
def test_a_board_goes_on_with_the_steps_that_were_planned(tmp_path, monkeypatch, cross_fit):
    monkeypatch.setattr(head, "ENOUGH_IMAGES", 100)
    model, data = new_classes(150)
    data = replace(data.take(150), groups=np.arange(150) // 2)
    planned, step = [], CoreStepper.step

    def watched(self, images, labels, number, rate):
        planned.append((number, rate, labels.tolist()))
        if number == 9 and (tmp_path / "run").exists():
            raise KeyboardInterrupt
        return step(self, images, labels, number, rate)

    monkeypatch.setattr(CoreStepper, "step", watched)
    options = {**SHORT, "keep_best": False, "macs": 6 * 10**9, "cross_fit": cross_fit}
    pmt.ZOTrainer(**options).fit(model.copy(), data, progress=False)
    whole = planned[:]
    with pytest.raises(KeyboardInterrupt):
        pmt.ZOTrainer(**options).fit(model, data, progress=False, out=tmp_path / "run")
    task = make_task(tmp_path / "run", dataset=data, steps=3)
    found = [(s.step, s.learning_rate, task.labels[[*s.samples]].tolist()) for s in task.steps]
    assert found == whole[9:12]
    assert [rate for _, rate, _ in found] == [0.081450336, 0.0775, 0.073303156]


def test_the_command_tells_that_a_run_chose_it_and_counts_its_steps(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(head, "ENOUGH_IMAGES", 100)
    totals = []
    monkeypatch.setattr(ProgressLine, "update", lambda line, *_: totals.append(line.total))
    model, data = new_classes(150)
    model.save(tmp_path / "new.pmt")
    pmt.datasets.save_npz(data, tmp_path / "data.npz")
    places = [str(tmp_path / "new.pmt"), "--data", str(tmp_path / "data.npz")]
    options = ["--layers", "B1,head", "--queries", "2", "--batch", "10", "--preparation", "head"]
    budget = ["--macs", "6e9", "--out", str(tmp_path / "run")]
    assert main(["train", *places, *options, *budget]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[3] == (
        "steps   up to 45 steps of 10 images, 2 queries for each image and layer; all that a "
        "budget of 6,000,000,000 MACs has room for"
    )
    assert lines[-2] == AUTOMATIC
    assert totals == [32] * 32


def test_an_estimator_without_a_state_goes_on_from_half_to_half():
    counts = []

    class Counting:
        def __init__(self):
            self.steps = 0

        def __call__(self, engine, images, labels, step):
            counts.append(self.steps)
            self.steps += 1
            return {}

    options = {**SHORT, "keep_best": False, "epochs": 2, "cross_fit": "always"}
    del options["queries"]
    pmt.ZOTrainer(**options, estimator=Counting()).fit(pmt.load(MODEL), noisy(60), progress=False)
    assert counts == [0, *range(12)]  # first a copy, by which a step is costed


def test_every_head_has_seen_a_class_of_two_images(monkeypatch):
    seen, solve_again = [], head.HeadStart.solve_again

    def watched(self, run, data):
        seen.append(np.bincount(data.labels)[9])
        return solve_again(self, run, data)

    monkeypatch.setattr(head.HeadStart, "solve_again", watched)
    data = noisy(60)
    data = replace(data, labels=np.r_[9, 9, data.labels[2:] % 9])
    trainer = pmt.ZOTrainer(**SHORT, keep_best=False, epochs=4, cross_fit="always")
    trainer.fit(pmt.load(MODEL), data, progress=False)
    assert seen == [1, 1, 2] * 4


def test_an_order_with_all_classes_in_both_halves_stays_as_it_is():
    options, labels = pmt.preset("default", batch=10), np.arange(60) % 3
    plain, shared = Schedule(options, 60), Schedule(options, 60)
    shared.keep_together(np.arange(60), replace(noisy(60), labels=labels))
    orders = [np.array([one.indices(step) for step in range(60)]) for one in (plain, shared)]
    assert (orders[0] == orders[1]).all()
    assert [len({*labels[half]}) for half in orders[0].reshape(20, 30)] == [3] * 20
