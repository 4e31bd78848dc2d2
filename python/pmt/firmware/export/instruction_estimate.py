"""Instructions of ops, estimated from their multiply-accumulates where nothing is emulated."""

from __future__ import annotations

from pmt import _core

__all__ = ["INSTRUCTIONS_OF_A_MAC", "estimated_instructions"]

# As `pmt profile --instructions` counts on a Cortex-M7, by kernels and kind of op: convolutions of
# `cifar10_mcunet`, rounded up by what its adds and mean take, and the head of
# `fashion_mnist_dscnn`. Tests hold the counts to them.
INSTRUCTIONS_OF_A_MAC = {
    "arm_dsp": {"conv2d": 1.45, "depthwise_conv2d": 2.65, "fully_connected": 4.9},
    "portable": {"conv2d": 5.6, "depthwise_conv2d": 11.0, "fully_connected": 6.9},
}


def estimated_instructions(model: _core.Model, kernels: str) -> list[int]:
    """Estimate what each op of a forward takes.

    Parameters
    ----------
    model : _core.Model
        The network.
    kernels : str
        A key of :data:`INSTRUCTIONS_OF_A_MAC`.

    Returns
    -------
    list of int
        Instructions of each op; 0 of those without multiply-accumulates.
    """
    of_a_mac = INSTRUCTIONS_OF_A_MAC[kernels]
    return [round(op["macs"] * of_a_mac.get(op["kind"], 0.0)) for op in model.ops()]
