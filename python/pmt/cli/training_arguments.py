"""The options of the trainer as arguments: one for each field of TrainingOptions."""

from __future__ import annotations

import argparse
import dataclasses
from collections.abc import Callable, Sequence
from typing import Any

from pmt import methods
from pmt.options import PRESETS, TrainingOptions, preset
from pmt.training_run import Trainer

__all__ = [
    "add_layers",
    "add_method",
    "add_training_options",
    "chosen_trainer",
    "given_options",
    "training_options",
]

_HELP: dict[str, tuple[str, str]] = {
    "epochs": ("N", "passes over the training images"),
    "macs": (
        "N",
        "budget of multiply-accumulates, for example 2e12: training ends after the last whole step "
        "within it, not after --epochs; 0 is none",
    ),
    "batch": ("N", "images of a step"),
    "queries": ("Q", "perturbed forwards for each image and layer, 1..4096"),
    "learning_rate": (
        "R",
        "with --step normalised the root mean square of a layer's update in weight steps; with "
        "--step gradient the factor of the scaled gradient",
    ),
    "final_learning_rate": (
        "F",
        "end of the cosine schedule, as a fraction of --learning-rate; 1 keeps the rate",
    ),
    "warmup_epochs": ("N", "first epochs, in which the learning rate rises along a line"),
    "seed": ("S", "seed of everything random in training, 0..2^32-1"),
    "mu_weight": ("M", "size of a weight perturbation, in weight steps, 1..64"),
    "mu_node": ("M", "size of a node perturbation, in output steps, 1..64"),
    "generator": ("NAME", "random numbers of the perturbations: philox or xorshift32"),
    "directions": (
        "NAME",
        "directions of the queries: random signs, orthogonal rows, or one coordinate each: "
        "rademacher, hadamard or coordinate",
    ),
    "pairs": (
        "NAME",
        "query each direction forwards, or forwards and backwards: one_sided or antithetic",
    ),
    "hadamard_index": (
        "NAME",
        "Hadamard rows of an image: from the first, or on from the image before: per_sample or "
        "running",
    ),
    "sparsity": ("X", "share of a layer's weights that a step leaves out at random, 0 <= X < 1"),
    "mask_interval": ("N", "steps from one draw of the weights left out to the next"),
    "mask_epochs": ("N", "the same in epochs, instead of --mask-interval; 0 is none"),
    "scope": ("NAME", "perturb one layer at a time or all of them: layer_wise or model_wise"),
    "baseline": (
        "NAME",
        "what a query's loss is compared with, the unperturbed loss or the other queries' mean: "
        "clean or leave_one_out",
    ),
    "mu": (
        "NAME",
        "size of a layer's perturbations, --mu-weight and --mu-node or measured: fixed or "
        "calibrated",
    ),
    "mu_per_channel": ("", "scale weight perturbations by channel, so that all move as far"),
    "allocation": (
        "NAME",
        "queries of a layer, the same for all or, at the same cost, as their measured errors "
        "want: uniform or variance",
    ),
    "rule": (
        "NAME",
        "which estimator a layer gets: by_dimension, weight, node or measured (by its error)",
    ),
    "node_dimension": (
        "NAME",
        "activation that counts as a layer's nodes in the rule by_dimension: output or input",
    ),
    "node_ratio": ("X", "node perturbation where nodes < X * weights"),
    "sharing": (
        "NAME",
        "weight perturbations drawn for each image or for the batch: per_sample or batch",
    ),
    "gradient_norm_scaling": (
        "NAME",
        "factor k / (k + d - 1), k = images * queries or queries, or the share of a layer's "
        "gradient that is no noise: none, queries_and_samples, queries or measured",
    ),
    "shrinkage_memory": ("X", "how much of the measured share is kept from step to step, 0..1"),
    "quantisation_aware_scaling": ("", "divide a gradient by its weight scale squared"),
    "rounding": ("NAME", "rounding of an update to weight steps: nearest or stochastic"),
    "step": ("NAME", "how the length of a step is chosen: gradient or normalised"),
    "optimiser": (
        "NAME",
        "what stands between a gradient and its step: sgd (nothing), momentum or adam",
    ),
    "momentum": ("X", "share of earlier gradients kept from step to step, 0..1; Adam's beta 1"),
    "adam_beta2": ("X", "the same of their squares, for Adam"),
    "train_weights": ("", "train weights; without them biases alone, in less memory"),
    "train_bias": ("", "train biases too"),
    "calibration_steps": (
        "N",
        "steps from a measurement of --mu, --allocation and --rule to the next",
    ),
    "probe_samples": ("N", "images of a measurement, at most those of a step"),
    "probe_queries": (
        "Q",
        "perturbed forwards of a measurement for each image, layer, estimator and size, 2..4096",
    ),
    "int8_logits": ("", "the loss sees the int8 output, not the last layer's accumulators"),
    "align_images": (
        "N",
        "first align the model to N training images, as `pmt align` does, without their labels; "
        "0: do not",
    ),
    "align_windows": ("", "align windows too, not channels alone"),
    "align_reliability": (
        "",
        "with windows, weigh channels by their reliability too where the images hold noise",
    ),
    "aligned_learning_rate": ("X", "fraction of the learning rate after an alignment"),
    "head_epochs": (
        "N",
        "before the first step train a linear head alone, N passes over features that are computed "
        "once; 0: do not",
    ),
}


