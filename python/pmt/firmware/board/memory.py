"""Memory of a method on a board, counted in three ways."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from pmt.firmware.export import layout
from pmt.firmware.export.report import PlannedSizes, planned_sizes
from pmt.firmware.export.target import Target
from pmt.model import Model
from pmt.profiling.profile import Profile, analytic_bytes
from pmt.train.prepare import without_statistics


@dataclass(frozen=True)
class BoardMemory:
    """Bytes of a method on a board."""

    method: str
    target: Target
    analytic: int  # RAM by `pmt.profiling.profile.analytic_bytes`
    frozen: int  # frozen weights and biases in flash, the least that it takes
    # Sizes that an export reserves; None where the core does not train the method.
    planned: PlannedSizes | None = None
    # Sizes that the linker laid out; None where nothing was built.
    linked: LinkedSizes | None = None

    @property
    def is_bound(self) -> bool:
        """Whether only a lower bound is known, so that a program that fits it might not fit."""
        return self.planned is None

    @property
    def ram_over(self) -> int:
        """Bytes of RAM beyond the board's, 0 where it fits; by the surest of the three counts."""
        sizes = self.linked or self.planned
        ram = self.analytic if sizes is None else sizes.ram
        return max(0, ram - self.target.ram.bytes)

    @property
    def flash_over(self) -> int:
        """Bytes of flash beyond the board's, 0 where it fits; by the surest of the three counts."""
        sizes = self.linked or self.planned
        flash = self.frozen if sizes is None else sizes.flash
        return max(0, flash - self.target.flash.bytes)

    @property
    def fits(self) -> bool:
        """Whether RAM and flash suffice."""
        return self.ram_over == 0 and self.flash_over == 0

    def to_json(self) -> dict[str, Any]:
        """Return the figures for JSON."""
        planned, linked = self.planned, self.linked
        names = ("arena", "stack", "variables", "model", "code", "ram", "flash")
        sizes = None if planned is None else {name: getattr(planned, name) for name in names}
        return {
            "method": self.method,
            "analytic": self.analytic,
            "frozen": self.frozen,
            "planned": sizes,
            "linked": None if linked is None else linked.to_json(),
            "is_bound": self.is_bound,
            "fits": self.fits,
            "ram_over": self.ram_over,
            "flash_over": self.flash_over,
        }


def board_memory(model: Model, profile: Profile, target: Target) -> BoardMemory:
    """Count a method's memory on a board; nothing is built."""
    planned = None
    if profile.options is not None:
        core = profile.options.to_core()
        planned = planned_sizes(target, model, core, profile.ops, profile.batch)
    analytic, frozen = analytic_bytes(model, profile), profile.memory.flash
    return BoardMemory(profile.method, target, analytic, frozen, planned)


def with_linked(model: Model, rows: Sequence[BoardMemory]) -> list[BoardMemory]:
    """Build the firmware of every row that is planned and fits; errors as :func:`link_firmware`."""
    require_linked(rows[0].target)
    planned = {row.method: row.planned for row in rows if row.planned is not None and row.fits}
    if not planned:
        return list(rows)
    image = without_statistics(model).image()
    sizes = link_firmware(rows[0].target, image, list(planned.values()))
    linked = dict(zip(planned, sizes, strict=True))
    return [replace(row, linked=linked.get(row.method)) for row in rows]


MAKE_SECONDS = 900

# Debian packages of the programs that firmware needs.
PACKAGES = {
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


def link_firmware(
    target: Target, image: bytes, trainings: Sequence[PlannedSizes]
) -> list[LinkedSizes]:
    """Build the firmware that :func:`~pmt.firmware.export.export` writes, in a temporary folder.

    Samples and steps are on the card, and none are needed here. Trainings of one model differ in
    the size of the arena and the parts that are linked; everything else is compiled once. A
    ValueError says that the target is a library, which another project links; a FileNotFoundError,
    ChildProcessError or TimeoutError that compiler or make are missing, fail or take too long, or
    that the firmware does not fit.
    """
    require_linked(target)
    need_programs("firmware is linked", "arm-none-eabi-g++", "make")
    with tempfile.TemporaryDirectory(prefix="pmt-linked-") as name:
        folder, found = Path(name), []
        for planned in trainings:
            write_changes(folder, _project(target, image, planned))
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


def _project(target: Target, image: bytes, planned: PlannedSizes) -> dict[str, bytes]:
    values = {
        **layout.values_of(target),
        **layout.image_values(image),
        "ARENA_BYTES": planned.arena,
        "STACK_BYTES": target.stack_bytes,
        "RAM_BYTES": target.ram.bytes,
        "FLASH_BYTES": target.flash.bytes,
        "TIMEOUT": MAKE_SECONDS,
        "MEMORY": "",
    }
    files = {**layout.source_files(target), **layout.build_files(target, values)}
    return {**files, "model/model.pmt": image, **planned.parts.headers()}


def write_changes(folder: Path, files: dict[str, bytes]) -> None:
    """Write files that changed; make compiles again all that depends on them."""
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
                f"Debian and Ubuntu with `apt-get install {PACKAGES[program]}`"
            )


def run_make(folder: Path, goal: str, too_long: str) -> subprocess.CompletedProcess[str]:
    """Run make in a folder, silently; after :data:`MAKE_SECONDS` a TimeoutError, ``too_long``."""
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
