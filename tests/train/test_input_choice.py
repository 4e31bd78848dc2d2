"""The choice of an input stage by forward passes, alone and as a phase of a run."""

import io
import re
import sys
from dataclasses import replace

import numpy as np
import pytest

import pmt
from pmt import Filter, InputStage, _core, corruptions, datasets, methods
from pmt.datasets import Dataset
from pmt.train.prepare import align, choose_input_stage, preparation
from pmt.train.prepare.clean_statistics import measure_statistics, with_statistics

CLEAN = datasets.bundled("test").take(64)
IMAGES = 150


def shifted(corruption, count=IMAGES, split="train"):
    return corruptions.corrupt(datasets.bundled(split).take(count), corruption, 5, seed=7)


@pytest.fixture(scope="module")
def start():
    model = pmt.load("fashion_mnist_dscnn")
    return with_statistics(model, measure_statistics(model, CLEAN.images))


@pytest.fixture(scope="module")
def found(start):
    """Return the model behind the stage for impulse noise, and the choice."""
    model = start.copy()
    return model, choose_input_stage(model, shifted("impulse_noise").images)


def test_impulse_noise_is_met_by_a_median_and_the_accuracy_rises(start, found):
    model, choice = found
    assert choice.changed
    assert choice.stage == model.input_stage
    assert choice.stage.filters[0].name == "switching_median"
    test = shifted("impulse_noise", 500, "test")
    aligned = start.copy()
    align(aligned, shifted("impulse_noise").images)
    assert model.evaluate(test).accuracy > aligned.evaluate(test).accuracy + 0.05


def test_what_was_tried_is_told_and_the_best_is_what_was_chosen(found):
    _, choice = found
    on_all = {t.filters: t.disagreement for t in choice.trials if t.images == IMAGES}
    assert min(on_all, key=on_all.get) == choice.stage.filters
    assert () in on_all
    assert sum(trial.images == 100 for trial in choice.trials) == 13
    assert choice.trials[0].record()["filters"] == []
    assert choice.trials[0].text == "no filter"
    assert choice.forwards > IMAGES * 3


def test_the_choice_does_not_depend_on_threads_and_labels_are_not_read(start, found):
    model, choice = start.copy(), found[1]
    again = choose_input_stage(model, shifted("impulse_noise").images, threads=1)
    assert again.trials == choice.trials
    assert model.image() == found[0].image()


def test_clean_images_need_no_filter(start):
    model, aligned = start.copy(), start.copy()
    images = datasets.bundled("train").take(IMAGES).images
    choice = choose_input_stage(model, images)
    align(aligned, images)
    assert not choice.changed
    assert choice.stage is None
    assert model.image() == aligned.image()


def test_few_images_choose_nothing_and_align(start):
    model, aligned = start.copy(), start.copy()
    images = shifted("impulse_noise", 29).images
    choice = choose_input_stage(model, images)
    align(aligned, images)
    assert (choice.stage, choice.changed, len(choice.trials)) == (None, False, 1)
    assert model.image() == aligned.image()


def test_a_stage_that_is_there_stays_unless_another_one_is_better(start):
    median = InputStage((28, 28), (Filter("switching_median", 40),))
    model = start.with_input_stage(median)
    choice = choose_input_stage(model, shifted("impulse_noise").images)
    assert choice.stage.filters[0].name == "switching_median"
    clean = start.with_input_stage(InputStage((28, 28), (Filter("tone_curve", 15),)))
    choice = choose_input_stage(clean, shifted("impulse_noise").images)
    assert choice.changed
    assert choice.stage.filters[0].name == "switching_median"


@pytest.mark.parametrize("value", [0, 7, 255])
def test_images_that_show_nothing_choose_nothing(start, value):
    model = start.copy()
    images = np.full((40, 28, 28, 1), value, np.uint8)
    assert not choose_input_stage(model, images).changed
    assert model.input_stage is None


def test_progress_is_told_after_each_candidate(start):
    seen = []
    choice = choose_input_stage(
        start.copy(), shifted("fog", 40).images, progress=lambda n, trial: seen.append((n, trial))
    )
    assert [number for number, _ in seen] == list(range(1, len(choice.trials) + 1))
    assert tuple(trial for _, trial in seen) == choice.trials


def test_what_has_no_classes_or_no_pixels_is_refused(start):
    images = shifted("fog", 40).images
    with pytest.raises(TypeError, match="images is list: must be a NumPy array"):
        choose_input_stage(start, list(images))
    with pytest.raises(ValueError, match="no input stage can be chosen: the inputs are not pixels"):
        choose_input_stage(start, images.astype(np.float32))
    with pytest.raises(ValueError, match="can be chosen: the model gives 128 features"):
        choose_input_stage(start.features(), images)
    with pytest.raises(ValueError, match="the model holds no statistics of clean images"):
        choose_input_stage(pmt.load("fashion_mnist_dscnn"), images)


def fit(model, data, **options):
    few = {"layers": "B2,head", "epochs": 1, "queries": 2, "seed": 1}
    trainer = methods.trainer("default", **few, **options)
    return trainer.fit(model, data, progress=False)


def test_a_run_tries_the_stage_after_alignment_and_records_it(start):
    model = start.copy()
    result = fit(model, shifted("impulse_noise"), preparation="input+align+head")
    names = [phase["phase"] for phase in result.phases]
    assert names == ["start", "aligned", "input", "head", "head_alone"]
    chosen = result.phases[2]
    assert chosen["input_stage"].startswith("switching_median")
    assert chosen["best"]
    assert chosen["held_out_loss"] < result.phases[1]["held_out_loss"]
    assert str(model.input_stage) == chosen["input_stage"]


