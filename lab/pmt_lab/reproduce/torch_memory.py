"""Memory of a process in which PyTorch trains."""

from __future__ import annotations

import sys

from pmt._util.extras import import_extra
from pmt._util.processes import run_process

__all__ = ["torch_step_bytes"]

# One step of float32 back-propagation through every layer, and the most that the process ever held.
_SCRIPT = """
import sys
import numpy as np
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


def torch_step_bytes(network: str) -> int | None:
    """Return the peak memory of a process that makes one training step of one image in PyTorch.

    None where torch is missing, or where the system is not Linux.
    """
    if not sys.platform.startswith("linux"):
        return None
    try:
        import_extra("torch", "this measurement needs torch", "torch")
    except ModuleNotFoundError:
        return None
    remedy = "torch must work, and it takes a gigabyte of memory"
    made = run_process([sys.executable, "-c", _SCRIPT, network], "a step of torch", remedy)
    return 1024 * int(made)
