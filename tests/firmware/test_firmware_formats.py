"""Layouts for PlatformIO, Zephyr and Arduino: the right files, with the right content.

None of these systems is installed here; what they would compile besides the core are the ports,
which are checked against declarations of the functions that they call.
"""

import configparser
import json
import re
import subprocess
from pathlib import Path

import pytest
from firmware_tools import small_export
from networks import residual_network
from required import need_tools

import pmt
from pmt.firmware.export import ExportReport

OPTIONS = pmt.preset("default", batch=3, queries=4, preparation="align")
ZEPHYR = Path(__file__).parents[1] / "support" / "fake_zephyr"  # its declarations
# Zephyr's functions that a training calls between layers, and a program that counts them.
SLEEPER = """
#include "port.cpp"
int64_t slept = 0;
const char* opened = "";
int32_t k_sleep(k_timeout_t timeout) { slept += timeout.ticks; return 0; }
int32_t k_msleep(int32_t) { return 0; }
uint32_t k_uptime_get_32() { return 0; }
void printk(const char*, ...) {}
int disk_access_init(const char* name) { opened = name; return 1; }
int disk_access_ioctl(const char*, uint8_t, void*) { return 0; }
int disk_access_read(const char*, uint8_t*, uint32_t, uint32_t) { return 0; }
int disk_access_write(const char*, const uint8_t*, uint32_t, uint32_t) { return 0; }
int main() {
  for (int i = 0; i < 3; ++i) pmt::board::feed_watchdog();
  uint32_t blocks = 0;
  const bool absent = pmt::board::open_card(&blocks) == pmt::board::CardStatus::absent;
  return static_cast<int>(slept) + (absent && opened[2] == '2' ? 10 : 0);
}
"""
ARDUINO = {
    "Arduino.h": "#include <cstdint>\n#define LED_BUILTIN 13\n#define OUTPUT 1\n#define HIGH 1\n"
    "#define LOW 0\n#define SS 10\nvoid pinMode(int, int);\nvoid digitalWrite(int, int);\n"
    "unsigned long millis();\nvoid delay(unsigned long);\nvoid yield();\n"
    "struct Port { void begin(long); void print(const char*); void println(int); };\n"
    "extern Port Serial;\n",
    "SD.h": "#include <cstdint>\n#define SPI_HALF_SPEED 1\n"
    "struct Sd2Card { bool init(uint8_t, uint8_t); uint32_t cardSize();\n"
    "  bool readBlock(uint32_t, uint8_t*); bool writeBlock(uint32_t, const uint8_t*); };\n",
}


def report_of(out: Path, target: str, build_system: str) -> ExportReport:
    return small_export(out, target=target, options=OPTIONS, steps=2, format=build_system)


def write(out: Path, target: str, build_system: str) -> Path:
    return report_of(out, target, build_system).path


