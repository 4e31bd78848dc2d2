"""How firmware starts: behind a boot loader, and again after a fault."""

import re
import subprocess
from pathlib import Path

import pytest
from firmware_tools import (
    COMPILER,
    EMULATOR,
    TARGET,
    make,
    need_firmware_tools,
    share_objects,
    small_export,
    succeed,
)

LOADER = Path(__file__).parents[1] / "firmware" / "boot_loader.S"
ORIGIN = 0x10000
BEHIND_A_LOADER = f"""
board = "{TARGET}"
[flash]
origin = {ORIGIN:#x}
bytes = 0x3F_0000
"""
COMMON = """
#include "common/board.hpp"
#include "common/log.hpp"
#include "drivers/cortex_m/fault.hpp"
#include "drivers/cortex_m/processor.hpp"

extern "C" uint8_t ram_origin[], ram_bytes[];

using namespace pmt;

namespace {

void reach_outside() {
  *reinterpret_cast<volatile uint8_t*>(ram_origin + reinterpret_cast<uint32_t>(ram_bytes)) = 1;
}

}  // namespace
"""
TICKS_AND_A_FAULT = """
void wait() {
  const uint32_t start = cortex_m::milliseconds();
  while (cortex_m::milliseconds() - start < 20) {
  }
}

int main() {
  board::init();
  cortex_m::start_tick(25'000'000);
  wait();
  firmware::Line().text("interrupts come").print();
  asm volatile("cpsid i");
  wait();
  firmware::Line().text("time goes on without them").print();
  asm volatile("cpsie i");
  reach_outside();
}
"""
# The reset stands for the watchdog's, which the emulated board does not have.
FAULTS = """
void cortex_m::after_fault(firmware::Line& report) {
  report.print();
  *reinterpret_cast<volatile uint32_t*>(0xE000ED0C) = 0x05FA0004;
  for (;;) {
  }
}

int main() {
  board::init();
  const cortex_m::Kept before = cortex_m::take_kept(true);
  firmware::Line line;
  line.text("start ").number(before.restarts).print();
  if (before.fault.exception != 0) {
    cortex_m::describe(before.fault, line.text("last run: "));
    line.print();
  }
  if (before.restarts == 3) board::exit(0);
  reach_outside();
}
"""
FAULT = (
    r"memory management fault \(exception 4, pc [0-9a-f]{8}, lr [0-9a-f]{8}, cfsr 00000082, "
    r"hfsr 00000000, mmfar 20400000, bfar 00000000\)"
)


@pytest.fixture(autouse=True)
def _tools():
    need_firmware_tools(EMULATOR, "make")


def project(out: Path, target: str, objects: Path) -> Path:
    small_export(out, target=target)
    share_objects(objects, out)
    return out


def built(folder: Path, program: str) -> Path:
    (folder / "app" / "main.cpp").write_text(COMMON + program)
    done = make(folder)
    assert done.returncode == 0, done.stdout
    return folder


def start_by_loader(folder: Path) -> tuple[int, list[str]]:
    """Run a firmware to which a boot loader jumps; return its exit status and its log."""
    loader = folder / "build" / "loader.elf"
    flags = ("-nostdlib", "-mcpu=cortex-m7", "-mthumb", f"-DAPPLICATION={ORIGIN:#x}", "-Ttext=0")
    succeed(COMPILER, *flags, "-Wl,-e,start", LOADER, "-o", loader)
    (folder / "build" / "card.img").write_bytes((folder / "card.img").read_bytes())
    done = subprocess.run(
        [
            *(EMULATOR, "-M", "mps2-an500", "-display", "none", "-monitor", "none"),
            *("-serial", "none", "-chardev", "stdio,id=console", "-semihosting-config"),
            "enable=on,target=native,chardev=console,arg=fw",
            *("-kernel", "loader.elf", "-device", "loader,file=fw.elf"),
        ],
        cwd=folder / "build",
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    return done.returncode, done.stdout.splitlines()


@pytest.fixture(scope="module")
def behind(tmp_path_factory, firmware_objects):
    """A project whose flash begins behind a boot loader."""
    folder = tmp_path_factory.mktemp("behind")
    target = folder / "behind.toml"
    target.write_text(BEHIND_A_LOADER)
    return project(folder / "fw", str(target), firmware_objects)


def test_firmware_behind_a_boot_loader_trains(behind):
    done = make(behind)
    assert done.returncode == 0, done.stdout
    status, log = start_by_loader(behind)
    assert status == 0, log
    assert log[-1] == "verify: ok (5 steps, 6 layers, 16 activations)"


def test_exceptions_come_to_the_firmware_and_not_to_its_boot_loader(behind):
    status, log = start_by_loader(built(behind, TICKS_AND_A_FAULT))
    assert status == 1, log
    assert log[:2] == ["interrupts come", "time goes on without them"]
    assert re.fullmatch(f"error: {FAULT}", log[2]), log


def test_vectors_that_no_processor_takes_do_not_link(tmp_path, firmware_objects):
    target = tmp_path / "odd.toml"
    target.write_text(BEHIND_A_LOADER)
    folder = project(tmp_path / "fw", str(target), firmware_objects)
    script = folder / "board" / "odd" / "link.ld"
    origin = f"ORIGIN = 0x{ORIGIN:08X}"
    assert script.read_text().count(origin) == 1
    script.write_text(script.read_text().replace(origin, "ORIGIN = 0x10040"))
    done = make(folder)
    assert done.returncode != 0
    reason = "flash.origin must be a multiple of 128: the vector table stands there\n"
    assert reason in done.stdout


def test_a_fault_outlives_the_reset(tmp_path, firmware_objects):
    folder = built(project(tmp_path / "fw", TARGET, firmware_objects), FAULTS)
    run = make(folder, "qemu")
    assert run.returncode == 0, run.stdout
    expected = ["start 1", f"error: {FAULT}"]
    for count in (2, 3):
        expected += [f"start {count}", f"last run: {FAULT}", f"error: {FAULT}"]
    assert re.fullmatch("\n".join(expected[:-1]) + "\n", run.stdout), run.stdout
