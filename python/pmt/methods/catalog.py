"""Every method of pmt: its principle, its source, its trainer, and the options that make it."""

import importlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from pmt import _core
from pmt._util.arrays import Int8Array, Int64Array
from pmt._util.text import html_table
from pmt.baselines.backprop.options import PRESETS
from pmt.baselines.backprop.options import Preset as BackpropPreset
from pmt.model import Model
from pmt.train.costs.work import Cost
from pmt.train.option_fields import Options
from pmt.train.options import Preset
from pmt.train.prepare.preparation import ALIGN_IMAGES, PREPARATION, PreparationName
from pmt.train.schedule import Schedule
from pmt.train.stepper import Stepper, batch_figures
from pmt.train.trainer import Trainer


@dataclass(frozen=True)
class Kind:
    """A kind of trainer: its ``name`` in a run folder's ``config.toml``, and its class.

    ``trainer`` is the class or where it is, ``"module:Class"``, imported when it is needed.
    ``chooses_layers`` says that it chooses what it trains, instead of being told ``layers``.
    """

    name: str
    trainer: str | type[Trainer]
    chooses_layers: bool = False

    def trainer_class(self) -> type[Trainer]:
        """Return the class of the trainer, imported if need be."""
        if not isinstance(self.trainer, str):
            return self.trainer
        module, _, name = self.trainer.partition(":")
        found: type[Trainer] = getattr(importlib.import_module(module), name)
        return found

    def options_class(self) -> type[Any]:
        """Import the class of the trainer's options."""
        return self.trainer_class().options_class


_ZEROTH_ORDER = Kind("zeroth_order", "pmt.train.zo_trainer:ZOTrainer")


@dataclass(frozen=True, repr=False)
class Method:
    """A method.

    Attributes
    ----------
    summary : str
        Its principle, in a line.
    source : str
        Publication, and where in it.
    kind : Kind
        Kind of trainer.
    options : dict
        Options that differ from those of the kind (with ``preset``, from the preset's).
    preset : str
        For zeroth-order methods, the preset that ``options`` start from.
    """

    summary: str
    source: str
    kind: Kind = _ZEROTH_ORDER
    options: Mapping[str, Any] = field(default_factory=dict)
    preset: Preset = "default"

    def __repr__(self) -> str:
        settings = "; ".join(f"{name} {text}" for name, text in self._rows()[1:])
        return f"<Method {self.summary}; {settings}>"

    def __str__(self) -> str:
        rows = self._rows()
        width = max(len(name) for name, _ in rows)
        return "\n".join([self.summary, *(f"{name:<{width}}  {text}" for name, text in rows)])

    def _repr_html_(self) -> str:
        return html_table(self.summary, ["", ""], self._rows())

    def _rows(self) -> list[tuple[str, str]]:
        trainer = self.kind.name
        if trainer == _ZEROTH_ORDER.name:
            trainer += f", preset {self.preset}"
        options = ", ".join(f"{name}={value!r}" for name, value in self.options.items())
        rows = [("source", self.source), ("trainer", trainer)]
        return [*rows, ("options", options)] if options else rows

    @property
    def own_layers(self) -> bool:
        """Whether the layers that it trains are part of the method."""
        return self.kind.chooses_layers or "layers" in self.options

    @property
    def own_queries(self) -> bool:
        """Whether the number of queries is part of the method."""
        return "queries" in self.options


_PAPER = "Zhao, Li, Young, Zhang: Poor Man's Training on MCUs (arXiv:2411.05873)"
_DEEPZERO = "Chen et al. 2024: DeepZero (arXiv:2310.02025)"
# The default's own additions, which methods of others do without.
_AS_PUBLISHED: dict[str, Any] = {"preparation": "none", "keep_best": False}
# Far from their goal, biases and head have more to learn than weights.
_UNPREPARED: dict[str, Any] = {"preparation": "none", "bias_rate": 10.0, "head_rate": 10.0}
# Steps that suit neither pooled nodes nor a prepared head.
_LONG_STEPS: dict[str, Any] = {"batch": 50, "learning_rate": 0.5, "head_rate": 1.0}
_COORDINATES = Kind("deepzero", "pmt.methods.deepzero:DeepZeroTrainer")

