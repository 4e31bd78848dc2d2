"""MCUTrain's own count of what an update adds to memory, which its budgets are in."""

from __future__ import annotations

from dataclasses import dataclass, replace

from pmt.baselines.backprop.backward_graph import BackwardGraph
from pmt.baselines.backprop.scheme import LayerUpdate, UpdateScheme, head_layer, input_channels
from pmt.model import Layer, Model

__all__ = ["UpdateMemory", "layer_memory", "scheme_memory"]


@dataclass(frozen=True)
class UpdateMemory:
    """Bytes: trained ``weights`` (int8) and ``biases`` (int32), kept ``inputs``, ``masks``."""

    weights: int
    biases: int
    inputs: int
    masks: int

    @property
    def total(self) -> int:
        """Sum of the parts."""
        return self.weights + self.biases + self.inputs + self.masks

    def __add__(self, other: UpdateMemory) -> UpdateMemory:
        return UpdateMemory(
            self.weights + other.weights,
            self.biases + other.biases,
            self.inputs + other.inputs,
            self.masks + other.masks,
        )


def layer_memory(model: Model, update: LayerUpdate) -> UpdateMemory:
    """Count one layer.

    A layer whose biases are trained keeps a bit for each output (was it at a clamp?); one whose
    weights are trained keeps the trained channels of its input. The forward pass and the gradients
    of activations are not counted.
    """
    op = model.core.ops()[update.op]
    source, out = (model.core.tensors()[i] for i in (op["inputs"][0], op["output"]))
    elements = int(out["height"] * out["width"] * out["channels"])
    channels = input_channels(model, update.op)
    kept = (
        int(source["height"] * source["width"] * source["channels"]) * update.channels // channels
    )
    return UpdateMemory(
        weights=int(op["weights"]) * update.channels // channels,
        biases=4 * int(out["channels"]) if update.bias else 0,
        inputs=kept,
        masks=(elements + 7) // 8 if update.bias else 0,
    )


def scheme_memory(model: Model, scheme: UpdateScheme) -> UpdateMemory:
    """Count a scheme; of the linear head only its input, as in the publication.

    Layers that train nothing, but that the gradient passes on its way to one that does, keep their
    masks too. The published schemes have none.
    """
    head, trained = head_layer(model), scheme.by_op()
    total = UpdateMemory(0, 0, 0, 0)
    reaches = BackwardGraph.of(model, scheme).reaches
    for layer in model.layers:
        update = trained.get(layer.index)
        memory = layer_memory(model, update) if update else UpdateMemory(0, 0, 0, 0)
        if layer.index == head:
            memory = UpdateMemory(0, 0, memory.inputs, 0)
        elif model.core.ops()[layer.index]["output"] in reaches:
            memory = replace(memory, masks=_mask_bytes(layer))
        total += memory
    return total


def _mask_bytes(layer: Layer) -> int:
    height, width, channels = layer.output_shape
    return (height * width * channels + 7) // 8
