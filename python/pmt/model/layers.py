"""The layers of a model: how they are chosen; their weights, biases and scales; their tables."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TypeGuard

import numpy as np

from pmt import _core
from pmt._core import DEAD_CHANNEL_SCALE, LARGEST_WEIGHT
from pmt._util.arrays import Array, FloatArray, Int8Array, Int32Array
from pmt._util.checks import is_iterable, listed_names, plain_number, refuse_mask
from pmt._util.text import nearest, shortened
from pmt.errors import OptionError
from pmt.net.image import build_image, read_graph, read_stage

_SHOWN_BLOCKS = 9  # rows of a table that is looked at


@dataclass(frozen=True)
class Layer:
    """One layer with weights: ``index`` is its op index, ``macs`` are per image."""

    index: int
    name: str
    kind: str
    weights: int
    biases: int
    macs: int
    output_shape: tuple[int, int, int]
    dead_channels: int


class Layers:
    """Base of classes with layers: their list, copies of their arrays, new values for them."""

    core: _core.Model

    @property
    def layers(self) -> list[Layer]:
        """Layers with weights, in order."""
        tensors = self.core.tensors()
        found = []
        for op in self.core.ops():
            if op["weights"] == 0:
                continue
            out = tensors[op["output"]]
            scales = self.core.weight_scales(op["index"])
            found.append(
                Layer(
                    index=op["index"],
                    name=op["name"],
                    kind=op["kind"],
                    weights=op["weights"],
                    biases=len(scales),
                    macs=op["macs"],
                    output_shape=(out["height"], out["width"], out["channels"]),
                    dead_channels=int((scales < DEAD_CHANNEL_SCALE).sum()),
                )
            )
        return found

    @property
    def blocks(self) -> dict[str, list[int]]:
        """Named sets of layers (op indices), for example ``B1`` .. ``B4``, ``head``, ``all``."""
        return self.core.blocks()

    def select_layers(
        self, layers: str | int | Iterable[str | int], *, argument: str = "layers"
    ) -> list[int]:
        """Resolve names to op indices.

        Parameters
        ----------
        layers : str, int or iterable of these
            Names of blocks or layers, or op indices. A string may hold several, separated by
            commas: ``"B2,head"``.
        argument : str
            Name of the argument in errors.

        Returns
        -------
        list of int
            Op indices, ascending, each once.

        Raises
        ------
        TypeError
            If ``layers`` is neither a string, an integer nor an iterable.
        ValueError
            If a name is unknown, an index is not that of a layer, or nothing is selected.
        """
        layers = plain_number(layers)
        if isinstance(layers, str):
            wanted: list[str | int] = [*(listed_names(argument, layers) if layers.strip() else ())]
        elif isinstance(layers, int) and not isinstance(layers, bool):
            wanted = [layers]
        elif is_iterable(layers) and not isinstance(layers, bytes):
            wanted = list(layers)
        else:
            raise TypeError(
                f"{argument}={layers!r} must be names of blocks or layers, or op indices"
            )
        by_name = {layer.name: layer.index for layer in self.layers}
        chosen: set[int] = set()
        for item in wanted:
            if isinstance(item, str) and item in self.blocks:
                chosen.update(self.blocks[item])
            elif isinstance(item, str) and item in by_name:
                chosen.add(by_name[item])
            elif _is_index(item) and item in by_name.values():
                chosen.add(int(item))
            else:
                raise OptionError(argument, f"={layers!r}: {self._no_layer(item, by_name)}")
        if not chosen:
            raise OptionError(
                argument, f"={layers!r} selects no layer; `pmt info` lists the layers"
            )
        return sorted(chosen)

    def _no_layer(self, item: object, layers: Iterable[str]) -> str:
        near = nearest(str(item), [*self.blocks, *layers])
        if near is not None:
            return f"{item!r} is neither a block nor a layer; did you mean {near!r}?"
        return (
            f"{item!r} is neither a block ({', '.join(self.blocks)}) nor a layer; `pmt info` lists "
            "the layers"
        )

    def weights(self, layer: str | int) -> Int8Array:
        """Return a copy of a layer's weights.

        Parameters
        ----------
        layer : str or int
            Name or op index, see :attr:`layers`.

        Returns
        -------
        ndarray of int8
            ``conv2d``: (out, kernel height, kernel width, in); ``depthwise_conv2d``: (kernel
            height, kernel width, out); ``fully_connected``: (out, in). A weight stands for its
            value times the :meth:`weight_scales` of its output channel. The array is read-only:
            :meth:`set_weights` takes a changed ``.copy()`` of it.

        Raises
        ------
        ValueError
            If there is no such layer.
        """
        return _read_only(self.core.weights(self._index(layer)))

    def bias(self, layer: str | int) -> Int32Array:
        """Return a copy of a layer's biases, int32 of shape (out,); see :meth:`weights`.

        A bias stands for its value times the scales of its channel's weights and of the input.
        """
        return _read_only(self.core.bias(self._index(layer)))

    def weight_scales(self, layer: str | int) -> FloatArray:
        """Return a copy of a layer's scales, float32 of shape (out,); see :meth:`weights`."""
        return _read_only(self.core.weight_scales(self._index(layer)))

    def set_weights(
        self, layer: str | int, weights: Int8Array, *, bias: Int32Array | None = None
    ) -> None:
        """Replace a layer's weights.

        Parameters
        ----------
        layer : str or int
            Name or op index.
        weights : ndarray of int8
            Weights in the shape of :meth:`weights`; they are copied. New ones lie in -127..127.
        bias : ndarray of int32, shape (out,), optional
            New biases; by default they stay.

        Raises
        ------
        ValueError
            If there is no such layer, a shape is not the layer's, or a new weight is -128.
        TypeError
            If a dtype is another one: nothing is rounded or clipped.
        RuntimeError
            If another thread uses the model.
        """
        index = self._index(layer)
        present = self.core.weights(index), self.core.bias(index)
        new_weights = _checked("weights", weights, present[0], layer)
        check_symmetric(new_weights, present[0], layer)
        new_bias = present[1] if bias is None else _checked("bias", bias, present[1], layer)
        self.core.set_parameters(index, new_weights, new_bias)

    def _index(self, layer: str | int) -> int:
        layers, layer = {one.name: one.index for one in self.layers}, plain_number(layer)
        if isinstance(layer, str) and layer in layers:
            return layers[layer]
        if _is_index(layer) and layer in layers.values():
            return int(layer)
        if isinstance(layer, str) and layer in self.blocks:
            members = [name for name, index in layers.items() if index in self.blocks[layer]]
            raise ValueError(
                f"layer={layer!r} is a block; give one of its layers: {', '.join(members)}"
            )
        raise ValueError(
            f"layer={layer!r} is not a layer with weights; model.layers lists their names and "
            "indices"
        )


