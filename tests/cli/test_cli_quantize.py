"""``pmt quantize``, with a reader of ONNX that gives a network of our own."""

import json
import sys
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest
from float_networks import mobile_network, random_images

import pmt
from pmt.cli import main
from pmt.datasets import Dataset, save_npz
from pmt.quantization import float_logits, quantize

NAMES = ("ant", "bee", "cat", "dog")

pytestmark = pytest.mark.usefixtures("wide_terminal")


@pytest.fixture
def reader(monkeypatch, tmp_path_factory):
    """Stands in for the ONNX reader: change ``.graph``; ``.calls`` holds the options given."""
    module = ModuleType("pmt.formats.onnx.float_importer")
    module.graph = mobile_network(2, "relu6", uneven=20.0)
    module.calls = []

    def read(path, **options):
        module.calls.append((str(path), options))
        return module.graph

    module.read = read
    monkeypatch.setitem(sys.modules, "pmt.formats.onnx.float_importer", module)
    monkeypatch.chdir(tmp_path_factory.mktemp("networks"))
    Path("net.onnx").touch()
    return module


def write_images(folder, graph, *, train: int = 40, test: int = 30, names=NAMES) -> str:
    """Train and test images, labeled by the float network itself: its accuracy is 1."""
    path = folder / "data"
    path.mkdir(exist_ok=True)
    for seed, (split, count) in enumerate((("train", train), ("test", test))):
        images = random_images(seed, count, graph)
        labels = float_logits(graph, images).argmax(axis=1)
        save_npz(Dataset(images, labels, names, "made"), path / f"{split}.npz")
    return str(path)


def run(folder, data: str, *options: str) -> int:
    return main(
        ["quantize", "net.onnx", "--calibrate", data, "--out", str(folder / "net.pmt"), *options]
    )


def test_a_model_is_written_and_its_report_printed(tmp_path, reader, capsys):
    data = write_images(tmp_path, reader.graph)
    assert run(tmp_path, data, "--limit", "32", "--eval", data) == 0
    printed = capsys.readouterr()
    assert printed.err == ""
    lines = printed.out.splitlines()
    assert lines[0].split() == ["op", "name", "kind", "plain", "dB", "dB"]
    assert [line.split()[1] for line in lines[1:12]] == [op.name for op in reader.graph.ops]
    text = "\n".join(lines[12:])
    assert f"calibrated on 32 train images of {data}: ranges mse, " in text
    assert "held by a bounded activation), biases corrected" in text
    assert "\nworst op " in text
    assert "32 calibration images: accuracy float 1.0000, int8 " in text
    assert "(seen by the quantizer: not a test)" in text
    assert "30 test images: accuracy float 1.0000, int8 " in text

    model = pmt.load(tmp_path / "net.pmt")
    assert model.metadata["class_names"] == list(NAMES)
    assert model.metadata["name"] == "net"
    assert model.metadata["source"] == "net.onnx, quantized by pmt quantize"
    images = random_images(1, 30, reader.graph)
    expected = float_logits(reader.graph, images)
    error = model.logits(images) - expected
    assert np.sqrt(np.mean(error**2) / np.mean(expected**2)) < 0.05


def test_figures_as_json(tmp_path, reader, capsys):
    data = write_images(tmp_path, reader.graph)
    assert run(tmp_path, data, "--json", "-") == 0
    found = json.loads(capsys.readouterr().out)
    assert sorted(found) == [
        "accuracy", "bias_correction", "bytes", "equalized", "float_bytes", "images", "layers",
        "path", "ranges", "warnings", "worst",
    ]  # fmt: skip
    assert found["bytes"] == (tmp_path / "net.pmt").stat().st_size
    assert found["images"] == 40
    assert (found["ranges"], found["bias_correction"]) == ("mse", True)
    assert found["equalized"]["pairs"] == 2
    assert found["accuracy"]["calibration"]["float"] == 1.0
    assert found["accuracy"]["calibration"]["int8"] > 0.8
    assert list(found["accuracy"]) == ["calibration"]
    assert found["warnings"] == []
    ratios = [layer["db"] for layer in found["layers"]]
    assert min(ratios) == found["worst"]["db"] > 20
    assert found["layers"][-1]["db"] > found["layers"][-1]["plain_db"]
    parameters = sum(op.weights.size + op.bias.size for op in reader.graph.ops if op.kind in LAYERS)
    assert found["float_bytes"] == 4 * parameters


LAYERS = ("conv2d", "depthwise_conv2d", "fully_connected")


def test_the_plainest_method_has_no_gain(tmp_path, reader, capsys):
    data = write_images(tmp_path, reader.graph)
    options = ["--ranges", "minmax", "--no-equalize", "--no-bias-correction", "--json", "-"]
    assert run(tmp_path, data, *options) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["equalized"] is None
    assert all(layer["db"] == layer["plain_db"] for layer in found["layers"])


