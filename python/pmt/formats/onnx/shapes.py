"""Nodes that only look at values in another way: reshapes, transpositions, copies, the softmax."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from pmt.formats.onnx.call import Call, memory_view
from pmt.formats.onnx.file import MAX_RANK, Unsupported
from pmt.formats.onnx.view import View, flattened, reshaped, transposed

_FLOATS = (1, 10, 11, 16)


def copy(call: Call) -> View:
    """Convert Identity."""
    return call.view()


def cast(call: Call) -> View:
    """Convert Cast between floats, which changes nothing here."""
    to = call.attribute("to", 1)
    if to not in _FLOATS:
        raise Unsupported(f"it casts an activation to data type {to}", "only floats are supported")
    return call.view()


def dropout(call: Call) -> View:
    """Convert Dropout, which does nothing at inference."""
    if call.has(2) and bool(np.any(call.constant(2, "training_mode"))):
        raise Unsupported("it is in training mode", "call model.eval() before the export")
    return call.view()


def flatten(call: Call) -> View:
    """Convert Flatten."""
    view = call.view()
    axis = call.attribute("axis", 1)
    rank = len(view.axes)
    if not -rank <= axis <= rank:
        raise Unsupported(f"axis is {axis} of {rank}", "export again")
    return flattened(view, axis if axis >= 0 else axis + rank)


def reshape(call: Call) -> View:
    """Convert Reshape to a constant shape."""
    view = call.view()
    wanted = call.constant(1, "shape").ravel()
    shape = target_shape(
        view.shape, [int(n) for n in wanted[:9]], bool(call.attribute("allowzero", 0))
    )
    result = reshaped(view, shape)
    if result is not None:
        return result
    # Splitting an axis needs an activation of its own, in the order of memory.
    if view.in_memory_order and len(shape) == 4 and shape[0] == view.batch:
        return memory_view(call, view, (shape[1], shape[2], shape[3]), "NHWC")
    raise Unsupported(
        f"it reshapes {view.shape} to {tuple(shape)}, which splits or mixes channels and pixels",
        "only flattening, and shapes that keep the pixels whole, are supported",
    )


def gather(call: Call) -> View:
    """Convert a Gather that takes every value in its order, in another shape.

    It is what torch writes for the mean over a whole image (``as_strided``).
    """
    view = call.view()
    indices = call.constant(1, "indices")
    in_order = len(view.axes) == 1 and np.array_equal(indices.ravel(), np.arange(view.shape[0]))
    result = reshaped(view, indices.shape) if in_order and indices.ndim <= MAX_RANK else None
    if result is None:
        raise Unsupported(
            f"it picks values out of an activation of shape {view.shape}",
            "only a Gather that keeps all of them in their order is supported",
        )
    return result


def target_shape(shape: tuple[int, ...], wanted: list[int], allow_zero: bool) -> list[int]:
    """Return the sizes that Reshape gives: 0 copies, -1 takes what is left."""
    sizes = [
        shape[i] if size == 0 and not allow_zero and i < len(shape) else size
        for i, size in enumerate(wanted)
    ]
    total = int(np.prod(shape, dtype=object))
    known = int(np.prod([size for size in sizes if size != -1], dtype=object))
    if sizes.count(-1) == 1 and known > 0 and total % known == 0:
        sizes[sizes.index(-1)] = total // known
    if min(sizes, default=1) < 0 or int(np.prod(sizes, dtype=object)) != total:
        raise Unsupported(
            f"it reshapes {shape} to {wanted}", "export with the image size of the network"
        )
    return sizes


def transpose(call: Call) -> View:
    """Convert Transpose."""
    view = call.view()
    return transposed(view, call.attribute("perm", list(range(len(view.axes)))[::-1]))


def squeeze(call: Call) -> View:
    """Convert Squeeze; without axes, all sizes of 1 go, but never the batch."""
    view = call.view()
    axes = call.axes(len(view.axes))
    if axes is None:
        axes = [i for i, size in enumerate(view.shape) if i and size == 1]
    if any(view.axes[axis] for axis in axes):
        raise Unsupported(
            f"it removes the axes {axes} of a value of shape {view.shape}",
            "only sizes of 1 can be removed",
        )
    return replace(view, axes=tuple(a for i, a in enumerate(view.axes) if i not in axes))


def unsqueeze(call: Call) -> View:
    """Convert Unsqueeze."""
    view = call.view()
    count = len(call.attribute("axes", [])) or call.constant(1, "axes").size
    rank = len(view.axes) + count
    axes = call.axes(rank)
    if axes is None or len(axes) != count or rank > 8:
        raise Unsupported(f"its axes are {axes}", "export again")
    remaining = list(view.axes)
    return replace(view, axes=tuple("" if i in axes else remaining.pop(0) for i in range(rank)))


def softmax(call: Call) -> View:
    """Leave out a Softmax or LogSoftmax over the classes; only the output may follow."""
    view = call.view()
    axis = call.attribute("axis", 1 if call.opset < 13 else -1)
    rank = len(view.axes)
    if not -rank <= axis < rank or view.axes[axis] != view.letters("HWC"):
        raise Unsupported(
            f"it runs over axis {axis} of a value of shape {view.shape}",
            "only a softmax over the classes, at the end, can be left out",
        )
    call.draft.dropped.append(f"{call.node.name} ({call.node.kind})")
    return replace(view, dropped=call.node.name)
