"""Table 9: accuracy, memory, multiply-accumulates and latency of sparse training."""

from typing import Any

from pmt_lab.reproduce.costs import (
    BP_MEMORY,
    compute_rows,
    inference_peak_row,
    kilobytes,
    latency_rows,
    step_costs,
)
from pmt_lab.reproduce.drawing import draw_memory, plot_losses_of_lines
from pmt_lab.reproduce.runs import accuracy_row, cifar10_grid, find, measure_grids
from pmt_lab.reproduce.study import (
    MEMORY,
    Context,
    Data,
    Row,
    Scale,
    Study,
    at_least,
    compared,
    not_run,
    published,
)

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
_FORWARD, _BACKWARD, _RELEASED = "sparse_cost", "sparse_cost_backprop", "sparse_cost_released"
_BACKWARD_ALONE = "sparse_cost_backprop_alone"
_PREPARED, _PREPARED_BACKWARD = "sparse_cost_prepared", "sparse_cost_prepared_backprop"
_ACCURACIES = (
    ("BP accuracy, float32", _BACKWARD, "bp_fp32", "bp_accuracy"),
    ("BP accuracy, float32, without the head", _BACKWARD_ALONE, "bp_fp32", "bp_accuracy"),
    ("BP accuracy, int8 with float32 copies", _BACKWARD, "bp_int8_shadow", "bp_accuracy"),
    ("BP accuracy, int8 alone", _BACKWARD, "bp_int8", "bp_accuracy"),
    ("BP-free accuracy, paper's method, rate 0.001", _FORWARD, "rate 0.001", "bp_free_accuracy"),
    ("BP-free accuracy, paper's method, rate 0.0001", _FORWARD, "rate 0.0001", "bp_free_accuracy"),
    ("BP-free accuracy, released settings", _RELEASED, "released", "bp_free_accuracy"),
    (
        "BP-free accuracy, released settings, image by image",
        _RELEASED,
        "released, image by image",
        "bp_free_accuracy",
    ),
    ("BP-free accuracy, unprepared default", _FORWARD, "default", "bp_free_accuracy"),
    ("accuracy, preparation alone", _PREPARED, "preparation_only", ""),
    ("BP-free accuracy, default", _PREPARED, "default", "bp_free_accuracy"),
    ("BP accuracy, float32 after the preparation", _PREPARED_BACKWARD, "bp_fp32", ""),
)


def _measure(scale: Scale, context: Context) -> dict[str, Any]:
    names = dict.fromkeys(grid for _, grid, _, _ in _ACCURACIES)
    grids = {name: cifar10_grid(name, scale, context) for name in names}
    costs = step_costs(_METHODS, _LAYERS, _BOARD, scale, context)
    return {**costs, **measure_grids(grids, context)}


def _compare(data: Data, paper: Data) -> list[Row]:
    compute = compute_rows(
        data,
        paper,
        backward=(_FLOAT, "BP compute"),
        ours=_OURS,
        uncounted="with forwards to the inputs of node perturbation and its gradients by weights",
    )
    no_firmware = "pmt has no firmware for back-propagation"
    return [
        *(
            accuracy_row(what, find(data, grid, method=method), paper.get(key))
            for what, grid, method, key in _ACCURACIES
        ),
        *_memory(data, paper),
        *compute,
        *latency_rows(data["instructions"], paper, "bp_free"),
        not_run("BP latency", paper["bp_ms"], "ms", no_firmware),
        not_run("BP end-to-end time", paper["bp_s"], "s", no_firmware),
    ]


def _memory(data: Data, paper: Data) -> list[Row]:
    methods = data["methods"]
    size = {name: kilobytes(cost["bytes"]) for name, cost in methods.items()}
    bound = (
        "what must be alive at once for these layers; the paper prints the figure of full training"
    )
    # The paper's own peak of inference, with the trained parameters of a block.
    with_theirs = {
        name: kilobytes(methods[name]["analytic_bytes"] - data["inference_bytes"])
        + paper["inference_kb"]
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


def _plot(data: Data, *, ax: Any = None) -> Any:
    """Draw the memory of every method beside the paper's."""
    paper = published(STUDY.name)
    printed = {_FLOAT: paper["bp_kb"], _INT8: paper["bp_kb"], _OURS: paper["bp_free_kb"]}
    return draw_memory(data, printed=printed, boards=(256,), ax=ax)


def _plot_losses(data: Data, corruption: str, *, ax: Any = None) -> Any:
    """Draw the held-out losses of every method on a corruption."""
    found = {
        what.replace(" accuracy", ""): find(data, grid, method=method, corruption=corruption)
        for what, grid, method, _ in _ACCURACIES
    }
    return plot_losses_of_lines(data, found, corruption, ax=ax)


STUDY = Study(
    "sparse-cost",
    "Table 9",
    "Accuracy and hardware cost of sparse training",
    _measure,
    _compare,
    _plot,
    _plot_losses,
    True,
    "Accuracies are of Gaussian noise; the paper names no corruption for its own. Its method "
    "trains image by image with 50 queries, as published; back-propagation and the default take "
    "batches of 100.",
)
