"""The driver of SD cards in SPI mode against the card that QEMU emulates on its lm3s6965evb."""

import os
import struct
import subprocess
from pathlib import Path

import pytest
from firmware_tools import COMPILER, EMULATOR, need_firmware_tools

from pmt._util.native_files import firmware_folder

PROGRAM = Path(__file__).parents[1] / "firmware"
FLAGS = [
    "-std=c++17", "-mcpu=cortex-m3", "-mthumb", "-O2", "-fno-exceptions", "-fno-rtti",
    "-fno-threadsafe-statics", "-fno-tree-loop-distribute-patterns", "-ffunction-sections",
    "-Wall", "-Wextra", "-Werror", "-nostartfiles", "-nodefaultlibs", "-Wl,--gc-sections",
]  # fmt: skip


@pytest.fixture(scope="module")
def firmware(tmp_path_factory):
    need_firmware_tools(EMULATOR)
    root = firmware_folder()
    names = [*("sd/spi_card", "sd/protocol"), *("log", "semihosting", "memory")]
    files = [root / "drivers" / f"{name}.cpp" for name in names[:2]]
    files += [root / "common" / f"{name}.cpp" for name in names[2:]]
    elf = tmp_path_factory.mktemp("spi") / "fw.elf"
    script = f"-T{PROGRAM / 'lm3s6965.ld'}"
    command = [COMPILER, *FLAGS, f"-I{root}", PROGRAM / "spi_card.cpp", *files, script]
    done = subprocess.run([*command, "-lgcc", "-o", elf], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return elf


def run(elf: Path, *arguments: str) -> list[str]:
    console = "enable=on,target=native,chardev=console"
    command = [
        *(EMULATOR, "-M", "lm3s6965evb", "-display", "none", "-monitor", "none"),
        *("-serial", "none", "-chardev", "stdio,id=console", "-semihosting-config", console),
        *(*arguments, "-kernel", str(elf)),
    ]
    done = subprocess.run(
        command,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
        timeout=60,
        check=True,
    )
    return done.stdout.splitlines()


@pytest.mark.parametrize("size", [1 << 20, 4 << 30], ids=["addressed by bytes", "by blocks"])
def test_blocks_are_read_and_written(firmware, tmp_path, size):
    card = tmp_path / "card.img"
    block = struct.pack("<128I", *(0x01010101 * i for i in range(128)))
    with card.open("wb") as file:
        file.seek(3 * 512)
        file.write(block)
        os.truncate(file.fileno(), size)
    log = run(firmware, "-drive", f"if=sd,format=raw,file={card}")
    assert log == [
        "open: 0", f"blocks: {size // 512}", "read: 0", "word: 07070707", "write: 0", "read: 0",
        "word: f8f8f8f8", "outside: 5",
    ]  # fmt: skip
    with card.open("rb") as file:
        content = file.read(8 * 512)
    assert content[3 * 512 : 4 * 512] == block
    assert content[5 * 512 : 6 * 512] == bytes(255 - byte for byte in block)
    assert not any(content[6 * 512 :])


def test_an_empty_slot(firmware):
    log = run(firmware)
    assert log[:3] == ["open: 1", "blocks: 0", "read: 1"]
