"""Time that instructions would take on a board: a projection, no measurement."""

from __future__ import annotations

from dataclasses import dataclass

from pmt import _core
from pmt.firmware.export.target import Target

__all__ = ["INSTRUCTIONS_OF_A_MAC", "Latency", "estimated_instructions", "project_latency"]

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
    """The factors of a projection.

    Attributes
    ----------
    clock_mhz : float
        The core's clock; of an emulated board the instructions that QEMU executes in a microsecond.
    clock_source : str
        Origin of the figure.
    cycles_per_instruction : float
        Assumed mean.
    cycles_source : str
        Origin of the figure.
    """

    clock_mhz: float
    clock_source: str
    cycles_per_instruction: float
    cycles_source: str

    def seconds(self, instructions: int) -> float:
        """Return the time of so many instructions."""
        return instructions * self.cycles_per_instruction / (1e6 * self.clock_mhz)

    def factors(self) -> str:
        """Say what instructions are multiplied by, and where the clock is from."""
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
