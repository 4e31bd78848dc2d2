"""The figures of ``pmt bench`` as text."""

from __future__ import annotations

from collections.abc import Sequence

from pmt.cli.output import table
from pmt.research.benchmark.against import Agreement, EngineTime, StepComparison
from pmt.research.benchmark.forward import ForwardTime, OpTimes, StepTime, totals
from pmt.research.benchmark.timing import Machine

__all__ = [
    "agreement_lines",
    "engine_table",
    "forward_table",
    "machine_text",
    "op_table",
    "step_comparison_table",
    "step_table",
]


def machine_text(machine: Machine) -> str:
    """Say what ran where."""
    peaks = ", ".join(
        f"{gmacs:.1f} GMAC/s with {_threads(count)}" for count, gmacs in machine.peak_gmacs.items()
    )
    return (
        f"pmt {machine.pmt}, kernels {machine.kernels}, {machine.processor}, "
        f"{_threads(machine.threads)}\n"
        f"peak of {machine.peak_instruction} in registers: {peaks}"
    )


def forward_table(times: Sequence[ForwardTime]) -> str:
    """Lay out the whole forwards."""
    rows = [
        [
            "forward",
            str(time.images),
            str(time.threads),
            f"{time.microseconds:,.1f}",
            f"{time.gmacs:.1f}",
            _percent(time.share),
        ]
        for time in times
    ]
    return table(["", "images", "threads", "us/image", "GMAC/s", "peak"], rows, left=("",))


def op_table(ops: Sequence[OpTimes], peak: float) -> str:
    """Lay out the ops, and under them their sums by group. ``peak`` is that of one thread."""
    counts = list(ops[0].microseconds)
    titles = ["op", "name", "kind", "window", "shape", "MACs"]
    for count in counts:
        titles += [f"us @{count}", "GMAC/s", "peak"]
    rows = [
        [str(i), op.name, op.kind, op.window, op.shape, *_speeds(op, counts, peak)]
        for i, op in enumerate(ops)
    ]
    rows.append([""] * len(titles))
    for group in totals(list(ops)):
        rows.append(["", group.name, "", "", "", *_speeds(group, counts, peak)])
    return table(titles, rows, left=("name", "kind", "window", "shape"))


def _speeds(op: OpTimes, counts: Sequence[int], peak: float) -> list[str]:
    cells = [f"{op.macs:,}" if op.macs else ""]
    for count in counts:
        gmacs = op.gmacs(count)
        cells.append(f"{op.microseconds[count]:,.2f}")
        cells += [f"{gmacs:.1f}", _percent(gmacs / peak)] if op.macs else ["", ""]
    return cells


def step_table(times: Sequence[StepTime]) -> str:
    """Lay out the training steps.

    ``overhead`` is their time over that of their MACs at the speed of the forward, ``speed-up``
    that over the first number of threads.
    """
    first = {time.rule: time.seconds for time in reversed(times)}
    rows = [
        [
            time.rule,
            str(time.threads),
            f"{time.seconds:.3f}",
            f"{time.forwards:,}",
            f"{time.macs / 1e9:,.1f}",
            f"{time.gmacs:.1f}",
            f"{time.overhead:.2f}",
            f"{first[time.rule] / time.seconds:.2f}",
        ]
        for time in times
    ]
    titles = ["step", "threads", "seconds", "forwards", "GMAC", "GMAC/s", "overhead", "speed-up"]
    return table(titles, rows, left=("step",))


def engine_table(times: Sequence[EngineTime]) -> str:
    """Lay out the engines; ``x pmt`` is an engine's time over pmt's."""
    rows = [
        [
            time.engine,
            str(time.images),
            str(time.threads),
            f"{time.microseconds:,.1f}",
            f"{time.gmacs:.1f}",
            f"{time.ratio:.2f}",
        ]
        for time in times
    ]
    return table(
        ["engine", "images", "threads", "us/image", "GMAC/s", "x pmt"], rows, left=("engine",)
    )


def agreement_lines(found: Sequence[Agreement]) -> str:
    """Say how outputs compare with pmt's."""
    lines = []
    for a in found:
        line = f"{a.engine}: same best class for {_percent(a.top1)} of {a.images} random images"
        if a.equal is not None:
            line += f", {_percent(a.equal)} of outputs equal, others at most {a.largest} off"
        lines.append(line)
    return "\n".join(lines)


def step_comparison_table(times: Sequence[StepComparison]) -> str:
    """Lay out the steps by perturbed forward."""
    rows = [
        [
            time.engine,
            str(time.threads),
            f"{time.seconds:.3f}",
            f"{time.forwards:,}",
            f"{time.microseconds:,.1f}",
        ]
        for time in times
    ]
    titles = ["step", "threads", "seconds", "forwards", "us/forward"]
    return table(titles, rows, left=("step",))


def _threads(count: int) -> str:
    return f"{count} thread" + ("s" if count != 1 else "")


def _percent(share: float) -> str:
    return f"{100 * share:.0f} %"