def check_syntax(source: Path, include: Path, headers: dict[str, str], fakes: Path) -> None:
    need_tools("g++", packages="g++")
    for name, text in headers.items():
        (fakes / name).parent.mkdir(parents=True, exist_ok=True)
        (fakes / name).write_text(text)
    flags = ["-std=c++17", "-Wall", "-Wextra", "-Werror", "-fsyntax-only"]
    command = ["g++", *flags, f"-I{fakes}", f"-I{include}", str(source)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def names(folder: Path) -> set[str]:
    return {p.relative_to(folder).as_posix() for p in folder.rglob("*") if p.is_file()}


def test_platformio(tmp_path):
    folder = write(tmp_path / "fw", "stm32f746g-disco", "platformio")
    ini = configparser.ConfigParser()
    ini.read(folder / "platformio.ini")
    assert ini["platformio"]["boards_dir"] == "platformio"
    firmware = ini["env:firmware"]
    assert firmware["board"] == "stm32f746g-disco"
    assert firmware["build_src_filter"].split()[1:] == [
        "+<core/>", "+<common/>", "+<drivers/>", "+<board/>", "+<model/>", "+<app/>",
    ]  # fmt: skip
    assert firmware["build_unflags"] == "-Os"  # which PlatformIO would add behind our -O2
    board = json.loads((folder / "platformio" / "stm32f746g-disco.json").read_text())
    assert board["build"] == {"cpu": "cortex-m7", "f_cpu": "216000000L", "mcu": "stm32f746ngh6"}
    assert board["upload"]["maximum_size"] == 1048576
    assert board["upload"]["maximum_ram_size"] == 262144
    assert board["debug"]["openocd_board"] == "stm32f7discovery"
    assert {"Makefile", "board/stm32f746g-disco/link.ld", "app/main.cpp"} <= names(folder)


def test_the_flags_of_platformio(tmp_path):
    """The script runs inside PlatformIO's build; an object that takes flags stands in."""
    folder = write(tmp_path / "fw", "stm32h7b3i-dk", "platformio")
    taken: dict[str, list[str]] = {}

    class Environment:
        def Append(self, **flags: list[str]) -> None:
            taken.update(flags)

    script = (folder / "platformio" / "flags.py").read_text()
    exec(compile(script, "flags.py", "exec"), {"Import": lambda name: None, "env": Environment()})
    assert "-ffp-contract=off" in taken["CCFLAGS"]
    assert "-O2" in taken["CCFLAGS"]
    assert "-mcpu=cortex-m7" in taken["CCFLAGS"]
    assert "-mfpu=fpv5-sp-d16" in taken["LINKFLAGS"]
    assert "-Tboard/stm32h7b3i-dk/link.ld" in taken["LINKFLAGS"]


def test_zephyr(tmp_path):
    folder = write(tmp_path / "fw", "generic", "zephyr")
    configuration = (folder / "prj.conf").read_text().splitlines()
    assert {"CONFIG_CPP=y", "CONFIG_STD_CPP17=y", "CONFIG_FPU=y", "CONFIG_DISK_ACCESS=y"} <= set(
        configuration
    )
    assert "CONFIG_MAIN_STACK_SIZE=8192" in configuration
    lists = (folder / "CMakeLists.txt").read_text()
    assert lists.index("find_package(Zephyr") < lists.index("project(firmware")
    assert "app/main.cpp port/port.cpp" in lists
    assert (folder / "zephyr" / "module.yml").read_text().startswith("name: pmt_firmware\n")
    assert "config PMT_FIRMWARE\n" in (folder / "zephyr" / "Kconfig").read_text()
    found = names(folder)
    assert {"zephyr/CMakeLists.txt", "core/train/trainer.cpp", "model/image.S", "card.img"} <= found
    assert not {"Makefile", "common/memory.cpp", "board/generic/port_host.cpp"} & found
    for source in ("port.cpp", "console.cpp"):
        check_syntax(folder / "port" / source, folder, {}, ZEPHYR)


def test_the_port_to_zephyr_sleeps_and_opens_the_disk_of_the_tree(tmp_path):
    """A yield would let threads of the same priority run, and none below."""
    folder = write(tmp_path / "fw", "generic", "zephyr")
    program = folder / "port" / "sleeper.cpp"
    program.write_text(SLEEPER)
    check_syntax(program, folder, {}, ZEPHYR)
    flags = ["-std=c++17", f"-I{ZEPHYR}", f"-I{folder}"]
    subprocess.run(["g++", *flags, str(program), "-o", str(tmp_path / "sleeper")], check=True)
    assert subprocess.run([str(tmp_path / "sleeper")], check=False).returncode == 13


def test_every_format_has_its_own_commands(tmp_path):
    out = tmp_path / "my fw"
    flags = "compiler.cpp.extra_flags=-std=gnu++17 -ffp-contract=off -fno-math-errno"
    for target, name, outside, inside in (
        ("generic", "make", f"make -C '{out}' run", "make run"),
        ("generic", "zephyr", f"west build -b BOARD '{out}'", "west build -b BOARD ."),
        (
            *("generic", "arduino"),
            f"arduino-cli compile -b FQBN --library '{out}' --build-property '{flags}' "
            f"'{out}/examples/Train'",
            f"arduino-cli compile -b FQBN --library . --build-property '{flags}' examples/Train",
        ),
        (
            *("stm32f746g-disco", "platformio"),
            f"pio run -d '{out}' -t upload -t monitor",
            "pio run -t upload -t monitor",
        ),
    ):
        report = report_of(out, target, name)
        assert str(report).splitlines()[-1] == f"next: {outside}"
        assert json.loads((out / "export.json").read_text())["run"] == inside


def test_arduino(tmp_path):
    folder = write(tmp_path / "fw", "generic", "arduino")
    lines = (folder / "library.properties").read_text().splitlines()
    properties = dict(line.split("=", 1) for line in lines)
    assert properties["name"] == "pmt_firmware"
    assert properties["includes"] == "pmt_firmware.h"
    assert properties["version"] == pmt.__version__
    found = names(folder)
    assert {
        "src/core/train/trainer.cpp",
        "src/common/session.cpp",
        "examples/Train/Train.ino",
    } <= found
    assert {name for name in found if name.endswith((".cpp", ".hpp"))} == {
        name for name in found if name.startswith("src/") and name.endswith((".cpp", ".hpp"))
    }
    array = (folder / "src" / "model" / "image.cpp").read_text()
    numbers = re.search(r"= \{\n(.*)\n\};", array, re.DOTALL)
    assert numbers is not None
    image = bytes(int(number) for number in re.findall(r"\d+", numbers[1]))
    assert image == residual_network().image()
    fakes = tmp_path / "fakes"
    check_syntax(folder / "src" / "port.cpp", folder / "src", ARDUINO, fakes)
    check_syntax(folder / "src" / "model" / "image.cpp", folder / "src", {}, fakes)
    sketch = folder / "examples" / "Train" / "Train.cpp"
    sketch.write_text((folder / "examples" / "Train" / "Train.ino").read_text())
    check_syntax(sketch, folder / "src", ARDUINO, fakes)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("generic", "bazel"), "format='bazel' is unknown; choose one of make, platformio, zephyr"),
        (
            ("stm32f746g-disco", "zephyr"),
            "format='zephyr' brings its own start-up code: take --target generic, not stm32f746g",
        ),
        (("generic", "platformio"), "format='platformio' links a program: take a board such as"),
        (
            ("qemu-mps2-an500", "platformio"),
            "format='platformio' needs the processor's part number: add chip = ",
        ),
    ],
)
def test_a_format_that_does_not_suit_is_refused(tmp_path, arguments, message):
    with pytest.raises(ValueError, match=message):
        write(tmp_path / "fw", *arguments)
    assert list(tmp_path.iterdir()) == []
