"""Writing a model: formats by suffix, whole files or none, arrays that are enough, C arrays."""

import errno
import os
import subprocess
import sys
import zlib
from pathlib import Path

import emulator
import numpy as np
import pytest
from drawn_graphs import drawn_graph
from networks import pixels, residual_network
from required import need_tools
from written_files import graph_of_arrays

import pmt
from pmt import formats
from pmt._util import atomic_file
from pmt.formats.c_array import array_name
from pmt.net.graph import Graph
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


WARNINGS = ["-Wall", "-Wextra", "-pedantic", "-Wundef", "-Wcomment", "-Wtrigraphs", "-Werror"]
LANGUAGES = {
    "c99": ["gcc", "-std=c99"],
    "c11": ["gcc", "-std=c11"],
    "gnu17": ["gcc", "-std=gnu17"],
    "c++17": ["g++", "-x", "c++", "-std=c++17"],
}
# Prints size, place and CRC-32 of the array, as a C and C++ program.
PROGRAM = """
#include <stdint.h>
#include <stdio.h>
#include "net.h"
#include "net.h"
int main(void) {
  uint32_t crc = 0xffffffffu;
  for (uint32_t i = 0; i < NET_MODEL_SIZE; ++i) {
    crc ^= net_model[i];
    for (int bit = 0; bit < 8; ++bit) crc = (crc >> 1) ^ ((crc & 1u) ? 0xedb88320u : 0u);
  }
  printf("%u %u %08x %08x\\n", (unsigned)sizeof net_model, (unsigned)((uintptr_t)net_model % 16),
         (unsigned)~crc, (unsigned)NET_MODEL_CRC32);
  return 0;
}
"""


@pytest.fixture(autouse=True, scope="module")
def compilers():
    need_tools("gcc", "g++", packages="gcc g++")


def run(language: str, folder: Path) -> str:
    """Compile a program and return what it prints; standard error must be empty."""
    command = [*LANGUAGES[language], *WARNINGS, "main.c", "-o", "program"]
    built = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    assert (built.returncode, built.stderr) == (0, "")
    return subprocess.run(
        ["./program"], cwd=folder, capture_output=True, text=True, check=True
    ).stdout


@pytest.mark.parametrize("language", LANGUAGES)
def test_a_header_is_compiled_without_a_warning(language, tmp_path):
    model = pmt.load("fashion_mnist_dscnn")
    model.save(tmp_path / "net.h")
    (tmp_path / "main.c").write_text(PROGRAM)
    image = model.image()
    crc = f"{zlib.crc32(image):08x}"
    assert run(language, tmp_path) == f"{len(image)} 0 {crc} {crc}\n"


def test_a_header_says_what_it_holds(tmp_path):
    model = residual_network()
    model.save(tmp_path / "net.h")
    image = model.image()
    crc = f"{zlib.crc32(image):08x}"
    assert (tmp_path / "net.h").read_text().splitlines()[:18] == [
        "/*",
        f" * net.h: a .pmt image, written by pmt {pmt.__version__}.",
        " * Name: residual",
        f" * Image: {len(image)} bytes, CRC-32 {crc}, aligned to 16 bytes.",
        " * Network: 6 layers, 1224 int8 weights, 4 outputs.",
        " * Input: 8 x 8 x 3, int8 = pixel - 128.",
        " * Use: net_model[NET_MODEL_SIZE], NET_MODEL_CRC32.",
        " */",
        "#ifndef NET_MODEL_H",
        "#define NET_MODEL_H",
        "",
        "#include <stdint.h>",
        "",
        f"#define NET_MODEL_SIZE {len(image)}u",
        f"#define NET_MODEL_CRC32 0x{crc}u",
        "",
        "#if defined(__cplusplus)",
        "#define NET_MODEL_ALIGNED alignas(16)",
    ]


def test_filters_before_the_network_are_named(tmp_path):
    stage = pmt.InputStage((8, 8), (pmt.Filter("switching_median", 32),))
    residual_network().with_input_stage(stage).save(tmp_path / "net.h")
    named = " * Input: 8 x 8 x 3, int8 = pixel - 128, behind the filters switching_median 32."
    assert named in (tmp_path / "net.h").read_text().splitlines()


def test_names_from_elsewhere_cannot_leave_the_comment(tmp_path):
    graph: Graph = residual_network().to_graph()
    graph.metadata = {
        "name": "net */ int x; /* ??/",
        "source": "C:\\models\\\nnew line",
        "licence": "© ünïcode",
    }
    pmt.Model.from_graph(graph).save(tmp_path / "net.h")
    lines = (tmp_path / "net.h").read_text().splitlines()
    assert lines[2:5] == [
        " * Name: net * / int x; / * ? ?/",
        " * Source: C:_models__new line",
        " * License: _ _n_code",
    ]
    (tmp_path / "main.c").write_text('#include "net.h"\nint main(void) { return *net_model - 80; }')
    assert run("c99", tmp_path) == ""


@pytest.mark.parametrize(
    ("file_name", "name"),
    [
        ("mcunet.h", "mcunet_model"),
        ("resnet8 v2.h", "resnet8_v2_model"),
        ("8x8.h", "net_8x8_model"),
        ("linux.h", "linux_model"),
        ("_Reserved__name.h", "Reserved_name_model"),
        ("größe.h", "gr_e_model"),
        ("---.h", "model"),
    ],
)
def test_arrays_are_named_after_their_files(file_name, name):
    assert array_name(file_name) == name
