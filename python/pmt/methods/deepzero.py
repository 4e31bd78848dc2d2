"""DeepZero: the gradient of the loss one weight at a time, on the public engine."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from pmt import _core
from pmt._core import LARGEST_WEIGHT
from pmt._util.arrays import Array, DoubleArray, Int8Array, Int32Array, Int64Array
from pmt.model import Model
from pmt.train.costs.work import Cost, Work
from pmt.train.engine import Engine
from pmt.train.extended_stepper import CoreUpdate
from pmt.train.option_fields import CORE, Options, Range, document_options, option
from pmt.train.options import TrainingOptions
from pmt.train.prepare.preparation import ALIGN_IMAGES, PREPARATION, PreparationName
from pmt.train.run.keep_best import HELD_OUT_SHARE, KEEP_BEST
from pmt.train.schedule import (
    BATCH,
    EPOCHS,
    FINAL_LEARNING_RATE,
    LAYERS,
    LEARNING_RATES,
    MACS,
    SEEDS,
)
from pmt.train.stepper import Stepper, batch_figures
from pmt.train.trainer import Trainer

_BYTES = 1 << 24  # of perturbations in one call of the engine
_MASK = 6  # purpose of a stream of random numbers


@document_options
@dataclass(frozen=True)
class DeepZeroOptions(Options):
    """Options of a training run with DeepZero, which trains weights only."""

    layers: str = LAYERS("all")
    epochs: int = EPOCHS(10)
    macs: int = MACS(0)
    batch: int = BATCH(50)
    learning_rate: float = option(
        0.5,
        "R",
        "root mean square of a layer's update in weight steps, over the weights that are queried",
        LEARNING_RATES,
    )
    final_learning_rate: float = FINAL_LEARNING_RATE(0.0)
    seed: int = option(
        1, "S", "seed of the order of samples, of sparsity and of stochastic rounding", SEEDS
    )
    mu_weight: int = option(1, "M", "weight steps by which a query moves its weight", CORE)
    momentum: float = option(
        0.9,
        "X",
        "share of earlier gradients kept from step to step",
        Range(0.0, 1.0, high_open=True),
    )
    sparsity: float = option(
        0.0,
        "X",
        "share of a layer's weights, drawn at random, that are not queried",
        Range(0.0, 1.0, high_open=True),
    )
    mask_epochs: int = option(5, "N", "epochs between draws of these weights", Range(1, 10**6))
    preparation: PreparationName = PREPARATION("none")
    align_images: int = ALIGN_IMAGES(1000)
    keep_best: bool = KEEP_BEST(False)
    held_out_share: float = HELD_OUT_SHARE(0.2)

    def active(self, weights: int) -> int:
        """Return how many of a layer's weights are queried."""
        left_out = int(np.float32(self.sparsity) * np.float32(weights) + np.float32(0.5))
        return max(weights - left_out, 1)


