"""Types of the C++ module."""

from enum import IntEnum
from typing import Any

import numpy as np
import numpy.typing as npt

__version__: str
LOSS_ONE: int

class Generator(IntEnum):
    philox = 0
    xorshift32 = 1

class Directions(IntEnum):
    rademacher = 0
    hadamard = 1
    coordinate = 2

class Pairs(IntEnum):
    one_sided = 0
    antithetic = 1

class HadamardIndex(IntEnum):
    per_sample = 0
    running = 1

class Scope(IntEnum):
    layer_wise = 0
    model_wise = 1

class Baseline(IntEnum):
    clean = 0
    leave_one_out = 1

class EstimatorRule(IntEnum):
    by_dimension = 0
    weight = 1
    node = 2
    measured = 3

class NodeDimension(IntEnum):
    output = 0
    input = 1

class Sharing(IntEnum):
    per_sample = 0
    batch = 1

class GradientNormScaling(IntEnum):
    none = 0
    queries_and_samples = 1
    queries = 2
    measured = 3

class Optimiser(IntEnum):
    sgd = 0
    momentum = 1
    adam = 2

class Rounding(IntEnum):
    nearest = 0
    stochastic = 1

class Step(IntEnum):
    gradient = 0
    normalised = 1

class Allocation(IntEnum):
    uniform = 0
    variance = 1

class MuRule(IntEnum):
    fixed = 0
    calibrated = 1

class Estimator(IntEnum):
    weight_perturbation = 0
    node_perturbation = 1
    closed_form = 2

class LayerSettings:
    def __init__(
        self, *, queries: int, mu_weight: int, mu_node: int, estimator: Estimator
    ) -> None: ...
    @property
    def queries(self) -> int: ...
    @property
    def mu_weight(self) -> int: ...
    @property
    def mu_node(self) -> int: ...
    @property
    def estimator(self) -> Estimator: ...
    def pack(self) -> bytes: ...

class Options:
    seed: int
    queries: int
    mu_weight: int
    mu_node: int
    generator: Generator
    directions: Directions
    pairs: Pairs
    hadamard_index: HadamardIndex
    sparsity: float
    mask_interval: int
    scope: Scope
    baseline: Baseline
    rule: EstimatorRule
    node_dimension: NodeDimension
    node_ratio: float
    sharing: Sharing
    gradient_norm_scaling: GradientNormScaling
    quantisation_aware_scaling: int
    rounding: Rounding
    step: Step
    train_bias: int
    int8_logits: int
    weight_tile_bytes: int
    allocation: Allocation
    mu: MuRule
    mu_per_channel: int
    probe_samples: int
    probe_queries: int
    train_weights: int
    optimiser: Optimiser
    momentum: float
    adam_beta2: float
    shrinkage_memory: float
    def pack(self) -> bytes: ...

class Model:
    def __init__(self, image: bytes) -> None: ...
    def image(self) -> bytes: ...
    @property
    def op_count(self) -> int: ...
    @property
    def classes(self) -> int: ...
    @property
    def input_shape(self) -> tuple[int, int, int]: ...
    @property
    def input_tensor(self) -> int: ...
    @property
    def output_tensor(self) -> int: ...
    @property
    def input_mean(self) -> tuple[float, ...]: ...
    @property
    def input_std(self) -> tuple[float, ...]: ...
    @property
    def has_linear_head(self) -> bool: ...
    def ops(self) -> list[dict[str, Any]]: ...
    def tensors(self) -> list[dict[str, Any]]: ...
    def blocks(self) -> dict[str, list[int]]: ...
    def metadata(self) -> str: ...
    def weights(self, op: int) -> npt.NDArray[np.int8]: ...
    def bias(self, op: int) -> npt.NDArray[np.int32]: ...
    def weight_scales(self, op: int) -> npt.NDArray[np.float32]: ...
    def set_parameters(
        self, op: int, weights: npt.NDArray[np.int8], bias: npt.NDArray[np.int32]
    ) -> None: ...
    def set_weight_scales(self, op: int, scales: npt.NDArray[np.float32]) -> None: ...
    def logits(
        self, images: npt.NDArray[np.int8], threads: int = 0, int8_logits: bool = False
    ) -> npt.NDArray[np.float32]: ...
    def inputs(
        self, images: npt.NDArray[np.int8], op: int, threads: int = 0
    ) -> npt.NDArray[np.int8]: ...
    def activations(self, image: npt.NDArray[np.int8]) -> list[npt.NDArray[np.int8]]: ...

