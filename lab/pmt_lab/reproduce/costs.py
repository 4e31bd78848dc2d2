"""Work, memory and latency of training methods on the paper's network, as its tables show them."""

import json
import shutil
import subprocess
import sys
from collections.abc import Mapping
from typing import Any

from joblib import Memory

import pmt
from pmt.baselines.backprop.scheme import head_layer
from pmt.model import Model, load
from pmt.profiling.profile import analytic_bytes, profile_method, profiled_method
from pmt.train.costs.memory import PARTS, inference_moments
from pmt_lab.reproduce.study import (
    COMPUTE,
    MEMORY,
    Context,
    Data,
    Quantity,
    Row,
    Scale,
    at_least,
    beside,
    compared,
    not_run,
    projected,
)

NETWORK = "cifar10_mcunet"
QUERIES = 50
# Back-propagation is the same work and needs the same memory for everybody: only counts differ.
BP_MEMORY = Quantity("KB", 0.01, relative=True)
_BP_COMPUTE = Quantity("MMAC", 0.01, relative=True)
# 1,000 images, one per step, 50 epochs: the paper's end-to-end times are its latencies times this.
_ITERATIONS = 50_000
_NO_BOARD = "no board was measured"
_TOOLS = ("arm-none-eabi-g++", "make", "qemu-system-arm")

Methods = Mapping[str, tuple[str, str]]


def kilobytes(size: float) -> float:
    """Return bytes as the KB of 1,024 bytes that the paper counts."""
    return size / 1024


def training_costs(model: Model, methods: Methods, queries: int = QUERIES) -> dict[str, Any]:
    """Count the work of a step for one image, with as many queries for each layer.

    ``methods`` are method and layers by the name under which they are shown. Returns JSON values:
    bytes of the network, and work and memory of every method.
    """
    convolutions = _convolutions(model)
    peak = max(inference_moments(model), key=lambda moment: moment.total)
    return {
        "network": NETWORK,
        "queries": queries,
        "parameter_bytes": sum(x.weights + 4 * x.biases for x in model.layers),
        "inference_bytes": peak.total,
        "image_bytes": _size(model.input_shape),
        "output_values": sum(_size(x.output_shape) for x in convolutions),
        "convolution_macs": sum(x.macs for x in convolutions),
        "methods": {
            shown: _costs(model, name, layers, queries) for shown, (name, layers) in methods.items()
        },
    }


def _costs(model: Model, method: str, layers: str, queries: int) -> dict[str, Any]:
    fixed = profiled_method(method).own_layers
    own: dict[str, Any] = {} if fixed else {"layers": layers, "queries": queries}
    profile = profile_method(model, method, batch=1, **own)
    parts = {part: getattr(profile.memory, part) for part in PARTS}
    return {
        "method": profile.method,
        "layers": len(profile.layers),
        "macs": profile.work.macs,
        "forward_macs": profile.work.forward_macs,
        "forwards": profile.work.forwards,
        "analytic_bytes": analytic_bytes(model, profile),
        "bytes": profile.memory.sram,
        "parts": {part: size for part, size in parts.items() if size},
    }


def _convolutions(model: Model) -> list[Any]:
    head = head_layer(model)
    return [layer for layer in model.layers if layer.index != head]


def _size(shape: tuple[int, int, int]) -> int:
    return shape[0] * shape[1] * shape[2]


def step_costs(
    methods: Methods, layers: str, board: str, scale: Scale, context: Context
) -> dict[str, Any]:
    """Return the costs of methods, and for the paper's method those that its tables print and time.

    ``printed_macs`` are the multiply-accumulates of a step on these layers as the paper comes to
    them; ``instructions`` those counted for a board, at full scale, see :func:`latency_rows`.
    """
    model = load(NETWORK)
    counted = _instructions(NETWORK, layers, QUERIES, board, context) if scale == "full" else None
    return {
        **training_costs(model, methods),
        "printed_macs": _printed_macs(model, layers),
        "instructions": counted,
    }


def _printed_macs(model: Model, layers: str) -> float:
    """Round the forward and the sum of the suffixes to a tenth of a million, then multiply."""
    convolutions, chosen = _convolutions(model), model.select_layers(layers)
    forward = sum(x.macs for x in convolutions)
    suffixes = sum(x.macs for first in chosen for x in convolutions if x.index >= first)
    return float(1e5 * (round(forward / 1e5) + QUERIES * round(suffixes / 1e5)))


