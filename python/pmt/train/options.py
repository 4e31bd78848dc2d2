"""Every choice of the trainer, and the presets."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from typing import Any, Literal, TypedDict

from pmt import _core
from pmt._util.checks import checked_word, kind_of
from pmt._util.optional_types import Unpack
from pmt.errors import OptionError
from pmt.train.losses import LossFunction, LossNames, core_word
from pmt.train.option_fields import (
    CORE,
    Options,
    Range,
    Values,
    document_options,
    option,
    refuse_unknown,
)
from pmt.train.prepare.preparation import ALIGN_IMAGES, PREPARATION, PreparationName
from pmt.train.run.head import CROSS_FIT, CrossFitting
from pmt.train.run.keep_best import HELD_OUT_SHARE, KEEP_BEST
from pmt.train.schedule import BATCH, EPOCHS, FINAL_LEARNING_RATE, LAYERS, LEARNING_RATES, MACS

# A test compares them with the core's words.
Generator = Literal["philox", "xorshift32"]
Pairs = Literal["one_sided", "antithetic"]
Scope = Literal["layer_wise", "model_wise"]
Baseline = Literal["clean", "leave_one_out"]
Rule = Literal["by_dimension", "weight", "node", "pooled"]
NodeDimension = Literal["output", "input"]
Nodes = Literal["all", "free"]
Sharing = Literal["per_sample", "batch"]
NormScaling = Literal["none", "queries_and_samples", "queries", "directions"]
Rounding = Literal["nearest", "stochastic"]
Step = Literal["gradient", "normalized"]
Loss = Literal["cross_entropy", "squared_error", "binary_cross_entropy", "entropy"]
Preset = Literal["default", "paper", "released"]


class OptionArguments(TypedDict, total=False):
    """Any of the fields of :class:`pmt.TrainingOptions`; a test compares them."""

    layers: str
    epochs: int
    macs: int
    batch: int
    queries: int
    learning_rate: float
    final_learning_rate: float
    seed: int
    mu_weight: int
    mu_node: int
    mu_bias: int
    generator: Generator
    pairs: Pairs
    scope: Scope
    baseline: Baseline
    rule: Rule
    bias_rate: float
    head_rate: float
    node_dimension: NodeDimension
    node_ratio: float
    nodes: Nodes
    sharing: Sharing
    separate_biases: bool
    gradient_norm_scaling: NormScaling
    quantization_aware_scaling: bool
    rounding: Rounding
    step: Step
    train_weights: bool
    train_bias: bool
    loss: Loss | LossFunction
    diversity: float
    preparation: PreparationName
    align_images: int
    cross_fit: CrossFitting
    keep_best: bool
    held_out_share: float


@document_options
@dataclass(frozen=True)
class TrainingOptions(Options):
    """Options of a training run. Values are those of the ``default`` preset."""

    layers: str = LAYERS("all")
    epochs: int = EPOCHS(10)
    macs: int = MACS(0)
    batch: int = BATCH(25)
    queries: int = option(
        8,
        "Q",
        "perturbed forwards for each image and layer, 2 or more with {baseline} leave_one_out",
        CORE,
    )
    learning_rate: float = option(
        0.1,
        "R",
        "with {step} normalized, the root mean square of a layer's update in weight steps; with "
        "{step} gradient, the factor of the scaled gradient",
        LEARNING_RATES,
    )
    final_learning_rate: float = FINAL_LEARNING_RATE(0.1)
    seed: int = option(1, "S", "seed of everything random in training", CORE)
    mu_weight: int = option(4, "M", "size of a weight perturbation, in weight steps", CORE)
    mu_node: int = option(
        2, "M", "size of a node perturbation, pooled or not, in output steps", CORE
    )
    mu_bias: int = option(
        0, "M", "size of a bias perturbation, in bias steps; 0: {mu_weight} output steps", CORE
    )
    generator: Generator = option("philox", "NAME", "random numbers of the perturbations", CORE)
    pairs: Pairs = option(
        "one_sided",
        "NAME",
        "query each direction forwards, or forwards and backwards, with {queries} even",
        CORE,
    )
    scope: Scope = option(
        "layer_wise", "NAME", "perturb one layer at a time, or all of them in every query", CORE
    )
    baseline: Baseline = option(
        "leave_one_out",
        "NAME",
        "loss that a query's loss is compared with: the unperturbed one, or the mean of the other "
        "queries",
        CORE,
    )
    rule: Rule = option(
        "pooled",
        "NAME",
        "estimator of each layer; pooled is node perturbation by one sign a channel",
        CORE,
    )
    bias_rate: float = option(
        1.0,
        "X",
        "learning rate of biases whose gradient is estimated, as a multiple of {learning_rate}; "
        "with {step} normalized, the product is the root mean square of their update in output "
        "steps",
        CORE,
    )
    head_rate: float = option(
        0.1,
        "X",
        "learning rate of a layer whose gradient is exact, as a multiple of {learning_rate}",
        CORE,
    )
    node_dimension: NodeDimension = option(
        "output", "NAME", "activation that counts as a layer's nodes in the rule by_dimension", CORE
    )
    node_ratio: float = option(
        10.0, "X", "with {rule} by_dimension, node perturbation where nodes < X * weights", CORE
    )
    nodes: Nodes = option(
        "free",
        "NAME",
        "nodes that node perturbation moves: all, or those that no clamp holds, as pooled always "
        "does",
        CORE,
    )
    sharing: Sharing = option(
        "per_sample",
        "NAME",
        "weight perturbations drawn for each image, or once for the batch",
        CORE,
    )
    separate_biases: bool = option(
        False,
        help="perturb weights and biases in queries of their own, half of them each (weights get "
        "the odd one)",
    )
    gradient_norm_scaling: NormScaling = option(
        "none",
        "NAME",
        "factor k / (k + d - 1) of a gradient; k = images * queries (paper Eq. 11), queries, or "
        "the directions that were drawn, with d the entries that each of them moves",
        CORE,
    )
    quantization_aware_scaling: bool = option(
        True, help="divide a gradient by its weight scale squared"
    )
    rounding: Rounding = option("stochastic", "NAME", "rounding of an update to weight steps", CORE)
    step: Step = option("normalized", "NAME", "how the length of a step is chosen", CORE)
    train_weights: bool = option(
        True,
        help="train weights; otherwise only biases, in less memory (except for a head that the "
        "{preparation} trains)",
    )
    train_bias: bool = option(True, help="train biases too")
    loss: str = option(
        "cross_entropy",
        "NAME",
        "loss to minimize; entropy, of the prediction, reads no labels",
        LossNames.of_core(),
    )
    diversity: float = option(
        0.0,
        "X",
        "with {loss} entropy, the weight of a second term: the negative entropy of the mean "
        "prediction on the previous batch",
        CORE,
    )
    preparation: PreparationName = PREPARATION("input+align+head")
    align_images: int = ALIGN_IMAGES(1000)
    cross_fit: CrossFitting = CROSS_FIT("auto")
    keep_best: bool = KEEP_BEST(True)
    held_out_share: float = HELD_OUT_SHARE(0.2)

    def __post_init__(self) -> None:
        super().__post_init__()
        if not self.train_weights and not self.train_bias:
            rule = "=False train nothing; train one of them"
            raise OptionError("train_weights", "=False and ", "train_bias", rule)
        if self.pairs == "antithetic" and self.queries % 2 != 0:
            raise ValueError(
                f"pairs='antithetic' takes two queries per direction: queries={self.queries} must "
                "be even"
            )

    def _values(self) -> dict[str, Values]:
        values = super()._values()
        if self.baseline == "leave_one_out":
            values["queries"] = _from(2, values["queries"], "leave-one-out compares two")
        if self.separate_biases and self.train_weights and self.train_bias:
            of_a_direction = 2 if self.pairs == "antithetic" else 1
            why = f"half of the {'pairs' if of_a_direction == 2 else 'queries'} move the biases"
            values["queries"] = _from(2 * of_a_direction, values["queries"], why)
        if self.generator == "xorshift32":
            values["seed"] = _from(1, values["seed"], "XORShift32 cannot leave 0")
        return values

    def to_core(self) -> _core.Options:
        """Return the core's option block."""
        options = _core.Options()
        for name in _core.option_values():
            if name in self.__dataclass_fields__ and name != "loss":
                setattr(options, name, getattr(self, name))
        options.loss = core_word(self.loss)
        return options


