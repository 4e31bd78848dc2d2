"""Rows that the tables of costs share: memory and multiply-accumulates of one step."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pmt_lab.reproduce.study import (
    COMPUTE,
    MEMORY,
    Quantity,
    Row,
    at_least,
    beside,
    compared,
)
from pmt_lab.reproduce.training_costs import kilobytes

__all__ = ["BP_MEMORY", "compute_rows", "inference_peak_row"]

# Back-propagation is the same work and needs the same memory for everybody: only counts differ.
BP_MEMORY = Quantity("KB", 0.01, relative=True)
_BP_COMPUTE = Quantity("MMAC", 0.01, relative=True)


def inference_peak_row(data: Mapping[str, Any], paper: Mapping[str, Any], method: str) -> Row:
    """Compare the memory of trained parameters and the peak of inference.

    Parameters
    ----------
    data : mapping
        Result of :func:`~pmt_lab.reproduce.training_costs.training_costs`.
    paper : mapping
        Published numbers of the table.
    method : str
        The method of ``data`` that trains the layers.

    Returns
    -------
    Row
        The row.
    """
    return at_least(
        "BP-free memory, parameters and peak of inference",
        kilobytes(data["methods"][method]["analytic_bytes"]),
        paper["bp_free_kb"],
        MEMORY,
        why=f"{kilobytes(data['inference_bytes']):.0f} KB are alive at the peak of "
        f"inference, for the paper's {paper['inference_kb']}",
    )


def compute_rows(
    data: Mapping[str, Any],
    paper: Mapping[str, Any],
    *,
    backward: tuple[str, str],
    ours: str,
    uncounted: str,
) -> list[Row]:
    """Compare multiply-accumulates of back-propagation and of the paper's method.

    Parameters
    ----------
    data : mapping
        Result of :func:`~pmt_lab.reproduce.training_costs.training_costs`, with
        ``printed_macs``.
    paper : mapping
        Published numbers of the table.
    backward : tuple of (str, str)
        Back-propagation: its method in ``data``, and the row's text.
    ours : str
        The paper's method in ``data``.
    uncounted : str
        The device's work that the paper does not count.

    Returns
    -------
    list of Row
        Four rows.
    """
    methods = data["methods"]
    method, shown = backward
    return [
        compared(
            shown,
            methods[method]["macs"] / 1e6,
            paper["bp_mmac"],
            _BP_COMPUTE,
            why="a forward, gradients by inputs back to the first of these layers, and by their "
            "weights; no formula that was tried gives the printed figure",
        ),
        compared(
            "BP-free compute, forward and queries",
            methods[ours]["forward_macs"] / 1e6,
            paper["bp_free_mmac"],
            COMPUTE,
        ),
        compared(
            "BP-free compute, rounded as printed before it is multiplied",
            data["printed_macs"] / 1e6,
            paper["bp_free_mmac"],
            COMPUTE,
        ),
        beside(
            "BP-free compute, all that a device does",
            methods[ours]["macs"] / 1e6,
            COMPUTE.unit,
            why=f"{uncounted}: the paper does not count these",
        ),
    ]
