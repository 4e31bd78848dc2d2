"""Memory and time of a firmware on its board, and the summary of an export."""

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, NamedTuple

from pmt import _core
from pmt._util.text import counted, printable
from pmt.firmware.export.linked import LinkedParts, linked_parts
from pmt.firmware.export.target import Target
from pmt.firmware.export.task import Task
from pmt.model import Model
from pmt.train.costs.memory import arena_bytes, peak_moment, portable_arena_excess
from pmt.train.prepare import without_statistics

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
        Budgets: the linker's regions; 0 where none was given and another project links.
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
            f"| {what:<{width}} | {where:<5} | {size:>9,} | {_share(size, budget):>9} |"
            for what, where, size, budget in rows
        ]
        return "\n".join(lines)

    def verdict(self) -> str:
        """Return in a line how much of the budgets is taken, and where the peak is."""
        over = self.flash_used - self.flash_bytes if self.flash_bytes else 0
        fits = "fits" if over <= 0 else f"may not link, {over:,} bytes of flash too many at most"
        if not self.ram_bytes and not self.flash_bytes:
            fits = "no budget given"
        return (
            f"{fits}: {_of(self.ram_used, self.ram_bytes)} bytes of RAM, "
            f"{_of(self.flash_used, self.flash_bytes)} of flash; most activations at {self.peak}"
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


def _share(size: int, budget: int) -> str:
    return f"{size / budget:.1%}" if budget else "-"


def _of(size: int, budget: int) -> str:
    return f"{size:,} of {budget:,}" if budget else f"{size:,}"


# As `pmt profile --instructions` counts on a Cortex-M7, by kernels and kind of op: convolutions of
# `cifar10_mcunet`, rounded up by what its adds and mean take, and the head of
# `fashion_mnist_dscnn`. Tests hold the counts to them.
INSTRUCTIONS_OF_A_MAC = {
    "arm_dsp": {"conv2d": 1.45, "depthwise_conv2d": 2.65, "fully_connected": 4.9},
    "portable": {"conv2d": 5.6, "depthwise_conv2d": 11.0, "fully_connected": 6.9},
}


def estimated_instructions(model: _core.Model, kernels: str) -> list[int]:
    """Estimate the instructions of each op of a forward; 0 of those without multiply-accumulates.

    ``kernels`` is a key of :data:`INSTRUCTIONS_OF_A_MAC`.
    """
    of_a_mac = INSTRUCTIONS_OF_A_MAC[kernels]
    return [round(op["macs"] * of_a_mac.get(op["kind"], 0.0)) for op in model.ops()]


_CYCLES = 1.0
_CYCLES_SOURCE = (
    "an assumption: a Cortex-M7 issues one or two instructions in a cycle "
    "(https://www.quinapalus.com/cm7cycles.html measures which), and waits for flash and for "
    "results; no board has been measured"
)


@dataclass(frozen=True)
class Latency:
    """The factors of a projection."""

    # The core's clock; of an emulated board the instructions that QEMU executes in a microsecond.
    clock_mhz: float
    clock_source: str
    cycles_per_instruction: float  # assumed mean
    cycles_source: str

    def seconds(self, instructions: int) -> float:
        """Return the time of a number of instructions."""
        return instructions * self.cycles_per_instruction / (1e6 * self.clock_mhz)

    def factors(self) -> str:
        """Describe the factor of instructions, and the source of the clock."""
        return (
            f"instructions x {self.cycles_per_instruction:g} cycles per instruction / "
            f"{self.clock_mhz:g} MHz ({self.clock_source})"
        )


def project_latency(
    board: Target, clock_mhz: float | None = None, cycles: float | None = None
) -> Latency:
    """Choose the factors; those given, which must be above 0, replace the board's own.

    For an emulated board the emulator's speed counts, unless a number is given.
    """
    for name, value in (("clock", clock_mhz), ("cycles-per-instruction", cycles)):
        if value is not None and not 0.0 < value < float("inf"):
            raise ValueError(f"{name}={value!r} must be a finite number above 0")
    if board.emulated_per_second and clock_mhz is None and cycles is None:
        source = "QEMU's speed, roughly"
        return Latency(board.emulated_per_second / 1e6, source, 1.0, "one for QEMU's instructions")
    return Latency(
        clock_mhz=board.clock_hz / 1e6 if clock_mhz is None else clock_mhz,
        clock_source=f"that of {board.name}" if clock_mhz is None else "as given",
        cycles_per_instruction=_CYCLES if cycles is None else cycles,
        cycles_source=_CYCLES_SOURCE if cycles is None else "as given",
    )


class FixedMemory(NamedTuple):
    """Memory of a firmware whatever it trains, in bytes.

    Variables and code are those of the boards that come with pmt, compiled as their Makefiles do;
    tests hold what is linked to them. Other processors and flags come close. None where another
    project links.
    """

    stack: int  # reserved
    variables: int  # at most; what else is in RAM is the arena
    code: int  # code and constants, at most; what else is in flash is the model


# Code and constants take this at least, whatever the flags: with -Os they have 67 KB.
_LEAST_CODE = 48 * 1024

_VARIABLES, _CODE = 1856, 86 * 1024
# A candidate's trainer is on the stack; the chosen block's is a variable.
_SELECTION = FixedMemory(stack=2048, variables=64, code=3 * 1024)


def fixed_memory(board: Target, selects: bool = False) -> FixedMemory:
    """Return the most memory of a board's firmware beside arena and model; more if it selects."""
    if not board.linked:
        return FixedMemory(board.stack_bytes, 0, 0)
    extra = _SELECTION if selects else FixedMemory(0, 0, 0)
    return FixedMemory(
        board.stack_bytes + extra.stack, _VARIABLES + extra.variables, _CODE + extra.code
    )


def arena_parts(task: Task, arena: int) -> dict[str, int]:
    """Return the parts of a training's arena by name; they add up to its bytes."""
    taken = task.device().parts()
    parts = {
        "trained weights": taken["weights"] + taken["biases"],
        "activations": taken["activations"],
        "gradient": taken["gradient"],
        "seeds, losses": taken["tables"],
    }
    return {**parts, "buffers, lists": arena - sum(parts.values())}


def peak_op(task: Task) -> str:
    """Return the name of the op at which most activations are alive, printable."""
    ops = task.model.core.ops()
    return printable(ops[peak_moment(task.device(), task.layers).op]["name"])


@dataclass(frozen=True)
class PlannedSizes:
    """Bytes of a firmware before it is built."""

    # RAM; variables at most.
    arena: int
    stack: int
    variables: int
    # Flash; code at most.
    model: int
    code: int
    parts: LinkedParts  # parts of the core that are linked

    @property
    def ram(self) -> int:
        """All RAM, at most."""
        return self.arena + self.stack + self.variables

    @property
    def flash(self) -> int:
        """All flash, at most."""
        return self.model + self.code


def planned_arena(
    target: Target, model: _core.Model, options: _core.Options, layers: Sequence[int], batch: int
) -> int:
    """Return the bytes of a target's arena, with the kernels that its processor has."""
    training = (model, options, layers, batch)
    return arena_bytes(*training) + (0 if target.has_dsp else portable_arena_excess(*training))


def planned_sizes(
    target: Target, model: Model, options: _core.Options, layers: Sequence[int], batch: int
) -> PlannedSizes:
    """Plan a training of layers, op indices in ascending order: arena and model as exported."""
    fixed = fixed_memory(target)
    parts = linked_parts(model.core, [(options, layers)])
    return PlannedSizes(
        arena=planned_arena(target, model.core, options, layers, batch),
        stack=fixed.stack,
        variables=fixed.variables,
        model=len(without_statistics(model).image()),
        code=max(0, fixed.code - parts.saved_bytes()),
        parts=parts,
    )


def check_budgets(report: ExportReport, board: Target) -> None:
    """Refuse a program that cannot be linked by a ValueError.

    A budget or the stack is outside its range, or the firmware takes more than a budget. The least
    of code counts, since the compiler's flags decide; the report's verdict says where the usual
    ones may not do.
    """
    _check_ranges(report, board)
    if report.ram_used > report.ram_bytes > 0:
        raise ValueError(
            f"ram={report.ram_bytes} is too small: training needs {report.ram_used} bytes (arena "
            f"{report.arena_bytes}, stack {report.stack_bytes}, variables "
            f"{report.variable_bytes} at most), {report.ram_used - report.ram_bytes} too many; "
            "take a smaller batch, fewer queries or fewer layers"
        )
    code = _LEAST_CODE if board.linked else 0
    over = report.model_bytes + code - report.flash_bytes
    if over > 0 and report.flash_bytes > 0:
        raise ValueError(
            f"flash={report.flash_bytes} is too small: the firmware needs at least "
            f"{report.model_bytes + code} bytes (model {report.model_bytes}, code {code}), {over} "
            "too many; take a smaller model"
        )


def _check_ranges(report: ExportReport, board: Target) -> None:
    for name, size, most in (
        ("ram", report.ram_bytes, board.ram.bytes),
        ("flash", report.flash_bytes, board.flash.bytes),
    ):
        if size > most:
            name_of_limit = board.like or board.name
            raise ValueError(f"{name}={size} is more than {name_of_limit} has: {most} bytes")
        if size % 1024:
            raise ValueError(
                f"{name}={size} must be a multiple of 1024 bytes: the MPU guards its end"
            )
    if report.stack_bytes % 8 or report.stack_bytes < 1024:
        raise ValueError(f"stack={report.stack_bytes} must be a multiple of 8, at least 1024 bytes")
