"""Importer of int8 ONNX classifiers in the QDQ form (QuantizeLinear, DequantizeLinear).

Each op between a DequantizeLinear and a QuantizeLinear becomes one integer op with the file's own
weights and scales. An engine that computes these nodes in float, one after the other, differs by
at most 1 per layer: where a float sum falls on the other side of a rounding tie.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import numpy.typing as npt

from pmt.formats.layers import UNIT_WEIGHT, check_imported, settle_ties, unit_layer
from pmt.formats.notes import noted_metadata
from pmt.formats.onnx.draft import OPEN, Draft, DraftOp, DraftTensor, Quantization, quantize_before
from pmt.formats.onnx.lowering import graph_fields, read_draft
from pmt.net.float_graph import require_steps
from pmt.net.graph import Graph, Op, Tensor, channel_shape, is_layer
from pmt.net.ops import JOINING_KINDS, KEEPING_KINDS
from pmt.net.pixels import (
    MOST_PIXEL_CHANNELS,
    Numbers,
    PixelFormula,
    pixel_formula,
    real_ends,
)

_COARSEST = 2  # steps of an average's output that a step of its input may be
_MOST_CUT = 1.0  # steps that the ends of an averaged input may lose
_LARGEST_BIAS = 2.0**31 - 1
_MOST_MOVED = 1.0  # steps of a layer's output that rounding its bias may move it
_FINER_BIAS = (
    "quantize again, calibrated on real data and with quantized biases (quantize_static does), or "
    "give the float network to `pmt quantize`"
)
_FINE = 64  # parts of a step of the output that a bias is held to where weights leave room


def read(path: str | Path, *, input_mean: Numbers = None, input_std: Numbers = None) -> Graph:
    """Read an int8 ONNX network in QDQ form, as ``quantize_static`` of ONNX Runtime writes it.

    Activations are int8 or uint8 (which becomes int8, 128 lower), weights symmetric with one scale
    or one per channel, biases int32 or float. ``input_mean`` and ``input_std`` are those of the
    file's real input, (pixel - mean) / std, in units of a 0..255 pixel. With one, the other is mean
    0 or std 255; with neither, the usual ones whose range the input's scale and zero point cover,
    see :func:`pmt.net.pixels.pixel_formula`.

    A softmax at the end is left out (``dropped_operators`` of the metadata). One ValueError names
    all nodes and options that are not supported.
    """
    path = Path(path)
    model, draft, output = read_draft(path, quantized=True)
    averaged = _settle_scales(draft, path.name)
    tensors = [
        Tensor(tensor.name, *tensor.size, *_quantization(draft, index))
        for index, tensor in enumerate(draft.tensors)
    ]
    pixels = pixel_formula(
        tensors,
        input_mean,
        input_std,
        factor=draft.factor[:MOST_PIXEL_CHANNELS],
        offset=draft.offset[:MOST_PIXEL_CHANNELS],
        note=model.note,
        stored=model.input_dtype,
    )
    if averaged is not None:
        known = input_mean is not None or input_std is not None
        _require_covered(draft, averaged, pixels if known else None, path.name)
    graph = Graph(
        tensors=tensors,
        ops=[_op(draft, op, path.name) for op in draft.ops],
        **graph_fields(draft, output, pixels, path.name),
        pixels_assumed=pixels.assumed,
    )
    graph.metadata = {**noted_metadata(model.note), **graph.metadata}
    check_imported(graph, path.name)
    settle_ties(graph.ops, tensors)
    return graph


def _settle_scales(draft: Draft, source: str) -> DraftOp | None:
    """Give every activation a scale; where a pool, pad or reshape changes it, add a layer.

    A pool is returned that averages the input in float, so that the input has the pool's scale.
    """
    tensors = draft.tensors
    borrowed = _borrow_scales(draft, source)
    averages = [op for op in draft.ops if op.kind == "average_pool" and 0 in op.inputs]
    ops: list[DraftOp] = []
    for op in draft.ops:
        first, last = tensors[op.inputs[0]], tensors[op.output]
        ops.append(op)
        if op.kind not in KEEPING_KINDS:
            continue
        if last.quantization is None:
            last.quantization = first.quantization
        elif last.quantization == first.quantization:
            continue
        elif op.kind == "average_pool" and not any(op.padding):
            _averaging(draft, op)
        else:
            if op.kind == "average_pool":
                _require_near(op, first, last, source)
            ops.append(_requantized(draft, op))
    draft.ops = ops
    bare = [tensor.origin for tensor in tensors if tensor.quantization is None]
    if bare:
        named = ", ".join(dict.fromkeys(origin.text for origin in bare[:8]))
        raise ValueError(
            f"{source}: no QuantizeLinear follows {named}: every activation needs one, the "
            f"network's output too; {quantize_before(*bare)}"
        )
    return averages[0] if averages and 0 in borrowed else None


def _borrow_scales(draft: Draft, source: str) -> set[int]:
    """Give activations read in float the scale of a later one, and return those of them.

    Averages may have a smaller range than their input: only the network's input gets their scale.
    """
    tensors = draft.tensors
    borrowed: set[int] = set()
    for op in reversed(draft.ops):
        given = tensors[op.output].quantization
        if op.kind not in (*KEEPING_KINDS, *JOINING_KINDS) or given is None:
            continue
        for index in op.inputs:
            own = tensors[index].quantization
            if own is None:
                if op.kind != "average_pool" or index == 0:
                    tensors[index].quantization = given
                    borrowed.add(index)
            elif index in borrowed and own != given:
                origin = draft.origin(index)
                raise ValueError(
                    f"{source}: {op.origin.text} reads {origin.text} in float, which is "
                    f"quantized after it with the scale {given[0]:.3g}, and elsewhere with "
                    f"{own[0]:.3g}: {quantize_before(origin, op.origin)}"
                )
    return borrowed


def _require_covered(
    draft: Draft, averaging: DraftOp, pixels: PixelFormula | None, source: str
) -> None:
    """Refuse an average of the input in float unless its scale holds all pixels, by a formula.

    A formula that was found from the scale says nothing.
    """
    scale, zero = _quantization(draft, 0)
    origin = draft.tensors[0].origin
    beyond = "values of the input may go beyond"
    quantized = quantize_before(origin)
    remedy = f"say by input_mean and input_std that pixels do not, or {quantized}"
    if pixels is not None:
        ends = np.array(real_ends(pixels))
        steps = ends / scale + zero
        if steps.min() >= -128 - _MOST_CUT and steps.max() <= 127 + _MOST_CUT:
            return
        beyond = f"pixels go from {ends.min():.3g} to {ends.max():.3g}"
        remedy = quantized
    low, high = ((step - zero) * scale for step in (-128, 127))
    raise ValueError(
        f"{source}: {averaging.origin.text} averages {origin.text} in float, and only the averages "
        f"have a scale, for {low:.3g} to {high:.3g}: {beyond}, and would be cut before they are "
        f"averaged; {remedy}"
    )


def _require_near(op: DraftOp, first: DraftTensor, last: DraftTensor, source: str) -> None:
    """Refuse a fine scale after a padded average: rounded twice, values would be steps off."""
    assert first.quantization is not None
    assert last.quantization is not None
    if first.quantization[0] > _COARSEST * last.quantization[0]:
        raise ValueError(
            f"{source}: {op.origin.text} averages a padded map of scale "
            f"{first.quantization[0]:.3g} and has the scale {last.quantization[0]:.3g}: at most "
            f"{_COARSEST} times as fine is supported; quantize both with one scale, or set "
            "count_include_pad"
        )


def _averaging(draft: Draft, op: DraftOp) -> None:
    """Turn an average into a layer of equal weights, which rounds once where a pool would twice."""
    channels, taps = draft.tensors[op.output].size[2], op.kernel[0] * op.kernel[1]
    op.kind, op.fixed = "depthwise_conv2d", True
    op.weights = np.full((*op.kernel, channels), UNIT_WEIGHT, np.int8)
    op.scales, op.bias = np.full(channels, 1 / (UNIT_WEIGHT * taps)), np.zeros(channels)


def _requantized(draft: Draft, op: DraftOp) -> DraftOp:
    """Let an op write an activation of its input's scale, and return the layer to its own."""
    size, channels = draft.tensors[op.output].size, draft.tensors[op.output].size[2]
    between = draft.tensor(f"{op.name}_before_scale", size)
    draft.tensors[between].quantization = draft.tensors[op.inputs[0]].quantization
    weights, scales = unit_layer(np.ones(channels))
    layer = DraftOp(
        "depthwise_conv2d",
        draft.unique(f"{op.name}_scale"),
        (between,),
        op.output,
        weights=weights,
        scales=scales,
        bias=np.zeros(channels),
        bounds=op.bounds,
        fixed=True,
    )
    op.output, op.bounds = between, OPEN  # the scale of the bounds is the later one
    return layer