ZEROTH_ORDER: dict[str, Method] = {
    "default": Method("what measured best here", "this package, docs/concepts/algorithm.md"),
    "pooled": Method(
        "the default without preparation, biases and head much faster: for networks far from their "
        "new data",
        "this package, docs/concepts/algorithm.md",
        options=_UNPREPARED,
    ),
    "paper": Method(
        "weight or node perturbation by dimension, layer by layer",
        f"{_PAPER}, sections 3.1 and 3.2, as printed",
        preset="paper",
    ),
    "released": Method(
        "weights and biases apart, or free nodes, layer by layer",
        f"{_PAPER}, as its authors released it: https://github.com/olokevin/tiny-training",
        preset="released",
    ),
    "weight_layer_wise": Method(
        "weight perturbation, layer by layer",
        f"{_PAPER}, section 3.2.2",
        preset="paper",
        options={"rule": "weight"},
    ),
    "node_layer_wise": Method(
        "node perturbation, layer by layer",
        f"{_PAPER}, section 3.2.2",
        preset="paper",
        options={"rule": "node"},
    ),
    "weight_model_wise": Method(
        "weight perturbation of all layers at once",
        f"{_PAPER}, section 3.2.2",
        preset="paper",
        options={"rule": "weight", "scope": "model_wise"},
    ),
    "node_model_wise": Method(
        "node perturbation of all layers at once",
        f"{_PAPER}, section 3.2.2",
        preset="paper",
        options={"rule": "node", "scope": "model_wise"},
    ),
    "mezo": Method(
        "one direction per step for all layers and images, forwards and backwards",
        "Malladi et al. 2023: MeZO (arXiv:2305.17333), algorithm 1, on the integers",
        options={
            **_AS_PUBLISHED,
            "batch": 50,
            "queries": 2,
            "pairs": "antithetic",
            "scope": "model_wise",
            "rule": "weight",
            "sharing": "batch",
            "baseline": "clean",
            "step": "gradient",
            "mu_weight": 1,
            "head_rate": 1.0,
            "learning_rate": 1e-5,
            "final_learning_rate": 1.0,
        },
    ),
    "deepzero": Method(
        "the weights' gradient, one weight per query, with momentum",
        f"{_DEEPZERO}, coordinate-wise estimation without pruning",
        _COORDINATES,
    ),
    "deepzero_sparse": Method(
        "the same for a tenth of the weights, drawn anew every five epochs",
        f"{_DEEPZERO}, random gradient sparsity of 0.9",
        _COORDINATES,
        {"sparsity": 0.9},
    ),
    "bias_only": Method(
        "biases only, by one sign per channel",
        "Cai et al. 2020, TinyTL (arXiv:2007.11622), with zeroth-order gradients",
        options={**_UNPREPARED, "train_weights": False},
    ),
    "last_layer": Method(
        "the last linear layer, by its exact gradient",
        "softmax regression on the features of the network",
        options={**_AS_PUBLISHED, **_LONG_STEPS, "layers": "head"},
    ),
}

_BACKPROP = Kind("backprop", "pmt.baselines.backprop.trainer:BackpropTrainer")
_SPARSE = "pmt.baselines.sparse_update.trainer"
_MCUTRAIN = "Lin et al. 2022, On-device training under 256KB memory (arXiv:2206.15472)"

_SUMMARIES: dict[BackpropPreset, tuple[str, str]] = {
    "bp_fp32": ("all layers of the float network", "stochastic gradient descent"),
    "bp_int8": (
        "all layers in int8, with really rounded weights",
        f"{_MCUTRAIN}, with the stored weights rounded",
    ),
    "bp_int8_shadow": ("all layers in int8, with float32 copies of the weights", _MCUTRAIN),
    "bp_bias_only": ("biases only", "Cai et al. 2020, TinyTL (arXiv:2007.11622)"),
    "bp_last_layer": ("the last layer only", "softmax regression on the features"),
}

BACKPROP: dict[str, Method] = {
    **{
        name: Method(f"back-propagation: {trained}", source, _BACKPROP, PRESETS[name])
        for name, (trained, source) in _SUMMARIES.items()
    },
    "mcutrain": Method(
        "back-propagation: a fixed part of the network",
        f"{_MCUTRAIN}: sparse update, 100 KB scheme",
        Kind("mcutrain", f"{_SPARSE}:MCUTrainTrainer", chooses_layers=True),
    ),
    "tinytrain": Method(
        "back-propagation: layers and channels that matter most to the data",
        "Kwon et al. 2024, TinyTrain (arXiv:2307.09988)",
        Kind("tinytrain", f"{_SPARSE}:TinyTrainTrainer", chooses_layers=True),
    ),
}

_NO_ADAPTATION = Kind("no_adaptation", "pmt.methods.catalog:NoAdaptation")
UNTRAINED: dict[str, Method] = {
    "no_adaptation": Method(
        "the network as it is", "the lower bound of every comparison", _NO_ADAPTATION
    ),
    "preparation_only": Method(
        "an input stage, alignment and the exact head, no step after them",
        "the start of every method that begins with them",
        _NO_ADAPTATION,
        {"preparation": "input+align+head"},
    ),
}


@dataclass(frozen=True)
class NoAdaptationOptions(Options):
    """Options that all trainers have; only those of the preparation have an effect here."""

    layers: str = "all"
    epochs: int = 0
    macs: int = 0
    batch: int = 1
    learning_rate: float = 0.0
    final_learning_rate: float = 0.0
    seed: int = 1
    preparation: PreparationName = PREPARATION("none")
    align_images: int = ALIGN_IMAGES(1000)


class NoAdaptation(Trainer):
    """Measures the model on the held-out data, prepared at most, and takes no step.

    Options are those of the preparation; other methods' names are taken and do nothing, so that
    methods can be swapped.
    """

    name = "no_adaptation"
    options: NoAdaptationOptions
    options_class = NoAdaptationOptions

    @property
    def chooses_state(self) -> bool:
        """Whether a run may end in another state than its last; no, the preparation is asked."""
        return False

    def cost(self, model: Model, *, samples: int | None = None) -> Cost:
        """Return a cost of nothing."""
        return Cost(forwards=0, macs=0)

    def schedule(self, model: Model, samples: int, *, pixels: bool = True) -> Schedule:
        """Return a schedule of no steps, whatever the options say."""
        none = self.options.replace(epochs=0, macs=0, batch=1)
        return Schedule(none, samples)

    def stepper(self, model: Model, samples: int) -> Stepper:
        """Return a stepper that measures a batch and changes nothing; a run takes no such step."""
        return _Unchanged(model, self.threads)


class _Unchanged(Stepper):
    def __init__(self, model: Model, threads: int) -> None:
        self.model = model
        self.threads = threads

    def step(
        self, images: Int8Array, labels: Int64Array, step: int, learning_rate: float
    ) -> dict[str, Any]:
        losses, correct = _core.cross_entropy(self.model.core.logits(images, self.threads), labels)
        self.steps_taken += 1
        return {**batch_figures(losses, correct), "changed": 0}
