"""What an export wrote and what it will take on the target."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from pmt.export.memory_parts import CODE_BYTES

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
        The model in flash; the code comes on top.
    arena_bytes : int
        Memory of training, exact.
    arena_parts : dict of str to int
        What it is made of.
    peak : str
        The op at which most activations are alive.
    stack_bytes : int
        Reserved for the stack.
    card_bytes : int
        The data file.
    macs : int
        Multiply-accumulates of the whole run on the target.
    seconds : float
        Rough time that they take on the target (under QEMU: on the emulating machine).
    run : str
        Command that builds, runs and compares.
    selection : str
        Which block the board will choose, and why; empty where it does not choose.
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
    arena_bytes: int
    arena_parts: dict[str, int]
    peak: str
    stack_bytes: int
    card_bytes: int
    macs: int
    seconds: float
    run: str
    selection: str = ""

    def memory_table(self) -> str:
        """Return the use of memory as a Markdown table."""
        rows = [
            *(
                (f"- {name}", "arena", size, self.ram_bytes)
                for name, size in self.arena_parts.items()
            ),
            ("arena", "RAM", self.arena_bytes, self.ram_bytes),
            ("stack", "RAM", self.stack_bytes, self.ram_bytes),
            ("model", "flash", self.model_bytes, self.flash_bytes),
            ("code, about", "flash", CODE_BYTES, self.flash_bytes),
        ]
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
        ram = self.arena_bytes + self.stack_bytes
        flash = self.model_bytes + CODE_BYTES
        fits = "fits" if flash <= self.flash_bytes else "the linker decides"
        return (
            f"{fits}: {ram:,} of {self.ram_bytes:,} bytes of RAM, about {flash:,} of "
            f"{self.flash_bytes:,} of flash; most activations at {self.peak}"
        )

    def to_json(self) -> dict[str, Any]:
        """Return the same figures for JSON."""
        return {**asdict(self), "path": str(self.path), "layers": list(self.layers)}

    def __str__(self) -> str:
        head = (
            f"{self.path}: {self.target}, {self.steps} steps of {self.batch} samples, "
            f"{self.queries} queries, {len(self.layers)} layers"
        )
        work = f"work: {self.macs / 1e6:,.0f} million multiply-accumulates, about {self._time()}"
        if self.seconds > _LONG_RUN:
            work += "; a smaller batch, fewer queries or fewer steps take less"
        if self.selection:
            head += f"\nselect: {self.selection}"
        return f"{head}\n{self.memory_table()}\n{self.verdict()}\n{work}\nnext: {self.run}"

    def _time(self) -> str:
        return f"{self.seconds:.0f} s" if self.seconds < 120 else f"{self.seconds / 60:.0f} min"
