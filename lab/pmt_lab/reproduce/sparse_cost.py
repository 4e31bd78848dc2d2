"""Table 9: accuracy, memory, multiply-accumulates and latency of sparse training."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pmt_lab.reproduce.cost_rows import BP_MEMORY, compute_rows, inference_peak_row
from pmt_lab.reproduce.counted_instructions import counted_instructions
from pmt_lab.reproduce.curve_rows import plot_losses_of_lines
from pmt_lab.reproduce.grid_runs import forecast_grids, measure_grids
from pmt_lab.reproduce.latency import latency_rows
from pmt_lab.reproduce.memory_bars import draw_memory
from pmt_lab.reproduce.published import published
from pmt_lab.reproduce.run_rows import accuracy_row, find
from pmt_lab.reproduce.study import (
    MEMORY,
    Context,
    Forecast,
    Row,
    Scale,
    Study,
    at_least,
    compared,
    not_run,
)
from pmt_lab.reproduce.study_grids import cifar10_grid
from pmt_lab.reproduce.training_costs import (
    NETWORK,
    kilobytes,
    paper_network,
    printed_macs,
    training_costs,
)
from pmt_lab.sweep import Grid

__all__ = ["STUDY"]

_QUERIES = 50
_OURS, _FLOAT, _INT8 = "BP-free, block 3", "BP float32, block 3", "BP int8, block 3"
_OTHER_BLOCK = "BP-free, block 2"
_LAYERS = "B3"
_METHODS = {
    _FLOAT: ("bp_fp32", _LAYERS),
    _INT8: ("bp_int8", _LAYERS),
    _OURS: ("paper", _LAYERS),
    _OTHER_BLOCK: ("paper", "B2"),
}
_BOARD = "stm32f746g-disco"
_FORWARD, _BACKWARD = "sparse_cost", "sparse_cost_backprop"
_ACCURACIES = (
    ("BP accuracy, float32", _BACKWARD, "bp_fp32", "bp_accuracy"),
    ("BP accuracy, int8 with float32 copies", _BACKWARD, "bp_int8_shadow", "bp_accuracy"),
    ("BP accuracy, int8 alone", _BACKWARD, "bp_int8", "bp_accuracy"),
    ("BP-free accuracy, paper's method, rate 0.001", _FORWARD, "rate 0.001", "bp_free_accuracy"),
    ("BP-free accuracy, paper's method, rate 0.0001", _FORWARD, "rate 0.0001", "bp_free_accuracy"),
    ("BP-free accuracy, unprepared default", _FORWARD, "default", "bp_free_accuracy"),
)


def _grids(scale: Scale, context: Context) -> dict[str, Grid]:
    return {name: cifar10_grid(name, scale, context) for name in (_FORWARD, _BACKWARD)}


def _measure(scale: Scale, context: Context) -> dict[str, Any]:
    model = paper_network()
    counted = None
    if scale == "full":
        counted = counted_instructions(NETWORK, _LAYERS, _QUERIES, _BOARD, context)
    return {
        **training_costs(model, _METHODS, _QUERIES),
        "printed_macs": printed_macs(model, _LAYERS, _QUERIES),
        "instructions": counted,
        **measure_grids(_grids(scale, context), context),
    }


def _forecast(scale: Scale, context: Context) -> Forecast:
    return forecast_grids(_grids(scale, context), context)


def _compare(data: Mapping[str, Any], paper: Mapping[str, Any]) -> list[Row]:
    return [
        *_accuracy(data, paper),
        *_memory(data, paper),
        *_compute(data, paper),
        *latency_rows(data["instructions"], paper, "bp_free"),
        *_backward_latency(paper),
    ]


def _accuracy(data: Mapping[str, Any], paper: Mapping[str, Any]) -> list[Row]:
    return [
        accuracy_row(what, find(data, grid, method=method), paper[key])
        for what, grid, method, key in _ACCURACIES
    ]


def _memory(data: Mapping[str, Any], paper: Mapping[str, Any]) -> list[Row]:
    methods = data["methods"]
    size = {name: kilobytes(cost["bytes"]) for name, cost in methods.items()}
    analytic = {name: kilobytes(cost["analytic_bytes"]) for name, cost in methods.items()}
    bound = (
        "what must be alive at once for these layers; the paper prints the figure of full training"
    )
    # The paper's own peak of inference, with the trained parameters of a block.
    with_theirs = {
        name: analytic[name] - kilobytes(data["inference_bytes"]) + paper["inference_kb"]
        for name in (_OURS, _OTHER_BLOCK)
    }
    return [
        at_least("BP memory, float32", size[_FLOAT], paper["bp_kb"], BP_MEMORY, why=bound),
        at_least("BP memory, int8", size[_INT8], paper["bp_kb"], BP_MEMORY, why=bound),
        inference_peak_row(data, paper, _OURS),
        compared(
            "BP-free memory, as planned",
            size[_OURS],
            paper["bp_free_kb"],
            MEMORY,
            why="all that a step needs; the largest activations stream through line buffers",
        ),
        compared(
            "BP-free memory, the paper's peak of inference and block 3",
            with_theirs[_OURS],
            paper["bp_free_kb"],
            MEMORY,
            why=f"the printed figure fits block 2, which makes {with_theirs[_OTHER_BLOCK]:.1f}; "
            "the multiply-accumulates beside it are block 3's",
        ),
    ]


def _compute(data: Mapping[str, Any], paper: Mapping[str, Any]) -> list[Row]:
    return compute_rows(
        data,
        paper,
        backward=(_FLOAT, "BP compute"),
        ours=_OURS,
        uncounted="with forwards to the inputs of node perturbation and its gradients by weights",
    )


def _backward_latency(paper: Mapping[str, Any]) -> list[Row]:
    why = "pmt has no firmware for back-propagation"
    return [
        not_run("BP latency", paper["bp_ms"], "ms", why),
        not_run("BP end-to-end time", paper["bp_s"], "s", why),
    ]


def _plot(data: Mapping[str, Any], *, ax: Any = None) -> Any:
    """Draw the memory of every method beside the paper's."""
    paper = published(STUDY.name)
    printed = {_FLOAT: paper["bp_kb"], _INT8: paper["bp_kb"], _OURS: paper["bp_free_kb"]}
    return draw_memory(data, printed=printed, boards=(256,), ax=ax)


def _plot_losses(data: Mapping[str, Any], corruption: str, *, ax: Any = None) -> Any:
    """Draw the held-out losses of every method on a corruption."""
    found = {
        what.replace(" accuracy", ""): find(data, grid, method=method, corruption=corruption)
        for what, grid, method, _ in _ACCURACIES
    }
    return plot_losses_of_lines(data, found, corruption, ax=ax)


STUDY = Study(
    "sparse-cost", "Table 9", "Accuracy and hardware cost of sparse training",
    _measure, _compare, _plot, _forecast, _plot_losses,
    conditions="Accuracies are of Gaussian noise; the paper names no corruption for its own. Its "
    "method trains image by image with 50 queries, as published; back-propagation and the default "
    "take batches of 100.",
)  # fmt: skip
