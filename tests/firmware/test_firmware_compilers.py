"""Firmware of other compilers and flags: Clang, and GCC with link-time optimization."""

import re
import subprocess
from pathlib import Path

import pytest
from firmware_tools import make, need_firmware_tools, small_export
from required import need_tools

HEADERS = Path(__file__).parent / "riscv_include"  # Clang brings no C++ library
CLANG = f"clang++-14 --target=arm-none-eabi -isystem {HEADERS}"


def marks(log: str, what: str) -> tuple[int, int]:
    found = re.search(rf"^{what}: (\d+) of (\d+) bytes used at most$", log, re.MULTILINE)
    assert found is not None, log
    return int(found[1]), int(found[2])


@pytest.mark.parametrize(
    ("arguments", "most_stack"),
    [
        (("OPTIMISE=-O2 -flto",), 2560),
        (("OPTIMISE=-Os -flto",), 2560),
        (("OPTIMISE=-O3 -flto",), 2560),
        ((f"CXX={CLANG}",), 2816),
        ((f"CXX={CLANG}", "OPTIMISE=-Os"), 2816),
    ],
    ids=["lto", "small lto", "fast lto", "clang", "small clang"],
)
def test_they_train_the_same_bytes(arguments, most_stack, tmp_path):
    need_firmware_tools("qemu-system-arm", "make")
    if "CXX" in arguments[0]:
        need_tools("clang++-14", packages="clang-14")
    small_export(tmp_path / "fw", steps=3)
    run = make(tmp_path / "fw", "qemu", *arguments)
    assert run.returncode == 0, run.stdout
    assert run.stdout.splitlines()[-1] == "verify: ok (3 steps, 6 layers, 16 activations)"
    used, there = marks(run.stdout, "stack")
    assert used <= most_stack < there == 4096
    arena, planned = marks(run.stdout, "arena")
    assert planned - 16 <= arena <= planned


def test_only_what_is_called_is_linked(tmp_path, monkeypatch):
    """The run-time's names for Clang take no flash in a program of GCC."""
    need_firmware_tools("make")
    monkeypatch.setenv("CXX", "the-compiler-of-the-host")
    small_export(tmp_path / "fw")
    built = make(tmp_path / "fw", "build/fw.elf")
    assert built.returncode == 0, built.stdout
    program = str(tmp_path / "fw" / "build" / "fw.elf")
    command = ["arm-none-eabi-nm", program]
    names = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    assert " T memcpy\n" in names
    assert "__aeabi_mem" not in names
