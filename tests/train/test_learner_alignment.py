"""Alignment by a learner: channels, windows, reliability, filters before them, and its memory."""

import numpy as np
import pytest
from networks import convolution_before_mean, network_with_statistics

import pmt
from pmt import _core, corruptions, datasets
from pmt.train.prepare import (
    align,
    choose_input_stage,
    without_statistics,
)


@pytest.fixture(scope="module")
def model():
    return network_with_statistics()


@pytest.fixture(scope="module")
def noisy():
    return corruptions.corrupt(datasets.bundled("train").take(120), "impulse_noise", 5, seed=0)


@pytest.fixture(scope="module")
def test_images():
    return corruptions.corrupt(datasets.bundled("test").take(300), "impulse_noise", 5, seed=1)


WEIGHTS = [
    {"windows": False, "reliability": False},
    {"windows": True, "reliability": False},
    {"windows": True, "reliability": True},
]


@pytest.mark.parametrize("weights", WEIGHTS)
def test_without_labels_it_aligns_as_align_does(model, noisy, weights):
    twice = np.concatenate([noisy.images[:40], noisy.images[:7]])  # copies count once
    learner = pmt.Learner(model, samples=47, **weights)
    learner.observe(twice)
    assert learner.learn() == "aligned"
    learner.commit()
    expected = model.copy()
    align(expected, twice, **weights)
    assert learner.model().image() == without_statistics(expected).image()
    if weights["reliability"]:
        plain = model.copy()
        align(plain, twice, reliability=False)
        assert without_statistics(plain).image() != without_statistics(expected).image()


def test_noise_probes_are_of_images_from_all_samples(model, noisy):
    images = pmt.corruptions.corrupt(pmt.datasets.bundled("train").take(270), "impulse_noise", 5)
    learner = pmt.Learner(model, samples=270, **WEIGHTS[2])
    learner.observe(images.images)
    assert learner.learn() == "aligned"
    learner.commit()
    align(expected := model.copy(), images.images)
    assert learner.model().image() == without_statistics(expected).image()


@pytest.mark.parametrize("weights", WEIGHTS)
def test_a_learner_chooses_filters_as_the_preparation_does(model, noisy, weights):
    learner = pmt.Learner(model, choose_input=True, samples=40, **weights)
    learner.observe(np.concatenate([noisy.images[:36], noisy.images[:4]]))  # copies count once
    before = learner.predict(noisy.images[:5]).logits
    learner.begin("input")
    while not learner.run(steps=997):
        assert (learner.predict(noisy.images[:5]).logits == before).all()
    learner.commit()
    expected = model.copy()
    choice = choose_input_stage(expected, noisy.images[:36], **weights)
    adapted = learner.model()
    assert choice.changed
    assert adapted.input_stage == choice.stage
    assert adapted.image() == without_statistics(expected).image()
    labels = learner.predict(noisy.images).labels
    assert labels.tolist() == adapted.predict(noisy.images).tolist()


@pytest.mark.parametrize("prefers_filters", [False, True])
def test_chosen_filters_are_compared_with_none_on_held_out_samples(
    model, noisy, test_images, prefers_filters
):
    def states(choose_input):
        learner = pmt.Learner(model, choose_input=choose_input, samples=40)
        learner.observe(noisy.images[:40])
        learner.learn("input" if choose_input else "align")
        learner.commit()
        return learner

    without, chosen = states(False), states(True)
    losses = []
    for learner in (without, chosen):
        logits = learner.predict(test_images.images).logits.astype(np.float64)
        rest = logits - logits[np.arange(len(logits)), test_images.labels][:, None]
        losses.append(np.log(np.exp(rest).sum(axis=1)))
    order = np.argsort(losses[0] - losses[1])
    held_out = order[-30:] if prefers_filters else order[:30]
    learner = pmt.Learner(model, choose_input=True, samples=70, held_out=30)
    learner.observe(noisy.images[:40])
    learner.observe(test_images.images[held_out], test_images.labels[held_out], role="hold_out")
    learner.begin("input")
    while not learner.run(steps=997):
        pass
    assert learner.candidate == "aligned"
    learner.commit()
    kept = chosen if prefers_filters else without
    assert (learner.predict(noisy.images).logits == kept.predict(noisy.images).logits).all()
    assert bool(learner.model().input_stage.filters) == prefers_filters
    expected = np.mean(losses[1 if prefers_filters else 0][held_out])
    assert learner.scores["aligned"].loss == pytest.approx(expected, abs=1e-3)


def test_chosen_filters_are_a_part_of_the_state(model, noisy, tmp_path):
    place = tmp_path / "states.bin"
    first = pmt.Learner(model, choose_input=True, samples=90, storage=place)
    first.observe(noisy.images[:90], noisy.labels[:90])
    assert first.learn() in {"aligned", "head"}
    first.commit()
    first.confirm()
    filters = first.model().input_stage.filters
    assert filters[0].name == "switching_median"
    again = pmt.Learner(model, choose_input=True, samples=90, storage=place)
    assert again.model().image() == first.model().image()
    assert (again.predict(noisy.images).logits == first.predict(noisy.images).logits).all()
    staged = model.with_input_stage(pmt.InputStage((28, 28)))
    with pytest.raises(ValueError, match="the stored state has filters of its own"):
        pmt.Learner(staged, samples=90, storage=place)  # its samples would pass other filters
    assert again.sizes.phases().keys() == {"predict", "input", "align", "head"}


