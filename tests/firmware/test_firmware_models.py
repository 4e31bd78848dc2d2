"""Every model that comes with pmt or is imported in tests becomes firmware that verifies."""

from pathlib import Path

import pytest
from firmware_tools import TARGET, check_linked, emulate, make, random_dataset, share_objects
from networks import residual_network
from tflite_networks import GENERATED, generated
from tiny_training_builder import FAMILY, saved

import pmt
from pmt.firmware.export import export
from pmt.formats.onnx.exporter import onnx_model
from pmt.model import Model

KERAS = Path(__file__).parents[1] / "keras"
# One step of two queries: the fewest that every estimator takes.
OPTIONS = {"batch": 1, "queries": 2, "preparation": "head", "gradient_norm_scaling": "none"}


def check(out: Path, objects: Path, model: Model, layers: str) -> None:
    """Export, build with warnings as errors, run one inference and one step, compare everything."""
    options = pmt.preset("default", layers=layers, **OPTIONS)
    data = random_dataset(model, 2)
    report = export(
        model, target=TARGET, out=out, dataset=data, options=options, inferences=1, steps=1
    )
    share_objects(objects, out)
    ok, log = emulate(out)
    counts = f"1 steps, {len(report.layers)} layers, {model.core.op_count} activations"
    assert log[-1] == f"verify: ok ({counts})", log
    assert ok


@pytest.mark.parametrize(
    ("name", "layers"),
    [("cifar10_mcunet", "B4,head"), ("cifar10_small", "all"), ("fashion_mnist_dscnn", "all")],
)
def test_bundled_models(tmp_path, firmware_objects, name, layers):
    check(tmp_path / "fw", firmware_objects, pmt.load(name), layers)


@pytest.mark.parametrize("name", sorted(file.stem for file in KERAS.glob("*.tflite")))
def test_networks_of_keras(tmp_path, firmware_objects, name):
    check(tmp_path / "fw", firmware_objects, pmt.load(KERAS / f"{name}.tflite"), "all")


@pytest.mark.parametrize("name", GENERATED)
def test_generated_tflite(tmp_path, firmware_objects, name):
    path = tmp_path / "net.tflite"
    path.write_bytes(generated(name))
    check(tmp_path / "fw", firmware_objects, pmt.load(path, input_mean=0, input_std=255), "all")


@pytest.mark.parametrize("name", FAMILY)
def test_networks_of_tiny_training(tmp_path, firmware_objects, name):
    path = saved(tmp_path / "net.pkl", FAMILY[name]())
    check(tmp_path / "fw", firmware_objects, pmt.load(path), "all")


def test_an_onnx_network(tmp_path, firmware_objects):
    path = tmp_path / "net.onnx"
    path.write_bytes(onnx_model(residual_network().to_graph()))
    check(tmp_path / "fw", firmware_objects, pmt.load(path), "all")


@pytest.mark.parametrize("fixture", ["mcunet_path", "resnet8_path"])
def test_published_models(tmp_path, firmware_objects, fixture, request):
    check(tmp_path / "fw", firmware_objects, pmt.load(request.getfixturevalue(fixture)), "head")


@pytest.mark.parametrize("board", ["stm32f746g-disco", "stm32h7b3i-dk"])
def test_the_bundled_model_links_for_a_board(tmp_path, firmware_objects, board):
    model = pmt.load("fashion_mnist_dscnn")
    data = pmt.datasets.bundled("train").take(100)
    out = tmp_path / "fw"
    options = pmt.preset("default", batch=8)
    report = export(model, target=board, out=out, dataset=data, options=options)
    share_objects(firmware_objects, out)
    built = make(out)
    assert built.returncode == 0, built.stdout
    check_linked(report)
