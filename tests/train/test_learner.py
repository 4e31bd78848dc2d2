"""`pmt.Learner`: what runs on a board, on this machine."""

import os
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from networks import network_with_statistics

import pmt
from pmt import corruptions, datasets
from pmt.datasets import Dataset
from pmt.errors import OptionError
from pmt.train.prepare import (
    align,
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


def accuracy(learner: pmt.Learner, data: Dataset) -> float:
    return float((learner.predict(data.images).labels == data.labels).mean())


def test_a_learner_adapts_and_predicts_by_the_old_state_meanwhile(model, noisy, test_images):
    learner = pmt.Learner(model, samples=120)
    before = learner.predict(test_images.images[:5]).logits
    start = accuracy(learner, test_images)
    learner.observe(noisy.images, noisy.labels)
    learner.begin()
    slices = 0
    while not learner.run(steps=97):
        slices += 1
        assert (learner.predict(test_images.images[:5]).logits == before).all()
    assert slices > 5
    assert learner.candidate == "aligned"
    assert set(learner.scores) == {"original", "aligned", "head", "head_alone"}
    assert {score.samples for score in learner.scores.values()} == {23}
    learner.commit()
    assert repr(learner) == "<Learner: 120 samples, aligned in force, on trial>"
    learner.confirm()
    assert accuracy(learner, test_images) > start + 0.1
    adapted = learner.model()
    predicted = learner.predict(test_images.images)
    assert adapted.predict(test_images.images).tolist() == predicted.labels.tolist()
    margins = np.sort(predicted.logits, axis=1)
    assert (predicted.margins == margins[:, -1] - margins[:, -2]).all()


def test_epochs_go_on_from_the_best_state(model, noisy):
    images = corruptions.corrupt(datasets.bundled("train").take(400), "impulse_noise", 5, seed=0)
    options = pmt.preset("default", layers="B4", batch=4, queries=8, epochs=3)
    learner = pmt.Learner(model, samples=440, held_out=120, options=options)
    learner.observe(images.images, images.labels)
    assert learner.learn() == "trained"
    # A head that is solved again takes what stood on it along, and leaves the alignment below.
    others = corruptions.corrupt(datasets.bundled("train")[400:440], "impulse_noise", 5, seed=9)
    learner.observe(others.images, (others.labels + 3) % 10, role="hold_out")
    assert learner.learn("head") == "aligned"
    learner.forget()
    learner.observe(images.images, images.labels)
    assert learner.learn() == "trained"
    before, scores = learner.checksum, learner.scores
    assert scores["trained"].loss < scores["head"].loss < scores["aligned"].loss
    learner.commit()
    assert learner.checksum != before
    adapted = learner.model().core
    changed = [
        layer.index
        for layer in model.layers
        if (adapted.weights(layer.index) != model.core.weights(layer.index)).any()
    ]
    assert changed == [*model.select_layers("B4"), model.layers[-1].index]
    plain = pmt.Learner(model, samples=40)
    plain.observe(noisy.images[:40], noisy.labels[:40])
    with pytest.raises(ValueError, match="phase='epochs' needs options, which name"):
        plain.begin("epochs")


def test_a_storage_is_of_one_model_and_one_training(model, noisy, tmp_path):
    place = tmp_path / "states.bin"
    first = pmt.Learner(model, samples=40, storage=place)
    first.observe(noisy.images[:40])
    for _ in range(2):
        first.learn("align")
        first.commit()
        first.confirm()
    before = place.read_bytes()
    options = pmt.preset("default", layers="B2", epochs=1)
    others = (
        "holds states of another model, of other layers to train, or of another choice of windows="
    )
    aligned = [{"windows": True, "reliability": reliability} for reliability in (False, True)]
    for other in ({"options": options}, *aligned):
        with pytest.raises(ValueError, match=others):
            pmt.Learner(model, storage=place, **other)
    assert pmt.Learner(model, samples=41, storage=place).checksum == first.checksum
    with pytest.raises(ValueError, match=others):
        pmt.Learner(pmt.load("cifar10_small"), storage=place)
    assert place.read_bytes() == before


def test_the_memory_of_many_samples_is_planned(model):
    sizes = [pmt.Learner(model, samples=n).sizes for n in (1_000, 60_000)]
    assert sizes[0].streams == sizes[1].streams != ()
    assert sizes[1].persistent > sizes[0].persistent + 59_000 * 16


def test_states_outlive_the_process(model, noisy, tmp_path):
    place = tmp_path / "states.bin"
    images = noisy.images[:3]
    first = pmt.Learner(model, samples=120, storage=place)
    original = first.predict(images).logits
    first.observe(noisy.images, noisy.labels)
    first.learn()
    first.commit()
    aligned = first.predict(images).logits
    assert (aligned != original).any()
    del first
    for _ in range(3):  # trials
        again = pmt.Learner(model, samples=120, storage=place)
        assert (again.in_force, again.on_trial) == ("aligned", True)
        assert (again.predict(images).logits == aligned).all()
        del again  # else the next one takes its file over
    last = pmt.Learner(model, samples=120, storage=place)
    assert last.in_force == "original"
    last.observe(noisy.images, noisy.labels)
    last.learn()
    last.commit()
    last.confirm()
    kept = pmt.Learner(model, samples=120, storage=place, keeps_confirmed=False)
    assert (kept.in_force, kept.on_trial) == ("aligned", False)
    kept.observe(noisy.images, noisy.labels)
    kept.begin("align")
    kept.run(steps=500)
    for call in (lambda: kept.predict(images), kept.model):
        # There is one set of parameters.
        with pytest.raises(
            ValueError, match=r"^\w+\(\) needs the state in force, which a phase has "
        ):
            call()
    kept.cancel()
    assert (kept.predict(images).logits == aligned).all()


def test_a_damaged_storage_is_the_original_model(model, tmp_path):
    place = tmp_path / "states.bin"
    assert pmt.Learner(model, storage=place).in_force == "original"
    place.write_bytes(b"PTMS" + bytes(range(256)) * 200)
    with pytest.warns(UserWarning, match="holds a state that is damaged"):
        assert pmt.Learner(model, storage=place).in_force == "original"
    for name, reason in (
        ("missing/states.bin", "(No such file or directory); choose another folder"),
        (".", "(Is a directory); name a file in it"),
    ):
        with pytest.raises(OSError, match="the states could not be stored") as caught:
            pmt.Learner(model, storage=tmp_path / name)
        assert caught.value.filename == str(tmp_path / name)
        assert caught.value.strerror == f"the states could not be stored {reason}"


def test_one_output_is_predicted_by_its_sign():
    model = pmt.load("fashion_mnist_dscnn", classes=1)
    head = model.layers[-1].index
    signs = np.where(np.arange(128) % 2, 1, -1).astype(np.int8).reshape(model.weights(head).shape)
    model.core.set_parameters(head, signs, model.bias(head))
    images = pmt.datasets.bundled("test").images[:40]
    found = pmt.Learner(model, samples=0).predict(images)
    logits = model.logits(images)
    assert 5 < (logits > 0).sum() < 35
    np.testing.assert_array_equal(found.logits, logits)
    np.testing.assert_array_equal(found.labels, model.predict(images))
    np.testing.assert_array_equal(found.margins, np.abs(logits[:, 0]))


def test_errors_name_the_rule(model, noisy):
    learner = pmt.Learner(model, samples=40)
    plain = pmt.Learner(pmt.load("fashion_mnist_dscnn"), samples=40)
    plain.observe(noisy.images[:40])
    one = noisy.images[:1]
    for call, message in (
        (lambda: pmt.Learner(model, samples=-1), r"samples=-1 must be 0\.\.1048576"),
        (
            lambda: pmt.Learner(pmt.load("fashion_mnist_dscnn", classes=1), choose_input=True),
            "^choose_input=True chooses filters by the probabilities of classes, and the model ",
        ),
        (
            lambda: pmt.Learner(model.features("conv1"), samples=0),
            "^the model gives 14x14x16 features, and a learner tells classes apart",
        ),
        (lambda: pmt.Learner(model, samples=0, storage="s"), "storage= cannot be given with"),
        (
            lambda: pmt.Learner(model, samples=0, keeps_activations=True),
            "^keeps_activations= cannot be given with samples=0, which learns nothing$",
        ),
        (
            lambda: pmt.Learner(pmt.load("fashion_mnist_dscnn"), keeps_activations=True),
            r"^keeps_activations=True keeps what alignment reads, and the model holds no "
            r"statistics of clean images to align to; pmt.statistics\(model, images\) ",
        ),
        (
            lambda: pmt.Learner(pmt.load("fashion_mnist_dscnn"), windows=True),
            r"^windows=True aligns windows, and the model holds no statistics of those of clean "
            r"images; pmt.statistics\(model, images\) ",
        ),
        (
            lambda: pmt.Learner(model, reliability=True),
            "^reliability=True goes by windows, which tell how much noise images hold: give "
            "windows=True, too, or leave it out$",
        ),
        (
            lambda: pmt.Learner(model, samples=0, reliability=True),
            "^reliability= cannot be given with samples=0, which learns nothing$",
        ),
        (
            lambda: pmt.Learner(model, samples=0, windows=True),
            "^windows= cannot be given with samples=0, which learns nothing$",
        ),
        (
            lambda: pmt.Learner(model, samples=0, held_out=2),
            r"^held_out= cannot be given with samples=0, which learns nothing$",
        ),
        (
            lambda: pmt.Learner(model, samples=0).begin("align"),
            r"^begin\(\) needs samples: the learner has samples=0, and only predicts$",
        ),
        (
            lambda: pmt.Learner(model, samples=0).observe(one),
            r"^observe\(\) needs samples: the learner has samples=0, and only predicts$",
        ),
        (lambda: pmt.Learner(model, samples=8, held_out=9), r"held_out=9 must be 0\.\.8"),
        (lambda: learner.begin("aling"), "phase='aling' is unknown; did you mean 'align'"),
        (lambda: learner.observe(one, role="test"), "role='test' is unknown"),
        (lambda: learner.observe(one, [10]), r"labels must be 0\.\.9"),
        (
            lambda: learner.observe(one, np.array([2**64 - 1], np.uint64)),
            r"labels must be 0\.\.9",
        ),
        (
            lambda: learner.observe(one, role="hold_out"),
            "^role='hold_out' needs a label for each image, .*, and labels are not given: give",
        ),
        (
            lambda: learner.observe(noisy.images[:2], [3, -1], role="hold_out"),
            "^role='hold_out' needs a label for each image, .*, and some are -1: give them, or ",
        ),
        (lambda: learner.begin("align"), "too few samples"),
        (learner.commit, r"commit\(\) needs a candidate"),
        (learner.confirm, r"confirm\(\) needs a state on trial"),
        (lambda: plain.begin("align"), "needs a model with statistics of clean images"),
    ):
        with pytest.raises(ValueError, match=message):
            call()
    for given, found in ([1.0], "float64"), (["Bag"], "<U3"):
        with pytest.raises(TypeError, match=f"labels must be integers, got {found}; give each cl"):
            learner.observe(one, given)
    learner.observe(noisy.images[:40], noisy.labels[:40])
    with pytest.raises(
        ValueError,
        match=r"^samples=40 leaves no room for another sample: the first 0 of 1 were taken in; "
        r"forget\(\) all, or make a learner of more samples$",
    ):
        learner.observe(one)
    learner.begin("align")
    for call in (lambda: learner.begin("head"), learner.forget):
        with pytest.raises(ValueError, match="cannot be called while a phase runs"):
            call()
    learner.cancel()
    learner.forget()
    learner.observe(one)


@pytest.mark.parametrize("begin", [b"", bytes(4), b"\xff" * 4, bytes(32), bytes(200_000)])
def test_a_storage_never_overwrites_what_is_no_state(model, tmp_path, begin):
    place = tmp_path / "mine.pmt"
    before = begin + model.image()
    place.write_bytes(before)
    with pytest.raises(ValueError, match=r"mine.pmt' is no file of states, and would be"):
        pmt.Learner(model, storage=place)
    assert place.read_bytes() == before


def test_a_storage_that_is_gone_keeps_the_state_in_force(model, noisy, tmp_path):
    place = tmp_path / "states.bin"
    learner = pmt.Learner(model, samples=40, storage=place)
    learner.observe(noisy.images[:40], noisy.labels[:40])
    learner.learn("align")
    place.unlink()
    with pytest.raises(FileNotFoundError, match="could not be stored: the file is gone"):
        learner.commit()
    assert (learner.in_force, learner.candidate) == ("original", "aligned")


def test_a_newer_learner_takes_a_storage_over(model, noisy, tmp_path):
    place = tmp_path / "states.bin"
    older = pmt.Learner(model, samples=40, storage=place)
    older.observe(noisy.images[:40])
    older.learn("align")
    newer = pmt.Learner(model, samples=40, storage=tmp_path / "." / "states.bin")
    with pytest.raises(pmt.errors.FolderBusyError, match=r"a newer learner has storage=.*states"):
        older.commit()
    assert (older.in_force, older.candidate) == ("original", "aligned")
    newer.observe(noisy.images[:40])
    newer.learn("align")
    newer.commit()
    newer.confirm()
    assert pmt.Learner(model, samples=40, storage=place).in_force == "aligned"


def test_a_storage_is_one_process_s(model, tmp_path):
    place = tmp_path / "states.bin"
    learner = pmt.Learner(model, samples=40, storage=place)
    other = [
        sys.executable,
        "-c",
        f"import pmt; pmt.Learner(pmt.load({model.name!r}), samples=40, storage={str(place)!r})",
    ]
    found = subprocess.run(other, capture_output=True, text=True, check=False)
    assert re.search(r"states.bin' is in use by \S+, process \d+: wait until it has", found.stderr)
    del learner
    assert not place.with_name("states.bin.lock").exists()
    assert subprocess.run(other, capture_output=True, check=False).returncode == 0


@pytest.mark.skipif(not hasattr(os, "fork"), reason="the system does not fork")
def test_a_fork_leaves_the_storage_to_its_parent(model, noisy, tmp_path):
    place = tmp_path / "states.bin"
    learner = pmt.Learner(model, samples=40, storage=place)
    learner.observe(noisy.images[:40])
    learner.learn("align")
    child = os.fork()
    if child == 0:
        found = 0
        try:
            for call in (learner.commit, lambda: pmt.Learner(model, samples=40, storage=place)):
                with pytest.raises(pmt.errors.FolderBusyError):
                    call()
                found += 1
        finally:  # whatever happens, the child runs no other test
            os._exit(found)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 2
    learner.commit()
    learner.confirm()
    assert pmt.Learner(model, samples=40, storage=place).in_force == "aligned"


def test_a_storage_that_is_replaced_or_left_behind(model, noisy, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    learner = pmt.Learner(model, samples=40, storage="states.bin")
    learner.observe(noisy.images[:40])
    learner.learn("align")
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    monkeypatch.chdir(elsewhere)
    learner.commit()
    place = tmp_path / "states.bin"
    (tmp_path / "copy.bin").write_bytes(place.read_bytes())
    (tmp_path / "copy.bin").replace(place)
    with pytest.raises(FileNotFoundError, match="could not be stored: the file is gone"):
        learner.confirm()
    assert learner.on_trial


def test_a_storage_of_any_name(model, tmp_path):
    assert pmt.Learner(model, samples=40, storage=tmp_path / "\udcff.bin").in_force == "original"
    (tmp_path / "loop").symlink_to("loop")
    with pytest.raises(OSError, match="the states could not be stored"):
        pmt.Learner(model, samples=40, storage=tmp_path / "loop")


def test_pixels_as_floats_are_told(model, noisy):
    learner = pmt.Learner(model, samples=40)
    for call in (learner.observe, learner.predict, lambda x: align(model.copy(), x)):
        with pytest.warns(UserWarning, match=r"look like pixels 0\.\.255"):
            call(noisy.images[:20].astype(np.float32))


@pytest.mark.skipif(not Path("/dev/null").exists(), reason="there is no such device")
def test_a_storage_is_no_device(model):
    with pytest.raises(ValueError, match="storage='/dev/null' is no regular file: choose another"):
        pmt.Learner(model, samples=40, storage="/dev/null")


def test_a_learner_of_a_learned_model_says_that_it_cannot_align_without_statistics(model, noisy):
    learned = pmt.Learner(model).model()
    again = pmt.Learner(learned)
    again.observe(noisy.images[:20])
    rule = r"^phase='align' needs a model with statistics of clean images, and this learner's holds"
    with pytest.raises(
        ValueError, match=rule + r" none; make one of pmt.statistics\(model, images"
    ):
        again.learn("align")
    with pytest.raises(ValueError, match=r"^choose_input=True aligns .* pmt.statistics\(model, "):
        pmt.Learner(learned, choose_input=True)
    aligning = pmt.Learner(pmt.statistics(learned, datasets.bundled("train").images[-64:]))
    aligning.observe(noisy.images[:20])
    assert aligning.learn("align") == "aligned"


def test_a_budget_of_work_for_the_epochs_of_a_learner_is_refused(model):
    message = r"^macs=1000000000 is a budget, and a learner .* give epochs instead$"
    with pytest.raises(OptionError, match=message):
        pmt.Learner(model, options=pmt.preset("default", layers="B2", macs=10**9))
    pmt.Learner(model, options=pmt.preset("released", layers="B2"))


@pytest.mark.parametrize(
    ("indices", "phase", "needed"),
    [
        ([0], "align", "2 or more that are not held out, .* there are 1; observe"),
        ([0] * 9, "align", "2 or more that are not held out, equal images counted once, .* are 1;"),
        ([0] * 9, "all", "2 or more .* are 1;"),
        ([3, *range(20)], "input", "30 or more that are not held out, .* and there are 1[0-9];"),
        (
            [0] * 9,
            "head",
            "labels of two classes or more .* and 4 or more held out, of which .* are 9 of one "
            "class and 0; observe() images of other classes with labels$",
        ),
        (
            range(9),
            "head_alone",
            "labels of two .* there are 8 of different classes and 1; observe() more with labels$",
        ),
        (range(9), "evaluate", "4 or more held out, .* there are 1; observe() more with labels$"),
    ],
)
def test_an_error_counts_the_samples_that_a_phase_needs(model, noisy, indices, phase, needed):
    learner = pmt.Learner(model, choose_input=phase == "input")
    learner.observe(noisy.images[list(indices)], noisy.labels[list(indices)])
    text = needed.replace("()", r"\(\)")
    with pytest.raises(ValueError, match=f"^too few samples for phase='{phase}': it needs {text}"):
        learner.begin(phase)


def test_frames_without_labels_and_nothing_to_align_to_are_refused(model, noisy):
    learner = pmt.Learner(without_statistics(model), samples=20)
    learner.observe(noisy.images[:20])
    with pytest.raises(
        ValueError,
        match=r"^too few samples for phase='all': without statistics of clean images it needs "
        r"labels of two classes or more .* there are 0 and 0; observe\(\) more with labels$",
    ):
        learner.learn()


def test_an_error_names_the_room_where_no_sample_can_be_held_out(model, noisy):
    learner = pmt.Learner(model, samples=8)
    learner.observe(noisy.images[:8], noisy.labels[:8])
    with pytest.raises(ValueError, match=r"with held_out=4 or more, this one has 2$"):
        learner.begin("head")


def test_an_error_says_that_no_more_samples_are_held_out(model, noisy):
    learner = pmt.Learner(model, samples=8, held_out=3)
    with pytest.raises(
        ValueError,
        match=r"^held_out=3 leaves no room .* to hold out: the first 3 of 5 were taken in; give ",
    ):
        learner.observe(noisy.images[:5], noisy.labels[:5], role="hold_out")
    assert repr(learner).startswith("<Learner: 3 samples")


def test_one_set_of_parameters_learns_a_second_time_in_one_phase(model, noisy, tmp_path):
    learner = pmt.Learner(model, samples=60, keeps_confirmed=False, storage=tmp_path / "states")
    learner.observe(noisy.images[:60], noisy.labels[:60])
    learner.learn()
    learner.commit()
    learner.confirm()
    in_force = learner.checksum
    learner.learn("align")
    # The state in force, with which the head would be compared, is overwritten.
    for phase in ("head", "evaluate"):
        with pytest.raises(ValueError, match=r"^begin\(\) needs the state in force, which a phase"):
            learner.begin(phase)
    learner.cancel()
    assert learner.checksum == in_force
    learner.learn("evaluate")
    assert list(learner.scores) == ["original"]
    assert learner.learn() == "original"  # none is better than what they gave before


def test_one_set_of_parameters_without_a_storage_learns_once(model, noisy):
    learner = pmt.Learner(model, samples=20, keeps_confirmed=False)
    learner.observe(noisy.images[:20])
    learner.learn("align")
    learner.commit()
    learner.confirm()
    with pytest.raises(ValueError, match=r"^begin\(\) would overwrite the state in force for good"):
        learner.begin("align")