def _from(low: int, values: Values, why: str) -> Values:
    return dataclasses.replace(values, low=low, why=why) if isinstance(values, Range) else values


PRESETS: dict[Preset, dict[str, Any]] = {
    "default": {},
    # As printed: sections 3.1 and 3.2, Eq. 8 and 11, section 4.1 for batch, rate and sharing.
    "paper": {
        "batch": 100,
        "queries": 100,
        "rule": "by_dimension",
        "head_rate": 1.0,
        "learning_rate": 0.01,
        "final_learning_rate": 0.0,
        "mu_weight": 1,
        "mu_node": 1,
        "generator": "xorshift32",
        "baseline": "clean",
        "node_dimension": "input",
        "node_ratio": 1.0,
        "nodes": "all",
        "sharing": "batch",
        "gradient_norm_scaling": "queries_and_samples",
        "rounding": "nearest",
        "step": "gradient",
        "preparation": "none",
        "keep_best": False,
    },
}
# As its authors released it, https://github.com/olokevin/tiny-training, configs/cifar_10c.yaml.
# Blocks up to the fifth perturb weights there, later ones nodes. In the layers that it trains, the
# first pointwise convolutions of its network, this node_ratio gives the same.
PRESETS["released"] = {
    **PRESETS["paper"],
    "queries": 50,
    "learning_rate": 0.01 * 100 / 256,  # the rate of a batch of 256 images
    "mu_bias": 100,
    "mu_node": 5,
    "generator": "philox",
    "node_dimension": "output",
    "node_ratio": 10.0,
    "nodes": "free",
    "separate_biases": True,
    "gradient_norm_scaling": "directions",
}


def check_options(options: object, remedy: str = "pmt.preset('default') makes some") -> None:
    """Raise a TypeError, with its remedy, unless they are the options of a training."""
    if not isinstance(options, TrainingOptions):
        raise TypeError(f"options is {kind_of(options)}: must be pmt.TrainingOptions; {remedy}")


def preset(name: Preset, **changes: Unpack[OptionArguments]) -> TrainingOptions:
    """Return a preset, with some options changed.

    Parameters
    ----------
    name : {"default", "paper", "released"}
        ``default`` is what measured best; ``paper`` is the method as printed, ``released`` as its
        authors' code has it.
    **changes
        Fields of :class:`TrainingOptions`.

    Returns
    -------
    TrainingOptions
        The options.

    Raises
    ------
    TypeError
        If a value has another type than its option.
    ValueError
        If the preset or an option is unknown, or a value is outside its range.
    """
    checked_word("preset", name, PRESETS)
    refuse_unknown(TrainingOptions, changes)
    return TrainingOptions(**{**PRESETS[name], **changes})
