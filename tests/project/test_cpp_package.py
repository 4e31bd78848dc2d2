"""The C++ core as a CMake package: the example finds, links and runs it, to the bytes of Python."""

import os
import re
import shutil
import subprocess
from pathlib import Path

import numpy as np
import pytest
from networks import labels, pixels, residual_network
from required import need_tools

import pmt
from pmt import _core

ROOT = Path(__file__).parents[2]
EXAMPLES = ROOT / "cpp" / "examples"


def run(*command: object) -> str:
    done = subprocess.run([*map(str, command)], capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.fixture(scope="module")
def train_step(tmp_path_factory):
    need_tools("cmake", "c++", packages="g++ cmake")
    build = tmp_path_factory.mktemp("examples")
    launcher = ["-DCMAKE_CXX_COMPILER_LAUNCHER=ccache"] if shutil.which("ccache") else []
    run("cmake", "-S", EXAMPLES, "-B", build, f"-Dpmt_DIR={pmt.get_cmake_dir()}", *launcher)
    run("cmake", "--build", build, "-j", min(2, os.cpu_count() or 1))
    return build / "train_step"


def test_folders_of_headers_and_of_the_package():
    assert (Path(pmt.get_include()) / "core" / "train" / "trainer.hpp").is_file()
    assert (Path(pmt.get_cmake_dir()) / "pmtConfig.cmake").is_file()


@pytest.mark.parametrize("block", ["B1", "head"])
def test_the_example_takes_pythons_step(train_step, tmp_path, block):
    model = residual_network()
    images, classes = model.prepare(pixels(model, 6)), labels(model, 6)
    layer = model.select_layers(block)[0]
    model.save(tmp_path / "model.pmt")
    samples = [
        bytes([label]) + image.tobytes() for label, image in zip(classes, images, strict=True)
    ]
    (tmp_path / "samples").write_bytes(b"".join(samples))
    printed = run(
        train_step, tmp_path / "model.pmt", layer, tmp_path / "samples", tmp_path / "trained.pmt"
    ).split()
    logits = model.core.logits(images)[0]
    np.testing.assert_array_equal(np.array(printed[:4], np.float32), logits)
    options = _core.Options()
    options.queries = 20
    taken = _core.Trainer(model.core, options, [layer], 6, 1).step(images, classes, 0, 0.01)
    assert taken["changed"] > 0
    assert int(printed[4]) == taken["loss_sum"]
    assert (tmp_path / "trained.pmt").read_bytes() == model.image()


def test_the_example_names_the_cores_error(train_step, tmp_path):
    residual_network().save(tmp_path / "model.pmt")
    done = subprocess.run(
        [train_step, tmp_path / "model.pmt", "4", tmp_path / "none", tmp_path / "trained.pmt"],
        capture_output=True,
        text=True,
    )
    assert (done.returncode, done.stdout) == (1, "")
    assert re.fullmatch(r"error \d+, see core/base/status.hpp; op or option 4\n", done.stderr)
    usage = subprocess.run([train_step], capture_output=True, text=True)
    assert usage.returncode == 2
    assert usage.stderr == "usage: train_step MODEL.pmt LAYER SAMPLES TRAINED.pmt\n"


def test_the_example_refuses_files_that_it_cannot_read(train_step, tmp_path):
    model = residual_network()
    model.save(tmp_path / "model.pmt")
    (tmp_path / "empty").touch()
    (tmp_path / "cut").write_bytes(bytes(300))
    for files, message in (
        (("none.pmt", "cut"), "cannot read none.pmt: it is missing or empty\n"),
        (("model.pmt", "none"), "cannot read none: it is missing or empty\n"),
        (("model.pmt", "empty"), "cannot read empty: it is missing or empty\n"),
        (
            ("model.pmt", "cut"),
            "cut has 300 bytes: must be samples of 193 bytes, a label and the model's input\n",
        ),
    ):
        done = subprocess.run(
            [train_step, files[0], "0", files[1], "trained.pmt"],
            cwd=tmp_path,
            capture_output=True,
            text=True,
        )
        assert (done.returncode, done.stdout, done.stderr) == (1, "", message)
    assert not (tmp_path / "trained.pmt").exists()


def test_the_core_is_installed_without_python(tmp_path):
    need_tools("cmake", "c++", packages="g++ cmake")
    run("cmake", "-S", ROOT, "-B", tmp_path / "build", "-DPMT_PYTHON=OFF")
    prefix = tmp_path / "prefix"
    run("cmake", "--install", tmp_path / "build", "--component", "core", "--prefix", prefix)
    listed = {path.name for path in prefix.rglob("*")}
    assert {"trainer.hpp", "trainer.cpp", "pmtConfig.cmake"} <= listed
    run("cmake", "-S", EXAMPLES, "-B", tmp_path / "example", f"-DCMAKE_PREFIX_PATH={prefix}")
