"""The observers of a run, one by one; of cross-validation in test_cross_validation.py."""

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from networks import residual_network
from toy_trainer import HEAD, Toy

import pmt
from pmt.model import ImageScores
from pmt.train.prepare.preparation import Phase, PhaseWork
from pmt.train.run.head import Refit
from pmt.train.run.keep_best import FEW, KeepBest
from pmt.train.run.loop import stepper_state
from pmt.train.run.observers import Divergence, Observer, ShownProgress, State
from pmt.train.run.store import FolderStore, MemoryStore


def scores(loss: float, right: int = 4) -> ImageScores:
    return ImageScores(np.full(8, loss), np.arange(8) < right)


def run(**attributes: Any) -> Any:
    return SimpleNamespace(**{"stopped": False, "step": 0, **attributes})


def copied(observer: Any, other: Any) -> Any:
    """Return another observer, with the state of the first from a checkpoint."""
    state = observer.state()
    assert set(state) == set(observer.arrays)
    other.load_state({**state, "of_the_stepper": np.zeros(1)})
    assert list(stepper_state({**state, "of_the_stepper": np.zeros(1)})) == ["of_the_stepper"]
    return other


def test_an_observer_does_nothing_by_itself():
    observer, state = Observer(), State("start", {}, {})
    observer.judge(run(), state)
    assert (state.better, state.worse) == (None, False)
    assert observer.state() == {}


@pytest.mark.parametrize("backtrack", [True, False])
def test_keep_best_judges_by_the_held_out_images(backtrack):
    def judged(name: str, loss: float, better: bool | None = None) -> tuple[bool | None, bool]:
        state = State(name, {"held_out": scores(loss)}, {}, better=better)
        keeper.judge(run(), state)
        return state.better, state.worse

    keeper = KeepBest(backtrack)
    assert judged("start", 2.0) == (True, False)
    assert judged("head", 2.0, better=False) == (False, backtrack)  # cross-validation has judged
    assert judged("epoch", 1.0) == (True, False)
    keeper = copied(keeper, KeepBest(backtrack))
    assert judged("epoch", 1.5) == (False, backtrack)
    assert judged("epoch", 0.5) == (True, False)


def test_divergence_warns_of_an_end_that_is_worse_than_the_start():
    watch = Divergence()
    trainer = Toy()
    for loss, right in ((1.0, 4), (1.5, 3)):
        watch.judge(run(), State("epoch", {"valid": scores(loss, right)}, {}))
    with pytest.warns(
        UserWarning, match=r"accuracy 0\.5000 -> 0\.3750, loss 1\.0000 -> 1\.5000 on"
    ):
        watch.end(run(trainer=trainer))
    # Of a run that was killed after its last epoch, the model is measured again.
    found = {"valid": scores(0.5)}
    copied(watch, Divergence()).end(run(trainer=trainer, scores=lambda name: found))


@pytest.mark.parametrize(
    ("losses", "right"),
    [
        ((2.0, 0.5, 1.0, 1.0), 1),  # less accurate, and the loss is 0.3 standard errors higher
        ((0.5, 0.5, 0.5, 0.5), 1),  # less accurate, and the loss is lower
        ((2.0, 2.0, 2.0, 2.0), 2),  # the loss is clearly higher, and as many are right
        ((2.0, 2.0, 2.0, 2.0), 3),
    ],
)
def test_divergence_takes_a_lower_accuracy_and_a_clearly_higher_loss(losses, right):
    watch = Divergence()
    for values, correct in (((1.0, 1.0, 1.0, 1.0), 2), (losses, right)):
        found = ImageScores(np.array(values), np.arange(4) < correct)
        watch.judge(run(), State("epoch", {"valid": found}, {}))
    assert watch.found() == ""
    watch.judge(
        run(), State("epoch", {"valid": ImageScores(np.full(4, 2.0), np.arange(4) < 1)}, {})
    )
    assert watch.found() != ""


