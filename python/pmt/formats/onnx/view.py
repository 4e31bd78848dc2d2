"""Values of an ONNX graph as views of activations, which are stored as height, width, channels.

ONNX networks move axes about (NCHW, NHWC, flattened in either order). None of that moves data here:
a view remembers which of the letters N, H, W and C each axis of the ONNX value runs over. Sizes of
1 have no letter, since they can stand anywhere.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from pmt.formats.onnx.file import Unsupported
from pmt.net.graph import Shape

_MEMORY_ORDER = "HWC"


@dataclass(frozen=True)
class View:
    """One ONNX value: an activation and how it is looked at.

    ``axes`` has the letters of each ONNX axis, the outermost first. ``sole`` says that nothing else
    reads the activation, so that the op which writes it may be changed. ``raw`` says that, in a
    quantized network, no QuantizeLinear stands between the activation and this value. ``dropped``
    names the operator after which nothing may follow (a softmax that was left out).
    """

    tensor: int
    batch: int
    size: Shape
    axes: tuple[str, ...]
    sole: bool = True
    raw: bool = True
    dropped: str = ""

    @property
    def shape(self) -> tuple[int, ...]:
        """Shape of the ONNX value."""
        return tuple(math.prod(self.length(letter) for letter in axis) for axis in self.axes)

    def length(self, letter: str) -> int:
        """Size of the activation along one of the letters N, H, W, C."""
        return self.batch if letter == "N" else self.size[_MEMORY_ORDER.index(letter)]

    def letters(self, text: str) -> str:
        """Those of some letters that stand for a size above 1."""
        return "".join(letter for letter in text if self.length(letter) > 1)

    @property
    def in_memory_order(self) -> bool:
        """Whether the values follow each other as they are stored."""
        return "".join(self.axes) == self.letters("N" + _MEMORY_ORDER)

    def is_nchw(self) -> bool:
        """Whether this is the ordinary view of a convolution: batch, channels, height, width."""
        return self.axes == tuple(self.letters(letter) for letter in "NCHW")

    def is_features(self) -> bool:
        """Whether this is a matrix of one row per image."""
        return len(self.axes) == 2 and self.axes[0] == self.letters("N")

    def columns_to_memory(self) -> npt.NDArray[np.intp]:
        """Return which feature each stored value is, for a view that :meth:`is_features`."""
        letters = self.axes[1]
        numbers = np.arange(self.shape[1]).reshape([self.length(x) for x in letters])
        order = [letters.index(letter) for letter in self.letters(_MEMORY_ORDER)]
        return np.asarray(numbers.transpose(order).ravel())


def image_view(
    tensor: int, batch: int, size: Shape, order: str, *, sole: bool = True, raw: bool = True
) -> View:
    """Return the view with one axis a letter of ``order``, such as ``NCHW`` or ``NHWC``."""
    bare = View(tensor, batch, size, (), sole, raw)
    return replace(bare, axes=tuple(bare.letters(letter) for letter in order))


def transposed(view: View, order: Sequence[int]) -> View:
    """Return the view with its axes in another order."""
    if sorted(order) != list(range(len(view.axes))):
        raise Unsupported(
            f"perm {list(order)} does not order {len(view.axes)} axes", "export again"
        )
    return replace(view, axes=tuple(view.axes[axis] for axis in order))


def flattened(view: View, axis: int) -> View:
    """Return the view as a matrix, all axes from ``axis`` on in the second dimension."""
    head, tail = "".join(view.axes[:axis]), "".join(view.axes[axis:])
    return replace(view, axes=(head, tail))


def reshaped(view: View, shape: Sequence[int]) -> View | None:
    """Return the view regrouped to another shape, or None where that splits a letter."""
    remaining = list("".join(view.axes))
    axes = []
    for size in shape:
        letters = ""
        while math.prod(view.length(letter) for letter in letters) < size and remaining:
            letters += remaining.pop(0)
        if math.prod(view.length(letter) for letter in letters) != size:
            return None
        axes.append(letters)
    return replace(view, axes=tuple(axes)) if not remaining else None
