"""Memory of the firmware that trains the paper's MCUNet: planned, linked, and used in QEMU.

    python lab/benchmarks/firmware_memory.py --data cifar-10-batches-bin

Needs arm-none-eabi-g++, make and qemu-system-arm; takes about 15 minutes. For each row: exports
with the limits of the board (linker regions and memory protection), builds, trains three steps in
the emulator, and compares with the host. One image and 50 queries, as the paper. With --queries 2
it takes two minutes; the plan with 50 is computed then as well, and its tables of losses and seeds
are all that differs. The row `head` trains the last layer alone: little more than a forward.
"""

from __future__ import annotations

import argparse
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import pmt
from pmt import datasets
from pmt.datasets import Dataset
from pmt.datasets.picture import Fit, resized
from pmt.firmware.board.memory import LinkedSizes, linked_sizes
from pmt.firmware.export import ExportReport, export
from pmt.firmware.monitor import TrainingLog
from pmt.model import Model

TARGET = "qemu-mps2-an500"
MODEL = "cifar10_mcunet"
STEPS = 3
QUERIES = 50  # the paper's
# Rounds the arena's end up; the last byte in use need not be a multiple of it.
ALIGNMENT = 16
# Compiled once: files that do not depend on the row.
SHARED = ("core", "common", "drivers")


@dataclass(frozen=True)
class Row:
    """A training; ``target`` is the limit of all of its RAM, in KB of 1024 bytes."""

    name: str
    layers: str
    like: str
    target: int | None


ROWS = (
    Row("all", "all", "stm32h7b3i-dk", 600),
    Row("paper14", "paper14", "stm32h7b3i-dk", 340),
    Row("B1", "B1", "stm32f746g-disco", None),
    Row("B2", "B2", "stm32f746g-disco", 160),
    Row("B3", "B3", "stm32f746g-disco", 160),
    Row("B4", "B4", "stm32f746g-disco", None),
    Row("head", "head", "stm32f746g-disco", 120),
)


@dataclass(frozen=True)
class Measured:
    """Bytes that a row's firmware takes; ``problems`` is empty where all is as it should be."""

    report: ExportReport
    linked: LinkedSizes
    arena_mark: int
    stack_mark: int
    problems: tuple[str, ...]


