"""Whether a firmware fits its board: refused before anything is written, with the numbers."""

from __future__ import annotations

from pmt.firmware.export.memory_parts import LEAST_CODE
from pmt.firmware.export.report import ExportReport
from pmt.firmware.export.target import Target

__all__ = ["check_budgets"]


def check_budgets(report: ExportReport, board: Target) -> None:
    """Refuse what cannot be linked.

    Parameters
    ----------
    report : ExportReport
        Sizes and budgets.
    board : Target
        Whose memories the budgets are of.

    Raises
    ------
    ValueError
        If a budget or the stack is outside its range, or what the firmware takes is over a budget.
        Of code the least counts, since the compiler's flags decide; the report's verdict says where
        the usual ones may not do.
    """
    _check_ranges(report, board)
    if report.ram_used > report.ram_bytes:
        raise ValueError(
            f"ram={report.ram_bytes} is too small: training needs {report.ram_used} bytes (arena "
            f"{report.arena_bytes}, stack {report.stack_bytes}, variables "
            f"{report.variable_bytes} at most), {report.ram_used - report.ram_bytes} too many; "
            "take a smaller batch, fewer queries or fewer layers"
        )
    code = LEAST_CODE if board.linked else 0
    over = report.model_bytes + code - report.flash_bytes
    if over > 0:
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