class Trainer:
    def __init__(
        self,
        model: Model,
        options: Options,
        layers: list[int],
        batch: int,
        threads: int = 0,
        settings: list[LayerSettings] = ...,
    ) -> None: ...
    def step(
        self,
        images: npt.NDArray[np.int8],
        labels: npt.NDArray[np.int64],
        step: int,
        learning_rate: float,
    ) -> dict[str, Any]: ...
    def estimate(
        self,
        images: npt.NDArray[np.int8],
        labels: npt.NDArray[np.int64],
        step: int,
        layer: int,
    ) -> tuple[npt.NDArray[np.float32], npt.NDArray[np.float32]]: ...
    def layers(self) -> list[dict[str, Any]]: ...
    def calibrate(
        self, images: npt.NDArray[np.int8], labels: npt.NDArray[np.int64], step: int
    ) -> dict[str, Any]: ...
    def configure(self, settings: list[LayerSettings]) -> None: ...
    def memories(self) -> npt.NDArray[np.float32]: ...
    def restore_memories(self, values: npt.NDArray[np.float32]) -> None: ...
    @property
    def steps_begun(self) -> int: ...
    @property
    def arena_bytes(self) -> int: ...
    @property
    def threads(self) -> int: ...

def select_layers(
    model: Model,
    options: Options,
    candidates: list[list[int]],
    images: npt.NDArray[np.int8],
    labels: npt.NDArray[np.int64],
    learning_rates: npt.NDArray[np.float32],
    held_out_images: npt.NDArray[np.int8],
    held_out_labels: npt.NDArray[np.int64],
    threads: int = 0,
) -> list[tuple[int, int]]: ...

class DeviceMemory:
    def __init__(
        self,
        model: Model,
        options: Options,
        layers: list[int],
        batch: int,
        settings: list[LayerSettings] = ...,
        *,
        portable: bool = ...,
        streams: list[tuple[int, int, int]] | None = ...,
    ) -> None: ...
    def plan(self) -> list[dict[str, Any]]: ...
    def query_plan(self, layer: int) -> list[dict[str, Any]]: ...
    def segments(self) -> list[tuple[int, int, int]]: ...
    def channels_at_once(self) -> list[int]: ...
    @property
    def sum_bytes(self) -> int: ...
    @property
    def activation_bytes(self) -> int: ...
    @property
    def arena_bytes(self) -> int: ...

class Statistics:
    def __init__(self, model: Model, images: npt.NDArray[np.int8], threads: int = 0) -> None: ...
    def measure(
        self, op: int, guess: npt.NDArray[np.float32], rounds: int
    ) -> npt.NDArray[np.float32]: ...
    def align(
        self, op: int, reference: npt.NDArray[np.float32], found: npt.NDArray[np.float32]
    ) -> None: ...
    def measure_windows(
        self, op: int, centres: npt.NDArray[np.float32]
    ) -> tuple[npt.NDArray[np.float32], npt.NDArray[np.float32]]: ...
    def align_windows(
        self,
        op: int,
        reference: tuple[npt.NDArray[np.float32], npt.NDArray[np.float32]],
        found: tuple[npt.NDArray[np.float32], npt.NDArray[np.float32]],
    ) -> None: ...
    def measure_reliability(self, op: int) -> npt.NDArray[np.float32]: ...
    def weigh_channels(
        self, op: int, reliability: npt.NDArray[np.float32], strength: float
    ) -> None: ...

class Profiler:
    def __init__(self, model: Model, images: npt.NDArray[np.int8]) -> None: ...
    @property
    def images(self) -> int: ...
    def time_ops(self) -> list[float]: ...
    def time_op(self, op: int) -> float: ...

def window_shape(model: Model, op: int) -> tuple[int, int]: ...
def mixes_channels(model: Model, op: int) -> bool: ...
def allocate_queries(demands: list[tuple[float, int]], queries: int) -> list[int]: ...
def peak(threads: int = 0) -> tuple[str, float]: ...
def kernels() -> str: ...
def available_kernels() -> list[str]: ...
def threads(requested: int = 0) -> int: ...
def cross_entropy(
    logits: npt.NDArray[np.float32], labels: npt.NDArray[np.int64]
) -> tuple[npt.NDArray[np.int32], int]: ...
def signs(
    generator: Generator,
    seed: int,
    step: int,
    layer: int,
    query: int,
    sample: int,
    purpose: int,
    count: int,
) -> npt.NDArray[np.int8]: ...
def accumulate_signs(
    signs: npt.NDArray[np.int8], factor: int, sum: npt.NDArray[np.int32]
) -> npt.NDArray[np.int32]: ...
def round_update(update: float, rounding: Rounding, random: int) -> int: ...
def crc32(bytes: bytes) -> int: ...
