"""Which TFLite operators become what, and what to do about those that cannot."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from pmt.formats.tflite import elementwise, layers, poolings, shapes
from pmt.formats.tflite.file import Unsupported
from pmt.formats.tflite.network import Step, is_shape_value
from pmt.formats.tflite.paddings import pad

__all__ = ["CONVERTERS", "check_kind", "convert"]

CONVERTERS: dict[str, Callable[[Step], None]] = {
    "CONV_2D": layers.conv_2d,
    "DEPTHWISE_CONV_2D": layers.depthwise_conv_2d,
    "FULLY_CONNECTED": layers.fully_connected,
    "ADD": elementwise.add,
    "SUB": elementwise.subtract,
    "MUL": elementwise.multiply,
    "QUANTIZE": elementwise.requantize,
    "RELU": partial(elementwise.bounded, low=0.0, high=None),
    "RELU6": partial(elementwise.bounded, low=0.0, high=6.0),
    "RELU_N1_TO_1": partial(elementwise.bounded, low=-1.0, high=1.0),
    "RELU_0_TO_1": partial(elementwise.bounded, low=0.0, high=1.0),
    "MAXIMUM": partial(elementwise.limited, below=True),
    "MINIMUM": partial(elementwise.limited, below=False),
    "AVERAGE_POOL_2D": partial(poolings.pool, kind="average_pool"),
    "MAX_POOL_2D": partial(poolings.pool, kind="max_pool"),
    "MEAN": poolings.mean,
    "REDUCE_MAX": poolings.reduce_max,
    "PAD": pad,
    "PADV2": pad,
    "RESHAPE": shapes.reshape,
    "SQUEEZE": shapes.squeeze,
    "EXPAND_DIMS": shapes.expand_dims,
    "TRANSPOSE": shapes.transpose,
}

_USE_RELU = "use RELU or RELU6 in its place and train again"
_USE_ADD = "join branches with ADD"
_CLASSIFIERS = "only networks that classify images are trained here; cut it off"
_AT_THE_ENDS = "it is dropped at the ends of the network only; convert all of it to int8"
_REMEDIES = {
    **dict.fromkeys(
        ("LOGISTIC", "HARD_SWISH", "TANH", "LEAKY_RELU", "PRELU", "ELU", "GELU", "ABS"), _USE_RELU
    ),
    **dict.fromkeys(("CONCATENATION", "SPLIT", "SPLIT_V", "PACK", "UNPACK"), _USE_ADD),
    **dict.fromkeys(
        ("RESIZE_BILINEAR", "RESIZE_NEAREST_NEIGHBOR", "TRANSPOSE_CONV", "ARG_MAX"), _CLASSIFIERS
    ),
    **dict.fromkeys(("SOFTMAX", "LOG_SOFTMAX", "DEQUANTIZE"), _AT_THE_ENDS),
    **dict.fromkeys(
        ("SPACE_TO_BATCH_ND", "BATCH_TO_SPACE_ND"),
        "only one convolution, VALID and of stride 1, may stand between the two",
    ),
    **dict.fromkeys(("WHILE", "IF", "CALL_ONCE"), "convert without control flow"),
}
_ELSE = "replace it by operators of the list in docs/guides/importers.md"


def check_kind(step: Step) -> None:
    """Raise Unsupported if nothing is known of the operator's kind, or it has several outputs."""
    if len(step.op.outputs) != 1 or step.output < 0:
        raise Unsupported(f"has {len(step.op.outputs)} outputs", "operators with one are imported")
    sizes = is_shape_value(step.network.model.tensors[step.output])
    if step.op.kind not in CONVERTERS and not sizes:
        raise Unsupported(
            "this operator has no counterpart here", _REMEDIES.get(step.op.kind, _ELSE)
        )


def convert(step: Step) -> None:
    """Append what an operator computes to the network.

    Raises
    ------
    Unsupported
        If a shape, an option, a type or a quantization is not supported.
    """
    if is_shape_value(step.network.model.tensors[step.output]):
        shapes.evaluate_sizes(step)
    else:
        CONVERTERS[step.op.kind](step)
