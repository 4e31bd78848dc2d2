"""A keyword spotter with MLPerf Tiny's operators: from its .tflite through training, and back."""

from pathlib import Path

import numpy as np
import pytest
from firmware_tools import EMULATOR, TARGET, emulate, need_firmware_tools

import pmt
from pmt.cli import main
from pmt.datasets import save_npz
from pmt.firmware.export import export

pytest.importorskip("tflite")
import litert_engine
from keyword_spotter import keyword_spotter, spoken_words

OPTIONS = {"layers": "B4,head", "epochs": 2, "batch": 24, "queries": 4, "keep_best": False}


@pytest.fixture(scope="module")
def path(tmp_path_factory):
    path = tmp_path_factory.mktemp("spotter") / "kws.tflite"
    path.write_bytes(keyword_spotter())
    return path


@pytest.fixture(scope="module")
def trained(path):
    model = pmt.load(path)
    heard = spoken_words(240, 4, drift=0.3)
    pmt.ZOTrainer(**OPTIONS).fit(model, heard, progress=False)
    return model


def litert_agreement(path: Path, model: pmt.Model) -> float:
    """Share of words that LiteRT takes for the same one, by the int8 outputs."""
    pytest.importorskip("ai_edge_litert")
    images = model.prepare(spoken_words(120, 5).images)
    found = litert_engine.outputs(path.read_bytes(), images)
    ours = model.core.logits(images, int8_logits=True)
    return float(np.mean(found.argmax(axis=1) == ours.argmax(axis=1)))


def test_it_is_read_layer_by_layer(path):
    model = pmt.load(path)
    separable = ["depthwise_conv2d", "conv2d"] * 4
    kinds = ["conv2d", *separable, "average_pool", "reshape", "fully_connected"]
    assert [op["kind"] for op in model.core.ops()] == kinds
    assert (model.input_shape, model.output_text) == ((49, 10, 1), "12 classes")
    assert (model.macs, model.metadata["dropped_operators"]) == (2_656_768, ["op 12 SOFTMAX"])
    assert model.layers[0].output_shape == (25, 5, 64)
    assert model.evaluate(spoken_words(240, 2)).accuracy > 0.75
    assert litert_agreement(path, model) > 0.97


def test_it_adapts_to_another_microphone(path, trained):
    model, test = pmt.load(path), spoken_words(240, 3, drift=0.3)
    before, after = model.evaluate(test), trained.evaluate(test)
    assert after.accuracy > before.accuracy + 0.08
    assert after.loss < before.loss - 0.3
    for layer in trained.layers:
        changed = not np.array_equal(trained.weights(layer.name), model.weights(layer.name))
        assert changed == (layer.index in trained.select_layers("B4,head"))


def test_it_goes_back_into_tflite(path, trained, tmp_path):
    trained.save(tmp_path / "into.tflite", into=path)
    trained.save(tmp_path / "new.tflite")
    heard = spoken_words(60, 6).images
    for name in ("into", "new"):
        back = pmt.load(tmp_path / f"{name}.tflite")
        np.testing.assert_array_equal(back.logits(heard), trained.logits(heard))
        assert litert_agreement(tmp_path / f"{name}.tflite", trained) > 0.97
    assert len((tmp_path / "into.tflite").read_bytes()) == path.stat().st_size


def test_the_command_line_trains_it(path, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("words").mkdir()
    save_npz(spoken_words(120, 4, drift=0.3), "words/train.npz")
    save_npz(spoken_words(60, 3, drift=0.3), "words/test.npz")
    options = ["--layers", "head", "--epochs", "1", "--batch", "24", "--out", "run"]
    assert main(["train", str(path), "--data", "words", *options]) == 0
    assert main(["convert", "run", "kws.tflite", "--into", str(path)]) == 0
    assert pmt.load("kws.tflite").input_shape == (49, 10, 1)


def test_a_board_trains_the_same_bytes(path, tmp_path):
    need_firmware_tools(EMULATOR, "make")
    options = pmt.TrainingOptions(layers="B4,head", batch=2, queries=2, preparation="none")
    export(
        pmt.load(path),
        target=TARGET,
        out=tmp_path / "fw",
        dataset=spoken_words(24, 4, drift=0.3),
        options=options,
        inferences=1,
        steps=2,
    )
    ok, log = emulate(tmp_path / "fw")
    assert log[-1] == "verify: ok (2 steps, 3 layers, 12 activations)", log
    assert ok
