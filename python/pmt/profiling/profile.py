"""Work and memory of each method on a model, counted."""

from dataclasses import dataclass, replace
from typing import Any

from pmt import _core
from pmt._util.checks import checked_word
from pmt._util.text import counted, html_table
from pmt.baselines.backprop.cost import Arithmetic, backward_memory, backward_work
from pmt.baselines.backprop.options import BackpropOptions
from pmt.baselines.backprop.scheme import head_layer
from pmt.baselines.backprop.trainer import BackpropTrainer
from pmt.methods import registry
from pmt.methods.catalog import BACKPROP, Method
from pmt.model import Model
from pmt.train.costs.memory import PARTS, Memory, inference_moments, zeroth_order_memory
from pmt.train.costs.work import Work, device_restarts, zeroth_order_work
from pmt.train.options import TrainingOptions
from pmt.train.trainer import Trainer

_COMPARED = (
    *("paper", "released", "default", "pooled", "weight_layer_wise", "weight_model_wise"),
    *("node_layer_wise", "node_model_wise", "mezo"),
)
METHODS = (*_COMPARED, *BACKPROP)
SCHEME_OPTIONS = {"mcutrain": "scheme", "tinytrain": "chosen"}


@dataclass(frozen=True, repr=False)
class Profile:
    """Work and memory of a method."""

    method: str
    layers: tuple[str, ...]  # layers that it trains, at least in part
    # Number of each that it trains.
    weights: int
    biases: int
    batch: int  # images of a step
    queries: int  # queries for each image and layer; 0 for back-propagation
    work: Work  # multiply-accumulates for one image
    memory: Memory  # peak memory on a device
    device: _core.DeviceMemory | None = None  # the core's plan of it; None for back-propagation
    ops: tuple[int, ...] = ()  # op indices of the layers; for a plan
    options: TrainingOptions | None = None  # options of the training; None for back-propagation

    @property
    def step_macs(self) -> int:
        """Multiply-accumulates of a step."""
        return self.batch * self.work.macs

    def __repr__(self) -> str:
        return (
            f"<Profile {self.method}: a step takes {self.step_macs:,} MACs and "
            f"{self.memory.sram:,} bytes of SRAM>"
        )

    def __str__(self) -> str:
        rows = self._rows()
        width = max(len(name) for name, _ in rows)
        return "\n".join(f"{name:<{width}}  {text}" for name, text in rows)

    def _repr_html_(self) -> str:
        rows = self._rows()
        return html_table(rows[0][1], ["", ""], rows[1:])

    def _rows(self) -> list[tuple[str, str]]:
        queries = ""
        if self.queries:
            queries = f", {counted(self.queries, 'query', 'queries')} for each image and layer"
        forwards = self.batch * self.work.forwards
        queried = f", {forwards:,} perturbed forwards" if forwards else ""
        parts = [f"{getattr(self.memory, part):,} {name}" for part, name in PARTS.items()]
        there = ", ".join(part for part in parts if not part.startswith("0 "))
        return [
            ("method", f"{self.method}: batch {self.batch}{queries}"),
            (
                "trained",
                f"{self.weights:,} weights and {self.biases:,} biases of "
                f"{counted(len(self.layers), 'layer')}",
            ),
            ("a step", f"{self.step_macs:,} MACs{queried}"),
            ("SRAM", f"{self.memory.sram:,} bytes: {there}"),
            ("flash", f"{self.memory.flash:,} bytes of frozen weights and biases"),
        ]

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


def profile_method(
    model: Model, method: str, *, scheme: str | None = None, **changes: Any
) -> Profile:
    """Count the work and memory of a method of :data:`METHODS`.

    ``scheme`` is, for ``mcutrain`` and ``tinytrain``, a published scheme of MCUNet or a JSON file;
    by default the method's. Changes are options that differ from the method's; those that are None,
    and queries where there are none, are left out. A ValueError or OSError says that the method, a
    layer or the scheme is unknown or cannot be read, or that a number is out of range.
    """
    return profile(model, method, method_trainer(model, method, scheme, changes))


