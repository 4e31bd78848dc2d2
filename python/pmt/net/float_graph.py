"""A float network as Python data, its checks, and the folding of a batch norm into a layer."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

import numpy as np
import numpy.typing as npt

from pmt._util.arrays import Array, FloatArray
from pmt._util.checks import check_type, refuse_mask
from pmt._util.text import counted
from pmt.net.graph import BaseGraph, BaseTensor, Graph, channel_axis, check_is_graph, is_layer
from pmt.net.ops import ACTIVATED_KINDS, BaseOp

Bounds = tuple[float, float]
Activation = Literal["none", "relu", "relu6"]

ACTIVATION_BOUNDS: dict[Activation, Bounds] = {
    "none": (-np.inf, np.inf),
    "relu": (0.0, np.inf),
    "relu6": (0.0, 6.0),
}
FEWEST_IMAGES = 8
_WEIGHT_RANK = {"conv2d": 4, "depthwise_conv2d": 3, "fully_connected": 2}

Parameters = npt.NDArray[np.floating]


@dataclass(frozen=True)
class FloatTensor(BaseTensor):
    """One activation: its name and its shape without the batch."""


@dataclass
class FloatOp(BaseOp):
    """One operation with float32 parameters. Tensors are indices into the graph's.

    Layouts are those of :class:`pmt.net.graph.Op`: weights ``(out, kernel_h, kernel_w, in)`` for
    ``conv2d``, ``(kernel_h, kernel_w, out)`` for ``depthwise_conv2d``, ``(out, in)`` for
    ``fully_connected``; bias ``(out,)``; ``padding`` is top, left, bottom, right. ``activation`` is
    applied to the output and becomes the clamp of the quantized op: the name of a function, or
    explicit bounds ``(low, high)``, either of which may be infinite.
    """

    activation: Activation | Bounds = "none"
    weights: FloatArray | None = None
    bias: FloatArray | None = None

    @property
    def bounds(self) -> Bounds:
        """Lowest and highest value that the activation lets through."""
        if isinstance(self.activation, str):
            return ACTIVATION_BOUNDS[self.activation]
        return self.activation


@dataclass
class FloatGraph(BaseGraph[FloatTensor, FloatOp]):
    """A float network, ops in execution order.

    ``input_mean`` and ``input_std`` are per channel, in units of a 0..255 pixel: the network's
    input is ``(pixel - mean) / std``. Both are empty where it reads no pixels: what stands for
    images is then float32, the input itself. ``blocks`` and ``metadata`` are handed on to the
    :class:`pmt.net.graph.Graph`.
    """

    @property
    def reads_pixels(self) -> bool:
        """Whether the input is made of pixels."""
        return bool(self.input_mean)


def check_is_float(graph: object, argument: str = "graph") -> None:
    """Raise a TypeError if the value is no float graph."""
    rule = "a pmt.quantization.FloatGraph; pmt.quantization.dequantize(graph) makes one"
    check_type(argument, graph, FloatGraph, rule)


def check_float_graph(graph: FloatGraph) -> None:
    """Raise ValueError, naming every op, where parameters are missing, misshapen or not finite."""
    check_is_float(graph)
    raise_all(graph_problems(graph))


def check_calibration(graph: FloatGraph, images: Array) -> None:
    """Raise ValueError with all that is wrong with a graph and its calibration images."""
    check_is_float(graph)
    problems = graph_problems(graph)
    try:
        check_images(graph, images)
    except ValueError as error:
        problems.append(str(error))
    else:
        if len(images) < FEWEST_IMAGES:
            problems.append(
                f"the calibration set has {counted(len(images), 'image')}, but must have at least "
                f"{FEWEST_IMAGES}, because the range of an activation over so few says little "
                "about other images, which then saturate: give some hundred typical images"
            )
    raise_all(problems)


def check_images(graph: FloatGraph, images: Array) -> None:
    """Raise ValueError unless images are uint8, float32 if no pixels, of the network's shape."""
    check_is_float(graph)
    refuse_mask("images", images)
    check_type("images", images, np.ndarray, "an array of images (N, H, W, C)")
    shape = graph.tensors[graph.input].shape
    dtype = np.dtype(np.uint8 if graph.reads_pixels else np.float32)
    if images.dtype != dtype or images.ndim != 4 or images.shape[1:] != shape or not len(images):
        raise ValueError(
            f"images are {images.dtype} of shape {images.shape}, but the network reads {dtype} "
            f"images (N, {shape[0]}, {shape[1]}, {shape[2]}) with N at least 1: convert them first"
        )