@pytest.mark.parametrize(
    ("better_by", "many", "few"),
    [
        ((0.0, 0.0, 0.0, 0.5, 0.5), False, False),  # by 1.6 standard errors
        ((0.0, 0.0, 0.5, 0.5, 0.5), True, False),  # by 2.4
        ((0.0, 0.5, 0.5, 0.5, 0.5), True, True),  # by 4
    ],
)
def test_a_state_must_be_better_by_two_standard_errors_and_an_epoch_on_few_images_by_three(
    better_by, many, few
):
    for name, copies in (("aligned", 1), ("head", 1), ("epoch", 1), ("epoch", FEW)):
        kept = few if (name, copies) == ("epoch", 1) else many or copies == FEW
        keeper = KeepBest(backtrack=True)
        images = 5 * copies
        first = ImageScores(np.ones(images), np.ones(images, bool))
        keeper.judge(run(), State("start", {"held_out": first}, {}))
        losses = 1.0 - np.tile(better_by, copies)
        state = State(name, {"held_out": ImageScores(losses, np.ones(images, bool))}, {})
        keeper.judge(run(), state)
        assert (state.better, state.worse) == (kept, False)


def test_refit_begins_with_the_head_before_its_first_training(tmp_path):
    model = residual_network()
    before = np.array(model.core.weights(HEAD))
    refit = Refit()
    refit.before_phase(run(model=model), Phase("aligned", 0, lambda *_: None))
    assert refit.state() == {}
    refit.before_phase(run(model=model), Phase("head", 0, lambda *_: None))
    refit.after_state(run(model=model), State("head", {}, {}, better=True))
    scales = model.core.weight_scales(HEAD)
    model.core.set_parameters(HEAD, before // 2, model.core.bias(HEAD))
    model.core.set_weight_scales(HEAD, scales * np.float32(2.0))
    # An alternative that is not kept changes nothing.
    refit.before_phase(run(model=model), Phase("head_alone", 0, lambda *_: None, True))
    refit.after_state(run(model=model), State("head_alone", {}, {}, better=False))
    seen = []

    def solve_head(given, *_):
        seen.append((np.array(given.core.weights(HEAD)), given.core.weight_scales(HEAD)))
        return PhaseWork(5)

    solved = SimpleNamespace(phases=[{"phase": "head", "head_strength": 2.0}])
    trainer = SimpleNamespace(preparation=SimpleNamespace(solve_head=solve_head))
    again = copied(refit, Refit()).solve_again(
        run(model=model, history=solved, trainer=trainer), []
    )
    assert again == 5
    assert (seen[0][0] == before).all()
    assert (seen[0][1] == scales).all()


@pytest.mark.parametrize("record", [{}, {"phase": "head", "best": False}])
def test_refit_leaves_a_run_alone_whose_head_is_not_kept(record):
    Refit().end(run(history=SimpleNamespace(phases=[record], refit=None)))


def test_progress_is_told_after_each_step():
    told: list[Any] = []
    shown = ShownProgress(lambda *step: told.append(step))
    one = run(step=3)
    shown.begin(one)
    shown.after_step(one, {"loss": 1.0})
    shown.pause(one)
    assert told == [(3, {"loss": 1.0})]
    assert ShownProgress(True).line is None


def test_a_store_gives_back_what_it_keeps(tmp_path):
    out = tmp_path / "run"
    Toy().run(out=out)
    for store in (MemoryStore(), FolderStore(pmt.RunFolder(out))):
        model = residual_network()
        weights = model.core.weights(HEAD) // 2
        model.core.set_parameters(HEAD, weights, model.core.bias(HEAD))
        store.keep(run(model=model, step=2), refit=True)
        assert (store.best().core.weights(HEAD) == weights).all()
        if store.folder is not None:
            assert store.folder.best_is_refit()
        assert store.is_done() is (store.folder is not None)
