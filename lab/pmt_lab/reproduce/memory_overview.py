"""Figure 1b: memory of full-model and of sparse training by method."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pmt_lab.reproduce.memory_bars import draw_memory
from pmt_lab.reproduce.published import published
from pmt_lab.reproduce.study import (
    MEMORY,
    Context,
    Quantity,
    Row,
    Scale,
    Study,
    at_least,
    claim,
    compared,
    not_run,
)
from pmt_lab.reproduce.torch_memory import torch_step_bytes
from pmt_lab.reproduce.training_costs import (
    NETWORK,
    kilobytes,
    paper_network,
    training_costs,
)

__all__ = ["STUDY"]

_QUERIES = 50
_OURS, _SPARSE = "BP-free, all layers", "BP-free, block 3"
_FLOAT, _INT8 = "BP float32, all layers", "BP int8, all layers"
_METHODS = {
    _FLOAT: ("bp_fp32", "all"),
    "BP int8 with float32 copies": ("bp_int8_shadow", "all"),
    _INT8: ("bp_int8", "all"),
    "MCUTrain": ("mcutrain", ""),
    _OURS: ("paper", "all"),
    "BP-free, 14 layers": ("paper", "paper14"),
    _SPARSE: ("paper", "B3"),
}
_RATIO = Quantity("times", 0.01, relative=True, better="higher")
_BOUND = Quantity("MB", 0.01, relative=True)


def _measure(scale: Scale, context: Context) -> dict[str, Any]:
    full = scale == "full"
    costs = training_costs(paper_network(), _METHODS, _QUERIES)
    return {**costs, "torch_process_bytes": torch_step_bytes(NETWORK) if full else None}


def _compare(data: Mapping[str, Any], paper: Mapping[str, Any]) -> list[Row]:
    size = {name: kilobytes(cost["bytes"]) for name, cost in data["methods"].items()}
    inference, parameters = (
        kilobytes(data[name]) for name in ("inference_bytes", "parameter_bytes")
    )
    return [
        compared("parameters", parameters, paper["parameters_kb"], MEMORY),
        at_least(
            "activations at the peak of inference",
            inference,
            paper["inference_kb"],
            MEMORY,
            why="input and output of b1.pointwise1; the paper does not explain the rest",
        ),
        at_least(
            "BP-free, all layers, parameters and peak of inference",
            parameters + inference,
            paper["bp_free_kb"],
            MEMORY,
            why="the same sum; the difference is that of inference",
        ),
        compared(
            "BP-free, all layers, as planned",
            size[_OURS],
            paper["bp_free_kb"],
            MEMORY,
            why="everything that a step needs; the largest activations stream through line "
            "buffers, and gradients are summed up where activations are free",
        ),
        at_least(
            "BP float32, all layers",
            size[_FLOAT] / 1024,
            paper["bp_mb"],
            _BOUND,
            why="what must be alive at once; the paper does not say what its figure counts",
        ),
        *_ratios(data, size, paper),
        *_fits(size, paper),
    ]


def _ratios(
    data: Mapping[str, Any], size: Mapping[str, float], paper: Mapping[str, Any]
) -> list[Row]:
    process = data["torch_process_bytes"]
    what = "PyTorch's process over BP-free, all layers"
    more = f"more than {paper['times_pytorch']}"
    rows = [
        at_least(
            "BP int8 over BP-free, all layers",
            size[_INT8] / size[_OURS],
            paper["times_quantized_bp"],
            _RATIO,
            why="with what must be alive at once in BP; the paper's 3,650 KB hold every "
            "convolution's output in float32",
        )
    ]
    if process is None:
        return [*rows, not_run(what, more, "times", "needs torch and Linux; seconds")]
    ratio = kilobytes(process) / size[_OURS]
    holds = ratio > paper["times_pytorch"]
    return [*rows, claim(what, ratio, more, "times", holds=holds)]


def _fits(size: Mapping[str, float], paper: Mapping[str, Any]) -> list[Row]:
    board, small = paper["board_kb"], paper["sparse_board_kb"]
    bound = "a lower bound: an implementation of back-propagation takes more"
    return [
        claim(_OURS, size[_OURS], f"at most {board}", "KB", holds=size[_OURS] <= board),
        claim(_INT8, size[_INT8], f"more than {board}", "KB", holds=size[_INT8] > board, why=bound),
        claim(_SPARSE, size[_SPARSE], f"at most {small}", "KB", holds=size[_SPARSE] <= small),
    ]


def _plot(data: Mapping[str, Any], *, ax: Any = None) -> Any:
    """Draw a bar for every method, the paper's two figures, and the two boards."""
    paper = published(STUDY.name)
    boards = (paper["sparse_board_kb"], paper["board_kb"])
    printed = {
        _FLOAT: 1024 * paper["bp_mb"],
        _INT8: paper["times_quantized_bp"] * paper["bp_free_kb"],
        _OURS: paper["bp_free_kb"],
    }
    return draw_memory(data, printed=printed, boards=boards, ax=ax)


STUDY = Study(
    "memory-overview", "Figure 1b", "Training memory by method", _measure, _compare, _plot
)
