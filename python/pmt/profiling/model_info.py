"""A model in figures: its layers, and the memory of inference and of training on a device."""

from dataclasses import dataclass
from typing import Any

from pmt import _core
from pmt.model import Model
from pmt.train.costs.memory import inference_moments, peak_moment
from pmt.train.options import TrainingOptions

__all__ = ["ModelInfo", "ModelMemory", "describe_model"]


@dataclass(frozen=True)
class ModelMemory:
    """Bytes on a device.

    Attributes
    ----------
    inference_activations : int
        Activations that are alive at once in inference.
    training_activations : int
        Activations of training.
    training_arena : int
        All that training needs beside the model.
    plan : list of dict
        Place of every activation.
    """

    inference_activations: int
    training_activations: int
    training_arena: int
    plan: list[dict[str, Any]]


@dataclass(frozen=True)
class ModelInfo:
    """A model, and training it with given options.

    Attributes
    ----------
    model : Model
        The model.
    options : TrainingOptions
        Options of the training.
    layers : list of int
        Op indices of the layers that are trained.
    estimators : dict of int to str
        Estimator of each layer, by op index.
    memory : ModelMemory
        Bytes on a device.
    """

    model: Model
    options: TrainingOptions
    layers: list[int]
    estimators: dict[int, str]
    memory: ModelMemory

    def to_json(self) -> dict[str, Any]:
        """Return the figures for JSON."""
        model = self.model
        return {
            "input_shape": list(model.input_shape),
            "input_stage": model.input_stage.record() if model.input_stage else None,
            "input_mean": list(model.core.input_mean),
            "input_std": list(model.core.input_std),
            "output_shape": list(model.output_shape),
            "classes": model.classes if model.is_classifier else None,
            "weights": sum(layer.weights for layer in model.layers),
            "biases": sum(layer.biases for layer in model.layers),
            "macs": model.macs,
            "image_bytes": len(model.image()),
            "layers": self._layers(),
            "blocks": model.blocks,
            "memory": {
                "layers": self.layers,
                "batch": self.options.batch,
                "queries": self.options.queries,
                "inference_activation_bytes": self.memory.inference_activations,
                "training_activation_bytes": self.memory.training_activations,
                "training_arena_bytes": self.memory.training_arena,
            },
            "metadata": model.metadata,
        }

    def _layers(self) -> list[dict[str, Any]]:
        model = self.model
        tensors = model.core.tensors()
        outputs = {op["index"]: tensors[op["output"]] for op in model.core.ops()}
        return [
            {
                "op": layer.index,
                "name": layer.name,
                "kind": layer.kind,
                "output_shape": list(layer.output_shape),
                "output_scale": outputs[layer.index]["scale"],
                "output_zero_point": outputs[layer.index]["zero_point"],
                "weight_scales": [float(s) for s in model.core.weight_scales(layer.index)],
                "weights": layer.weights,
                "biases": layer.biases,
                "macs": layer.macs,
                "dead_channels": layer.dead_channels,
                "estimator": self.estimators[layer.index],
            }
            for layer in model.layers
        ]


def describe_model(
    model: Model, options: TrainingOptions | None = None, *, every_layer: bool = False
) -> ModelInfo:
    """Count a model's sizes, and the cost of training it.

    Parameters
    ----------
    model : Model
        The model.
    options : TrainingOptions, optional
        Options of the training; by default the default ones.
    every_layer : bool
        Train all layers, whatever the options say.

    Returns
    -------
    ModelInfo
        The figures.

    Raises
    ------
    ValueError
        If a layer is unknown.
    """
    options = options or TrainingOptions()
    layers = [layer.index for layer in model.layers]
    trainer = _core.Trainer(model.core, options.to_core(), layers, 1, 1)
    estimators = {layer["op"]: layer["estimator"] for layer in trainer.layers()}
    chosen = layers if every_layer else model.select_layers(options.layers)
    return ModelInfo(model, options, chosen, estimators, _memory(model, options, chosen))


def _memory(model: Model, options: TrainingOptions, layers: list[int]) -> ModelMemory:
    core = options.to_core()
    device = _core.DeviceMemory(model.core, core, layers, options.batch)
    inference = max(moment.total for moment in inference_moments(model))
    layer = peak_moment(device, layers).layer
    queries = [] if layer is None else device.query_plan(layer)
    plan = device.plan() + [buffer for buffer in queries if buffer["pass"] == "query"]
    arena = sum(device.parts().values())
    return ModelMemory(inference, device.activation_bytes, arena, plan)
