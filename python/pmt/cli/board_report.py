"""``pmt profile --target``: memory on a board, and of a forward beside another engine's."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from pmt.cli.tables import table
from pmt.firmware.board.backends import Backend, our_backends, tflite_micro_backend
from pmt.firmware.board.memory import BoardMemory, board_memory, with_linked
from pmt.firmware.export.linked import LinkedSizes
from pmt.firmware.export.planned import PlannedSizes
from pmt.firmware.export.sources import find_target
from pmt.firmware.export.target import Target
from pmt.model import Model
from pmt.research.profile.profile import Profile

__all__ = ["BoardReport", "report_board"]


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