def _quantization(draft: Draft, index: int) -> Quantization:
    found = draft.tensors[index].quantization
    assert found is not None  # by _settle_scales
    return found


def _op(draft: Draft, op: DraftOp, source: str) -> Op:
    result = Op(**op.base_fields(), clamp=_clamp(draft, op, source))
    if is_layer(op):
        assert op.weights is not None
        assert op.scales is not None
        scale = np.float32(_quantization(draft, op.inputs[0])[0])
        with np.errstate(all="ignore"):  # check_graph refuses what is not finite
            result.weights, result.weight_scales = op.weights, op.scales.astype(np.float32)
            result.bias = _bias(op.bias, scale * result.weight_scales)
            step = _quantization(draft, op.output)[0]
            if _most_moved(result, op.bias, scale, step) >= _MOST_MOVED:
                _refine(result, scale, step)
                result.bias = _bias(op.bias, scale * result.weight_scales)
                _require_bias(op, _most_moved(result, op.bias, scale, step), source)
    return result


def _bias(
    bias: npt.NDArray[np.float64] | None, scales: npt.NDArray[np.float32]
) -> npt.NDArray[np.int32]:
    if bias is None:
        return np.zeros(len(scales), np.int32)
    steps: npt.NDArray[np.float64] = np.nan_to_num(np.rint(bias / scales.astype(np.float64)))
    return np.clip(steps, -_LARGEST_BIAS - 1, _LARGEST_BIAS).astype(np.int32)


