"""The image as a C array: what compilers say of it, and what a program reads."""

import subprocess
import zlib
from pathlib import Path

import pytest
from networks import residual_network
from required import need_tools

import pmt
from pmt.formats.c_array import array_name
from pmt.net.graph import Graph

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
