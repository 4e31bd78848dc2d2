"""Processors that are not target train the same bytes: Cortex-M4, Cortex-M33 and RISC-V."""

import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path

import pytest
from firmware_tools import EMULATOR, SMALL, emulate, make, random_dataset, small_export
from networks import residual_network
from required import need_tools

from pmt._util.native_files import firmware_folder
from pmt.firmware.export import export

HERE = Path(__file__).parents[1] / "firmware"
VERDICT = "verify: ok (3 steps, 6 layers, 16 activations)"
CORTEX_M4 = """
board = "qemu-mps2-an500"
description = "QEMU's mps2-an386: Cortex-M4"
flags = ["-mcpu=cortex-m4", "-mthumb", "-mfpu=fpv4-sp-d16", "-mfloat-abi=hard"]

[emulator]
machine = "mps2-an386"
"""


@dataclass(frozen=True)
class Core:
    """A compiler's prefix, its options, and the command that runs its program."""

    prefix: str
    flags: str
    link: str
    run: tuple[str, ...]


RISC_V = f"-ffreestanding -isystem {HERE / 'riscv_include'}"


def risc_v(instructions: str, calls: str) -> Core:
    flags = f"-march={instructions} -mabi={calls} {RISC_V}"
    return Core("riscv64-unknown-elf-", flags, "", ("qemu-riscv32-static",))


CORES = {
    "cortex-m33": Core(
        "arm-none-eabi-",
        "-mcpu=cortex-m33 -mthumb -mfpu=fpv5-sp-d16 -mfloat-abi=hard",
        f"-T {HERE / 'mps2_an505.ld'}",
        (
            *(EMULATOR, "-M", "mps2-an505", "-display", "none", "-monitor", "none", "-serial"),
            *("none", "-chardev", "stdio,id=console", "-semihosting-config"),
            *("enable=on,target=native,chardev=console", "-kernel"),
        ),
    ),
    "rv32imac": risc_v("rv32imac", "ilp32"),
    "rv32imafc": risc_v("rv32imafc", "ilp32f"),
}


@pytest.mark.parametrize("name", CORES)
def test_the_library_trains_the_same_bytes(tmp_path, name):
    core = CORES[name]
    packages = "gcc-arm-none-eabi gcc-riscv64-unknown-elf qemu-system-arm qemu-user-static make"
    need_tools(core.prefix + "g++", core.run[0], "make", packages=packages)
    out = tmp_path / "fw"
    small_export(out, target="generic", steps=3)
    (out / "port").mkdir()
    shutil.copy(HERE / "emulated_port.cpp", out / "port")
    # There is no C library: what the compiler calls on its own must not call itself.
    shutil.copy(firmware_folder() / "common" / "memory.cpp", out / "port")
    built = make(
        out,
        "build/fw",
        f"CXX={core.prefix}g++",
        f"AR={core.prefix}ar",
        f"TARGET_FLAGS={core.flags} -fno-tree-loop-distribute-patterns",
        "PORT_SOURCE=port/emulated_port.cpp port/memory.cpp",
        f"LDFLAGS=-nostdlib {core.link}",
        "LDLIBS=-lgcc",
    )
    assert built.returncode == 0, built.stdout
    log = subprocess.run(
        [*core.run, str(out / "build" / "fw")],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=120,
        check=False,
    )
    assert log.stdout.splitlines()[-1] == VERDICT, log.stdout
    assert log.returncode == 0


def test_a_target_file_makes_firmware_for_a_cortex_m4(tmp_path):
    target = tmp_path / "cortex-m4.toml"
    target.write_text(CORTEX_M4)
    model = residual_network()
    data = random_dataset(model, 9)
    out = tmp_path / "fw"
    options = SMALL.replace(rule="by_dimension")
    export(model, target=str(target), out=out, dataset=data, options=options, steps=3)
    ok, log = emulate(out)
    assert log[-1] == VERDICT, log
    assert ok
