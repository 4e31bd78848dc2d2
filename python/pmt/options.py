"""Every choice of the trainer, and the two presets."""

from __future__ import annotations

import dataclasses
import math
from dataclasses import dataclass
from typing import Any, Literal

from pmt import _core

__all__ = ["PRESETS", "TrainingOptions", "preset"]


@dataclass(frozen=True)
class TrainingOptions:
    """Options of a training run. Values are those of the ``default`` preset.

    Attributes
    ----------
    layers : str
        What to train: names of blocks or layers, separated by commas.
    epochs : int
        Passes over the data.
    macs : int
        Budget of multiply-accumulates. If it is not 0, training ends after the last whole step
        within it instead of after ``epochs``, and the learning rate's schedule spans it.
    batch : int
        Samples of a step.
    queries : int
        Perturbed forwards for each sample and layer (the query budget), 1..4096.
    learning_rate : float
        With ``step="normalised"`` the root mean square of a layer's update in weight steps; with
        ``step="gradient"`` the factor of the scaled gradient.
    final_learning_rate : float
        Fraction of ``learning_rate`` that the cosine schedule ends at; 1 keeps it constant.
    warmup_epochs : int
        First epochs of the run, in which the learning rate rises from 0 along a line.
    seed : int
        Seed of everything random, 0..2**32-1 (not 0 with ``generator="xorshift32"``).
    mu_weight, mu_node : int
        Size of a perturbation in weight steps, in output steps; 1..64.
    generator : {"philox", "xorshift32"}
        Random numbers of the perturbations.
    directions : {"rademacher", "hadamard", "coordinate"}
        Directions of a layer's queries: independent random signs; rows of a Hadamard matrix times
        one set of random signs, which are orthogonal; or one weight, bias or node a query
        (coordinate-wise gradient estimation), which takes as many queries as there are of them,
        whatever ``queries`` and ``baseline`` say.
    pairs : {"one_sided", "antithetic"}
        ``antithetic`` queries every direction forwards and backwards; ``queries`` must be even.
    hadamard_index : {"per_sample", "running"}
        Rows of a sample with ``directions="hadamard"``: from the first, with signs of its own; or
        from where the sample before it stopped, with the signs of the whole batch.
    sparsity : float
        Share of a layer's weights, drawn at random, that a step neither perturbs nor changes;
        0 <= sparsity < 1.
    mask_interval : int
        Steps from one draw of those weights to the next.
    mask_epochs : int
        Epochs from one draw to the next, instead of ``mask_interval``; 0 leaves it in force.
    scope : {"layer_wise", "model_wise"}
        Perturb one layer at a time, or all of them in every query.
    baseline : {"clean", "leave_one_out"}
        What a query's loss is compared with: the unperturbed loss, or the other queries' mean.
    mu : {"fixed", "calibrated"}
        ``calibrated`` gives each layer the smallest of 1, 2, 4 and 8 at which the rounding noise of
        int8 is at most half of the signal, measured, instead of ``mu_weight`` and ``mu_node``.
    mu_per_channel : bool
        Scale the size of a weight perturbation by channel, 1..8 steps, so that all channels move as
        far in real numbers; dead channels are not perturbed.
    allocation : {"uniform", "variance"}
        Queries of a layer: ``queries`` for all; or, at the same multiply-accumulates, those that
        make the summed squared error of the gradients smallest, measured.
    rule : {"by_dimension", "weight", "node", "measured"}
        Which estimator a layer gets; ``measured`` takes the one with the smaller squared error.
    node_dimension : {"output", "input"}
        Which activation counts as a layer's node dimension in ``by_dimension``.
    node_ratio : float
        Node perturbation where ``nodes < node_ratio * weights``; 1 in the paper.
    sharing : {"per_sample", "batch"}
        Weight perturbations drawn for each sample, or once for the batch.
    gradient_norm_scaling : {"none", "queries_and_samples", "queries", "measured"}
        ``k / (k + d - 1)`` with ``k = NQ`` (paper Eq. 11) or ``k = Q``; or by the share of noise in
        a layer's gradient that its losses show, also for ``step="normalised"``.
    shrinkage_memory : float
        How much of that share is kept from step to step, 0 to below 1.
    quantisation_aware_scaling : bool
        Divide a gradient by its weight scale squared.
    rounding : {"nearest", "stochastic"}
        Rounding of an update to int8 steps.
    step : {"gradient", "normalised"}
        How the step's length is chosen.
    optimiser : {"sgd", "momentum", "adam"}
        What stands between a gradient and its step.
    momentum, adam_beta2 : float
        How much of the earlier gradients (Adam's beta 1), and of their squares, is kept from step
        to step, 0 to below 1.
    train_weights : bool
        Train weights; without, biases alone, at no memory for weights' gradients.
    train_bias : bool
        Train biases too.
    int8_logits : bool
        The loss sees the int8 output instead of the last layer's accumulators.
    align_images : int
        Align the model to that many training images before the first step, 0..100,000 (see
        :mod:`pmt.alignment`); 0 does not, and a model that holds no statistics of clean images is
        left as it is.
    align_windows, align_reliability : bool
        Align windows too, not channels alone; and, with windows, weigh channels by their
        reliability, where the images hold noise.
    aligned_learning_rate : float
        Fraction of ``learning_rate`` that is taken after an alignment, above 0 to 1: what is left
        to learn is finer.
    head_epochs : int
        Train a linear head alone before the first step, so many passes over features that are
        computed once (see :mod:`pmt.linear_head`), 0..1,000,000; 0 does not, and neither is it
        done where the head is not trained or its gradient not exact.
    calibration_steps : int
        Steps from a measurement of ``mu``, ``allocation`` and ``rule`` to the next.
    probe_samples, probe_queries : int
        Of a measurement: images of the step's batch, at most; perturbed forwards for each image,
        layer, estimator and size of perturbation, 2..4096.
    """

    layers: str = "all"
    epochs: int = 10
    macs: int = 0
    batch: int = 50
    queries: int = 100
    learning_rate: float = 0.5
    final_learning_rate: float = 0.1
    warmup_epochs: int = 0
    seed: int = 1
    mu_weight: int = 4
    mu_node: int = 4
    generator: Literal["philox", "xorshift32"] = "philox"
    directions: Literal["rademacher", "hadamard", "coordinate"] = "rademacher"
    pairs: Literal["one_sided", "antithetic"] = "one_sided"
    hadamard_index: Literal["per_sample", "running"] = "per_sample"
    sparsity: float = 0.0
    mask_interval: int = 1
    mask_epochs: int = 0
    scope: Literal["layer_wise", "model_wise"] = "layer_wise"
    baseline: Literal["clean", "leave_one_out"] = "leave_one_out"
    mu: Literal["fixed", "calibrated"] = "fixed"
    mu_per_channel: bool = False
    allocation: Literal["uniform", "variance"] = "uniform"
    rule: Literal["by_dimension", "weight", "node", "measured"] = "by_dimension"
    node_dimension: Literal["output", "input"] = "output"
    node_ratio: float = 10.0
    sharing: Literal["per_sample", "batch"] = "per_sample"
    gradient_norm_scaling: Literal["none", "queries_and_samples", "queries", "measured"] = "none"
    shrinkage_memory: float = 0.9
    quantisation_aware_scaling: bool = True
    rounding: Literal["nearest", "stochastic"] = "stochastic"
    step: Literal["gradient", "normalised"] = "normalised"
    optimiser: Literal["sgd", "momentum", "adam"] = "sgd"
    momentum: float = 0.9
    adam_beta2: float = 0.999
    train_weights: bool = True
    train_bias: bool = True
    int8_logits: bool = False
    align_images: int = 1000
    align_windows: bool = True
    align_reliability: bool = True
    aligned_learning_rate: float = 0.1
    head_epochs: int = 12
    calibration_steps: int = 20
    probe_samples: int = 32
    probe_queries: int = 16

    def __post_init__(self) -> None:
        loo = self.baseline == "leave_one_out"
        xorshift = self.generator == "xorshift32"
        for name, low, high, why in (
            ("epochs", 1, 10**6, ""),
            ("macs", 0, 10**18, "0 is no budget"),
            ("align_images", 0, 10**5, ""),
            ("head_epochs", 0, 10**6, ""),
            ("warmup_epochs", 0, 10**6, ""),
            ("batch", 1, 10**6, ""),
            ("queries", 2 if loo else 1, 4096, "leave-one-out compares two" if loo else ""),
            ("mu_weight", 1, 64, ""),
            ("mu_node", 1, 64, ""),
            ("mask_interval", 1, 10**6, ""),
            ("mask_epochs", 0, 10**6, ""),
            ("calibration_steps", 1, 10**6, ""),
            ("probe_samples", 1, 10**6, ""),
            ("probe_queries", 2, 4096, "a variance needs two"),
            ("seed", int(xorshift), 2**32 - 1, "XORShift32 cannot leave 0" if xorshift else ""),
        ):
            _check_integer(name, getattr(self, name), low, high, why)
        for name in ("learning_rate", "node_ratio"):
            value = getattr(self, name)
            if not math.isfinite(value) or value <= 0.0:
                raise ValueError(f"{name}={value!r} must be a finite number > 0")
        for name in _FRACTIONS:
            if not 0.0 <= getattr(self, name) < 1.0:
                raise ValueError(f"{name}={getattr(self, name)!r} must be 0 <= x < 1")
        if not self.train_weights and not self.train_bias:
            raise ValueError(
                "train_weights=False, train_bias=False train nothing; set one of them to True"
            )
        if not self.train_weights and self.is_measured:
            raise ValueError(
                "train_weights=False does not go with mu='calibrated', allocation='variance' or "
                "rule='measured': they measure weights; leave them at their fixed values"
            )
        if not 0.0 < self.aligned_learning_rate <= 1.0:
            raise ValueError(
                f"aligned_learning_rate={self.aligned_learning_rate!r} must be above 0, at most 1, "
                "a fraction of learning_rate"
            )
        if not 0.0 <= self.final_learning_rate <= 1.0:
            raise ValueError(
                f"final_learning_rate={self.final_learning_rate!r} must be 0..1, a fraction of "
                "learning_rate"
            )
        for name, enumeration in _ENUMERATIONS.items():
            value = getattr(self, name)
            if value not in enumeration.__members__:
                valid = ", ".join(enumeration.__members__)
                raise ValueError(f"{name}={value!r} is unknown; choose one of {valid}")

        if self.is_measured and self.scope == "model_wise":
            raise ValueError(
                "scope='model_wise' perturbs all layers at once, so that none can be measured; use "
                "scope='layer_wise', or mu='fixed', allocation='uniform' and another rule"
            )
        self._check_directions()

    def _check_directions(self) -> None:
        if not 0.0 <= self.sparsity < 1.0:
            raise ValueError(
                f"sparsity={self.sparsity!r} must be 0 <= sparsity < 1, the share of weights that "
                "a step leaves out"
            )
        coordinate = self.directions == "coordinate"
        measured = self.is_measured or self.gradient_norm_scaling == "measured"
        if coordinate and (self.scope == "model_wise" or measured):
            raise ValueError(
                "directions='coordinate' moves one coordinate of one layer at a time, with nothing "
                "to measure; use scope='layer_wise', mu='fixed', allocation='uniform', another "
                "rule and another gradient_norm_scaling"
            )
        if self.pairs == "antithetic":
            if coordinate:
                raise ValueError(
                    "pairs='antithetic' does not go with directions='coordinate', which moves each "
                    "coordinate one way; use pairs='one_sided'"
                )
            if self.queries % 2 != 0 or self.allocation != "uniform":
                raise ValueError(
                    f"pairs='antithetic' takes two queries a direction: queries={self.queries} "
                    f"must be even and allocation={self.allocation!r} 'uniform'"
                )
        shared = self.sharing == "batch"
        if self.hadamard_index == "running" and (self.directions != "hadamard" or shared):
            raise ValueError(
                "hadamard_index='running' numbers the Hadamard rows of all samples; use it with "
                "directions='hadamard' and sharing='per_sample'"
            )

    @property
    def is_measured(self) -> bool:
        """Whether layers get settings of their own from what probes measure."""
        measured = (self.mu, self.allocation, self.rule)
        return any(value in measured for value in ("calibrated", "variance", "measured"))

    def for_samples(self, samples: int) -> TrainingOptions:
        """Return the options with ``mask_epochs`` counted in steps, for a training set's size."""
        if self.mask_epochs == 0:
            return self
        steps = self.mask_epochs * max(samples // self.batch, 1)
        return self.replace(mask_interval=min(steps, 10**6), mask_epochs=0)

    def to_core(self) -> _core.Options:
        """Return the core's option block; for steps, of options that are :meth:`for_samples`."""
        options = _core.Options()
        for name in (*_NUMBERS, *_FRACTIONS):
            setattr(options, name, getattr(self, name))
        for name in _FLAGS:
            setattr(options, name, int(getattr(self, name)))
        for name, enumeration in _ENUMERATIONS.items():
            setattr(options, name, enumeration[getattr(self, name)])
        return options

    def replace(self, **changes: Any) -> TrainingOptions:
        """Return a copy with some options changed.

        Raises
        ------
        ValueError
            If an option is unknown or its value is outside its range.
        """
        known = [field.name for field in dataclasses.fields(self)]
        for name in changes:
            if name not in known:
                raise ValueError(f"unknown option {name!r}; options are {', '.join(known)}")
        return dataclasses.replace(self, **changes)


_FRACTIONS = ("momentum", "adam_beta2", "shrinkage_memory")
_FLAGS = (
    "quantisation_aware_scaling",
    "train_weights",
    "train_bias",
    "int8_logits",
    "mu_per_channel",
)
_NUMBERS = (
    "seed",
    "queries",
    "mu_weight",
    "mu_node",
    "node_ratio",
    "sparsity",
    "mask_interval",
    "probe_samples",
    "probe_queries",
)

_ENUMERATIONS: dict[str, Any] = {
    "generator": _core.Generator,
    "directions": _core.Directions,
    "pairs": _core.Pairs,
    "hadamard_index": _core.HadamardIndex,
    "scope": _core.Scope,
    "baseline": _core.Baseline,
    "mu": _core.MuRule,
    "allocation": _core.Allocation,
    "rule": _core.EstimatorRule,
    "node_dimension": _core.NodeDimension,
    "sharing": _core.Sharing,
    "gradient_norm_scaling": _core.GradientNormScaling,
    "rounding": _core.Rounding,
    "step": _core.Step,
    "optimiser": _core.Optimiser,
}

PRESETS: dict[str, dict[str, Any]] = {
    "default": {},
    # As printed: sections 3.1 and 3.2, Eq. 8 and 11, section 4.1 for batch, rate and sharing.
    "paper": {
        "batch": 100,
        "learning_rate": 0.01,
        "final_learning_rate": 0.0,
        "mu_weight": 1,
        "mu_node": 1,
        "generator": "xorshift32",
        "baseline": "clean",
        "node_dimension": "input",
        "node_ratio": 1.0,
        "sharing": "batch",
        "gradient_norm_scaling": "queries_and_samples",
        "rounding": "nearest",
        "step": "gradient",
        "align_images": 0,
        "head_epochs": 0,
    },
}


def preset(name: str, **changes: Any) -> TrainingOptions:
    """Return a preset, with some options changed.

    Parameters
    ----------
    name : {"default", "paper"}
        ``default`` is what measured best; ``paper`` is the method as printed.
    **changes
        Fields of :class:`TrainingOptions`.

    Returns
    -------
    TrainingOptions
        The options.

    Raises
    ------
    ValueError
        If the preset or an option is unknown, or a value is outside its range.
    """
    if name not in PRESETS:
        raise ValueError(f"preset={name!r} is unknown; choose one of {', '.join(PRESETS)}")
    unknown = [key for key in changes if key not in TrainingOptions.__dataclass_fields__]
    if unknown:
        known = ", ".join(TrainingOptions.__dataclass_fields__)
        raise ValueError(f"unknown option {unknown[0]!r}; options are {known}")
    return TrainingOptions(**{**PRESETS[name], **changes})


def _check_integer(name: str, value: object, low: int, high: int, why: str) -> None:
    if isinstance(value, bool) or not isinstance(value, int):
        raise TypeError(f"{name}={value!r} must be an int")
    if not low <= value <= high:
        reason = f" ({why})" if why else ""
        raise ValueError(f"{name}={value!r} must be {low}..{high}{reason}")
