"""Flash and RAM of a firmware once it is linked."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pmt.firmware.export import layout
from pmt.firmware.export.target import Target

__all__ = [
    "MAKE_SECONDS",
    "LinkedSizes",
    "link_firmware",
    "linked_sizes",
    "need_programs",
    "require_linked",
    "run_make",
    "write_changes",
]

MAKE_SECONDS = 900

_PACKAGES = {
    "arm-none-eabi-g++": "gcc-arm-none-eabi",
    "qemu-system-arm": "qemu-system-arm",
    "make": "make",
}
_FLASH = (".vectors", ".text", ".rodata", ".init_array", ".data")


@dataclass(frozen=True)
class LinkedSizes:
    """Sections of a program: name -> address and size in bytes."""

    sections: dict[str, tuple[int, int]]

    @property
    def arena(self) -> int:
        """Bytes of the arena."""
        return self.sections[".arena"][1]

    @property
    def stack(self) -> int:
        """Bytes of the stack."""
        return self.sections[".stack"][1]

    @property
    def ram(self) -> int:
        """All of RAM: stack, variables and arena, which stand in this order."""
        return sum(self.sections[".arena"]) - self.sections[".stack"][0]

    @property
    def flash(self) -> int:
        """Model, code and the start of the variables."""
        return sum(self.sections[name][1] for name in _FLASH if name in self.sections)

    def to_json(self) -> dict[str, Any]:
        """Return the figures for JSON."""
        return {"arena": self.arena, "stack": self.stack, "ram": self.ram, "flash": self.flash}


def linked_sizes(elf: Path) -> LinkedSizes:
    """Read the sections of a program for an Arm processor."""
    command = ["arm-none-eabi-size", "-A", "-d", str(elf)]
    listed = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    rows = re.findall(r"^(\.[a-z_]+)\s+(\d+)\s+(\d+)$", listed, re.MULTILINE)
    return LinkedSizes({name: (int(address), int(size)) for name, size, address in rows})


def link_firmware(target: Target, image: bytes, arenas: Sequence[int]) -> list[LinkedSizes]:
    """Build the firmware that :func:`~pmt.firmware.export.export` writes, in a temporary folder.

    Samples and steps are on the card, and none are needed here. Trainings of one model differ in
    the size of the arena only, so everything else is compiled once.

    Raises
    ------
    ValueError
        If the target is a library, which another project links.
    FileNotFoundError, ChildProcessError, TimeoutError
        If compiler or make are missing, fail or take too long, or the firmware does not fit.
    """
    require_linked(target)
    need_programs("firmware is linked", "arm-none-eabi-g++", "make")
    with tempfile.TemporaryDirectory(prefix="pmt-linked-") as name:
        folder, found = Path(name), []
        for arena in arenas:
            write_changes(folder, _project(target, image, arena))
            _make(folder)
            found.append(linked_sizes(folder / "build" / "fw.elf"))
    return found


def require_linked(target: Target) -> None:
    """Refuse a target whose firmware is a library."""
    if not target.linked:
        raise ValueError(
            f"target={target.name!r} is a library, which the project of your SDK links; name a "
            "board to link for"
        )


def _project(target: Target, image: bytes, arena: int) -> dict[str, bytes]:
    sizes = layout.values_of_sizes(
        model=len(image),
        arena=arena,
        stack=target.stack_bytes,
        ram=target.ram.bytes,
        flash=target.flash.bytes,
        timeout=MAKE_SECONDS,
    )
    values = {**layout.values_of(target), **sizes}
    files = {**layout.source_files(target), **layout.build_files(target, values)}
    return {**files, "model/model.pmt": image}


def write_changes(folder: Path, files: dict[str, bytes]) -> None:
    """Write what is not there yet; make compiles again what depends on it."""
    for name, content in files.items():
        path = folder / name
        if not path.is_file() or path.read_bytes() != content:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(content)


def _make(folder: Path) -> None:
    done = run_make(folder, "build/fw.elf", f"linking took longer than {MAKE_SECONDS} s")
    if done.returncode != 0:
        raise ChildProcessError(
            f"the firmware could not be linked: {_reason(done.stdout + done.stderr)}"
        )


def _reason(printed: str) -> str:
    lines = printed.strip().splitlines() or ["make failed and printed nothing"]
    return next((line for line in lines if "overflowed" in line or "error:" in line), lines[-1])


def need_programs(purpose: str, *programs: str) -> None:
    """Raise FileNotFoundError if a program is missing with which, say, "firmware is linked"."""
    for program in programs:
        if shutil.which(program) is None:
            raise FileNotFoundError(
                f"{program} is not installed, and {purpose} with it; install it, on "
                f"Debian and Ubuntu with `apt-get install {_PACKAGES[program]}`"
            )


def run_make(folder: Path, goal: str, too_long: str) -> subprocess.CompletedProcess[str]:
    """Run make in a folder, silently and with all processors.

    Raises
    ------
    TimeoutError
        If it takes longer than :data:`MAKE_SECONDS`; the message is ``too_long``.
    """
    # A make around this program would pass its own jobs and flags on in these variables.
    environment = {name: value for name, value in os.environ.items() if not name.startswith("MAKE")}
    try:
        return subprocess.run(
            ["make", "-s", f"-j{os.cpu_count() or 1}", "-C", str(folder), goal],
            capture_output=True,
            text=True,
            timeout=MAKE_SECONDS,
            env=environment,
            check=False,
        )
    except subprocess.TimeoutExpired as error:
        raise TimeoutError(too_long) from error
