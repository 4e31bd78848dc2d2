"""Rewrites of a file's operators before they are lowered: ends dropped, dilation folded."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, field, replace

import numpy as np

from pmt.formats.tflite.file import FileModel, FileOp
from pmt.formats.tflite.windows import VALID

Numbered = list[tuple[int, FileOp]]

_MOST_ENDS = 16  # operators dropped at either end
_ENDS = ("SOFTMAX", "LOG_SOFTMAX", "L2_NORMALIZATION", "DEQUANTIZE", "QUANTIZE")
_RENAMING = ("RESHAPE", "EXPAND_DIMS", "SQUEEZE")
_CHANNELS_LAST = [0, 2, 3, 1]


@dataclass
class Rewritten:
    """The operators to lower, with their numbers in the file.

    ``first`` and ``last`` are the tensors where they start and end, ``dropped`` the numbers of the
    operators before and after; ``pixels`` is scale and zero point of a uint8 input, whose values
    are pixels.
    """

    ops: Numbered
    first: int
    last: int
    dropped: list[int] = field(default_factory=list)
    pixels: tuple[float, int] | None = None


def rewrite(model: FileModel) -> Rewritten:
    """Drop the ends and all that the output does not depend on, and fold dilation."""
    result = Rewritten(list(enumerate(model.ops)), model.inputs[0], model.outputs[0])
    _drop_start(model, result)
    _drop_end(model, result)
    result.ops = _needed(result)
    result.ops = _fold_dilation(model, result)
    return result


def readers_of(ops: Numbered, last: int) -> dict[int, list[FileOp]]:
    """Return who reads each tensor; the output of the network counts as a reader."""
    readers: dict[int, list[FileOp]] = defaultdict(list)
    for _, op in ops:
        for tensor in op.inputs:
            if tensor >= 0:
                readers[tensor].append(op)
    readers[last].append(FileOp("OUTPUT", (last,), (), {}))
    return dict(readers)


def _drop_start(model: FileModel, result: Rewritten) -> None:
    """QUANTIZE from float or uint8, and TRANSPOSE from channels first to channels last."""
    readers = readers_of(result.ops, result.last)
    numbers = {id(op): number for number, op in result.ops}
    for _ in range(_MOST_ENDS):
        found = readers.get(result.first, [])
        if len(found) != 1 or len(found[0].outputs) != 1:
            return
        op, source = found[0], model.tensors[result.first]
        if op.outputs[0] < 0 or id(op) not in numbers:
            return
        target = model.tensors[op.outputs[0]]
        if op.kind == "QUANTIZE" and target.dtype == "INT8" and source.dtype != "INT8":
            if source.dtype == "UINT8" and len(source.scales) == 1:
                zero_point = int(source.zero_points[0]) if len(source.zero_points) else 0
                result.pixels = float(source.scales[0]), zero_point
            elif source.dtype != "FLOAT32":
                return
        elif not (op.kind == "TRANSPOSE" and _order(model, op) == _CHANNELS_LAST):
            return
        result.first = op.outputs[0]
        _drop(result, numbers.pop(id(op)))


def _order(model: FileModel, op: FileOp) -> list[int]:
    if len(op.inputs) != 2 or not model.is_constant(op.inputs[1]):
        return []
    return [int(axis) for axis in np.asarray(model.tensors[op.inputs[1]].data).ravel()[:5]]


def _drop_end(model: FileModel, result: Rewritten) -> None:
    """Operators after the logits or the embedding, and QUANTIZE to what the user wants to read."""
    writers = {op.outputs[0]: (number, op) for number, op in result.ops if len(op.outputs) == 1}
    readers = readers_of(result.ops, result.last)
    for _ in range(_MOST_ENDS):
        if result.last not in writers:
            return
        number, op = writers.pop(result.last)
        if op.kind not in _ENDS or len(op.inputs) != 1 or len(readers.get(op.inputs[0], ())) != 1:
            return
        result.last = op.inputs[0]
        _drop(result, number)


def _drop(result: Rewritten, number: int) -> None:
    result.dropped.append(number)
    result.ops = [(n, op) for n, op in result.ops if n != number]


def _needed(result: Rewritten) -> Numbered:
    """Return the operators that the output depends on, in order."""
    writers: dict[int, list[FileOp]] = defaultdict(list)
    for _, op in result.ops:
        for tensor in op.outputs:
            writers[tensor].append(op)
    needed, open_tensors, seen = set(), [result.last], {result.last, result.first}
    while open_tensors:
        for op in writers.get(open_tensors.pop(), ()):
            needed.add(id(op))
            fresh = [t for t in op.inputs if t >= 0 and t not in seen]
            seen.update(fresh)
            open_tensors += fresh
    return [(number, op) for number, op in result.ops if id(op) in needed]


def _fold_dilation(model: FileModel, result: Rewritten) -> Numbered:
    """Turn SPACE_TO_BATCH_ND, convolution, BATCH_TO_SPACE_ND into one dilated convolution."""
    readers = readers_of(result.ops, result.last)
    numbers = {id(op): number for number, op in result.ops}
    replaced: dict[int, FileOp | None] = {}
    for _, op in result.ops:
        if op.kind != "SPACE_TO_BATCH_ND":
            continue
        chain = _chain_after(op, readers)
        folded = _folded(model, op, chain)
        if folded is not None:
            replaced.update(dict.fromkeys((numbers[id(link)] for link in (op, *chain)), None))
            replaced[next(numbers[id(c)] for c in chain if _is_convolution(c))] = folded
    kept = ((number, replaced.get(number, op)) for number, op in result.ops)
    return [(number, op) for number, op in kept if op is not None]


def _is_convolution(op: FileOp) -> bool:
    return op.kind in ("CONV_2D", "DEPTHWISE_CONV_2D")


def _chain_after(op: FileOp, readers: dict[int, list[FileOp]]) -> list[FileOp]:
    """Return the operators from ``op`` to BATCH_TO_SPACE_ND, each the only reader of the last."""
    chain: list[FileOp] = []
    while len(op.outputs) == 1 and len(found := readers.get(op.outputs[0], [])) == 1:
        op = found[0]
        chain.append(op)
        if op.kind == "BATCH_TO_SPACE_ND" or not (op.kind in _RENAMING or _is_convolution(op)):
            break
        if len(chain) > 8:
            break
    return chain


def _folded(model: FileModel, space: FileOp, chain: list[FileOp]) -> FileOp | None:
    """Return the dilated convolution, ``None`` if the operators are not one."""
    convolutions = [op for op in chain if _is_convolution(op)]
    if not chain or chain[-1].kind != "BATCH_TO_SPACE_ND" or len(convolutions) != 1:
        return None
    convolution, batch = convolutions[0], chain[-1]
    blocks, pads = _constant_rows(model, space)
    blocks_back, crops = _constant_rows(model, batch)
    plain = all(
        convolution.options.get(name) == 1
        for name in ("StrideH", "StrideW", "DilationHFactor", "DilationWFactor")
    )
    if not blocks or blocks != blocks_back or convolution.options["Padding"] != VALID or not plain:
        return None
    (top, bottom), (left, right) = (
        (before - cut_before, after - cut_after)
        for (before, after), (cut_before, cut_after) in zip(pads, crops, strict=True)
    )
    if min(top, bottom, left, right) < 0 or not _one_quantization(model, convolution, batch):
        return None
    options = {
        **convolution.options,
        "Top": top,
        "Left": left,
        "Bottom": bottom,
        "Right": right,
        "DilationHFactor": blocks[0],
        "DilationWFactor": blocks[1],
    }
    return replace(
        convolution,
        inputs=(space.inputs[0], *convolution.inputs[1:]),
        outputs=batch.outputs,
        options=options,
    )


def _constant_rows(model: FileModel, op: FileOp) -> tuple[list[int], list[tuple[int, int]]]:
    """Return block sizes and paddings or crops, for height and width; nothing if not constant."""
    if len(op.inputs) != 3 or not all(model.is_constant(i) for i in op.inputs[1:]):
        return [], []
    blocks, rows = (np.asarray(model.tensors[i].data) for i in op.inputs[1:])
    if blocks.shape not in ((1,), (2,)) or rows.shape != (blocks.size, 2):
        return [], []
    sizes = [1, *(int(n) for n in blocks)][-2:]
    sides = [(0, 0), *((int(a), int(b)) for a, b in rows)][-2:]
    return (sizes, sides) if min(sizes) >= 1 else ([], [])


def _one_quantization(model: FileModel, convolution: FileOp, batch: FileOp) -> bool:
    """Whether what follows the convolution keeps its quantization, as it must."""
    if len(convolution.outputs) != 1 or len(batch.outputs) != 1 or batch.outputs[0] < 0:
        return False
    made, kept = model.tensors[convolution.outputs[0]], model.tensors[batch.outputs[0]]
    return bool(
        np.array_equal(made.scales, kept.scales)
        and np.array_equal(made.zero_points, kept.zero_points)
    )