def _most_moved(
    layer: Op, bias: npt.NDArray[np.float64] | None, scale: np.float32, step: float
) -> float:
    """Return by how many steps of its output rounding a layer's biases moves it, at most.

    A bias at the end of int32 counts for nothing: it is beyond all steps of the output.
    """
    assert layer.weight_scales is not None
    assert layer.bias is not None
    if bias is None:
        return 0.0
    held = (scale * layer.weight_scales).astype(np.float64) * layer.bias
    inside = np.abs(layer.bias.astype(np.float64)) < _LARGEST_BIAS
    return float(np.max(np.abs(bias - held) / step, where=inside, initial=0.0))


def _refine(layer: Op, scale: np.float32, step: float) -> None:
    """Give small weights, or those that are all 0, a finer scale and so finer biases."""
    assert layer.weights is not None
    assert layer.weight_scales is not None
    shape = channel_shape(layer, layer.weights.ndim)
    padded = (1,) * (layer.weights.ndim - len(shape)) + shape
    axes = tuple(axis for axis, size in enumerate(padded) if size == 1)
    largest = np.abs(layer.weights.astype(np.int64)).max(axis=axes).ravel()
    wanted = np.ceil(_FINE * scale * layer.weight_scales.astype(np.float64) / step)
    room = np.where(largest > 0, 127 // np.maximum(largest, 1), np.inf)
    times = np.maximum(np.minimum(wanted, room), 1)
    factors = np.where(largest > 0, times, 1).astype(np.int8)  # what is 0 stays 0
    layer.weights = layer.weights * factors.reshape(shape)
    layer.weight_scales = (layer.weight_scales / times).astype(np.float32)


def _require_bias(op: DraftOp, moved: float, source: str) -> None:
    """Refuse a float bias that int32 in steps of input scale times weight scale is too coarse for.

    Only a layer has it whose input or weights are far coarser than its output.
    """
    if moved >= _MOST_MOVED:
        raise ValueError(
            f"{source}: {op.origin.text} has a float bias, which an int8 layer rounds to a "
            f"multiple of input scale times weight scale: its output would be {moved:.3g} steps "
            f"off, at most {_MOST_MOVED:g} is supported; {_FINER_BIAS}"
        )


def _clamp(draft: Draft, op: DraftOp, source: str) -> tuple[int, int]:
    if op.bounds == OPEN:
        return -128, 127
    scale, zero_point = _quantization(draft, op.output)
    steps = np.rint(np.array(op.bounds, np.float32) / np.float32(scale)) + zero_point
    low, high = map(int, np.clip(steps, -128, 127))
    origin = draft.tensors[op.output].origin.text
    require_steps(f"{source}: {origin}", op.bounds, (low, high), scale)
    return low, high