def profile(model: Model, method: str, trainer: Trainer) -> Profile:
    """Count the work and memory of a trainer, for a method of this name.

    A ValueError says that a layer is unknown, or that what is trained is not decided before the
    data is seen; a TypeError that the trainer's options are neither those of zeroth-order training
    nor of back-propagation.
    """
    if isinstance(trainer.options, TrainingOptions):
        return _zeroth_order(model, method, trainer.options)
    if isinstance(trainer, BackpropTrainer):
        return _backward(model, method, trainer)
    raise TypeError(f"method {method}: a {type(trainer).__name__} has no profile")


def analytic_bytes(model: Model, profile: Profile) -> int:
    """Return the RAM of a method as the paper counts it ("Peak Memory" of the hardware cost).

    With forward passes only: the trained parameters and the activations that are alive at once in
    inference. For back-propagation the lower bound of :func:`backward_memory`.
    """
    if profile.device is None:
        return profile.memory.sram
    activations = max(moment.total for moment in inference_moments(model))
    return activations + profile.memory.weights + profile.memory.biases


def zeroth_order_options(method: str, **changes: Any) -> TrainingOptions:
    """Return the options of a zeroth-order method; changes that are None are left out."""
    checked_word("method", method, _COMPARED)
    options = registry.options_of(method, **_without_none(changes))
    assert isinstance(options, TrainingOptions)
    return options


def profiled_method(name: str) -> Method:
    """Return a method of :data:`METHODS`; a ValueError says that it is none of them."""
    return registry.method(checked_word("method", name, METHODS))


def _without_none(changes: dict[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in changes.items() if value is not None}


def method_trainer(
    model: Model, method: str, scheme: str | None, changes: dict[str, Any]
) -> Trainer:
    """Return the trainer of :func:`profile_method`; errors as there."""
    changes = _without_none(changes)
    profiled_method(method)
    if method in BACKPROP:
        changes.pop("queries", None)
    if method == "bp_last_layer":
        changes.setdefault("layers", _last_layer(model))
    if scheme and method in SCHEME_OPTIONS:
        changes[SCHEME_OPTIONS[method]] = scheme
    return registry.trainer(method, threads=1, **changes)


def _last_layer(model: Model) -> str:
    head = head_layer(model)
    if head is None:
        raise ValueError("the network ends in no linear layer; name the last one with layers")
    return next(layer.name for layer in model.layers if layer.index == head)


def _zeroth_order(model: Model, method: str, options: TrainingOptions) -> Profile:
    chosen = model.select_layers(options.layers)
    trained = [layer for layer in model.layers if layer.index in chosen]
    core = options.to_core()
    memory = zeroth_order_memory(model, core, chosen, batch=options.batch)
    device = _core.DeviceMemory(model.core, core, chosen, options.batch)
    restarts = device_restarts(model.core, core, chosen, device, options.batch)
    return Profile(
        method=method,
        layers=tuple(layer.name for layer in trained),
        weights=sum(layer.weights for layer in trained),
        biases=sum(layer.biases for layer in trained) if options.train_bias else 0,
        batch=options.batch,
        queries=options.queries,
        work=replace(zeroth_order_work(model.core, core, chosen), restarts=restarts),
        memory=memory,
        device=device,
        ops=tuple(chosen),
        options=options,
    )


def backward_arithmetic(options: BackpropOptions) -> Arithmetic:
    """Return the bytes of numbers that options of back-propagation ask for."""
    floats = options.arithmetic == "float32"
    return Arithmetic(
        value=4 if floats else 1,
        state=4 if options.momentum > 0.0 else 0,
        shadow=4 if options.rounding == "shadow" and not floats else 0,
    )


def _backward(model: Model, method: str, trainer: BackpropTrainer) -> Profile:
    options, scheme = trainer.options, trainer.scheme(model)
    arithmetic = backward_arithmetic(options)
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
