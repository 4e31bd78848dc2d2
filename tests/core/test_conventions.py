"""First calls of users of other libraries: images and labels apart, other names, other files."""

import errno
import re

import numpy as np
import pytest

import pmt
from pmt._util.atomic_file import write_remedy
from pmt.callbacks import Callback, EpochEnd, PhaseEnd, StepEnd
from pmt.datasets import Dataset

TRAIN = pmt.datasets.bundled("train").take(40)
X, Y = TRAIN.images, TRAIN.labels


@pytest.fixture
def model():
    return pmt.load("fashion_mnist_dscnn")


def trainer(**options: object) -> pmt.ZOTrainer:
    return pmt.ZOTrainer(layers="head", epochs=1, preparation="none", **options)


@pytest.mark.filterwarnings("ignore:training images have equal pixels")
def test_images_and_labels_may_be_two_arguments(model):
    assert model.evaluate(X, Y) == model.evaluate(TRAIN) == model.evaluate((X, Y))
    assert (model.confusion(X, Y).matrix == model.confusion(TRAIN).matrix).all()
    assert (model.score_images(X, Y).losses == model.score_images(TRAIN).losses).all()
    assert (model.predict(TRAIN) == model.predict(X)).all()
    assert (model.predict_proba(TRAIN) == model.predict_proba(X)).all()
    apart, together = model.copy(), model.copy()
    trainer().fit(apart, X, Y, progress=False)
    trainer().fit(together, (X, Y), progress=False)
    assert apart.image() == together.image()
    for call in (model.evaluate, model.confusion):
        with pytest.raises(TypeError, match="dataset has labels of its own"):
            call(TRAIN, Y)
    with pytest.raises(TypeError, match="data has labels of its own"):
        trainer().fit(model, TRAIN, Y)
    mcutrain = pmt.methods.trainer("mcutrain")
    with pytest.raises(TypeError, match="data has labels of its own"):
        mcutrain.fit(model, TRAIN, Y)


@pytest.mark.parametrize(
    ("labels", "message"),
    [
        (
            Y + 1,
            r"has label 10, .* classes \(0\.\.9\); use another data set, or as labels begin at ",
        ),
        (
            Y.astype(float),
            r"y is float64: must be integers, .*; give y\.astype\(int\), or for float targets use "
            r"Dataset\.with_targets\(x, y\)$",
        ),
        (
            Y[:, None] / 1,
            r"; give y\.astype\(int\), or for float targets use Dataset\.with_targets\(x, y\)$",
        ),
        (Y > 4, r"y is bool: must be integers, .*; give y\.astype\(int\) for two classes$"),
        (np.where(np.arange(40) == 3, np.nan, Y), r"y\[3\] is NaN: leave out images without one$"),
        (Y + 0.5, r"; for float targets use Dataset\.with_targets\(x, y\)$"),
        (
            np.full((40, 10), 0.5, np.float32),
            r"y has shape \(40, 10\): must be \(N,\), the number of each image's class; use "
            r"Dataset\.with_targets\(x, y\) for float targets$",
        ),
        (Y.astype(str), r"; number names with class_names, y = numpy\.unique"),
    ],
)
def test_labels_of_another_kind_are_told_what_they_are(model, labels, message):
    with pytest.raises((TypeError, ValueError), match=message):
        model.evaluate(X, labels)


@pytest.mark.parametrize(
    ("name", "remedy"),
    [
        ("lr", "did you mean 'learning_rate'?"),
        ("batch_size", "did you mean 'batch'?"),
        ("random_state", "here it is seed"),
        ("n_jobs", "here it is threads, of the trainer"),
        ("max_iter", "here it is epochs"),
        ("C", "here it is chosen by folds where preparation has the head"),
        ("momentum", "here it is examples/momentum.py, on pmt.Engine"),
        ("verbose", "here it is progress, of fit"),
        ("patience", "here it is pmt.callbacks.EarlyStopping(patience), among fit(callbacks=["),
        ("device", "here it is no option: training runs on the CPU"),
    ],
)
def test_arguments_of_other_libraries_are_known(name, remedy):
    with pytest.raises(ValueError, match=re.escape(f"option {name!r} is unknown; {remedy}")):
        pmt.ZOTrainer(**{name: 1})


@pytest.mark.parametrize(
    ("file", "way"),
    [
        ("net.pt", "torch.onnx.export(module, inputs, 'f.onnx')"),
        ("net.safetensors", "torch.onnx.export(module, inputs, 'f.onnx')"),
        ("net.keras", "pmt.from_keras(keras.saving.load_model(path), images) quantizes it"),
        ("net.pb", "tf.lite.TFLiteConverter with full-integer quantization"),
    ],
)
def test_files_of_other_libraries_are_told_the_way(file, way):
    known = "readable are .pmt, .tflite, .onnx and .pkl; "
    with pytest.raises(ValueError, match=re.escape(known + way)):
        pmt.load(file)


def test_a_split_may_follow_the_folder(tmp_path):
    pmt.datasets.save_npz(TRAIN, tmp_path / "test.npz")
    pmt.datasets.save_npz(TRAIN[:30], tmp_path / "train.npz")
    assert len(pmt.datasets.load(tmp_path, "test")) == 40


def test_only_a_full_disk_is_told_to_be_emptied():
    remedies = {code: write_remedy(OSError(code, "")) for code in (errno.ENOSPC, errno.EACCES)}
    assert remedies == {
        errno.ENOSPC: "free some space or choose another folder",
        errno.EACCES: "choose a folder that you may write to",
    }
    assert write_remedy(OSError(errno.EIO, "")) == "choose another folder"


def test_a_callback_has_a_method_for_each_kind_of_event(model):
    class Seen(Callback):
        def __init__(self) -> None:
            self.names: list[str] = []

        def on_phase(self, event: PhaseEnd) -> None:
            self.names.append(event.record["phase"])

        def on_step(self, event: StepEnd) -> None:
            self.names.append(f"step {event.step}")

        def on_epoch(self, event: EpochEnd) -> bool:
            self.names.append("epoch")
            return True

    seen = Seen()
    data = Dataset(X, Y, TRAIN.class_names, name="x")
    many = trainer(batch=16).options.replace(epochs=5)
    pmt.ZOTrainer(many).fit(model, data, callbacks=[seen, Callback()], progress=False)
    assert seen.names == ["start", "step 1", "step 2", "epoch"]
