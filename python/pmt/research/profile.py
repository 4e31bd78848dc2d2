"""What each method takes on a model, counted: memory, multiply-accumulates, latency."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from pmt import _core
from pmt.baselines.backprop import options as backprop_options
from pmt.baselines.backprop.cost import Arithmetic, backward_memory, backward_work
from pmt.baselines.backprop.scheme import head_layer
from pmt.baselines.backprop.trainer import BackpropTrainer
from pmt.baselines.sparse_update.trainer import MCUTrainTrainer, TinyTrainTrainer
from pmt.methods.zeroth_order import ZEROTH_ORDER
from pmt.model import Model
from pmt.research.benchmark.plot import load_pyplot
from pmt.train.costs.arena import device_options
from pmt.train.costs.memory import PARTS, Memory
from pmt.train.costs.restarts import device_restarts
from pmt.train.costs.work import Work
from pmt.train.costs.zeroth_order_memory import zeroth_order_memory
from pmt.train.costs.zeroth_order_work import zeroth_order_work
from pmt.train.options import TrainingOptions
from pmt.train.trainer import ZOTrainer
from pmt.train.training_run import Trainer

__all__ = [
    "METHODS",
    "OWN_LAYERS",
    "OWN_QUERIES",
    "Profile",
    "plot_memory",
    "profile",
    "profile_method",
    "zeroth_order_options",
]


_COMPARED = (
    *("paper", "default", "weight_layer_wise", "weight_model_wise"),
    *("node_layer_wise", "node_model_wise", "mezo", "deepzero", "deepzero_sparse"),
)
_ZEROTH_ORDER: dict[str, dict[str, Any]] = {
    name: {"preset": ZEROTH_ORDER[name].preset, **ZEROTH_ORDER[name].options} for name in _COMPARED
}
METHODS = (*_ZEROTH_ORDER, *backprop_options.PRESETS, "mcutrain", "tinytrain")
# Those that do not train whatever layers they are told.
OWN_LAYERS = ("bp_last_layer", "mcutrain", "tinytrain")
# Those whose number of queries is the method.
OWN_QUERIES = ("mezo",)


def profile_method(
    model: Model, method: str, *, scheme: str | None = None, **changes: Any
) -> Profile:
    """Count what a method takes.

    Parameters
    ----------
    model : Model
        The network.
    method : str
        One of :data:`METHODS`.
    scheme : str, optional
        For ``mcutrain`` and ``tinytrain``: a published scheme of MCUNet (``99KB`` by default) or a
        JSON file of a scheme.
    **changes
        Options that differ from the method's; those that are None, and queries where there are
        none, are left out.

    Returns
    -------
    Profile
        Work and memory.

    Raises
    ------
    ValueError
        If the method, a layer or the scheme is unknown, or a number is out of range.
    OSError
        If the scheme cannot be read.
    """
    given = {key: value for key, value in changes.items() if value is not None}
    return profile(model, method, _trainer(model, method, scheme, given))


def zeroth_order_options(method: str, **changes: Any) -> TrainingOptions:
    """Return the options of a method that needs forward passes alone.

    Parameters
    ----------
    method : str
        One of those of :data:`METHODS`.
    **changes
        Options that differ from the method's; those that are None are left out.

    Returns
    -------
    TrainingOptions
        The options.

    Raises
    ------
    ValueError
        If the method is none of them, or a number is out of range.
    """
    if method not in _ZEROTH_ORDER:
        known = ", ".join(_ZEROTH_ORDER)
        raise ValueError(f"method={method!r} is no zeroth-order one; choose one of {known}")
    given = {key: value for key, value in changes.items() if value is not None}
    return ZOTrainer(threads=1, **{**_ZEROTH_ORDER[method], **given}).options


def _trainer(model: Model, method: str, scheme: str | None, given: Mapping[str, Any]) -> Trainer:
    if method in _ZEROTH_ORDER:
        return ZOTrainer(threads=1, **{**_ZEROTH_ORDER[method], **given})
    rest = {key: value for key, value in given.items() if key != "queries"}
    if method == "bp_last_layer" and "layers" not in rest:
        rest["layers"] = _last_layer(model)
    if method in backprop_options.PRESETS:
        return BackpropTrainer(backprop_options.preset(method, **rest), threads=1)
    if method == "mcutrain":
        return MCUTrainTrainer(threads=1, **{**rest, "scheme": scheme or "99KB"})
    if method == "tinytrain":
        return TinyTrainTrainer(threads=1, chosen=scheme or "", **rest)
    raise ValueError(f"method={method!r} is unknown; choose one of {', '.join(METHODS)}")


def _last_layer(model: Model) -> str:
    head = head_layer(model)
    if head is None:
        raise ValueError("the network ends in no linear layer; name the last one with layers")
    return next(layer.name for layer in model.layers if layer.index == head)


@dataclass(frozen=True)
class Profile:
    """What a method takes.

    Attributes
    ----------
    method : str
        Its name.
    layers : tuple of str
        Layers that it trains, at least in part.
    weights, biases : int
        Number of each that it trains.
    batch : int
        Images of a step.
    queries : int
        Queries for each image and layer; 0 for back-propagation, and where every coordinate is one.
    work : Work
        Multiply-accumulates for one image.
    memory : Memory
        On a device, at the peak.
    device : _core.DeviceMemory or None
        The core's plan of it; None for back-propagation.
    ops : tuple of int
        Op indices of the layers; for a plan.
    options : TrainingOptions or None
        Of the training; None for back-propagation.
    """

    method: str
    layers: tuple[str, ...]
    weights: int
    biases: int
    batch: int
    queries: int
    work: Work
    memory: Memory
    device: _core.DeviceMemory | None = None
    ops: tuple[int, ...] = ()
    options: TrainingOptions | None = None

    @property
    def step_macs(self) -> int:
        """Multiply-accumulates of a step."""
        return self.batch * self.work.macs

    def to_json(self) -> dict[str, Any]:
        """Return the figures for JSON."""
        return {
            "method": self.method,
            "layers": list(self.layers),
            "weights": self.weights,
            "biases": self.biases,
            "batch": self.batch,
            "queries": self.queries,
            "macs_per_image": self.work.to_json(),
            "macs_per_step": self.step_macs,
            "forwards_per_step": self.batch * self.work.forwards,
            "memory": self.memory.to_json(),
        }


def profile(model: Model, method: str, trainer: Trainer) -> Profile:
    """Count what a trainer takes.

    Parameters
    ----------
    model : Model
        The network.
    method : str
        What to call it.
    trainer : Trainer
        One whose options are those of zeroth-order training or of back-propagation.

    Returns
    -------
    Profile
        Work and memory.

    Raises
    ------
    ValueError
        If a layer is unknown, or what is trained is not decided before the data is seen.
    TypeError
        If the trainer is of another kind.
    """
    if isinstance(trainer.options, TrainingOptions):
        return _zeroth_order(model, method, trainer.options)
    if isinstance(trainer, BackpropTrainer):
        return _backward(model, method, trainer)
    raise TypeError(f"method {method}: a {type(trainer).__name__} has no profile")


def _zeroth_order(model: Model, method: str, options: TrainingOptions) -> Profile:
    chosen = model.select_layers(options.layers)
    trained = [layer for layer in model.layers if layer.index in chosen]
    core = device_options(options)
    memory = zeroth_order_memory(model, core, chosen, batch=options.batch)
    device = _core.DeviceMemory(model.core, core, list(chosen), options.batch)
    restarts = device_restarts(model.core, core, chosen, device, options.batch)
    return Profile(
        method=method,
        layers=tuple(layer.name for layer in trained),
        weights=sum(layer.weights for layer in trained),
        biases=sum(layer.biases for layer in trained) if options.train_bias else 0,
        batch=options.batch,
        queries=options.queries if options.directions != "coordinate" else 0,
        work=replace(zeroth_order_work(model.core, core, chosen), restarts=restarts),
        memory=memory,
        device=device,
        ops=tuple(chosen),
        options=options,
    )


def _backward(model: Model, method: str, trainer: BackpropTrainer) -> Profile:
    options, scheme = trainer.options, trainer.scheme(model)
    floats = options.arithmetic == "float32"
    arithmetic = Arithmetic(
        value=4 if floats else 1,
        state=4 if options.momentum > 0.0 else 0,
        shadow=4 if options.rounding == "shadow" and not floats else 0,
    )
    names = {layer.index: layer.name for layer in model.layers}
    return Profile(
        method=method,
        layers=tuple(names[update.op] for update in scheme.layers),
        weights=scheme.weights(model),
        biases=scheme.biases(model),
        batch=options.batch,
        queries=0,
        work=backward_work(model, scheme),
        memory=backward_memory(model, scheme, arithmetic, batch=options.batch),
    )


_KILOBYTE = 1024


def plot_memory(
    profiles: Sequence[Profile], path: str | Path, *, limits: Sequence[int] = (256, 1024)
) -> None:
    """Draw the peak memory of every method as one bar, stacked by part.

    Parameters
    ----------
    profiles : sequence of Profile
        The methods, drawn from top to bottom.
    path : str or pathlib.Path
        File to write; its suffix is the format.
    limits : sequence of int
        Sizes of SRAM in KB to mark with a line.

    Raises
    ------
    ImportError
        If matplotlib is missing.
    """
    pyplot = load_pyplot()
    figure, axes = pyplot.subplots(figsize=(9, 0.4 * len(profiles) + 1.6), layout="constrained")
    names = [profile.method for profile in profiles]
    start = [0.0] * len(profiles)
    colours = pyplot.get_cmap("tab20")
    for i, (part, title) in enumerate(PARTS.items()):
        sizes = [getattr(profile.memory, part) / _KILOBYTE for profile in profiles]
        if any(sizes):
            axes.barh(names, sizes, left=start, label=title, color=colours(i / 20))
            start = [a + b for a, b in zip(start, sizes, strict=True)]
    for limit in limits:
        axes.axvline(limit, color="black", linewidth=0.8, linestyle="dotted")
    axes.invert_yaxis()
    axes.set_xlabel("peak memory (KB)")
    axes.legend(fontsize="small", frameon=False)
    figure.savefig(path)
    pyplot.close(figure)