class DeepZeroTrainer(Trainer):
    """Trains weights by coordinate-wise gradient estimation (Chen et al. 2024, arXiv:2310.02025).

    A query moves one weight by ``mu_weight`` steps, and its loss is compared with the clean one. So
    a step takes a forward from the layer on for each weight and image.

    Parameters
    ----------
    options : DeepZeroOptions, optional
        All options.
    threads : int
        Threads to use; 0 takes all, but one in a worker of a process pool. The result does not
        depend on it.
    **changes
        Options that differ.

    Raises
    ------
    ValueError, TypeError
        If an option is unknown or outside its range.

    Examples
    --------
    >>> import pmt
    >>> model = pmt.load("fashion_mnist_dscnn")
    >>> trainer = pmt.methods.trainer("deepzero_sparse", layers="head")
    >>> trainer.cost(model, samples=1).forwards
    64
    """

    name = "deepzero"
    options: DeepZeroOptions
    options_class = DeepZeroOptions

    def cost(self, model: Model, *, samples: int | None = None) -> Cost:
        """Count one step's work: the clean forward, and from its layer on one for each weight."""
        chosen = model.select_layers(self.options.layers)
        macs = [int(op["macs"]) for op in model.core.ops()]
        queries = {op: self.options.active(model.core.weights(op).size) for op in chosen}
        work = Work(
            forward=sum(macs),
            queries=sum(count * sum(macs[op:]) for op, count in queries.items()),
            forwards=sum(queries.values()),
        )
        return work.cost(self._images_of_step(samples))

    def stepper(self, model: Model, samples: int) -> Stepper:
        """Return the stepper of a run on ``model``, with this many training samples."""
        engine = Engine(model, self.options.layers, seed=self.options.seed, threads=self.threads)
        return _DeepZeroStepper(engine, self.options, max(samples // self.options.batch, 1))


class _DeepZeroStepper(Stepper):
    def __init__(self, engine: Engine, options: DeepZeroOptions, steps_of_epoch: int) -> None:
        self.engine = engine
        self.options = options
        self.mask_steps = options.mask_epochs * steps_of_epoch
        self.update = CoreUpdate(engine, TrainingOptions(seed=options.seed, train_bias=False))
        self.momentum = {name: np.zeros(engine.weights(name).shape) for name in engine.layers}

    def step(
        self, images: Int8Array, labels: Int64Array, step: int, learning_rate: float
    ) -> dict[str, Any]:
        """Take one step, see :meth:`pmt.train.stepper.Stepper.step`."""
        losses, correct = _core.cross_entropy(self.engine.logits(images), labels)
        found = {
            name: self._gradient(name, images, labels, step, losses) for name in self.engine.layers
        }
        self.steps_taken += 1
        changed = 0
        for name, gradient in found.items():
            self.momentum[name] = self.options.momentum * self.momentum[name] + gradient
            size = gradient.size
            # The update's root mean square is that of the weights that are queried.
            rate = learning_rate * (self.options.active(size) / size) ** 0.5
            weights, _ = self.update(name, self.momentum[name], None, step, rate)
            changed += int((weights != self.engine.weights(name)).sum())
            self.engine.set_weights(name, weights)
        return {**batch_figures(losses, correct), "changed": changed}

    def state(self) -> dict[str, Array]:
        """Return the momentum of each layer."""
        return {f"momentum.{name}": values.copy() for name, values in self.momentum.items()}

    def load_state(self, state: Mapping[str, Array]) -> None:
        """Restore a state of :meth:`state`."""
        own = self.state()
        if {k: v.shape for k, v in state.items()} != {k: v.shape for k, v in own.items()}:
            raise ValueError(f"state {sorted(state)} must be {sorted(own)}, of the layers' shapes")
        self.momentum = {name: np.array(state[f"momentum.{name}"]) for name in self.momentum}

    def _gradient(
        self, layer: str, images: Int8Array, labels: Int64Array, step: int, clean: Int32Array
    ) -> DoubleArray:
        weights = self.engine.weights(layer)
        mu, flat = self.options.mu_weight, weights.reshape(-1)
        upwards = (flat.astype(int) + mu <= LARGEST_WEIGHT) | (flat <= 0)
        moves = np.where(upwards, mu, -mu).astype(np.int8)
        gradient = np.zeros(flat.size)
        queried = self._queried(layer, flat.size, step)
        at_once = max(_BYTES // flat.size, 1)
        for some in np.split(queried, range(at_once, queried.size, at_once)):
            rows = np.zeros((some.size, flat.size), np.int8)
            rows[np.arange(some.size), some] = moves[some]
            losses = self.engine.losses(images, labels, layer, rows.reshape(-1, *weights.shape))
            difference = (losses - clean / float(_core.LOSS_ONE)).sum(axis=1)
            gradient[some] = difference / (moves[some].astype(float) * labels.size)
        return gradient.reshape(weights.shape)

    def _queried(self, layer: str, count: int, step: int) -> Int64Array:
        """Return the weights that are queried: the first of a random order, drawn for an epoch."""
        active = self.options.active(count)
        if active == count:
            return np.arange(count)
        op = self.engine.model.select_layers(layer)[0]
        draw = step // self.mask_steps
        bits = _core.signs("philox", self.options.seed, draw, op, 0, 0, _MASK, 256) < 0
        words = np.packbits(bits, bitorder="little").view("<u4").astype(np.uint32)
        order = _mixed(np.arange(active, dtype=np.uint32), words, count)
        while (outside := order >= count).any():
            order[outside] = _mixed(order[outside], words, count)
        return order.astype(np.int64)


def _mixed(
    values: npt.NDArray[np.uint32], words: npt.NDArray[np.uint32], count: int
) -> npt.NDArray[np.uint32]:
    """Map numbers below the power of two above ``count`` one to one to others, by random words."""
    bits = max((count - 1).bit_length(), 1)
    shift, mask = np.uint32((bits + 1) // 2), np.uint32((1 << bits) - 1)
    for factor, offset in zip(words[:4] | np.uint32(1), words[4:], strict=True):
        values = (values * factor + offset) & mask
        values = values ^ (values >> shift)
    return values
