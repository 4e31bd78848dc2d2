"""The core, compiled for a Cortex-M7: no warnings, heap, C++ run-time or double."""

import os
import re
import subprocess
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from firmware_tools import COMPILER, need_firmware_tools

CPP = Path(__file__).resolve().parents[2] / "cpp"
FLAGS = [
    "-std=c++17", "-O2", "-mcpu=cortex-m7", "-mthumb", "-mfpu=fpv5-sp-d16", "-mfloat-abi=hard",
    "-fno-exceptions", "-fno-rtti", "-fno-threadsafe-statics", "-fno-use-cxa-atexit",
    "-fno-math-errno", "-ffp-contract=off",
    "-Wall", "-Wextra", "-Wconversion", "-Wdouble-promotion", "-Werror",
]  # fmt: skip

# Functions that the compiler itself may call: copies, and 64-bit integer arithmetic of libgcc.
RUN_TIME = {
    "memcpy", "memmove", "memset", "memcmp",
    "__aeabi_ldivmod", "__aeabi_uldivmod", "__aeabi_lmul",
    "__aeabi_llsl", "__aeabi_llsr", "__aeabi_lasr",
}  # fmt: skip


def run(*command: str | Path) -> str:
    done = subprocess.run([*map(str, command)], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.fixture(scope="module")
def objects(tmp_path_factory):
    need_firmware_tools("arm-none-eabi-nm", "arm-none-eabi-objdump")
    folder = tmp_path_factory.mktemp("core")
    sources = sorted((CPP / "core").rglob("*.cpp"))
    assert {"trainer.cpp", "portable_conv2d.cpp", "channel_statistics.cpp"} <= {
        s.name for s in sources
    }
    assert len({s.stem for s in sources}) == len(sources)  # each has its own object

    def compile_one(source: Path) -> Path:
        target = folder / f"{source.stem}.o"
        run(COMPILER, *FLAGS, f"-I{CPP}", "-c", source, "-o", target)
        return target

    with ThreadPoolExecutor(min(2, os.cpu_count() or 1)) as pool:
        return list(pool.map(compile_one, sources))


@pytest.fixture(scope="module")
def undefined(objects):
    """Symbols that the core needs and does not define."""
    needed, defined = set(), set()
    for line in run("arm-none-eabi-nm", *objects).splitlines():
        fields = line.split()
        if len(fields) == 2 and fields[0] == "U":
            needed.add(fields[1])
        elif len(fields) == 3:
            defined.add(fields[2])
    return needed - defined


@pytest.fixture(scope="module")
def code(objects):
    return run("arm-none-eabi-objdump", "-d", "--no-show-raw-insn", *objects)


def test_needs_nothing_but_copies_and_integer_helpers(undefined):
    assert undefined <= RUN_TIME


@pytest.mark.parametrize(
    ("what", "pattern"),
    [
        ("a heap", r"malloc|calloc|realloc|^free$|^_Zn[wa]|^_Zd[la]"),
        ("exceptions or guards", r"__cxa|__gxx|_Unwind|__aeabi_unwind|__aeabi_atexit"),
        ("iostream or the C library", r"^_ZNS|^_ZSt|printf|stdout"),
        ("double arithmetic", r"__aeabi_(d|cd|[a-z0-9]+2d)|__(add|sub|mul|div)df3"),
        ("libm", r"^(expf?|logf?|powf?|sqrtf?|lrintf?|roundf?|rintf?|floorf?)$"),
    ],
)
def test_does_not_call(undefined, what, pattern):
    found = sorted(symbol for symbol in undefined if re.search(pattern, symbol))
    assert found == [], f"the core calls {what}"


def test_has_no_static_constructor(objects):
    assert ".init_array" not in run("arm-none-eabi-objdump", "-h", *objects)


def test_computes_in_single_precision(code):
    assert re.findall(r"\bv\w+(?:\.\w+)*\.f64\b", code) == []
    assert "vmul.f32" in code  # the pattern's counterpart does occur


def test_does_not_fuse_multiply_and_add(code):
    assert re.findall(r"\bvf?n?m(?:la|ls|a|s)\.f32\b", code) == []


def test_takes_a_square_root_with_one_instruction(code):
    assert "vsqrt.f32" in code


def test_flash_of_the_core_stays_small(objects):
    total = run("arm-none-eabi-size", "-t", *objects).splitlines()[-1].split()
    text, data, bss = (int(value) for value in total[:3])
    assert text < 128 * 1024  # all of it, two sets of kernels; a firmware links what it calls
    assert (data, bss) == (0, 0)
