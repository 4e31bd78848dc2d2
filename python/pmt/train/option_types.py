"""Names and types of options as keyword arguments, for type checkers and editors."""

from __future__ import annotations

from typing import TypedDict

from pmt.train.losses import LossFunction


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
    generator: str
    pairs: str
    scope: str
    baseline: str
    rule: str
    bias_rate: float
    head_rate: float
    node_dimension: str
    node_ratio: float
    nodes: str
    sharing: str
    separate_biases: bool
    gradient_norm_scaling: str
    quantization_aware_scaling: bool
    rounding: str
    step: str
    train_weights: bool
    train_bias: bool
    loss: str | LossFunction
    diversity: float
    preparation: str
    align_images: int
    align_windows: bool
    align_reliability: bool
    cross_fit: bool
    keep_best: bool
    held_out_share: float
    backtrack: bool
