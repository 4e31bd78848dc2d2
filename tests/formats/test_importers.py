"""Importers: promises of them all, the choice of one, and names that a hostile file chose."""

import os
import sys
import zipfile
from collections.abc import Callable
from dataclasses import asdict, replace
from pathlib import Path

import numpy as np
import pytest
import tiny_training_builder
from firmware_tools import TARGET, random_dataset
from networks import residual_network, smooth_network
from onnx_networks import Network

import pmt
from pmt import formats
from pmt.firmware.export import export
from pmt.formats import reading
from pmt.formats.onnx import float_importer
from pmt.model.loading import BUNDLED_MODELS
from pmt.net.float_graph import FloatGraph
from pmt.net.graph import Graph
from pmt.net.image import build_image
from pmt.train.options import TrainingOptions

pytest.importorskip("tflite")
pytest.importorskip("onnx")


def save_float_network(path: Path) -> None:
    net = Network()
    net.save(path, net.head(net.conv("x", 3, 4), 4 * 36))


# One sound file for each importer of the registry, and for the reader of float networks.
SAMPLES: dict[str, Callable[[Path], object]] = {
    ".pmt": lambda path: residual_network().save(path),
    ".tflite": lambda path: residual_network().save(path),
    ".onnx": lambda path: residual_network().save(path),
    ".pkl": lambda path: tiny_training_builder.saved(path, tiny_training_builder.small_network()),
    "float.onnx": save_float_network,
}
DAMAGED = {
    "empty": b"",
    "text": b"something else, longer than a header" * 10,
    "protobuf": b"\x08\x07" * 40,
    "ones": b"\xff" * 1000,
    "zeros": bytes(1000),
}


def read(kind: str, path: Path) -> Graph | FloatGraph:
    return float_importer.read(path) if kind == "float.onnx" else formats.read(path)


def content(graph: Graph | FloatGraph) -> str | bytes:
    """All that a graph says, in a form that can be compared."""
    if isinstance(graph, Graph):
        return build_image(graph)
    with np.printoptions(threshold=2**30, floatmode="unique"):
        return repr(asdict(graph))


def refusal(kind: str, path: Path) -> str:
    """The one error of a damaged file."""
    with pytest.raises(ValueError, match=rf"\b{path.name}: ") as caught:
        read(kind, path)
    assert len(str(caught.value)) < 20_000
    return str(caught.value)


@pytest.fixture(params=SAMPLES)
def kind(request):
    return str(request.param)


@pytest.fixture
def path(kind, tmp_path):
    """A sound file, alone in its folder, which reading leaves so."""
    path = tmp_path / f"net.{kind.rpartition('.')[2]}"
    SAMPLES[kind](path)
    yield path
    assert os.listdir(tmp_path) == [path.name]


def test_every_importer_has_a_sample():
    assert set(SAMPLES) == {*reading.SUFFIXES, "float.onnx"}


def test_reading_twice_gives_equal_graphs(kind, path):
    before = path.read_bytes()
    assert content(read(kind, path)) == content(read(kind, path))
    assert path.read_bytes() == before


@pytest.mark.parametrize("damage", DAMAGED)
def test_other_files_are_refused(kind, path, damage):
    path.write_bytes(DAMAGED[damage])
    refusal(kind, path)


def test_files_of_other_formats_are_refused(kind, path):
    own = path.suffix
    for other, save in SAMPLES.items():
        if not other.endswith(own):
            sample = path.with_name(f"other{other}")
            save(sample)
            sample.replace(path)
            refusal(kind, path)


