"""Figure 1b: memory of full-model and of sparse training by method."""

import subprocess
import sys
from collections.abc import Mapping
from importlib.util import find_spec
from typing import Any

from pmt.model import load
from pmt_lab.reproduce.costs import NETWORK, kilobytes, training_costs
from pmt_lab.reproduce.drawing import draw_memory
from pmt_lab.reproduce.study import (
    MEMORY,
    Context,
    Data,
    Quantity,
    Row,
    Scale,
    Study,
    at_least,
    claim,
    compared,
    not_run,
    published,
)

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
# One step of float32 back-propagation through every layer, and the most that the process ever held.
_TORCH_STEP = """
import sys
import torch
import pmt
from pmt.baselines.backprop.networks import FloatNetwork
model = pmt.load(sys.argv[1])
network = FloatNetwork(model)
optimizer = torch.optim.SGD(network.parameters(), lr=0.01)
images = torch.zeros((1, *model.input_shape))
loss = torch.nn.functional.cross_entropy(network(images), torch.zeros(1, dtype=torch.int64))
loss.backward()
optimizer.step()
with open("/proc/self/status") as status:
    print(next(line.split()[1] for line in status if line.startswith("VmHWM")))
"""


def _measure(scale: Scale, context: Context) -> dict[str, Any]:
    costs = training_costs(load(NETWORK), _METHODS)
    return {**costs, "torch_process_bytes": _torch_step_bytes() if scale == "full" else None}


def _torch_step_bytes() -> int | None:
    """Return the peak memory of a process that makes one training step of one image in PyTorch.

    None where torch is missing, or where the system is not Linux.
    """
    if not sys.platform.startswith("linux") or find_spec("torch") is None:
        return None
    command = [sys.executable, "-c", _TORCH_STEP, NETWORK]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        what = "torch must work, and it takes a gigabyte of memory"
        raise OSError(f"a step of torch failed: {done.stderr.strip()}; {what}")
    return 1024 * int(done.stdout)


def _compare(data: Data, paper: Data) -> list[Row]:
    size = {name: kilobytes(cost["bytes"]) for name, cost in data["methods"].items()}
    inference = kilobytes(data["inference_bytes"])
    parameters = kilobytes(data["parameter_bytes"])
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
        at_least(
            "BP int8 over BP-free, all layers",
            size[_INT8] / size[_OURS],
            paper["times_quantized_bp"],
            _RATIO,
            why="with what must be alive at once in BP; the paper's 3,650 KB hold every "
            "convolution's output in float32",
        ),
        _torch_row(data["torch_process_bytes"], size[_OURS], paper["times_pytorch"]),
        *_fits(size, paper),
    ]


def _torch_row(process: int | None, ours: float, theirs: float) -> Row:
    what, more = "PyTorch's process over BP-free, all layers", f"more than {theirs}"
    if process is None:
        return not_run(what, more, "times", "needs torch and Linux; seconds")
    ratio = kilobytes(process) / ours
    return claim(what, ratio, more, "times", holds=ratio > theirs)


def _fits(size: Mapping[str, float], paper: Data) -> list[Row]:
    board, small = paper["board_kb"], paper["sparse_board_kb"]
    bound = "a lower bound: an implementation of back-propagation takes more"
    return [
        claim(_OURS, size[_OURS], f"at most {board}", "KB", holds=size[_OURS] <= board),
        claim(_INT8, size[_INT8], f"more than {board}", "KB", holds=size[_INT8] > board, why=bound),
        claim(_SPARSE, size[_SPARSE], f"at most {small}", "KB", holds=size[_SPARSE] <= small),
    ]


def _plot(data: Data, *, ax: Any = None) -> Any:
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
