"""Writing a model: formats by suffix, whole files or none, and arrays that are enough."""

import errno
import os
import sys

import emulator
import numpy as np
import pytest
from drawn_graphs import drawn_graph
from networks import pixels, residual_network
from written_files import graph_of_arrays

from pmt import formats
from pmt._util import atomic_file
from pmt.net.image import build_image, read_graph


@pytest.mark.parametrize("suffix", formats.SUFFIXES)
def test_a_place_that_cannot_be_written_is_named(suffix, tmp_path):
    graph = residual_network().to_graph()
    (tmp_path / "file").write_bytes(b"old")
    (tmp_path / f"net{suffix}").mkdir()
    with pytest.raises(FileNotFoundError, match="none does not exist; create it"):
        formats.write(graph, tmp_path / "none" / f"net{suffix}")
    with pytest.raises(NotADirectoryError, match="file is a file; choose a folder"):
        formats.write(graph, tmp_path / "file" / f"net{suffix}")
    with pytest.raises(IsADirectoryError, match="is a folder; give a file's name"):
        formats.write(graph, tmp_path / f"net{suffix}")
    assert sorted(os.listdir(tmp_path)) == ["file", f"net{suffix}"]
    assert os.listdir(tmp_path / f"net{suffix}") == []


@pytest.mark.parametrize("suffix", formats.SUFFIXES)
def test_every_format_is_written_whole_and_the_same_again(suffix, tmp_path):
    pytest.importorskip("tflite")
    pytest.importorskip("onnx")
    model = residual_network()
    model.save(tmp_path / f"net{suffix}")
    first = (tmp_path / f"net{suffix}").read_bytes()
    assert formats.write(model.to_graph(), tmp_path / f"net{suffix}") == len(first) > 1224
    assert (tmp_path / f"net{suffix}").read_bytes() == first
    assert os.listdir(tmp_path) == [f"net{suffix}"]


def test_an_image_is_written_as_save_writes_it(tmp_path):
    model = residual_network()
    formats.write(model.to_graph(), tmp_path / "net.PMT")
    assert (tmp_path / "net.PMT").read_bytes() == model.image()


@pytest.mark.parametrize("seed", range(20))
def test_arrays_are_the_whole_network(seed, tmp_path):
    graph = read_graph(build_image(drawn_graph(seed)))  # scales as float32 holds them
    formats.write(graph, tmp_path / "net.npz")
    assert build_image(graph_of_arrays(tmp_path / "net.npz")) == build_image(graph)


def test_arrays_are_named_and_enough_to_compute_a_layer(tmp_path):
    model = residual_network()
    model.save(tmp_path / "net.npz")
    graph = model.to_graph()
    with np.load(tmp_path / "net.npz") as arrays:
        assert sorted(name for name in arrays if name.startswith("stem/")) == [
            f"stem/{name}"
            for name in (
                "bias", "bias_scales", "input_scale", "input_zero_point", "output_scale",
                "output_zero_point", "weight_scales", "weights",
            )
        ]  # fmt: skip
        head = {n.partition("/")[2]: arrays[n] for n in arrays if n.startswith("head/")}
    dtypes = {"weights": "int8", "bias": "int32", "weight_scales": "float32"}
    assert {name: head[name].dtype.name for name in dtypes} == dtypes
    images = model.prepare(pixels(model, 3))
    values = emulator.run(graph, images)
    x = values[7].reshape(3, -1).astype(np.float32) - head["input_zero_point"]
    real = (x * head["input_scale"]) @ (head["weights"].T * head["weight_scales"])
    real += head["bias"] * head["bias_scales"]
    np.testing.assert_allclose(real, model.core.logits(images), rtol=1e-5, atol=1e-5)
    quantized = np.rint(real / head["output_scale"]) + head["output_zero_point"]
    np.testing.assert_array_equal(np.clip(quantized, -128, 127), values[8].reshape(3, -1))


def test_a_layer_without_bias_has_zeros(tmp_path):
    pytest.importorskip("tflite")
    pytest.importorskip("onnx")
    graph = residual_network().to_graph()
    graph.ops[0].bias = None
    zeros = residual_network().to_graph()
    zeros.ops[0].bias = np.zeros(8, np.int32)
    for suffix in formats.SUFFIXES:
        for name, which in (("a", graph), ("b", zeros)):
            (tmp_path / name).mkdir(exist_ok=True)
            formats.write(which, tmp_path / name / f"net{suffix}")
        a, b = ((tmp_path / name / f"net{suffix}").read_bytes() for name in ("a", "b"))
        assert a == b, suffix


@pytest.mark.parametrize("suffix", formats.SUFFIXES)
def test_a_graph_that_contradicts_itself_or_json_is_refused(suffix, tmp_path):
    graph = residual_network().to_graph()
    graph.metadata["mean"] = float("nan")
    with pytest.raises(ValueError, match="metadata: must hold only what JSON can"):
        formats.write(graph, tmp_path / f"net{suffix}")
    graph.ops[3].weights = graph.ops[3].weights[:-1]
    with pytest.raises(ValueError, match=r"op 'project' \(conv2d\): weights have shape"):
        formats.write(graph, tmp_path / f"net{suffix}")
    assert os.listdir(tmp_path) == []


def test_a_folder_without_the_right_to_write_is_named(tmp_path, monkeypatch):
    def refuse(*_arguments):
        raise PermissionError(errno.EACCES, os.strerror(errno.EACCES))

    monkeypatch.setattr(atomic_file.Path, "open", refuse)
    message = (
        r"could not write \d+ bytes \(Permission denied\).* folder that you may write to.*net\.h"
    )
    with pytest.raises(PermissionError, match=message):
        residual_network().save(tmp_path / "net.h")


@pytest.mark.parametrize(
    ("suffix", "package"), [(".tflite", "tflite"), (".onnx", "onnx"), (".tflite", "flatbuffers")]
)
def test_a_missing_package_says_what_to_install(suffix, package, tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, package, None)
    extra = suffix[1:]
    message = (
        rf'writing {suffix} needs the package {extra}: pip install "poor-mans-training\[{extra}\]"'
    )
    with pytest.raises(ImportError, match=message):
        residual_network().save(tmp_path / f"net{suffix}")
    assert os.listdir(tmp_path) == []
