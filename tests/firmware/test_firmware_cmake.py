"""Exported folders build with CMake, as their READMEs say, and what is built verifies."""

import shutil
import sys
from pathlib import Path

from firmware_tools import EMULATOR, TARGET, emulation, need_firmware_tools, small_export, succeed
from networks import residual_network
from required import need_tools

import pmt
from pmt.firmware.export import export, export_learner


def run(folder: Path, *command: str) -> str:
    """CMake and Ninja of this environment are found first."""
    return succeed(*command, folder=folder, path=str(Path(sys.executable).parent))


def test_the_preset_builds_firmware_that_verifies(tmp_path):
    need_firmware_tools(EMULATOR)
    out = tmp_path / "fw"
    small_export(out, like="stm32f746g-disco")
    run(out, "cmake", "--preset", "firmware")
    built = run(out, "cmake", "--build", "--preset", "firmware")
    assert "Memory region" in built  # the linker's table of the budgets
    folder = out / "build" / "cmake"
    assert (folder / "fw.bin").stat().st_size > len(residual_network().image())
    shutil.copyfile(out / "card.img", folder / "card.img")
    log = run(folder, *map(str, emulation(folder / "fw.elf"))).splitlines()
    assert log[-1] == "verify: ok (5 steps, 6 layers, 16 activations)"


def test_a_learner_builds_with_a_main_in_c(tmp_path):
    need_firmware_tools(EMULATOR)
    out = tmp_path / "fw"
    export_learner(pmt.load("fashion_mnist_dscnn"), target=TARGET, out=out, samples=8)
    (out / "app" / "main.cpp").unlink()
    (out / "app" / "main.c").write_text(
        '#include "core/learner/pmt_learner.h"\n'
        "int main(void) { return pmt_learner_need(0).memory != 0; }\n"
    )
    run(out, "cmake", "--preset", "firmware")
    run(out, "cmake", "--build", "--preset", "firmware")
    run(out, *map(str, emulation(out / "build" / "cmake" / "fw.elf")))


def test_the_library_builds_with_the_bundled_model_and_the_hosts_port(tmp_path):
    need_tools("g++", packages="g++")
    model = pmt.load("fashion_mnist_dscnn")
    out = tmp_path / "fw"
    data = pmt.datasets.bundled("train").take(8)
    options = pmt.preset("default", batch=2, queries=2)
    export(model, target="generic", out=out, dataset=data, options=options, inferences=1, steps=1)
    run(out, "cmake", "-B", "build/cmake", "-DPMT_HOST_PORT=ON")
    run(out, "cmake", "--build", "build/cmake")
    shutil.copyfile(out / "card.img", out / "build" / "cmake" / "card.img")
    log = run(out / "build" / "cmake", "./fw").splitlines()
    assert log[-1].startswith("verify: ok (1 steps, 11 layers, ")
