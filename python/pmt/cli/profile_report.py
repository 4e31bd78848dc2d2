"""Tables of ``pmt profile``: memory, boards, instructions."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from pmt import _core
from pmt.baselines.backprop.cost import inference_moments
from pmt.cli.output import table
from pmt.firmware.board.backends import Backend, our_backends, tflite_micro_backend
from pmt.firmware.board.instructions import Instructions
from pmt.firmware.board.linked import LinkedSizes
from pmt.firmware.board.memory import BoardMemory, board_memory, with_linked
from pmt.firmware.export.latency import Latency
from pmt.firmware.export.memory import PlannedSizes
from pmt.firmware.export.sources import find_target
from pmt.firmware.export.target import Target
from pmt.model import Model
from pmt.research.profile import Profile
from pmt.train.costs.device_memory import PlanMoment, peak_moment
from pmt.train.costs.memory import PARTS

__all__ = [
    "BoardReport",
    "latency_lines",
    "memory_table",
    "op_table",
    "plan_table",
    "report_board",
    "step_table",
    "summary",
    "work_table",
]


_WORK = {
    "forward": "forward",
    "queries": "queries",
    "reforwards": "again",
    "restarts": "restarts",
    "input_gradients": "by inputs",
    "weight_gradients": "by weights",
}
_SHORT = {
    "activations": "forward",
    "saved_activations": "saved",
    "activation_gradients": "gradients",
    "weight_gradients": "sums",
    "tables": "losses",
}


def summary(model: Model, profiles: Sequence[Profile]) -> str:
    """Say what the model is, and what is trained."""
    arena = max(moment.total for moment in inference_moments(model))
    first = profiles[0]
    weights = sum(layer.weights for layer in model.layers)
    queries = f", {first.queries} queries for each image and layer" if first.queries else ""
    return "\n".join(
        [
            f"model   {weights:,} weights, {model.macs:,} MACs an image, "
            f"{arena:,} bytes of activations alive at once in inference",
            f"method  {first.method}: {first.weights:,} weights and {first.biases:,} biases of "
            f"{len(first.layers)} layers, batch {first.batch}{queries}",
        ]
    )


def work_table(profiles: Sequence[Profile]) -> str:
    """Million multiply-accumulates for each image by what they are for, and for each step."""
    shown = {k: title for k, title in _WORK.items() if any(getattr(p.work, k) for p in profiles)}
    rows = [
        [
            p.method,
            f"{p.weights:,}",
            f"{p.biases:,}",
            *(f"{getattr(p.work, key) / 1e6:,.3f}" for key in shown),
            f"{p.work.macs / 1e6:,.3f}",
            f"{p.step_macs / 1e6:,.1f}",
            f"{p.batch * p.work.forwards:,}",
        ]
        for p in profiles
    ]
    titles = ["MMACs an image", "weights", "biases", *shown.values()]
    return table([*titles, "all", "a step", "forwards"], rows, left=("MMACs an image",))


def memory_table(profiles: Sequence[Profile]) -> str:
    """Bytes by part, at the peak."""
    shown = [part for part in PARTS if any(getattr(p.memory, part) for p in profiles)]
    rows = [
        [
            p.method,
            *(f"{getattr(p.memory, part):,}" for part in shown),
            f"{p.memory.sram:,}",
            f"{p.memory.frozen:,}",
        ]
        for p in profiles
    ]
    titles = ["bytes", *(_SHORT.get(part, part) for part in shown), "SRAM", "flash"]
    return table(titles, rows, left=("bytes",))


def plan_table(model: Model, device: _core.DeviceMemory, layers: Sequence[int]) -> str:
    """Say where every activation lives: of the main pass, and at the peak of the queries."""
    names = {op["index"]: op["name"] for op in model.core.ops()}
    peak = peak_moment(device, layers)
    buffers = device.plan()
    if peak.layer is not None:
        buffers += [b for b in device.query_plan(peak.layer) if b["pass"] == "query"]
    alive = {(b["pass"], b["offset"], b["what"]) for b in peak.buffers}
    rows = [
        [
            b["pass"],
            f"{b['what']} (lines)" if b["lines"] else b["what"],
            f"{b['bytes']:,}",
            f"{b['offset']:,}",
            names[b["first"]],
            names.get(b["last"], "end"),
            "*" if (b["pass"], b["offset"], b["what"]) in alive else "",
        ]
        for b in buffers
    ]
    titles = ["pass", "buffer", "bytes", "offset", "from", "to", "peak"]
    left = ("pass", "buffer", "from", "to", "peak")
    parts = [*_streams(device, names), table(titles, rows, left=left), _peak(peak, device, names)]
    return "\n".join(parts)


def _streams(device: _core.DeviceMemory, names: dict[int, str]) -> list[str]:
    return [
        f"streams {names[begin]} .. {names[end]} through line buffers, {band} rows at once"
        for begin, end, band in device.segments()
    ]


def _peak(peak: PlanMoment, device: _core.DeviceMemory, names: dict[int, str]) -> str:
    where = "the main pass" if peak.layer is None else f"a query of {names[peak.layer]}"
    return (
        f"peak    {peak.bytes:,} bytes alive while {names[peak.op]} runs in {where}; "
        f"{device.activation_bytes:,} bytes planned, in which a layer's gradient is summed up, too"
    )


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


class BoardReport(NamedTuple):
    """Tables, and the figures for JSON."""

    text: str
    figures: dict[str, Any]


def report_board(
    model: Model, profiles: Sequence[Profile], target: str, *, link: bool
) -> BoardReport:
    """Count on a board.

    Parameters
    ----------
    model : Model
        The network.
    profiles : sequence of Profile
        Methods.
    target : str
        Name or file of the board.
    link : bool
        Whether to build the firmware of those that fit.

    Returns
    -------
    BoardReport
        Both tables.
    """
    board = find_target(target)
    rows = [board_memory(model, one, board) for one in profiles]
    if link:
        rows = with_linked(model, rows)
    backends, left_out = our_backends(model), {}
    try:
        backends.append(tflite_micro_backend(model))
    except (ImportError, ValueError) as error:
        left_out["TensorFlow Lite Micro"] = str(error)
    parts = [_board_table(board, rows)]
    if link and all(row.linked is None for row in rows):
        parts.append("nothing is linked: none of these has firmware that fits")
    parts += ["", _backend_table(backends)]
    parts += [f"{name} is left out: {reason}" for name, reason in left_out.items()]
    figures = {
        "board": {
            "name": board.name,
            "ram": board.ram.bytes,
            "flash": board.flash.bytes,
            "methods": [row.to_json() for row in rows],
        },
        "backends": [one.to_json() for one in backends],
        "backends_left_out": left_out,
    }
    return BoardReport("\n".join(parts), figures)


def _board_table(target: Target, rows: Sequence[BoardMemory]) -> str:
    """KB of RAM and of flash by method, and whether it fits."""
    columns = {
        "KB": [row.method for row in rows],
        "analytic": [_kb(row.analytic) for row in rows],
        "planned": [_ram(row.planned) for row in rows],
        "linked": [_ram(row.linked) for row in rows],
        "flash": [_flash(row.planned) for row in rows],
        "flash linked": [_flash(row.linked) for row in rows],
        "verdict": [_verdict(row) for row in rows],
    }
    if all(row.linked is None for row in rows):
        del columns["linked"], columns["flash linked"]
    budget = f"{_kb(target.ram.bytes)} KB of RAM, {_kb(target.flash.bytes)} KB of flash"
    if not target.linked:
        budget = "a library, for a board of yours"
        del columns["verdict"]
    cells = list(zip(*columns.values(), strict=True))
    body = table(list(columns), cells, left=[t for t in ("KB", "verdict") if t in columns])
    return f"memory on {target.name}: {budget}\n{body}"


def _backend_table(backends: Sequence[Backend]) -> str:
    """Bytes of a forward alone, engine by engine."""
    rows = [
        [b.name, f"{b.activations:,}", f"{b.bookkeeping:,}", f"{b.arena:,}", f"{b.model:,}"]
        for b in backends
    ]
    titles = ["forward alone, bytes", "activations", "bookkeeping", "arena", "model in flash"]
    return table(titles, rows, left=titles[:1])


def _ram(sizes: PlannedSizes | LinkedSizes | None) -> str:
    return "-" if sizes is None else _kb(sizes.ram)


def _flash(sizes: PlannedSizes | LinkedSizes | None) -> str:
    return "-" if sizes is None else _kb(sizes.flash)


def _verdict(row: BoardMemory) -> str:
    if row.fits:
        return "lower bound fits" if row.is_bound else "fits"
    least = "at least " if row.is_bound else ""
    over = {"RAM": row.ram_over, "flash": row.flash_over}
    return ", ".join(f"{name} over by {least}{n:,} bytes" for name, n in over.items() if n)


def _kb(size: int) -> str:
    return f"{size / 1024:,.1f}"