def check_same_ops(float_graph: FloatGraph, graph: Graph) -> None:
    """Raise ValueError if ``graph`` is not a quantized ``float_graph``."""
    check_is_float(float_graph, "float_graph")
    check_is_graph(graph)
    if [op.name for op in float_graph.ops] != [op.name for op in graph.ops]:
        raise ValueError(
            f"graph has {len(graph.ops)} ops that are not the {len(float_graph.ops)} of "
            "float_graph: pass the graph that quantize_graph() made of this float_graph"
        )


def graph_problems(graph: FloatGraph) -> list[str]:
    """Return all that is wrong with a graph, a message each."""
    problems = []
    if 0.0 in graph.input_std:
        problems.append(
            f"input_std is {graph.input_std}, but must not be zero: pass the spread "
            "of the pixels, in units of 0..255"
        )
    for op in graph.ops:
        problems += _activation_problems(op)
        if is_layer(op):
            problems += _parameter_problems(op, graph.tensors[op.output].channels)
    return problems


def require_steps(name: str, bounds: Bounds, clamp: tuple[int, int], scale: float) -> None:
    """Raise ValueError where a clamp leaves one int8 value only; ``name`` says whose it is."""
    if clamp[0] == clamp[1]:
        raise ValueError(
            f"{name} is clipped to [{bounds[0]:.3g}, {bounds[1]:.3g}], where its scale "
            f"{scale:.3g} has one step only: all its outputs are equal; take it out of the float "
            "network, with what reads nothing else"
        )


def raise_all(problems: list[str]) -> None:
    """Raise one ValueError with all problems, if there are any."""
    if len(problems) == 1:
        raise ValueError(problems[0])
    if problems:
        raise ValueError(f"{len(problems)} problems:\n" + "\n".join(f"- {p}" for p in problems))


def _activation_problems(op: FloatOp) -> Iterator[str]:
    if isinstance(op.activation, str) and op.activation not in ACTIVATION_BOUNDS:
        yield (
            f"op {op.name!r}: activation {op.activation!r} is unknown, "
            f"use one of {', '.join(map(repr, ACTIVATION_BOUNDS))}, or bounds (low, high)"
        )
        return
    if len(op.bounds) != 2 or not op.bounds[0] < op.bounds[1]:
        yield (
            f"op {op.name!r}: activation {op.activation!r} must be a name or two bounds "
            "(low, high), the lower one first"
        )
    if op.activation != "none" and op.kind not in ACTIVATED_KINDS:
        yield (
            f"op {op.name!r}: activation {op.activation!r} cannot be fused into {op.kind}, "
            f"move it to the op before (one of {', '.join(ACTIVATED_KINDS)})"
        )


def _parameter_problems(op: FloatOp, channels: int) -> Iterator[str]:
    what = f"op {op.name!r} ({op.kind})"
    if op.weights is None:
        yield f"{what}: weights are missing, pass a float32 array"
        return
    rank, axis = _WEIGHT_RANK[op.kind], channel_axis(op.kind)
    if op.weights.ndim != rank or op.weights.shape[axis] != channels:
        yield (
            f"{what}: weights have shape {op.weights.shape}, but must have {rank} axes with the "
            f"{channels} output channels on axis {axis}"
        )
    if op.bias is not None and op.bias.shape != (channels,):
        yield f"{what}: bias has shape {op.bias.shape}, but must have ({channels},)"
    for name, values in (("weights", op.weights), ("bias", op.bias)):
        if values is None or np.all(np.isfinite(values)):
            continue
        count = int(np.sum(~np.isfinite(values)))
        verb = "value that is" if count == 1 else "values that are"
        yield (
            f"{what}: {name} hold {'a' if count == 1 else f'{count:,}'} {verb} not finite, "
            "retrain or repair"
        )