def add_layers(parser: argparse.ArgumentParser) -> None:
    """Add the choice of what to train."""
    group = parser.add_mutually_exclusive_group()
    group.add_argument(
        "--layers",
        metavar="SPEC",
        help="names of blocks or layers, separated by commas, for example B2,head (default: all)",
    )
    group.add_argument("--block", metavar="N", type=int, help="short for --layers BN")


def add_method(parser: argparse.ArgumentParser) -> None:
    """Add the choice of the method, and options of it that have no argument of their own."""
    parser.add_argument(
        "--method",
        metavar="NAME",
        help="method by name, whose options are then the defaults, instead of --preset: "
        f"{', '.join(methods.METHODS)}",
    )
    parser.add_argument(
        "--set",
        metavar="OPTION=VALUE",
        action="append",
        help="an option of the method that has no argument here; may be given several times",
    )


def add_training_options(parser: argparse.ArgumentParser, *, without: Sequence[str] = ()) -> None:
    """Add the preset and every option of the trainer; unset ones are the preset's."""
    group = parser.add_argument_group("training")
    group.add_argument(
        "--preset",
        metavar="NAME",
        help="default (what measured best) or paper (the method as printed) (default: default)",
    )
    for field in dataclasses.fields(TrainingOptions):
        if field.name == "layers" or field.name in without:
            continue
        metavar, text = _HELP[field.name]
        flag = f"--{field.name.replace('_', '-')}"
        if isinstance(field.default, bool):
            group.add_argument(
                flag,
                dest=field.name,
                action=argparse.BooleanOptionalAction,
                help=f"{text} ({_defaults(field.name)})",
            )
        else:
            group.add_argument(
                flag,
                dest=field.name,
                metavar=metavar,
                type=_converter(type(field.default)),
                help=f"{text} ({_defaults(field.name)})",
            )


def given_options(arguments: argparse.Namespace) -> dict[str, Any]:
    """Return the options that the command line sets, by their field."""
    given = {
        field.name: getattr(arguments, field.name, None)
        for field in dataclasses.fields(TrainingOptions)
    }
    if getattr(arguments, "block", None) is not None:
        given["layers"] = f"B{arguments.block}"
    return {name: value for name, value in given.items() if value is not None}


def training_options(arguments: argparse.Namespace) -> TrainingOptions:
    """Return the preset with the options that the command line sets."""
    return preset(arguments.preset or "default", **given_options(arguments))


def chosen_trainer(arguments: argparse.Namespace) -> Trainer:
    """Return the trainer of the method or preset, with the options that the command line sets.

    Raises
    ------
    ValueError, TypeError
        If the method or an option is unknown, or an option is outside its range.
    ImportError
        If the method needs a package that is missing.
    """
    if arguments.method is not None and arguments.preset is not None:
        raise ValueError("--method and --preset exclude each other: leave one out")
    name = arguments.method or arguments.preset or "default"
    if arguments.method is None and name not in PRESETS:
        raise ValueError(f"preset={name!r} is unknown; choose one of {', '.join(PRESETS)}")
    given = {**given_options(arguments), **_set_options(name, arguments.set or [])}
    return methods.trainer(name, threads=arguments.threads, **given)


def _set_options(method: str, assignments: list[str]) -> dict[str, Any]:
    values = {}
    known = dataclasses.asdict(methods.options_of(method))
    for assignment in assignments:
        name, separator, text = assignment.partition("=")
        name = name.strip().replace("-", "_")
        if not separator or name not in known:
            raise ValueError(
                f"--set {assignment}: must be OPTION=VALUE, with an option of {method}: "
                f"{', '.join(known)}"
            )
        try:
            values[name] = _value(text.strip(), type(known[name]))
        except (ValueError, argparse.ArgumentTypeError) as error:
            raise ValueError(f"--set {assignment}: {error}") from None
    return values


def _value(text: str, kind: type) -> Any:
    if kind is not bool:
        return _converter(kind)(text)
    if text not in ("yes", "no", "true", "false"):
        raise ValueError(f"{text!r} must be yes or no")
    return text in ("yes", "true")


def _converter(kind: type) -> Callable[[str], Any]:
    def convert(text: str) -> Any:
        try:
            if kind is int and "e" in text:  # 2e12, as one writes a budget
                return _whole(float(text))
            return kind(text)
        except ValueError:
            wanted = "a whole number" if kind is int else "a number"
            raise argparse.ArgumentTypeError(f"{text!r} must be {wanted}") from None

    return convert


def _whole(value: float) -> int:
    if not value.is_integer():
        raise ValueError
    return int(value)


def _defaults(name: str) -> str:
    def shown(value: Any) -> str:
        return {True: "yes", False: "no"}[value] if isinstance(value, bool) else str(value)

    default = shown(getattr(preset("default"), name))
    if name not in PRESETS["paper"]:
        return f"default: {default}"
    return f"default: {default}; paper: {shown(getattr(preset('paper'), name))}"
