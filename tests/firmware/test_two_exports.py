"""Two exports in one program: each trains its own network."""

import shutil
import subprocess
from pathlib import Path

import pytest
from firmware_tools import SMALL, make, need_firmware_tools, random_dataset
from networks import residual_network
from required import need_tools

from pmt.firmware.export import export

PORT = Path(__file__).with_name("two_exports_port.cpp")
TRAIN = """
#include "common/session.hpp"
#include "model/config.hpp"
int train_{name}(const pmt::board::Memory& arena) {{
  static pmt::firmware::Session session;
  bool running = session.open(pmt::exported::model(), arena);
  running = running && session.check_activations() && session.resume();
  while (running && !session.finished()) running = session.step();
  return session.report();
}}
pmt::firmware::ModelImage {name}_model() {{ return pmt::exported::model(); }}
"""
NETWORKS = {"first": residual_network(), "second": residual_network(width=16, seed=1)}


def write_exports(folder: Path, target: str) -> None:
    for name, model in NETWORKS.items():
        data = random_dataset(model, 9)
        export(model, out=folder / name, target=target, dataset=data, options=SMALL, steps=2)
        (folder / f"{name}.cpp").write_text(TRAIN.format(name=name))


@pytest.fixture(scope="module")
def program(tmp_path_factory):
    need_tools("make", "g++", "ar", packages="make g++ binutils")
    folder = tmp_path_factory.mktemp("two")
    write_exports(folder, "generic")
    for name in NETWORKS:
        built = make(folder / name)
        assert built.returncode == 0, built.stdout
        flags = ["-std=c++17", "-ffp-contract=off", "-Wall", "-Wextra", "-Werror"]
        command = ["g++", *flags, f"-I{folder / name}", "-c", f"{name}.cpp", "-o", f"{name}.o"]
        subprocess.run(command, cwd=folder, check=True)
    # The order in which the libraries are given is the one that once chose the model of both.
    libraries = [str(folder / name / "build" / "libpmt.a") for name in NETWORKS]
    command = ["g++", "-std=c++17", "-Ifirst", str(PORT), "first.o", "second.o", *libraries]
    subprocess.run([*command, "-o", "program"], cwd=folder, check=True)
    return folder / "program"


def run(program: Path, name: str) -> subprocess.CompletedProcess[str]:
    card = program.parent / "card.img"
    shutil.copy(program.parent / ("first" if name == "mixed" else name) / "card.img", card)
    command = [str(program), name, str(card)]
    return subprocess.run(command, capture_output=True, text=True, check=False)


@pytest.mark.parametrize("name", NETWORKS)
def test_each_trains_its_own_network(program, name):
    done = run(program, name)
    assert done.returncode == 0, done.stdout
    size = len(NETWORKS[name].image())
    assert f"model: 8 ops, {size} bytes in flash" in done.stdout
    assert done.stdout.splitlines()[-1] == "verify: ok (2 steps, 6 layers, 16 activations)"


def test_the_image_of_another_export_is_refused(program):
    done = run(program, "mixed")
    assert done.returncode == 1
    assert done.stdout.splitlines() == [
        "error: model: not the image of this export: it is damaged, or of another export in the "
        "program"
    ]


def test_symbols_tell_exports_apart(tmp_path):
    need_firmware_tools("make")
    write_exports(tmp_path, "qemu-mps2-an500")
    symbols = set()
    for name in NETWORKS:
        built = make(tmp_path / name, "build/model/image.o")
        assert built.returncode == 0, built.stdout
        listed = subprocess.run(
            ["arm-none-eabi-nm", str(tmp_path / name / "build" / "model" / "image.o")],
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        symbols |= {line.split()[-1] for line in listed.splitlines() if " R " in line}
    assert len(symbols) == 2
    assert all(symbol.startswith("pmt_model_") for symbol in symbols)
