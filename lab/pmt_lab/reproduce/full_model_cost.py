"""Table 8: memory, multiply-accumulates and latency of full-model training."""

from typing import Any

from pmt_lab.reproduce.costs import (
    BP_MEMORY,
    compute_rows,
    inference_peak_row,
    kilobytes,
    latency_rows,
    step_costs,
)
from pmt_lab.reproduce.drawing import draw_memory
from pmt_lab.reproduce.study import (
    MEMORY,
    Context,
    Data,
    Row,
    Scale,
    Study,
    at_least,
    beside,
    compared,
    not_run,
    published,
)

_OURS, _ALL = "BP-free", "BP-free, all layers"
_FLOAT, _INT8 = "BP float32", "BP int8"
# The table's "full model" are fourteen convolutions by its multiply-accumulates, and all
# parameters by its memory.
_LAYERS = "paper14"
_METHODS = {
    _FLOAT: ("bp_fp32", _LAYERS),
    _INT8: ("bp_int8", _LAYERS),
    _OURS: ("paper", _LAYERS),
    _ALL: ("paper", "all"),
}
_BOARD = "stm32h7b3i-dk"
_TFLITE = (
    ("BP latency", "bp_ms", "ms"),
    ("BP-free latency", "bp_free_ms", "ms"),
    ("BP end-to-end time", "bp_s", "s"),
    ("BP-free end-to-end time", "bp_free_s", "s"),
)


def _measure(scale: Scale, context: Context) -> dict[str, Any]:
    return step_costs(_METHODS, _LAYERS, _BOARD, scale, context)


def _compare(data: Data, paper: Data) -> list[Row]:
    compute = compute_rows(
        data,
        paper,
        backward=(_FLOAT, "BP compute, 14 layers"),
        ours=_OURS,
        uncounted="with forwards to the inputs of node perturbation, its gradients by weights, and "
        "what line buffers compute again",
    )
    latency = latency_rows(data["instructions"], paper, "tinyengine_bp_free")
    why = "of the paper's kernels on its board; projected there, too"
    tflite = [
        not_run(f"{what}, TF-Lite", paper[f"tflite_{k}"], unit, why) for what, k, unit in _TFLITE
    ]
    return [*_memory(data, paper), *compute, *latency, *tflite]


def _memory(data: Data, paper: Data) -> list[Row]:
    size = {name: kilobytes(cost["bytes"]) for name, cost in data["methods"].items()}
    counted = 4 * data["output_values"] + data["parameter_bytes"] + data["image_bytes"]
    return [
        compared(
            "BP memory, all convolutions' outputs in float32, int8 network and image",
            kilobytes(counted),
            paper["bp_kb"],
            BP_MEMORY,
            why="the sum that gives the printed figure",
        ),
        at_least(
            "BP memory, float32, 14 layers",
            size[_FLOAT],
            paper["bp_kb"],
            BP_MEMORY,
            why="what must be alive at once: inputs of these layers are kept, "
            "and no output of the others",
        ),
        at_least(
            "BP memory, int8, 14 layers",
            size[_INT8],
            paper["bp_kb"],
            BP_MEMORY,
            why="what must be alive at once, with float32 gradients of activations",
        ),
        inference_peak_row(data, paper, _ALL),
        compared(
            "BP-free memory, all layers, as planned",
            size[_ALL],
            paper["bp_free_kb"],
            MEMORY,
            why="all that a step needs; the largest activations stream through line buffers",
        ),
        beside(
            "BP-free memory, 14 layers, as planned",
            size[_OURS],
            MEMORY.unit,
            why="the layers of the printed multiply-accumulates; frozen ones stay in flash. The "
            "printed memory is that of all parameters",
        ),
    ]


def _plot(data: Data, *, ax: Any = None) -> Any:
    """Draw the memory of every method beside the paper's."""
    paper = published(STUDY.name)
    printed = {_FLOAT: paper["bp_kb"], _INT8: paper["bp_kb"], _ALL: paper["bp_free_kb"]}
    return draw_memory(data, printed=printed, boards=(1024,), ax=ax)


STUDY = Study(
    "full-model-cost", "Table 8", "Hardware cost of full-model training", _measure, _compare, _plot
)