def test_what_the_network_reads_is_passed_to_the_importer(tmp_path, reader):
    data = write_images(tmp_path, reader.graph)
    options = ["--input-mean", "123.7,116.3,103.5", "--input-std", "58"]
    options += ["--class-names", "a,b, c,d"]
    assert run(tmp_path, data, *options) == 0
    expected = {"input_mean": (123.7, 116.3, 103.5), "input_std": 58.0}
    assert reader.calls == [("net.onnx", expected)]
    assert pmt.load(tmp_path / "net.pmt").metadata["class_names"] == ["a", "b", "c", "d"]


def test_labels_of_other_classes_give_no_accuracy(tmp_path, reader, capsys):
    data = write_images(tmp_path, reader.graph, names=(*NAMES, "emu"))
    assert run(tmp_path, data) == 0
    text = capsys.readouterr().out
    assert "the labels are of other classes, so there is no accuracy" in text
    assert "class_names" not in pmt.load(tmp_path / "net.pmt").metadata


def test_layers_of_zeros_are_warned_of(tmp_path, reader, capsys):
    reader.graph.ops[-1].weights = np.zeros_like(reader.graph.ops[-1].weights)
    data = write_images(tmp_path, reader.graph)
    assert run(tmp_path, data) == 0
    assert "warning: layer head has no weight but zero" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--ranges", "entropy"], "ranges='entropy' is unknown; choose one of minmax, mse"),
        (["--limit", "3"], "the calibration set has 3 images, but must have at least 8"),
        (["--class-names", "a,b"], "--class-names gives 2 names for the 4 logits"),
        (["--input-std", "1;2"], "'1;2' must be one number, or one for each channel"),
        (["--eval", "nowhere"], "nowhere"),
    ],
)
def test_bad_options_are_one_line_and_leave_no_file(tmp_path, reader, capsys, options, message):
    data = write_images(tmp_path, reader.graph)
    assert run(tmp_path, data, *options) == 2
    printed = capsys.readouterr()
    assert printed.out == ""
    assert printed.err.startswith("pmt: error: ")
    assert printed.err.count("\n") == 1
    assert message in printed.err
    assert [path.name for path in tmp_path.iterdir()] == ["data"]


@pytest.mark.parametrize(
    ("model", "out", "message"),
    [
        ("net.tflite", "net.pmt", "net.tflite: a float network is read from .onnx"),
        ("net.onnx", "net.bin", "net.bin: a model is written as .pmt; change the suffix"),
        ("net.onnx", "missing/net.pmt", "its folder does not exist; create it"),
    ],
)
def test_paths_are_checked_before_the_work(tmp_path, reader, capsys, model, out, message):
    arguments = ["quantize", model, "--calibrate", "nowhere", "--out", str(tmp_path / out)]
    assert main(arguments) == 2
    assert message in capsys.readouterr().err
    assert reader.calls == []


def test_a_model_that_is_there_is_replaced_only_with_force(tmp_path, reader, capsys):
    data = write_images(tmp_path, reader.graph)
    out = tmp_path / "net.pmt"
    out.write_bytes(b"kept")
    assert run(tmp_path, data) == 2
    assert capsys.readouterr().err == (
        f"pmt: error: --out {out} exists; choose another name, or add --force\n"
    )
    assert (out.read_bytes(), reader.calls) == (b"kept", [])
    assert run(tmp_path, data, "--force") == 0
    assert pmt.load(out).class_names == NAMES


def test_each_thing_that_is_not_supported_is_a_line(tmp_path, capsys):
    onnx_networks = pytest.importorskip("onnx_networks")
    network = onnx_networks.Network(3)
    x = network.add("HardSwish", [network.conv("x", 3, 8)])
    x = network.add("Split", [x], axis=1)
    path = network.save(tmp_path / "bad.onnx", x)
    arguments = ["quantize", str(path), "--calibrate", "bundled", "--out", str(tmp_path / "n.pmt")]
    assert main(arguments) == 2
    lines = capsys.readouterr().err.splitlines()
    assert [line.partition(" (")[2] for line in lines] == [
        "HardSwish): this operator is not supported: train the network with ReLU or ReLU6 instead",
        "Split): this operator is not supported: export without branches over parts of the "
        "channels",
    ]
    assert all(line.startswith("pmt: error: bad.onnx: not supported: node ") for line in lines)


def test_all_that_is_wrong_with_graph_and_images_is_said_at_once(tmp_path, reader, capsys):
    data = write_images(tmp_path, reader.graph, train=1)
    reader.graph.ops[0].weights[0, 0, 0, 0] = np.nan
    reader.graph.ops[3].bias[:2] = np.inf
    assert run(tmp_path, data) == 2
    message = capsys.readouterr().err
    assert "3 problems: " in message
    assert "op 'stem' (conv2d): weights hold a value that is not finite" in message
    assert "op 'project' (conv2d): bias hold 2 values that are not finite" in message
    assert "the calibration set has 1 image, but must have at least 8" in message