def test_a_file_cut_anywhere_is_refused(kind, path):
    whole = path.read_bytes()
    for size in range(0, len(whole) - 64, max(1, len(whole) // 150)):
        path.write_bytes(whole[:size])
        refusal(kind, path)


def test_a_file_that_is_not_there_is_named(kind, path, tmp_path):
    missing = path.with_stem("missing")
    with pytest.raises(FileNotFoundError, match=r"missing.*: there is no such file"):
        read(kind, missing)
    missing.mkdir()
    with pytest.raises(FileNotFoundError, match=r"missing.*: there is no such file"):
        read(kind, missing)
    missing.rmdir()


def test_suffix_chooses_the_importer(tmp_path, mcunet_path, resnet8_path):
    mcunet = formats.read(mcunet_path)
    assert mcunet.tensors[mcunet.output].channels == 1000
    resnet = formats.read(str(resnet8_path))
    assert resnet.tensors[resnet.output].channels == 10
    image = build_image(resnet)
    (tmp_path / "net.PMT").write_bytes(image)
    assert build_image(formats.read(tmp_path / "net.PMT")) == image


def test_unknown_suffix(tmp_path):
    message = r"suffix '\.h5' is unknown; readable are \.pmt, \.tflite, \.onnx and \.pkl"
    with pytest.raises(ValueError, match=message):
        formats.read(tmp_path / "net.h5")


@pytest.mark.parametrize(
    ("kind", "package"), [(".tflite", "tflite"), (".onnx", "onnx"), ("float.onnx", "onnx")]
)
def test_a_missing_package_says_what_to_install(kind, package, path, monkeypatch):
    monkeypatch.setitem(sys.modules, package, None)
    message = (
        f"reading {path.suffix} needs the package {package}: "
        rf'pip install "poor-mans-training\[{package}\]"'
    )
    with pytest.raises(ImportError, match=message):
        read(kind, path)


@pytest.mark.parametrize(
    ("name", "rest"),
    [
        ("fashion_mnist_dscnn", "the bundled model 'fashion_mnist_dscnn'; it takes classes"),
        ("net.pmt", "a .pmt image; it takes classes"),
        ("run", "a .pmt image; it takes classes"),
        ("card.img", "a card; it takes classes"),
        ("net.onnx", "an .onnx file; it takes input_mean and input_std"),
        ("net.tflite", "a .tflite file; it takes input_mean and input_std"),
        ("net.pkl", "a tiny-training .pkl; it takes resolution"),
    ],
)
def test_load_refuses_options_that_the_format_does_not_take(tmp_path, name, rest):
    path = name if name in BUNDLED_MODELS else tmp_path / name
    if name == "run":
        (tmp_path / "run").mkdir()
        smooth_network().save(tmp_path / "run" / "checkpoint.pmt")
    elif name in ("net.pmt", "net.onnx", "net.tflite"):
        smooth_network().save(tmp_path / name)
    elif name != path:
        (tmp_path / name).write_bytes(b"its options are looked at first")
    with pytest.raises(TypeError) as caught:
        pmt.load(path, foo=3, bar=None)
    assert str(caught.value) == f"options ['bar', 'foo'] are unknown for {rest}"
    with pytest.raises(TypeError, match=r"^option 'clases' is unknown; did you mean 'classes'\?$"):
        pmt.load(path, clases=3)


@pytest.mark.parametrize("suffix", ["onnx", "tflite"])
def test_a_file_whose_name_is_not_utf8_is_read(tmp_path, suffix):
    path = tmp_path / os.fsdecode(b"caf\xe9\x1b." + suffix.encode())
    smooth_network().save(path)
    assert pmt.load(path).metadata["source"] == rf"{suffix} caf\udce9\x1b.{suffix}"


NAME = '\x1b]0;p\x07"\n*/ #error p\n<script>x</script>,=1+1,../../'


def hostile() -> pmt.Model:
    graph = residual_network().to_graph()
    graph.ops = [replace(op, name=f"{NAME}{i}") for i, op in enumerate(graph.ops)]
    graph.metadata = {**graph.metadata, "name": NAME}
    return pmt.Model.from_graph(graph)


def check(text: str) -> None:
    assert "\x1b" not in text
    assert "\n*/ #error" not in text
    assert "<script>" not in text


def test_the_readme_and_sources_of_a_firmware_hold_no_layers_name_as_it_is(tmp_path):
    model = hostile()
    options = TrainingOptions(layers="head", batch=2, queries=2, preparation="none")
    data = random_dataset(model, 4)
    export(model, out=tmp_path / "fw", target=TARGET, dataset=data, options=options, steps=1)
    check((tmp_path / "fw" / "README.md").read_text())
    for path in (tmp_path / "fw" / "model").glob("*.[hc]pp"):
        check(path.read_text())


def test_no_file_of_an_archive_is_outside_of_it(tmp_path):
    graph = residual_network().to_graph()
    names = ["/etc/x", "../../up", "..", "block1/conv", NAME, "a..b"]
    ops = graph.ops
    graph.ops = [replace(op, name=names[i]) if i < len(names) else op for i, op in enumerate(ops)]
    formats.write(graph, tmp_path / "m.npz")
    members = zipfile.ZipFile(tmp_path / "m.npz").namelist()
    folders = {name.rpartition("/")[0] for name in members}
    assert not any(name.startswith("/") or ".." in name.split("/") for name in members)
    assert "block1/conv" in folders
    for name in members:
        check(name.replace("<script>", ""))
