"""Update schemes: the layers that a back-propagation step updates, their weights and biases."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pmt._util import atomic_file
from pmt._util.parsing import parse_json
from pmt.errors import FileError
from pmt.model import Layer, Model

_FORMAT = "pmt update scheme 1"
_REMEDY = "write it again with `pmt scheme`"


@dataclass(frozen=True)
class LayerUpdate:
    """Update of one layer.

    Attributes
    ----------
    op : int
        Op index.
    channels : int
        Number of input channels whose weights are trained (of a depthwise layer: channels); 0
        where the weights are frozen.
    bias : bool
        Whether the biases are trained.
    chosen : tuple of int
        The channels themselves, ascending, where they are known; empty where they follow from the
        weights, see :func:`pmt.baselines.sparse_update.channels.largest_channels`.
    """

    op: int
    channels: int
    bias: bool
    chosen: tuple[int, ...] = ()


@dataclass(frozen=True)
class UpdateScheme:
    """Layers to update, ascending by op index."""

    layers: tuple[LayerUpdate, ...]

    def __post_init__(self) -> None:
        ops = [layer.op for layer in self.layers]
        if not ops or ops != sorted(set(ops)):
            raise ValueError(f"layers={ops} must be op indices, ascending, each once, at least one")
        for layer in self.layers:
            if layer.channels < 0 or (layer.chosen and len(layer.chosen) != layer.channels):
                raise ValueError(
                    f"layer {layer.op}: channels={layer.channels} must be 0 or more, and as many "
                    f"as are chosen ({len(layer.chosen)})"
                )
            if layer.channels == 0 and not layer.bias:
                raise ValueError(f"layer {layer.op}: neither weights nor biases are trained")

    def by_op(self) -> dict[int, LayerUpdate]:
        """Return the updates by op index."""
        return {layer.op: layer for layer in self.layers}

    def weights(self, model: Model) -> int:
        """Number of weights trained."""
        layers = {layer.index: layer for layer in model.layers}
        return sum(
            layers[update.op].weights * update.channels // input_channels(model, update.op)
            for update in self.layers
        )

    def biases(self, model: Model) -> int:
        """Number of biases trained."""
        layers = {layer.index: layer for layer in model.layers}
        return sum(layers[update.op].biases for update in self.layers if update.bias)

    def to_json(self, model: Model) -> dict[str, Any]:
        """Return the scheme by names of layers, for JSON."""
        names = {layer.index: layer.name for layer in model.layers}
        return {
            "format": _FORMAT,
            "layers": [
                {
                    "name": names[update.op],
                    "channels": update.channels,
                    "of": input_channels(model, update.op),
                    "bias": update.bias,
                    "chosen": list(update.chosen),
                }
                for update in self.layers
            ],
        }

    def text(self, model: Model) -> str:
        """Return the scheme as one line of JSON, as options take it."""
        return json.dumps(self.to_json(model), separators=(",", ":"))

    def save(self, path: str | Path, model: Model) -> None:
        """Write the scheme as JSON; a file that exists is replaced in one step."""
        atomic_file.write_text(path, json.dumps(self.to_json(model), indent=2) + "\n")

    @classmethod
    def from_json(cls, figures: Any, model: Model) -> UpdateScheme:
        """Make a scheme of the figures of :meth:`to_json`.

        Raises
        ------
        ValueError
            If it is not a scheme, or one of another model.
        """
        if not isinstance(figures, dict) or figures.get("format") != _FORMAT:
            raise ValueError(f"not an update scheme: its format must be {_FORMAT!r}")
        try:
            entries = [(str(e["name"]), LayerUpdate(0, *_fields(e))) for e in figures["layers"]]
        except (KeyError, TypeError) as error:
            raise ValueError(f"damaged update scheme: {error!r}; write it again") from None
        by_name = {layer.name: layer.index for layer in model.layers}
        updates = []
        for name, update in entries:
            if name not in by_name:
                raise ValueError(f"the scheme's layer {name!r} is not a layer of this model")
            op, most = by_name[name], input_channels(model, by_name[name])
            if update.channels > most or any(not 0 <= c < most for c in update.chosen):
                raise ValueError(f"the scheme's layer {name!r} has more than the {most} channels")
            updates.append(LayerUpdate(op, update.channels, update.bias, update.chosen))
        return cls(tuple(sorted(updates, key=lambda update: update.op)))

    @classmethod
    def load(cls, path: str | Path, model: Model) -> UpdateScheme:
        """Read a file of :meth:`save`.

        Raises
        ------
        OSError
            If the file cannot be read.
        ValueError
            If it holds no scheme, or one of another model.
        """
        figures = parse_json(Path(path).read_bytes(), path, _REMEDY)
        try:
            return cls.from_json(figures, model)
        except ValueError as error:
            raise FileError(str(path), [str(error)]) from None

    @classmethod
    def whole(cls, layers: Iterable[int], model: Model) -> UpdateScheme:
        """Update all weights and biases of some layers."""
        return cls(tuple(LayerUpdate(op, input_channels(model, op), True) for op in sorted(layers)))


def head_layer(model: Model) -> int | None:
    """Return the op index of the linear layer, or 1x1 convolution, of the logits; else None."""
    return model.core.op_count - 1 if model.core.has_linear_head else None


def input_channels(model: Model, op: int) -> int:
    """Return the input channels of a layer: features of a linear one."""
    record = model.core.ops()[op]
    source = model.core.tensors()[record["inputs"][0]]
    if record["kind"] == "fully_connected":
        return int(source["height"] * source["width"] * source["channels"])
    return int(source["channels"])


def layer_update(model: Model, layer: Layer, ratio: float, *, bias: bool) -> LayerUpdate:
    """Update ``int(ratio * input channels)`` channels of a layer, as MCUTrain does."""
    if not 0.0 <= ratio <= 1.0:
        raise ValueError(f"ratio={ratio!r} of layer {layer.name} must be 0..1")
    return LayerUpdate(layer.index, int(ratio * input_channels(model, layer.index)), bias)


def _fields(entry: dict[str, Any]) -> Sequence[Any]:
    return int(entry["channels"]), bool(entry["bias"]), tuple(int(c) for c in entry["chosen"])