def test_images_of_other_channels_are_refused(tmp_path, reader, capsys):
    images = np.zeros((12, 6, 6, 4), np.uint8)
    save_npz(Dataset(images, np.zeros(12, int), NAMES, "other"), tmp_path / "other.npz")
    assert run(tmp_path, str(tmp_path / "other.npz")) == 2
    assert "other.npz: images have 4 channels, the network reads 3" in capsys.readouterr().err


def test_gray_images_get_the_three_channels_of_a_network(tmp_path, reader):
    gray = np.random.default_rng(0).integers(0, 256, (40, 6, 6, 1), np.uint8)
    made = []
    for name, images in (("gray", gray), ("color", gray.repeat(3, axis=3))):
        (tmp_path / name).mkdir()
        data = str(tmp_path / name / "data.npz")
        save_npz(Dataset(images, np.zeros(40, int), NAMES, "made"), data)
        assert run(tmp_path / name, data, "--eval", data) == 0
        made.append((tmp_path / name / "net.pmt").read_bytes())
    assert made[0] == made[1]


def test_images_of_another_size_are_resized(tmp_path, reader, capsys):
    images = np.random.default_rng(0).integers(0, 256, (12, 20, 9, 3), np.uint8)
    save_npz(Dataset(images, np.zeros(12, int), NAMES, "other"), tmp_path / "other.npz")
    assert run(tmp_path, str(tmp_path / "other.npz"), "--limit", "10") == 0
    assert "10 calibration images: accuracy float" in capsys.readouterr().out


def test_an_interrupt_leaves_no_file(tmp_path, reader, monkeypatch, capsys):
    data = write_images(tmp_path, reader.graph)

    def interrupted(*_, **__):
        raise KeyboardInterrupt

    monkeypatch.setattr("pmt.quantization.quantized_model.correct_biases", interrupted)
    assert run(tmp_path, data) == 130
    assert capsys.readouterr().err == "pmt: interrupted\n"
    assert [path.name for path in tmp_path.iterdir()] == ["data"]


def test_a_real_onnx_file_keeps_the_logits_of_its_own_runtime(tmp_path, capsys):
    onnx_networks = pytest.importorskip("onnx_networks")
    network = onnx_networks.Network(3)
    x = network.batch_norm(network.conv("x", 3, 8, pads=[1, 1, 1, 1]), 8)
    x = network.add("Relu", [x])
    x = network.batch_norm(network.conv(x, 8, 8, group=8, strides=[2, 2], pads=[0, 0, 1, 1]), 8)
    x = network.add("Clip", [x, network.constant(0.0), network.constant(6.0)])
    x = network.conv(x, 8, 12, 1)
    path = network.save(tmp_path / "net.onnx", network.head(network.add("Relu", [x]), 12 * 16))

    r = np.random.default_rng(0)
    images = r.integers(0, 256, (200, 8, 8, 3), np.uint8)
    inputs = ((images.transpose(0, 3, 1, 2) - np.float32(120)) / np.float32(60)).astype(np.float32)
    expected = onnx_networks.run(path, inputs)
    save_npz(Dataset(images, expected.argmax(axis=1), NAMES, "made"), tmp_path / "made.npz")
    arguments = ["quantize", str(path), "--calibrate", str(tmp_path / "made.npz")]
    arguments += ["--out", str(tmp_path / "net.pmt"), "--input-mean", "120", "--input-std", "60"]
    assert main([*arguments, "--limit", "64", "--json", "-"]) == 0
    figures = json.loads(capsys.readouterr().out)
    assert figures["accuracy"]["calibration"]["float"] == 1.0

    found = pmt.load(tmp_path / "net.pmt").logits(images)
    error = np.mean((found - expected) ** 2) / np.mean(expected**2)
    assert 10 * np.log10(1 / error) > 28
    assert np.mean(found.argmax(axis=1) == expected.argmax(axis=1)) > 0.95


def test_one_call_gives_the_same_model_and_figures(tmp_path, reader, capsys):
    data = write_images(tmp_path, reader.graph)
    assert run(tmp_path, data, "--limit", "32", "--eval", data, "--json", "-") == 0
    expected = json.loads(capsys.readouterr().out)
    result = quantize("net.onnx", data, limit=32, eval=data)
    path = tmp_path / "net.pmt"
    assert json.loads(json.dumps({"path": str(path), **result.to_json()})) == expected
    assert result.model.image() == path.read_bytes()
    assert repr(result).startswith(f"<QuantizedModel net: {expected['bytes']:,} bytes, of ")
    assert len(repr(result)) < 120


def test_one_call_names_options_as_python_does(tmp_path, reader):
    data = write_images(tmp_path, reader.graph)
    with pytest.raises(ValueError, match=r"^class_names gives 2 names for the 4 logits"):
        quantize("net.onnx", data, class_names=("ant", "bee"))
    with pytest.raises(FileNotFoundError, match=r"^model='none.onnx': there is no such file$"):
        quantize("none.onnx", data)