def test_a_learner_of_fixed_filters_rolls_back_to_no_others(model, noisy, tmp_path):
    place = tmp_path / "states.bin"
    first = pmt.Learner(model, choose_input=True, samples=40, storage=place)
    first.observe(noisy.images[:40])
    for phase in ("input", "align"):
        first.learn(phase)
        first.commit()
        if phase == "input":
            first.confirm()
    assert first.model().input_stage.filters == ()
    staged = model.with_input_stage(pmt.InputStage((28, 28)))
    second = pmt.Learner(staged, samples=40, storage=place)
    assert second.on_trial
    second.predict(noisy.images[:3])  # the state on trial is in use
    with pytest.raises(ValueError, match="the stored state has filters of its own"):
        second.roll_back()


def test_epochs_read_frames_behind_the_chosen_filters(model, noisy):
    options = pmt.preset("default", layers="B2", batch=4, queries=8, epochs=1)
    learner = pmt.Learner(model, choose_input=True, samples=120, options=options)
    learner.observe(noisy.images, noisy.labels)
    learner.learn("input")
    learner.begin("epochs")
    learner.run()
    behind = pmt.Learner(model, samples=120, options=options)
    assert learner.scores["trained"].loss < learner.scores["original"].loss
    with pytest.raises(ValueError, match=r"^phase='input' needs a learner of choose_input=True"):
        behind.begin("input")


def test_few_frames_choose_no_filter(model, noisy):
    with pytest.raises(ValueError, match="no statistics of clean images"):
        pmt.Learner(without_statistics(model), choose_input=True)
    with pytest.raises(ValueError, match="samples=29: filters are chosen on 30 or more"):
        pmt.Learner(model, choose_input=True, samples=29)
    learner = pmt.Learner(model, choose_input=True, samples=30)
    learner.observe(noisy.images[:29])
    with pytest.raises(ValueError, match="too few samples"):
        learner.begin("input")
    assert learner.learn() == "aligned"
    learner.commit()
    assert learner.model().input_stage.filters == ()
    with pytest.raises(TypeError, match="images must be uint8 pixels to choose filters"):
        learner.predict(np.zeros((1, 28, 28, 1), np.int8))


def test_weights_are_a_part_of_the_state(model, noisy, tmp_path):
    given = {**WEIGHTS[2], "samples": 60, "storage": tmp_path / "states"}
    learner = pmt.Learner(model, **given)
    learner.observe(noisy.images[:60], noisy.labels[:60])
    assert learner.learn("align") == "aligned"
    learner.commit()
    aligned = learner.model()
    mixing = next(x.index for x in model.layers if _core.mixes_channels(model.core, x.index))
    for index in (1, mixing):
        assert (aligned.weights(index) != model.weights(index)).any()
    with pytest.raises(ValueError, match="or of another choice of windows=, reliability= or"):
        pmt.Learner(model, windows=True, storage=given["storage"])
    again = pmt.Learner(model, **given)
    assert again.model().image() == aligned.image()
    again.roll_back()
    assert again.model().image() == without_statistics(model).image()


@pytest.mark.parametrize("weights", WEIGHTS[::2])
def test_kept_activations_change_nothing_but_the_work(model, noisy, weights):
    outcomes = []
    for keeps in (False, True):
        learner = pmt.Learner(model, samples=60, keeps_activations=keeps, **weights)
        assert learner.sizes.external == (60 * 9_408 if keeps else 0)
        learner.observe(noisy.images[:60], noisy.labels[:60])
        learner.begin()
        while not learner.run(steps=61):
            learner.predict(noisy.images[:1])
        scores = [learner.fixed_score(state) for state in ("original", "aligned", "head")]
        learner.commit()
        outcomes.append((learner.in_force, learner.checksum, scores))
    assert outcomes[0] == outcomes[1]
    assert str(learner.sizes).splitlines()[-1].split() == ["external", "564,480"]


def test_memory_of_a_board(model):
    sizes = pmt.Learner(model, samples=100, held_out=25, keeps_confirmed=False).sizes
    assert (sizes.persistent, sizes.predict) == (11424, 11168)
    assert (sizes.align, sizes.head, sizes.needed) == (26672, 53280, 64704)
    assert str(sizes).splitlines()[-1].split() == ["needed", "64,704"]
    for reliability, expected in ((False, (13792, 59696, 73488)), (True, (40928, 59696, 100624))):
        weights = {"windows": True, "reliability": reliability}
        given = {"samples": 100, "held_out": 25, "keeps_confirmed": False}
        sizes = pmt.Learner(model, **given, **weights).sizes
        assert (sizes.persistent, sizes.align, sizes.needed) == expected


def test_a_network_that_ends_in_a_mean_is_aligned(noisy):
    model = pmt.statistics(convolution_before_mean(), pmt.datasets.bundled("train").images[:100])
    learner = pmt.Learner(model, samples=40)
    learner.observe(noisy.images[:40], noisy.labels[:40], role="train")
    with pytest.raises(ValueError, match="the model's last layer is not a linear head"):
        learner.begin("head")
    assert learner.learn() == "aligned"
    learner.commit()
    expected = model.copy()
    align(expected, noisy.images[:40], windows=False, reliability=False)
    logits = [net.predict(noisy.images[:9]) for net in (learner.model(), expected)]
    np.testing.assert_array_equal(*logits)
    assert not np.array_equal(logits[0], model.predict(noisy.images[:9]))