def main() -> None:
    """Print the table; the exit status says whether every row is as it should be."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--data", required=True, help="folder of CIFAR-10")
    parser.add_argument("--out", help="keep the projects in this folder")
    parser.add_argument("--rows", help="names, separated by commas (default: every row)")
    parser.add_argument(
        "--queries", type=int, default=QUERIES, help=f"queries of the runs (default: {QUERIES})"
    )
    options = parser.parse_args()
    names = [row.name for row in ROWS] if options.rows is None else options.rows.split(",")
    unknown = set(names) - {row.name for row in ROWS}
    if unknown:
        parser.error(f"--rows: {unknown.pop()!r} is none of {', '.join(r.name for r in ROWS)}")
    model = pmt.load(MODEL)
    images = training_images(model, options.data)
    with tempfile.TemporaryDirectory(prefix="pmt-memory-") as temporary:
        out = Path(options.out or temporary)
        lines, problems = [], []
        for row in (row for row in ROWS if row.name in names):
            print(f"{row.name} ...", file=sys.stderr, flush=True)
            full = write(row, model, images, out / "plan", QUERIES, steps=1)
            run = measure(row, model, images, out, options.queries)
            lines.append(cells(row, run, full))
            problems += [f"{row.name}: {problem}" for problem in run.problems]
    print(heading())
    print(*lines, sep="\n")
    print(*problems, sep="\n")
    sys.exit(1 if problems else 0)


def training_images(model: Model, folder: str) -> Dataset:
    """Return the first images of CIFAR-10's test batch, of the model's input size."""
    data = datasets.load(folder, split="test").take(STEPS)
    images = resized(data.images, Fit(model.input_shape[:2]))
    return Dataset(images, data.labels, data.class_names, data.name)


def write(
    row: Row, model: Model, data: Dataset, out: Path, queries: int, steps: int = STEPS
) -> ExportReport:
    """Export a row."""
    return export(
        model,
        target=TARGET,
        like=row.like,
        out=out / f"{row.name}_{queries}",
        dataset=data,
        options=pmt.preset("paper", queries=queries, batch=1),
        layers=row.layers,
        steps=steps,
        batch=1,
        inferences=1,
        force=True,
    )


def measure(row: Row, model: Model, data: Dataset, out: Path, queries: int) -> Measured:
    """Build and run a row."""
    report = write(row, model, data, out, queries)
    share_objects(out / "objects", report.path)
    make(report.path, "build/fw.elf")
    keep_objects(report.path, out / "objects")
    linked = linked_sizes(report.path / "build" / "fw.elf")
    log = TrainingLog()
    for line in make(report.path, "qemu", "TIMEOUT=20000").splitlines():
        log.read(line)
    arena, stack = log.memory["arena"], log.memory["stack"]
    problems = []
    if linked.arena != report.arena_bytes:
        problems.append(f"{linked.arena} bytes of arena linked, {report.arena_bytes} planned")
    if not 0 <= report.arena_bytes - arena[0] < ALIGNMENT:
        problems.append(f"{arena[0]} bytes of arena used, {report.arena_bytes} planned")
    if stack[0] >= stack[1]:
        problems.append(f"the stack's {stack[1]} bytes are used up")
    if not log.equal:
        problems.append(log.verdict or "no verdict")
    return Measured(report, linked, arena[0], stack[0], tuple(problems))


def share_objects(objects: Path, folder: Path) -> None:
    if objects.is_dir():
        # Not copy2: a file older than its source is compiled again.
        shutil.copytree(
            objects, folder / "build", dirs_exist_ok=True, copy_function=shutil.copyfile
        )


def keep_objects(folder: Path, objects: Path) -> None:
    for part in SHARED:
        shutil.copytree(folder / "build" / part, objects / part, dirs_exist_ok=True)


def make(folder: Path, *arguments: str) -> str:
    """Return what make printed, also of a run that failed."""
    run = subprocess.run(
        ["make", "-j2", "--no-print-directory", "-C", str(folder), *arguments],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
    )
    if run.returncode != 0 and "verify:" not in run.stdout:
        raise RuntimeError(f"make -C {folder} {' '.join(arguments)}:\n{run.stdout}")
    return run.stdout


TITLES = (
    "layers", "limits of", "trained", "queries", "arena: planned", "linked", "mark", "stack",
    "mark", "flash", "SRAM, 50 queries", "target", "verdict",
)  # fmt: skip


def heading() -> str:
    return f"| {' | '.join(TITLES)} |\n|{'---|' * len(TITLES)}"


def cells(row: Row, run: Measured, full: ExportReport) -> str:
    """Return the row of the Markdown table."""
    report = run.report
    sram = run.linked.ram + full.arena_bytes - report.arena_bytes
    sizes = (report.arena_bytes, run.linked.arena, run.arena_mark)
    target = "" if row.target is None else f"{row.target} KB"
    values: Sequence[str] = (
        row.name,
        row.like,
        f"{report.arena_parts['trained weights']:,}",
        str(report.queries),
        *(f"{size:,}" for size in sizes),
        f"{report.stack_bytes:,}",
        f"{run.stack_mark:,}",
        f"{run.linked.flash:,}",
        f"{sram:,} ({sram / 1024:.1f} KB)",
        target,
        verdict(row, run, sram),
    )
    return f"| {' | '.join(values)} |"


def verdict(row: Row, run: Measured, sram: int) -> str:
    """Return whether a row is equal to the host, and within its target."""
    if run.problems:
        return "**wrong**"
    if row.target is None:
        return "equal"
    left = 1024 * row.target - sram
    return f"equal, {left:,} to spare" if left >= 0 else f"equal, **{-left:,} too many**"


if __name__ == "__main__":
    main()
