"""Building and running exported projects in tests."""

import os
import re
import shutil
import subprocess
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from networks import random_dataset, residual_network
from required import need_tools

import pmt
from pmt.firmware.board.memory import linked_sizes
from pmt.firmware.export import ExportReport, export
from pmt.firmware.export.layout import link_script
from pmt.firmware.export.linked import LINKED
from pmt.firmware.export.target import find_target
from pmt.firmware.monitor import TrainingLog

COMPILER = "arm-none-eabi-g++"
EMULATOR = "qemu-system-arm"
TARGET = "qemu-mps2-an500"
SMALL = pmt.preset("default", batch=3, queries=4)
ROOT = Path(__file__).parents[2]
CORE, FIRMWARE = ROOT / "cpp" / "core", ROOT / "firmware_export"
CORTEX_M7 = ("-mcpu=cortex-m7", "-mthumb", "-mfpu=fpv5-sp-d16", "-mfloat-abi=hard")
FLAGS = (
    *("-std=c++17", "-O2", "-fno-exceptions", "-fno-rtti", "-fno-threadsafe-statics"),
    *("-fno-use-cxa-atexit", "-fno-math-errno", "-ffp-contract=off", "-ffunction-sections"),
    *("-fdata-sections", "-fno-tree-loop-distribute-patterns", "-Wall", "-Wextra", "-Werror"),
)


def need_firmware_tools(*tools: str) -> None:
    """Need the Arm compiler, and other programs to build and run firmware."""
    need_tools(COMPILER, *tools, packages="gcc-arm-none-eabi qemu-system-arm make")


def make(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Run make in a project; standard error is merged into the output."""
    need_firmware_tools("make", *([EMULATOR] if "qemu" in arguments else []))
    return subprocess.run(
        ["make", "-j2", "-C", str(folder), "--no-print-directory", *arguments],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=300,
        check=False,
    )


def succeed(*command: str | Path, folder: Path | None = None, path: str = "") -> str:
    """Run a command that must succeed; return what it printed. ``path`` is searched first."""
    found = os.environ["PATH"]
    done = subprocess.run(
        [str(part) for part in command],
        cwd=folder,
        env={**os.environ, "PATH": f"{path}{os.pathsep}{found}" if path else found},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=600,
        check=False,
    )
    assert done.returncode == 0, done.stdout
    return done.stdout


def run_on_cortex_m7(program: str, parts: Iterable[str], folder: Path) -> str:
    """Return what a program of tests/support prints on an emulated board.

    It is built in a folder, whose files it may include, with the sources of some folders of the
    core.
    """
    need_firmware_tools(EMULATOR)
    built, script = folder / "program.elf", folder / "link.ld"
    script.write_bytes(link_script(find_target(TARGET)))
    common = [FIRMWARE / "common" / f"{name}.cpp" for name in ("log", "memory", "semihosting")]
    succeed(
        *(COMPILER, *FLAGS, *CORTEX_M7, f"-I{CORE.parent}", f"-I{FIRMWARE}", f"-I{folder}"),
        *("-nostartfiles", "-nodefaultlibs", "-Wl,--gc-sections", "-T", script),
        ROOT / "tests" / "support" / program,
        *sorted(source for part in parts for source in (CORE / part).rglob("*.cpp")),
        *(*common, *sorted((FIRMWARE / "drivers" / "cortex_m").glob("*.cpp"))),
        *("-lgcc", "-o", built),
    )
    return succeed(*emulation(built))


def emulation(program: Path) -> tuple[str | Path, ...]:
    """Return the command that runs a program on an emulated board: its output, its exit status."""
    return (
        *(EMULATOR, "-M", "mps2-an500", "-display", "none", "-monitor", "none"),
        *("-serial", "none", "-chardev", "stdio,id=console", "-semihosting-config"),
        *("enable=on,target=native,chardev=console,arg=program", "-kernel", program),
    )


def emulate(folder: Path, *arguments: str) -> tuple[bool, list[str]]:
    """Run a project under QEMU; return whether it succeeded, and its log."""
    need_firmware_tools(EMULATOR)
    built = make(folder, *arguments)
    assert built.returncode == 0, built.stdout
    run = make(folder, "qemu", "TIMEOUT=120", *arguments)
    log = [line for line in run.stdout.splitlines() if not line.startswith("make:")]
    return run.returncode == 0, log


def check_marks(log: Iterable[str], arena: int, stack: int) -> None:
    """Check what the lines of a run say of its memory: the arena as planned, the stack as reserved.

    The arena's high-water mark is less by less than 16 bytes, the rounding of its end.
    """
    memory = TrainingLog()
    for line in log:
        memory.read(line)
    mark, size = memory.memory["arena"]
    assert size == arena
    assert 0 <= arena - mark < 16, (mark, arena)
    mark, size = memory.memory["stack"]
    assert size == stack
    assert 512 <= mark < stack


def share_objects(objects: Path, out: Path) -> None:
    """Give a project what another one has compiled of the sources that all boards have.

    The other one is built, and for a processor with the same flags.
    """
    flags = [re.search(r"TARGET_FLAGS := .*", (p / "Makefile").read_text()) for p in (out, objects)]
    assert flags[0] is not None
    assert flags[1] is not None
    assert flags[0][0] == flags[1][0]
    for part in ("core", "common", "drivers/cortex_m"):
        # Not copy2: what is older than its source is compiled again.
        shutil.copytree(
            objects / "build" / part, out / "build" / part, copy_function=shutil.copyfile
        )
    names = {f"{LINKED}/{path.name}" for path in (out / LINKED).iterdir()}
    others = {name for name in names if (out / name).read_bytes() != (objects / name).read_bytes()}
    for rule in (out / "build").rglob("*.d"):
        if others & set(rule.read_text().split()):
            rule.with_suffix(".o").unlink()


def check_linked(report: ExportReport) -> None:
    """Check that a built project takes no more than was said, and little less."""
    linked = linked_sizes(report.path / "build" / "fw.elf")
    assert linked.arena == report.arena_bytes
    assert 0 <= report.ram_used - linked.ram < 256
    flash = (report.path / "build" / "fw.bin").stat().st_size
    assert 0 <= report.flash_used - flash < report.code_bytes / 10


def small_export(out: Path, **arguments: Any) -> ExportReport:
    """Export a residual network and nine samples, for the emulated board if no other is named."""
    model = residual_network()
    given = {"target": TARGET, "dataset": random_dataset(model, 9), "options": SMALL}
    return export(model, out=out, **{**given, **arguments})
