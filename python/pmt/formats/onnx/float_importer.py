"""Importer of float ONNX classifiers, which :func:`pmt.quantization.quantize_graph` makes int8."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from pmt._util.checks import checked_word
from pmt.formats.onnx.draft import OPEN, Draft, DraftOp
from pmt.formats.onnx.lowering import QUANTIZED_INPUTS, graph_fields, read_draft
from pmt.net.float_graph import (
    ACTIVATION_BOUNDS,
    FloatGraph,
    FloatOp,
    FloatTensor,
    check_float_graph,
)
from pmt.net.pixels import MOST_PIXEL_CHANNELS, Numbers, PixelFormula, given_formula

_NAMES = {bounds: name for name, bounds in ACTIVATION_BOUNDS.items()}


def read(
    path: str | Path,
    *,
    input_mean: Numbers = None,
    input_std: Numbers = None,
    order: str = "",
) -> FloatGraph:
    """Read a float ONNX network, as ``torch.onnx.export`` or tf2onnx write it.

    Batch norm, additions and products by constants are folded into the layers; padding into the
    layers that read it. Activations become height, width, channels, whatever the file's layout.
    Weights of any float type become float32. docs/guides/importers_onnx.md lists the operators.

    It is of opset 9 or later, with one image as input and class scores or features as output;
    external data lie inside its folder. `input_mean` and `input_std` are those of the *file's*
    input, (pixel - mean) / std, in units of a 0..255 pixel: one number each or one per channel.
    Without them mean 0 and std 255, inputs in 0..1 (torchvision's ``ToTensor``); std 1 where the
    file's input is uint8. Normalization at the start of the network itself is joined with it. A
    softmax at the end is left out, and listed under ``dropped_operators`` of the metadata. `order`
    names the axes of the file's input: NCHW, NHWC, NCW, NWC or NC; by default they are found.

    One ValueError names everything that is damaged, quantized already, or not supported.
    """
    checked_word("order", order, ("", "NC", "NWC", "NCW", "NHWC", "NCHW"))
    path = Path(path)
    model, draft, output = read_draft(path, quantized=False, order=order)
    default_std = 1.0 if model.input_dtype in QUANTIZED_INPUTS else 255.0
    pixels = _pixels(draft, input_mean, input_std, default_std)
    with np.errstate(over="ignore"):  # check_float_graph refuses what is not finite
        ops = [_float_op(op) for op in draft.ops]
    graph = FloatGraph(
        tensors=[FloatTensor(tensor.name, *tensor.size) for tensor in draft.tensors],
        ops=ops,
        **graph_fields(draft, output, pixels, path.name),
    )
    try:
        check_float_graph(graph)
    except ValueError as error:
        raise ValueError(f"{path.name}: {error}") from None
    return graph


def _pixels(draft: Draft, mean: Numbers, std: Numbers, default_std: float) -> PixelFormula:
    """Return the formula of pixels, an empty one for more channels than an image has."""
    channels = draft.tensors[0].size[2]
    if channels <= MOST_PIXEL_CHANNELS:
        return given_formula(channels, mean, std, draft.factor, draft.offset, default_std)
    for name, value in (("input_mean", mean), ("input_std", std)):
        if value is not None:
            raise ValueError(
                f"{name}={value}: the network reads {channels} channels, more than the "
                f"{MOST_PIXEL_CHANNELS} of pixels; leave it out"
            )
    return PixelFormula((), ())


def _float_op(op: DraftOp) -> FloatOp:
    return FloatOp(
        **op.base_fields(),
        activation="none" if op.bounds == OPEN else _NAMES.get(op.bounds, op.bounds),
        weights=None if op.weights is None else op.weights.astype(np.float32, copy=False),
        bias=None if op.bias is None else op.bias.astype(np.float32),
    )
