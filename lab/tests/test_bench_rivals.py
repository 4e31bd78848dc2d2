"""Other engines on the same network. Their outputs show that they were given the same network."""

import json

import numpy as np
import pytest
from networks import every_op, residual_network, smooth_network

import pmt
from pmt_lab.benchmark.against import outputs_agree
from pmt_lab.benchmark.forward import random_images
from pmt_lab.benchmark.rivals import RIVALS, open_rivals
from pmt_lab.cli import main

PACKAGES = {
    "onnxruntime": ("onnxruntime", "onnx"),
    "litert": ("ai_edge_litert", "tflite"),
    "torch": ("torch",),
}


def needs(*engines: str) -> None:
    for engine in engines:
        for package in PACKAGES[engine]:
            pytest.importorskip(package)


NETWORKS = {
    "residual": residual_network,
    "smooth": smooth_network,
    "every op": every_op,
    "bundled": lambda: pmt.load("fashion_mnist_dscnn"),
}


@pytest.mark.parametrize("engine", RIVALS)
@pytest.mark.parametrize("name", NETWORKS)
def test_engines_compute_the_same_network(name, engine):
    needs(engine)
    model = NETWORKS[name]()
    rivals = open_rivals(engine, model, "model.pmt")
    found = outputs_agree(model, rivals)[-1]  # ONNX Runtime's last mode is the exact one
    if engine == "torch":
        assert found["top1"] >= 0.9
    else:
        assert found["top1"] >= 0.97
        assert found["equal"] >= 0.9
        assert found["largest"] <= 2


@pytest.mark.parametrize("engine", RIVALS)
def test_a_batch_gives_what_single_images_give(engine):
    needs(engine)
    model = residual_network()
    images = random_images(model, 5)
    for rival in open_rivals(engine, model, "model.pmt"):
        assert rival.takes_batches
        one, many = (rival.runner(images, batch, 1)() for batch in (1, 5))
        np.testing.assert_allclose(one, many, rtol=1e-4, atol=1e-5)


def test_float_logits_are_close_to_ours():
    needs("torch")
    model = residual_network()
    images = random_images(model, 20)
    (rival,) = open_rivals("torch", model, "model.pmt")
    ours = model.core.logits(images)
    assert np.abs(rival.runner(images, 20, 1)() - ours).max() < 0.05 * np.abs(ours).max()


def test_a_tflite_file_is_run_as_it_is(resnet8_path):
    needs("litert")
    model = pmt.load(resnet8_path)
    (rival,) = open_rivals("litert", model, resnet8_path)
    assert rival.content == resnet8_path.read_bytes()
    (found,) = outputs_agree(model, [rival])
    assert found["top1"] >= 0.97
    assert found["equal"] is None  # the file ends with a softmax


def test_the_command_compares(tmp_path, capsys):
    needs("onnxruntime", "litert")
    quick = ["--images", "2", "--threads", "1", "--repeat", "1", "--steps", "none", "--json", "-"]
    assert main(["bench", *quick, "--against", "onnxruntime,litert"]) == 0
    printed = capsys.readouterr()
    figures = json.loads(printed.out)
    titles = [time["engine"] for time in figures["engines"]]
    assert titles[0] == "pmt"
    assert [title.split()[0] for title in titles[1:]] == ["ONNX", "ONNX", "LiteRT"]
    own = figures["engines"][0]["microseconds"]
    for time in figures["engines"]:
        assert time["ratio"] == pytest.approx(time["microseconds"] / own)
    assert "same best class for 100 % of 100 random images" in printed.err