def _is_index(item: object) -> TypeGuard[int]:
    """Whether an item is a whole number; a truth value is none."""
    return isinstance(item, (int, np.integer)) and not isinstance(item, bool)


def _read_only(array: Array) -> Array:
    array.flags.writeable = False
    return array


def _checked(name: str, array: Array, present: Array, layer: str | int) -> Array:
    """Return new values as they are, if dtype and shape are those of the present ones."""
    refuse_mask(name, array)
    if not isinstance(array, np.ndarray) or array.dtype != present.dtype:
        found = array.dtype if isinstance(array, np.ndarray) else type(array).__name__
        raise TypeError(
            f"{name} is {found}: must be a NumPy array of {present.dtype}; round and clip it first"
        )
    if array.shape != present.shape:
        raise ValueError(
            f"{name} has shape {array.shape}: layer {layer!r} has {name} of shape {present.shape}"
        )
    return np.ascontiguousarray(array)


def check_symmetric(new: Int8Array, old: Int8Array, layer: str | int) -> None:
    """Raise a ValueError where a new weight is -128; old ones, of a file, may be."""
    if ((new < -LARGEST_WEIGHT) & (new != old)).any():
        raise ValueError(
            f"weights of layer {layer!r} holds -128: they are symmetric, -{LARGEST_WEIGHT} to "
            f"{LARGEST_WEIGHT}; clip them by numpy.clip(weights, -{LARGEST_WEIGHT}, "
            f"{LARGEST_WEIGHT})"
        )


def copy_parameters(source: Layers, target: Layers) -> None:
    """Give a model the parameters of another one of the same ops, its ranges and input stage."""
    section, tensors = source.core.stage(), source.core.tensors()
    if section != target.core.stage() or tensors != target.core.tensors():
        stage = read_stage(section) if section else None
        quantized = read_graph(source.core.image()).tensors
        graph = replace(read_graph(target.core.image()), stage=stage, tensors=quantized)
        target.core = _core.Model(build_image(graph))
    for layer in source.layers:
        weights, bias = source.core.weights(layer.index), source.core.bias(layer.index)
        target.core.set_parameters(layer.index, weights, bias)
        target.core.set_weight_scales(layer.index, source.core.weight_scales(layer.index))


def block_rows(
    layers: Sequence[Layer], blocks: Mapping[str, Sequence[int]]
) -> tuple[list[str], list[list[str]]]:
    """Return titles and rows of a table of blocks, with their layers, weights and MACs."""
    rows = []
    for name, members in blocks.items():
        inside = [layer for layer in layers if layer.index in members]
        weights, macs = (sum(getattr(x, key) for x in inside) for key in ("weights", "macs"))
        rows.append([name, str(len(inside)), f"{weights:,}", f"{macs:,}"])
    return ["block", "layers", "weights", "MACs"], shortened(rows, _SHOWN_BLOCKS)


def layer_rows(
    layers: Sequence[Layer], blocks: Mapping[str, Sequence[int]]
) -> tuple[list[str], list[list[str]]]:
    """Return titles and rows of a table of layers, with the blocks that they are in."""
    rows = [
        [
            str(layer.index),
            layer.name,
            layer.kind,
            "x".join(map(str, layer.output_shape)),
            f"{layer.weights:,}",
            f"{layer.macs:,}",
            " ".join(name for name, members in blocks.items() if layer.index in members),
        ]
        for layer in layers
    ]
    return ["op", "layer", "kind", "output", "weights", "MACs", "blocks"], rows
