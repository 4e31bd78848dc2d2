"""Average pools with a padding that no operator has: written in pieces, and read again as one."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from pmt.formats.tflite.file import FileModel, FileOp

__all__ = ["BATCH_AND_CHANNELS", "Band", "bands", "join_pools", "window_of_bands"]

BATCH_AND_CHANNELS = 0b1001  # dimensions 0 and 3, as a mask
_VALID, _NO_ACTIVATION = 1, 0
_KERNEL, _STRIDE = ("FilterHeight", "FilterWidth"), ("StrideH", "StrideW")
_MASKS = {
    "BeginMask": BATCH_AND_CHANNELS,
    "EndMask": BATCH_AND_CHANNELS,
    "EllipsisMask": 0,
    "NewAxisMask": 0,
    "ShrinkAxisMask": 0,
}


@dataclass(frozen=True)
class Band:
    """``count`` neighboring outputs with windows of ``kernel`` inputs, in ``start:stop``."""

    count: int
    kernel: int
    start: int
    stop: int


def bands(size: int, outputs: int, kernel: int, stride: int, padding: int) -> list[Band]:
    """Group outputs along one axis by how much of their window lies inside, in order.

    Whole windows are one band, each cut window is a band of its own; ``padding`` is the one before
    the first input.
    """
    found: list[Band] = []
    for i in range(outputs):
        first = i * stride - padding
        start, stop = max(first, 0), min(first + kernel, size)
        whole = stop - start == kernel
        if whole and found and found[-1].kernel == kernel:
            found[-1] = Band(found[-1].count + 1, kernel, found[-1].start, stop)
        else:
            found.append(Band(1, stop - start, start, stop))
    return found


def window_of_bands(found: Sequence[Band], size: int, stride: int) -> tuple[int, int, int] | None:
    """Return the kernel and the paddings before and after that give these bands, None without."""
    ends = [
        (band.start + i * stride, band.start + i * stride + band.kernel)
        for band in found
        for i in range(band.count)
    ]
    outputs = len(ends)
    befores = [i * stride - start for i, (start, _) in enumerate(ends) if start > 0]
    before = befores[0] if befores else (outputs - 1) * stride
    kernels = [stop + before - i * stride for i, (_, stop) in enumerate(ends) if stop < size]
    kernel = kernels[0] if kernels else size + before
    if before < 0 or kernel < 1 or bands(size, outputs, kernel, stride, before) != list(found):
        return None
    return kernel, before, max(0, (outputs - 1) * stride + kernel - size - before)


def join_pools(
    model: FileModel, ops: Sequence[tuple[int, FileOp]], readers: dict[int, list[FileOp]]
) -> list[tuple[int, FileOp]]:
    """Turn pools in pieces, as pmt writes them, into one AVERAGE_POOL_2D with the padding."""
    joined, parts = dict(ops), set[int]()
    reader = _Reader(model, ops, readers)
    for number, op in ops:
        grid = reader.grid(op)
        pool = reader.pool(op, grid) if grid else None
        if pool is not None:
            joined[number] = pool
            parts |= {id(part) for row in grid for piece in row for part in piece.operators}
    return [(number, op) for number, op in joined.items() if id(op) not in parts]


@dataclass(frozen=True)
class _Piece:
    """A pool of a slice of the input, and the CONCATENATION of its row."""

    strip: FileOp
    pool: FileOp
    part: FileOp
    begin: tuple[int, int]  # row, column
    end: tuple[int, int]

    @property
    def operators(self) -> tuple[FileOp, FileOp, FileOp]:
        return self.strip, self.pool, self.part

    def band(self, axis: int) -> Band:
        size, step = self.pool.options[_KERNEL[axis]], self.pool.options[_STRIDE[axis]]
        start, stop = self.begin[axis], self.end[axis]
        return Band(max(0, stop - start - size) // step + 1, size, start, stop)


class _Reader:
    def __init__(
        self,
        model: FileModel,
        ops: Sequence[tuple[int, FileOp]],
        readers: dict[int, list[FileOp]],
    ) -> None:
        self._model, self._readers = model, readers
        self._writers = {op.outputs[0]: op for _, op in ops if len(op.outputs) == 1}

    def grid(self, op: FileOp) -> list[list[_Piece]]:
        """Return the pieces that an operator joins, row by row; nothing of another operator."""
        grid = []
        for strip in self._joined(op, 1, "CONCATENATION"):
            pools = self._joined(strip, 2, "AVERAGE_POOL_2D")
            row = [piece for pool in pools if (piece := self._piece(strip, pool)) is not None]
            if not row or len(row) < len(pools):
                return []
            grid.append(row)
        return grid if len({len(row) for row in grid}) == 1 else []

    def pool(self, op: FileOp, grid: list[list[_Piece]]) -> FileOp | None:
        """Return the one pool with the windows of all pieces, None where there is none."""
        pieces = [piece for row in grid for piece in row]
        first = pieces[0].pool.options
        sources = {piece.part.inputs[0] for piece in pieces}
        strides = {tuple(piece.pool.options[name] for name in _STRIDE) for piece in pieces}
        source = self._model.tensors[min(sources)]
        if len(sources) != 1 or len(strides) != 1 or len(source.shape) != 4:
            return None
        if not self._one_quantization(min(sources), op, pieces):
            return None
        windows = []
        columns: list[list[_Piece]] = [list(line) for line in zip(*grid, strict=True)]
        for axis, lines in enumerate((columns, grid)):
            found = [[piece.band(axis) for piece in line] for line in lines]
            alike = all(line == found[0] for line in found)
            window = window_of_bands(found[0], source.shape[1 + axis], first[_STRIDE[axis]])
            if window is None or not alike:
                return None
            windows.append(window)
        (height, top, bottom), (width, left, right) = windows
        sides = {"Top": top, "Left": left, "Bottom": bottom, "Right": right}
        kernel = dict(zip(_KERNEL, (height, width), strict=True))
        options = {**first, **kernel, **sides}
        return FileOp("AVERAGE_POOL_2D", (min(sources),), op.outputs, options)

    def _joined(self, op: FileOp, axis: int, kind: str) -> list[FileOp]:
        """Return the operators of a kind that a CONCATENATION along an axis joins, else nothing."""
        plain = op.options.get("FusedActivationFunction", 0) == _NO_ACTIVATION
        if op.kind != "CONCATENATION" or op.options.get("Axis") != axis or not plain:
            return []
        found = [one for tensor in op.inputs if (one := self._writer(tensor, kind)) is not None]
        return found if len(found) == len(op.inputs) else []

    def _piece(self, strip: FileOp, pool: FileOp) -> _Piece | None:
        options = pool.options
        plain = options["FusedActivationFunction"] == _NO_ACTIVATION
        sound = min(options[name] for name in (*_KERNEL, *_STRIDE)) > 0
        part = self._writer(pool.inputs[0], "STRIDED_SLICE") if len(pool.inputs) == 1 else None
        if not plain or not sound or options["Padding"] != _VALID or part is None:
            return None
        whole = all(part.options.get(name, 0) == mask for name, mask in _MASKS.items())
        if (
            not whole
            or len(part.inputs) != 4
            or not all(map(self._model.is_constant, part.inputs[1:]))
        ):
            return None
        data = (self._model.tensors[tensor].data for tensor in part.inputs[1:])
        begin, end, strides = (np.asarray(values).ravel().tolist() for values in data)
        if len(begin) != 4 or len(end) != 4 or strides != [1, 1, 1, 1]:
            return None
        return _Piece(strip, pool, part, (begin[1], begin[2]), (end[1], end[2]))

    def _writer(self, tensor: int, kind: str) -> FileOp | None:
        """Return the operator of a kind that writes a tensor with one reader."""
        op = self._writers.get(tensor)
        single = len(self._readers.get(tensor, ())) == 1
        return op if op is not None and op.kind == kind and single else None

    def _one_quantization(self, source: int, last: FileOp, pieces: Sequence[_Piece]) -> bool:
        written = {tensor for piece in pieces for op in piece.operators for tensor in op.outputs}
        tensors = [self._model.tensors[i] for i in (source, *last.outputs, *written)]
        return all(
            np.array_equal(tensor.scales, tensors[0].scales)
            and np.array_equal(tensor.zero_points, tensors[0].zero_points)
            for tensor in tensors
        )
