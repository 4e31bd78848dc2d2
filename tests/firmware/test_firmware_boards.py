"""Every board's project builds; what the boards do not have cannot be reached."""

from pathlib import Path

import pytest
from firmware_tools import EMULATOR, TARGET, make, need_firmware_tools, share_objects, small_export

from pmt.firmware.board.memory import linked_sizes

BOARDS = ("stm32f746g-disco", "stm32h7b3i-dk")
# Writes or reads one byte, `offset` bytes from the end of a region, through the linker's symbols.
REACH = """
#include "common/board.hpp"
#include "common/log.hpp"

extern "C" uint8_t @REGION@_origin[], @REGION@_bytes[];

int main() {
  using namespace pmt;
  board::init();
  auto end = reinterpret_cast<uint32_t>(@REGION@_origin);
  end += reinterpret_cast<uint32_t>(@REGION@_bytes);
  auto reach = [](uint32_t address) { @ACCESS@; };
  reach(end - 1);
  firmware::Line().text("inside").print();
  reach(end);
  firmware::Line().text("outside").print();
  board::exit(0);
}
"""
READ = "(void)*reinterpret_cast<volatile uint8_t*>(address)"
WRITE = "*reinterpret_cast<volatile uint8_t*>(address) = 1"
OVERFLOW = """
#include "common/board.hpp"

__attribute__((noinline)) int deeper(volatile int* above) {
  volatile int here[16] = {*above};
  return *above > 0 ? deeper(here) + here[3] : 0;
}

int main() {
  pmt::board::init();
  volatile int top = 1;
  pmt::board::exit(deeper(&top));
}
"""


@pytest.fixture(autouse=True)
def _tools():
    need_firmware_tools(EMULATOR, "make")


def project(out: Path, firmware_objects: Path, target: str, like: str | None = None) -> Path:
    """A project of which what the boards share is compiled already."""
    small_export(out, target=target, like=like)
    share_objects(firmware_objects, out)
    return out


@pytest.fixture(scope="module")
def disco(tmp_path_factory, firmware_objects):
    """A project of a real board, built; and a source of which there is no object yet."""
    folder = project(tmp_path_factory.mktemp("disco") / "fw", firmware_objects, BOARDS[0])
    built = make(folder)
    assert built.returncode == 0, built.stdout
    (folder / "none.cpp").write_text("")
    return folder


@pytest.mark.parametrize(
    ("board", "ram_origin", "ram_end"),
    [("stm32f746g-disco", 0x20010000, 0x20050000), ("stm32h7b3i-dk", 0x24000000, 0x24100000)],
)
def test_a_board_builds_within_its_regions(tmp_path, firmware_objects, board, ram_origin, ram_end):
    folder = project(tmp_path / "fw", firmware_objects, board)
    built = make(folder)
    assert built.returncode == 0, built.stdout
    found = linked_sizes(folder / "build" / "fw.elf").sections
    assert found[".vectors"][0] == 0x08000000
    assert found[".stack"] == (ram_origin, 4096)
    address, size = found[".arena"]
    assert ram_origin + 4096 <= address < address + size <= ram_end
    vectors = (folder / "build" / "fw.bin").read_bytes()[:8]
    assert int.from_bytes(vectors[:4], "little") == ram_origin + 4096
    assert int.from_bytes(vectors[4:], "little") >> 16 in range(0x0800, 0x0810)


@pytest.mark.parametrize(("supply", "crystal_hz"), [("ldo", 0), ("smps_2v5_ldo", 16_000_000)])
def test_the_wiring_reaches_the_firmware(tmp_path, firmware_objects, supply, crystal_hz):
    target = tmp_path / "mine.toml"
    target.write_text(f'board = "stm32h7b3i-dk"\nsupply = "{supply}"\ncrystal_hz = {crystal_hz}\n')
    folder = project(tmp_path / "fw", firmware_objects, str(target))
    wiring = (folder / "model" / "wiring.hpp").read_text()
    assert f"wiring = {{stm32::Supply::{supply}, {crystal_hz}}};\n" in wiring
    built = make(folder, "build/board/mine/board.o", "build/drivers/stm32h7/clocks.o")
    assert built.returncode == 0, built.stdout


@pytest.mark.parametrize(
    ("like", "region", "access", "address"),
    [
        ("stm32f746g-disco", "ram", WRITE, "20040000"),
        ("stm32f746g-disco", "flash", READ, "00100000"),
        ("stm32h7b3i-dk", "ram", READ, "20100000"),
        ("stm32h7b3i-dk", "flash", READ, "00200000"),
    ],
)
def test_the_first_byte_outside_faults(tmp_path, firmware_objects, like, region, access, address):
    folder = project(tmp_path / "fw", firmware_objects, TARGET, like)
    program = REACH.replace("@REGION@", region).replace("@ACCESS@", access)
    (folder / "app" / "main.cpp").write_text(program)
    built = make(folder)
    assert built.returncode == 0, built.stdout
    run = make(folder, "qemu")
    assert run.returncode != 0
    assert run.stdout.startswith("inside\nerror: memory management fault (exception 4, pc ")
    assert f", cfsr 00000082, hfsr 00000000, mmfar {address}, bfar 00000000)\n" in run.stdout
    assert "outside" not in run.stdout


def test_a_stack_that_overflows_faults(tmp_path, firmware_objects):
    folder = project(tmp_path / "fw", firmware_objects, TARGET, "stm32f746g-disco")
    (folder / "app" / "main.cpp").write_text(OVERFLOW)
    built = make(folder)
    assert built.returncode == 0, built.stdout
    run = make(folder, "qemu")
    assert run.returncode != 0
    assert "the stack overflowed: export with a larger one" in run.stdout


@pytest.mark.parametrize("goal", ["qemu", "verify", "resume"])
def test_a_program_with_fused_multiply_adds_is_refused(tmp_path, firmware_objects, goal):
    folder = project(tmp_path / "fw", firmware_objects, TARGET)
    makefile = folder / "Makefile"
    text = makefile.read_text()
    assert text.count("-fno-math-errno -ffp-contract=off") == 1
    makefile.write_text(text.replace("errno -ffp-contract=off", "errno -ffp-contract=fast"))
    # All objects are newer than the Makefile; one is compiled again.
    for path in (folder / "build").rglob("*.o"):
        path.touch()
    (folder / "build" / "core" / "zo" / "update.o").unlink()
    run = make(folder, goal)
    assert run.returncode != 0
    assert "error: build/fw.elf fuses multiplications and additions, in <pmt::" in run.stdout
    assert ">: build with -ffp-contract=off" in run.stdout
    assert "verify: ok" not in run.stdout


def test_a_board_without_them_goes_on_to_the_serial_line(disco):
    run = make(disco, "verify", "PORT=/dev/none")
    assert "fuses" not in run.stdout
    assert make(disco, "unfused").returncode == 0


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["flash", "FLASHER=jlink"], "FLASHER=jlink is unknown; choose st-flash, openocd or"),
        (
            ["PREFIX=none-", "build/none.o"],
            "none-g++ was not found: apt-get install gcc-arm-none-eabi",
        ),
        (["monitor", "PORT=/dev/none"], "no board at /dev/none: connect it, or make monitor PORT="),
        (["verify", "PORT=/dev/none"], "no board at /dev/none: connect it, or make verify PORT="),
        (["qemu"], "export with --target qemu-mps2-an500 --as stm32f746g-disco"),
    ],
)
def test_what_is_missing_is_named(disco, arguments, message):
    run = make(disco, *arguments)
    assert run.returncode != 0
    assert message in run.stdout