def _instructions(
    network: str, layers: str, queries: int, target: str, context: Context
) -> dict[str, Any] | None:
    """Count a forward and a step of one image with the paper's method; None without the tools.

    The command `pmt profile --instructions` does it; its figures are kept in the study's folder.
    """
    words = ["profile", network, "--instructions", "--method", "paper", "--layers", layers]
    words += ["--queries", str(queries), "--target", target]
    count = Memory(context.folder / pmt.__version__, verbose=0).cache(_counted)
    if not count.check_call_in_cache(words, target):
        if context.collect or any(shutil.which(tool) is None for tool in _TOOLS):
            return None
        context.tell(f"pmt {' '.join(words)}")
    figures: dict[str, Any] = count(words, target)
    return figures


def _counted(words: list[str], target: str) -> dict[str, Any]:
    command = [sys.executable, "-m", "pmt", *words, "--json", "-"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        raise OSError(f"pmt {' '.join(words)} failed: {done.stderr.strip()}")
    figures = json.loads(done.stdout)
    counts = figures["instructions"][0]
    return {
        "target": target,
        "megahertz": figures["latency"]["clock_mhz"],
        "kernels": counts["kernels"],
        "forward": counts["forward_instructions"],
        "step": sum(part["instructions"] for part in counts["step"].values()),
    }


def inference_peak_row(data: Data, paper: Data, method: str) -> Row:
    """Compare the memory of the parameters that a method trains and the peak of inference."""
    return at_least(
        "BP-free memory, parameters and peak of inference",
        kilobytes(data["methods"][method]["analytic_bytes"]),
        paper["bp_free_kb"],
        MEMORY,
        why=f"{kilobytes(data['inference_bytes']):.0f} KB are alive at the peak of "
        f"inference, for the paper's {paper['inference_kb']}",
    )


def compute_rows(
    data: Data, paper: Data, *, backward: tuple[str, str], ours: str, uncounted: str
) -> list[Row]:
    """Compare multiply-accumulates of back-propagation and of the paper's method.

    ``data`` is what :func:`step_costs` returned, ``paper`` the published numbers. ``backward`` is
    the method of back-propagation in ``data`` and the row's text, ``ours`` the paper's method
    there; ``uncounted`` says which work of the device the paper does not count.
    """
    (method, shown), free = backward, data["methods"][ours]
    no_formula = (
        "a forward, gradients by inputs back to the first of these layers, and by their weights; "
        "no formula that was tried gives the printed figure"
    )
    macs = {
        "BP-free compute, forward and queries": free["forward_macs"],
        "BP-free compute, rounded as printed before it is multiplied": data["printed_macs"],
    }
    counted = data["methods"][method]["macs"] / 1e6
    return [
        compared(shown, counted, paper["bp_mmac"], _BP_COMPUTE, why=no_formula),
        *(compared(what, n / 1e6, paper["bp_free_mmac"], COMPUTE) for what, n in macs.items()),
        beside(
            "BP-free compute, all that a device does",
            free["macs"] / 1e6,
            COMPUTE.unit,
            why=f"{uncounted}: the paper does not count these",
        ),
    ]


def latency_rows(counted: Data | None, paper: Data, key: str) -> list[Row]:
    """Return the rows of BP-free latency and time, which are printed as ``KEY_ms`` and ``KEY_s``.

    They are projected from counted instructions. That is not a measurement: their verdict says so.
    """
    latency, total, ratio = (
        "BP-free latency",
        "BP-free end-to-end time",
        "BP-free step over an inference",
    )
    printed, seconds = paper[f"{key}_ms"], paper[f"{key}_s"]
    if counted is None:
        why = f"{_NO_BOARD}; to count instructions needs arm-none-eabi-g++ and qemu-system-arm"
        return [
            not_run(latency, printed, "ms", why),
            not_run(total, seconds, "s", why),
            not_run(ratio, None, "forwards", why),
        ]
    ms = counted["step"] / counted["megahertz"] / 1e3
    why = (
        f"{_NO_BOARD}: {counted['step']:,} instructions counted under QEMU, projected at one a "
        f"cycle of {counted['megahertz']:.0f} MHz"
    )
    times = " or ".join(f"{printed / n:.1f} times the {n} ms" for n in paper["inference_ms"])
    of_inference = f"the paper's latency is {times} of its inference, which it prints twice"
    forwards, whole = counted["step"] / counted["forward"], ms * _ITERATIONS / 1e3
    return [
        projected(latency, ms, printed, "ms", why=why),
        projected(total, whole, seconds, "s", why=f"{why}, times {_ITERATIONS:,} steps"),
        beside(ratio, forwards, "forwards", why=f"in instructions; {of_inference}"),
    ]
