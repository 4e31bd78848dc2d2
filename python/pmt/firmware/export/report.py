"""Summary of an export: the project, and the memory and time it will take on the target."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from pmt._util.counted import counted

__all__ = ["ExportReport"]

_LONG_RUN = 300.0  # seconds


@dataclass(frozen=True)
class ExportReport:
    """Summary of an exported project; sizes in bytes.

    Attributes
    ----------
    path : pathlib.Path
        The project's folder.
    target : str
        The board.
    layers : tuple of str
        Names of the layers under training.
    steps, batch, queries : int
        Steps, samples of a step, queries for each sample and layer.
    flash_bytes, ram_bytes : int
        Budgets: the linker's regions.
    model_bytes : int
        The model, in flash.
    code_bytes : int
        Code and constants in addition, at most.
    arena_bytes : int
        Memory of training, exact.
    arena_parts : dict of str to int
        Its parts.
    peak : str
        The op at which most activations are alive.
    stack_bytes : int
        Reserved for the stack.
    variable_bytes : int
        Variables, at most.
    card_bytes : int
        The data file.
    macs : int
        Multiply-accumulates of the whole run on the target.
    instructions : int
        Instructions that they take, estimated.
    seconds : float
        Time of those on the target (under QEMU: on the emulating machine), a projection.
    speed : str
        The factors of the projection.
    run : str
        Command that builds, runs and compares.
    selection : str
        The block that the board will choose, and why; empty where it does not choose.
    """

    path: Path
    target: str
    layers: tuple[str, ...]
    steps: int
    batch: int
    queries: int
    flash_bytes: int
    ram_bytes: int
    model_bytes: int
    code_bytes: int
    arena_bytes: int
    arena_parts: dict[str, int]
    peak: str
    stack_bytes: int
    variable_bytes: int
    card_bytes: int
    macs: int
    instructions: int
    seconds: float
    speed: str
    run: str
    selection: str = ""

    @property
    def ram_used(self) -> int:
        """Bytes of RAM that the firmware takes, at most."""
        return self.arena_bytes + self.stack_bytes + self.variable_bytes

    @property
    def flash_used(self) -> int:
        """Bytes of flash that the firmware takes, at most."""
        return self.model_bytes + self.code_bytes

    def memory_table(self) -> str:
        """Return the use of memory as a Markdown table."""
        rows = [
            *(
                (f"- {name}", "arena", size, self.ram_bytes)
                for name, size in self.arena_parts.items()
            ),
            ("arena", "RAM", self.arena_bytes, self.ram_bytes),
            ("stack", "RAM", self.stack_bytes, self.ram_bytes),
            ("variables, at most", "RAM", self.variable_bytes, self.ram_bytes),
            ("model", "flash", self.model_bytes, self.flash_bytes),
            ("code, at most", "flash", self.code_bytes, self.flash_bytes),
        ]
        rows = [row for row in rows if row[2] > 0 or not row[0].endswith("at most")]
        width = max(len(row[0]) for row in rows)
        lines = [
            f"| {'what':<{width}} | where |     bytes | of budget |",
            f"|{'-' * (width + 2)}|-------|-----------|-----------|",
        ]
        lines += [
            f"| {what:<{width}} | {where:<5} | {size:>9,} | {size / budget:>9.1%} |"
            for what, where, size, budget in rows
        ]
        return "\n".join(lines)

    def verdict(self) -> str:
        """Return in a line how much of the budgets is taken, and where the peak is."""
        over = self.flash_used - self.flash_bytes
        fits = "fits" if over <= 0 else f"may not link, {over:,} bytes of flash too many at most"
        return (
            f"{fits}: {self.ram_used:,} of {self.ram_bytes:,} bytes of RAM, {self.flash_used:,} of "
            f"{self.flash_bytes:,} of flash; most activations at {self.peak}"
        )

    def to_json(self) -> dict[str, Any]:
        """Return the figures for JSON."""
        return {**asdict(self), "path": str(self.path), "layers": list(self.layers)}

    def __str__(self) -> str:
        head = (
            f"{self.path}: {self.target}, {counted(self.steps, 'step')} of "
            f"{counted(self.batch, 'sample')}, {counted(self.queries, 'query', 'queries')}, "
            f"{counted(len(self.layers), 'layer')}"
        )
        work = (
            f"work: {self.macs / 1e6:,.0f} million multiply-accumulates, about "
            f"{self.instructions / 1e6:,.0f} million instructions"
        )
        time = f"time: about {self._time()}, projected: {self.speed}"
        if self.seconds > _LONG_RUN:
            time += "; a smaller batch, fewer queries or fewer steps take less"
        if self.selection:
            head += f"\nselect: {self.selection}"
        return f"{head}\n{self.memory_table()}\n{self.verdict()}\n{work}\n{time}\nnext: {self.run}"

    def _time(self) -> str:
        return f"{self.seconds:.0f} s" if self.seconds < 120 else f"{self.seconds / 60:.0f} min"
