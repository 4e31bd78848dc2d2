"""Tables of ``pmt profile --instructions``."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from pmt.cli.tables import table
from pmt.firmware.board.instructions import Instructions
from pmt.firmware.export.latency import Latency

__all__ = ["latency_lines", "op_table", "step_table"]

_PARTS = {
    "layers": "layers",
    "other_ops": "other ops",
    "signs": "signs (Philox)",
    "perturbation": "perturbation",
    "accumulation": "sums of signs",
    "outer_products": "outer products",
    "rest": "everything else",
}


def op_table(counts: Sequence[Instructions]) -> str:
    """Instructions of every op, and for each multiply-accumulate."""
    titles = ["op", "kind", "MACs"]
    for count in counts:
        titles += [count.kernels, "a MAC"]
    rows = [
        [
            op.name,
            op.kind,
            _macs(op.macs),
            *_cells(op.macs, [c.ops[i].instructions for c in counts]),
        ]
        for i, op in enumerate(counts[0].ops)
    ]
    macs = sum(op.macs for op in counts[0].layers)
    layers = [sum(op.instructions for op in count.layers) for count in counts]
    rows.append(["all layers", "", f"{macs:,}", *_cells(macs, layers)])
    rows.append(["the forward", "", f"{macs:,}", *_cells(macs, [c.forward for c in counts])])
    return table(titles, rows, left=("op", "kind"))


def step_table(counts: Sequence[Instructions]) -> str:
    """Instructions of the parts of a training step, with line buffers, and what they add up to.

    The shares are of all its forwards on whole activations, which neither repeat rows nor
    run band by band.
    """
    titles = ["a step of one image", "calls"]
    for count in counts:
        titles += [count.kernels, "of forwards"]
    whole = [count.whole_forwards for count in counts]
    rows = [
        [
            title,
            f"{counts[0].step[part][1]:,}" if part != "rest" else "",
            *_shares([count.step[part][0] for count in counts], whole),
        ]
        for part, title in _PARTS.items()
    ]
    for title, taken in (
        ("beyond its forwards", [count.step_total - count.step_forwards for count in counts]),
        ("the step", [count.step_total for count in counts]),
        ("its forwards on whole activations", whole),
        ("one forward of it", [count.main_pass for count in counts]),
    ):
        rows.append([title, "", *_shares(taken, whole)])
    return table(titles, rows, left=("a step of one image",))


def latency_lines(counts: Sequence[Instructions], latency: Latency) -> str:
    """Say what the instructions would take, with every factor."""
    lines = [
        f"projected: {latency.factors()}",
        f"the cycles an instruction are {latency.cycles_source}",
    ]
    for count in counts:
        line = f"{count.kernels}: forward {1e3 * latency.seconds(count.forward):,.1f} ms"
        if count.step:
            line += f", step of one image {latency.seconds(count.step_total):,.2f} s"
        lines.append(line)
    return "\n".join(lines)


def _macs(macs: int) -> str:
    return f"{macs:,}" if macs else ""


def _cells(macs: int, instructions: Sequence[int]) -> list[str]:
    cells: list[Any] = []
    for count in instructions:
        cells += [f"{count:,}", f"{count / macs:.2f}" if macs else ""]
    return cells


def _shares(instructions: Sequence[int], forwards: Sequence[int]) -> list[str]:
    cells = []
    for count, total in zip(instructions, forwards, strict=True):
        cells += [f"{count:,}", f"{count / total:.1%}"]
    return cells