def test_a_run_that_ends_in_filters_says_which_files_hold_them(start, tmp_path):
    result = fit(start.copy(), shifted("impulse_noise"), preparation="input+align+head")
    stage = result.model.input_stage
    assert result.notes == [
        f"only .pmt and .h files hold the filters ({stage}); for other formats "
        "train with the preparation align+head"
    ]
    assert result.notes[0] in str(result)
    plain = fit(start.copy(), shifted("impulse_noise"), preparation="align+head")
    assert plain.notes == []
    plain.model.save(tmp_path / "net.npz")


def test_a_model_that_had_filters_before_a_run_says_so(start):
    filtered = start.with_input_stage(InputStage((28, 28), (Filter("switching_median", 40),)))
    result = fit(filtered, shifted("impulse_noise"), preparation="align")
    assert result.notes == [
        "only .pmt and .h files hold the filters (switching_median 40); for "
        "other formats train a model without filters"
    ]


def test_images_of_another_size_are_taken_as_they_are(start):
    small = shifted("impulse_noise").resize(20, 20)
    model = start.copy()
    result = fit(model, small, preparation="input+align+head")
    assert model.image_shape == (20, 20, 1)
    assert "the model takes images of 20x20, and resamples them to 28x28" in result.notes
    assert model.evaluate(small).accuracy > 0.3
    with pytest.raises(ValueError, match=r"\(N, 28, 28, 1\) for this model; got"):
        fit(start.copy(), small, preparation="align+head")
    with pytest.raises(ValueError, match=r"size=28\) resizes"):  # more than four times its pixels
        fit(start.copy(), small.resize(57, 57), preparation="input+align+head")


def test_a_stage_that_held_out_images_refute_is_dropped(start, monkeypatch):
    """The state before it goes on: the aligned one."""
    wrong = Filter("standardization", 1)

    def chosen(model, images, *args, **options):
        staged = model.with_input_stage(InputStage(images.shape[1:3], (wrong,)))
        found = choose_input_stage(staged, images[:29])
        model.core = staged.core
        return replace(found, stage=staged.input_stage, changed=True)

    monkeypatch.setattr(preparation, "choose_input_stage", chosen)
    model, aligned = start.copy(), start.copy()
    result = fit(model, shifted("impulse_noise"), preparation="input+align")
    fit(aligned, shifted("impulse_noise"), preparation="align")
    assert result.phases[2]["best"] is False
    assert model.image() == aligned.image()


def test_of_few_images_each_fold_is_prepared_behind_the_stage(start):
    result = fit(start.copy(), shifted("impulse_noise", 60), preparation="input+align+head")
    assert result.phases[2]["input_stage"] == "switching_median 22"
    judged = {phase["phase"]: phase.get("out_of_fold_loss") for phase in result.phases}
    assert judged == {
        "start": pytest.approx(1.1198, abs=1e-4),
        "aligned": None,
        "input": None,
        "head": pytest.approx(0.2622, abs=1e-4),
        "head_alone": pytest.approx(0.4759, abs=1e-4),
    }


def test_a_run_folder_resumes_with_the_stage(start, tmp_path):
    def run(out, stop):
        options = {"preparation": "input+align+head", "epochs": 2, "queries": 2, "seed": 1}
        trainer = methods.trainer("default", layers="B2,head", **options)
        model = start.copy()
        steps = [0]

        def progress(step, record):
            steps[0] += 1
            if steps[0] == stop:
                raise KeyboardInterrupt

        trainer.fit(model, shifted("impulse_noise"), out=out, progress=progress)
        return model

    with pytest.raises(KeyboardInterrupt):
        run(tmp_path / "stopped", 2)
    resumed = run(tmp_path / "stopped", 0)
    assert resumed.image() == run(tmp_path / "whole", 0).image()
    assert resumed.input_stage is not None


def test_a_run_shows_the_candidates_on_a_terminal(start, monkeypatch):
    class Terminal(io.StringIO):
        def isatty(self):
            return True

    terminal = Terminal()
    monkeypatch.setattr(sys, "stderr", terminal)
    trainer = methods.trainer("default", layers="head", epochs=1, preparation="input+align")
    trainer.fit(start.copy(), shifted("impulse_noise"))
    assert re.search(r"candidate 1/28.* no filter", terminal.getvalue())


def test_float_inputs_and_features_say_why_they_have_no_stage(start):
    preparation = methods.trainer("default").preparation
    inputs = Dataset.from_arrays(np.zeros((4, 28, 28, 1), np.float32), [0, 1, 2, 3])
    notes = preparation.notes(start, inputs)
    assert notes == ["no filters before the network: the inputs are not pixels"]
    assert [phase.name for phase in preparation.phases(start, 4, pixels=False)] == [
        "aligned",
        "head",
    ]


def test_a_disagreement_is_least_for_sure_equal_views_of_all_classes():
    def mean(*views):
        logits = np.stack([np.asarray(view, np.float32) for view in views])
        return _core.disagreements(logits).mean() / _core.LOSS_ONE

    sure = 12.0 * np.eye(3)
    assert mean(sure, sure) == pytest.approx(-np.log(3), abs=0.01)
    assert mean(sure, np.zeros((3, 3))) > 0  # one of two views knows nothing
    assert mean(sure, sure[[1, 2, 0]]) > 5  # both are sure, of different classes
    assert mean(12.0 * np.eye(3)[[0, 0, 0]], sure[[0, 0, 0]]) == pytest.approx(0, abs=0.01)
    assert mean(sure) == mean(sure, sure)
    with pytest.raises(ValueError, match=r"1\.\.8 views"):
        _core.disagreements(np.zeros((9, 3, 3), np.float32))
