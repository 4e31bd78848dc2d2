r"""Simulate zeroth-order estimators with exact gradients, to compare ideas before they are built.

    python benchmarks/simulated_estimators.py cifar10_mcunet --data cifar-10-batches-bin \
        --preparation align+head --estimator pooled --queries 8
    python benchmarks/simulated_estimators.py cifar10_mcunet --data cifar-10-batches-bin --spectrum

Pointwise layers and the linear head are trained on 1,000 corrupted images of severity 5; loss and
accuracy are measured on 1,000 others before, and after each quarter of the steps. torch gives the
exact gradient of each image; Q random directions add the noise that they add to a loss which is
linear in the perturbation. So the figures bound what an estimator can do from above: the curvature
of the loss and the steps of int8 perturbations are left out. The head learns by its exact gradient.

- `exact` is the gradient at every position of a layer's output.
- `pooled` perturbs whole regions of each channel, and spreads a region's gradient evenly over the
  positions that no clamp holds. Without queries it is the exact gradient of the regions.
- `weight` perturbs the weights; it leaves the biases alone.

`--subspace-of` says which gradients give the components: exact ones of the training images, those
of clean images in the network before it was prepared, or the estimates of the first steps.

`--spectrum` trains nothing. It prints for each layer what an estimator could exploit in the exact
gradients of the regions: their coherence |mean g|^2 / mean |g|^2 (by chance about 1 / 1,000, for so
many images), the share of their energy in the leading principal components, and the share that a
linear regression on the softmax residuals explains. Components and regression are fitted on one
half of the training images and tested on the other.
"""

from __future__ import annotations

import argparse
import dataclasses
import json
import math
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

import pmt
from pmt.cli.output import table
from pmt.datasets import Dataset
from pmt.protocol.data_source import DataSource
from pmt.train.prepare.preparation import Preparation

IMAGES = 1000  # to train on, and as many to hold out
COMPONENTS = (4, 8, 16, 32, 64)
SPECTRUM = ("coherence", *(f"top {k}" for k in COMPONENTS), "regression")
SUBSPACES = ("exact", "clean", "estimates")
DECAY = 0.9  # of running averages
LAST_RATE = 0.1  # of a learning rate: where its cosine ends
SMALLEST_SCALE = 1e-6  # a channel below it is dead
LARGEST_WEIGHT = 127
LARGEST_SCALE_CHANGE = 0.1  # in one step


def arguments(line: Sequence[str] | None = None) -> argparse.Namespace:
    """Read the command line, or another one."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    add = parser.add_argument
    add("model", help="model file, or the name of a bundled one")
    add("--data", required=True, help="data set folder")
    add("--corruption", default="gaussian_noise")
    add("--preparation", choices=("none", "align+head"), default="none")
    add("--layers", default="B2", help="blocks or pointwise layers to train beside the head")
    add("--estimator", choices=("exact", "pooled", "weight"), default="pooled")
    add("--queries", type=int, default=0, help="random directions for an image; 0: no noise")
    add("--regions", type=int, default=1, help="regions along each side of a feature map")
    add("--rate", type=float, default=0.1, help="rms of the weights' first update, in steps")
    add("--bias-rate", type=float, default=0.1, help="the same of biases, in output steps")
    add("--head-rate", type=float, default=0.05, help="the same of the head, in weight steps")
    add("--scales", type=float, default=0.0, help="the same of channel scales, in output steps")
    add("--subspace", type=int, default=0, help="draw directions in so many components; 0: in all")
    add("--subspace-of", choices=SUBSPACES, default=SUBSPACES[0])
    add("--warm-up", type=int, default=40, help="steps whose estimates give the subspace")
    add("--jacobian", type=float, default=0.0, help="rate of the regression that directions refine")
    add("--whiten", type=float, default=0.0, help="damping of the inputs' preconditioner; 0: none")
    add("--steps", type=int, default=200)
    add("--batch", type=int, default=25)
    add("--seed", type=int, default=1)
    add("--spectrum", action="store_true", help="describe the exact gradients instead of training")
    add("--out", type=Path, help="file to append a line of JSON to")
    a = parser.parse_args(line)
    if a.queries == 1 or a.queries < 0:
        parser.error("--queries: 0, or at least 2, as each query's baseline is the others' mean")
    if a.estimator != "pooled" and (a.subspace or a.jacobian or a.scales):
        parser.error("--subspace, --jacobian and --scales need --estimator pooled")
    if a.estimator == "weight" and a.whiten:
        parser.error("--whiten needs --estimator exact or pooled")
    return a


def main() -> None:
    """Train and print a line for each quarter, or print the spectrum."""
    a = arguments()
    torch.set_num_threads(1)
    network, train, held_out = prepared(a)
    if a.spectrum:
        print(spectrum(network, train, a))
        return
    began = time.monotonic()
    measured = []
    for step, evaluation in train_by_quarters(a, network, train, held_out):
        measured.append((step, round(evaluation.loss, 4), round(evaluation.accuracy, 4)))
        print("step {}: held-out loss {:.4f}, accuracy {:.4f}".format(*measured[-1]), flush=True)
    seconds = round(time.monotonic() - began)
    print(f"{seconds} s")
    if a.out:
        settings = {key: value for key, value in vars(a).items() if key != "out"}
        with a.out.open("a", encoding="utf-8") as file:
            file.write(json.dumps({**settings, "measured": measured, "seconds": seconds}) + "\n")


def prepared(a: argparse.Namespace) -> tuple[WatchedNetwork, Dataset, Dataset]:
    """Return the network, prepared if asked to be, and the images to train on and held out."""
    model = pmt.load(a.model)
    data = DataSource(a.data, a.corruption, 5).load("train", model, limit=2 * IMAGES)
    train, held_out = data.take(IMAGES), data.subset(np.arange(IMAGES, 2 * IMAGES))
    options = pmt.methods.options_of(
        "default", layers=f"{a.layers},head", preparation=a.preparation
    )
    Preparation(options, threads=1).apply(model, train)
    return WatchedNetwork(model, a.layers), train, held_out


@dataclass(frozen=True)
class Trace:
    """The trace of a batch at a layer: N samples, P positions, I input and O output channels."""

    inputs: Tensor  # (N, P, I), centered
    outputs: Tensor  # (N, P, O), in output steps, before they are rounded and clamped
    by_sum: Tensor  # (N, P, O), gradient of the sample's own loss by the accumulator
    output_scales: Tensor  # (O,), output steps for one of the accumulator
    free: Tensor  # (N, P, O), 1 where no clamp holds the output

    @property
    def by_output(self) -> Tensor:
        """The gradient by output steps; zero where a channel's scale is."""
        return self.by_sum / self.output_scales.clamp(min=SMALLEST_SCALE**2)


class Layer:
    """Parameters of a pointwise layer; weights and biases are the network's own tensors."""

    def __init__(self, network: pmt.backprop.IntegerNetwork, index: int) -> None:
        op = network.graph.ops[index]
        if op.kind != "conv2d" or op.kernel != (1, 1) or op.stride != (1, 1):
            raise SystemExit(f"--layers: layer {index} is not pointwise")
        tensor = network.graph.tensors[op.output]
        self.index = index
        self.weights = network.weights[str(index)].data.view(tensor.channels, -1)  # (O, I)
        self.bias = network.biases[str(index)].data  # (O,), in accumulator steps
        self.weight_scales = torch.from_numpy(op.weight_scales.copy())  # (O,)
        self.sum_scales = self.weight_scales * network.graph.tensors[op.inputs[0]].scale
        self.output_scales = getattr(network, f"output_scales{index}")  # (O,)
        self.bounds = tuple(bound - tensor.zero_point for bound in op.clamp)

    @property
    def live(self) -> Tensor:
        """Whether each channel is trained, (O,)."""
        return self.weight_scales >= SMALLEST_SCALE

    def add_to_weights(self, update: Tensor, generator: torch.Generator) -> None:
        """Add an update in weight steps, rounded at random."""
        noise = torch.rand(update.shape, generator=generator)
        rounded = (self.weights + update + noise).floor()
        self.weights.copy_(rounded.clamp(-LARGEST_WEIGHT, LARGEST_WEIGHT))

    def shrink_scales(self, shares: Tensor) -> None:
        """Shrink the outputs of each channel, with its bias, by a share of themselves."""
        kept = 1 - torch.where(self.live, shares, 0.0)
        for scales in (self.weight_scales, self.sum_scales, self.output_scales):
            scales.mul_(kept)


class WatchedNetwork:
    """The int8 network in torch, and the exact gradients at the layers that are trained."""

    def __init__(self, model: pmt.Model, layers: str) -> None:
        self.model = model
        self.network = pmt.backprop.IntegerNetwork(model).requires_grad_(False)
        self.head = Layer(self.network, model.core.op_count - 1)
        chosen = model.select_layers(layers)
        self.layers = [Layer(self.network, i) for i in chosen if i != self.head.index]
        self._inputs: dict[int, Tensor] = {}
        self._sums: dict[int, Tensor] = {}
        for layer in (*self.layers, self.head):
            self.network.watched[layer.index] = self._watch(layer.index)

    def _watch(self, index: int) -> Callable[[Tensor, Tensor], Tensor]:
        def watch(inputs: Tensor, sums: Tensor) -> Tensor:
            self._inputs[index] = inputs.detach()
            self._sums[index] = sums if sums.requires_grad else sums.requires_grad_()
            return self._sums[index]

        return watch

    def traces(self, images: Tensor, labels: Tensor) -> tuple[list[Trace], Tensor]:
        """Return the trace of each layer and last of the head, and the softmax residuals."""
        logits = self.network(images)
        loss = torch.nn.functional.cross_entropy(logits, labels, reduction="sum")
        watched = (*self.layers, self.head)
        gradients = torch.autograd.grad(loss, [self._sums[layer.index] for layer in watched])
        truth = torch.nn.functional.one_hot(labels, logits.shape[1])
        residuals = torch.softmax(logits.detach(), 1) - truth
        return [self._trace(*pair) for pair in zip(watched, gradients, strict=True)], residuals

    def _trace(self, layer: Layer, gradient: Tensor) -> Trace:
        inputs, sums = self._inputs[layer.index].flatten(1, 2), self._sums[layer.index].detach()
        outputs = (sums.flatten(1, 2) + layer.bias.float()) * layer.output_scales
        low, high = layer.bounds
        free = ((outputs.round() >= low) & (outputs.round() <= high)).float()
        return Trace(inputs, outputs, gradient.flatten(1, 2), layer.output_scales, free)

    def evaluate(self, data: Dataset) -> pmt.Evaluation:
        """Evaluate the int8 model with the layers' parameters of now."""
        for layer in (*self.layers, self.head):
            parameters = self.network.parameters_as_integers(layer.index)
            self.model.core.set_parameters(layer.index, *parameters)
            self.model.core.set_weight_scales(layer.index, layer.weight_scales.numpy())
        return self.model.evaluate(data, threads=1)


def region_masks(positions: int, regions: int) -> Tensor:
    """Return which region each position of a square map lies in, 0 or 1, (P, regions^2)."""
    side = math.isqrt(positions)
    along = torch.arange(side) * regions // side
    numbers = (along[:, None] * regions + along).flatten()
    return torch.nn.functional.one_hot(numbers, regions * regions).float()


def region_gradients(trace: Trace, regions: int) -> Tensor:
    """Return each sample's gradient by one output step in a whole region, (N, regions^2 * O)."""
    masks = region_masks(trace.inputs.shape[1], regions)
    return torch.einsum("npo,pr->nro", trace.by_output, masks).flatten(1)


def spread(gradients: Tensor, trace: Trace, regions: int) -> Tensor:
    """Spread regions' gradients over the positions that no clamp holds, by accumulator step."""
    masks = region_masks(trace.inputs.shape[1], regions)
    free = torch.einsum("npo,pr->nro", trace.free, masks).clamp(min=1)
    each = torch.einsum("nro,pr->npo", gradients.reshape(free.shape) / free, masks)
    return each * trace.free * trace.output_scales


def estimated(true: Tensor, queries: int, generator: torch.Generator) -> Tensor:
    """Estimate each sample's gradient (N, D) from slopes along random signs; exact without any."""
    if not queries:
        return true
    shape = (len(true), queries, true.shape[1])
    signs = torch.randint(0, 2, shape, generator=generator).float() * 2 - 1
    slopes = torch.einsum("nd,nqd->nq", true, signs)
    slopes = slopes - (slopes.sum(1, keepdim=True) - slopes) / (queries - 1)
    return torch.einsum("nq,nqd->nd", slopes, signs) / queries


def components(moments: Tensor, count: int) -> Tensor:
    """Return the leading eigenvectors of second moments (D, D) as columns, (D, count)."""
    vectors: Tensor = torch.linalg.eigh(moments).eigenvectors  # in the order of their eigenvalues
    return vectors[:, -count:].contiguous()


class Regression:
    """A running linear regression of samples' gradients on their softmax residuals."""

    def __init__(self, rate: float) -> None:
        self.rate = rate
        self.steps = 0
        self.moments: Tensor | None = None
        self.coefficients: Tensor | None = None

    def predicted(self, residuals: Tensor, width: int) -> Tensor:
        """Predict the gradients, (N, width)."""
        if self.coefficients is None:
            self.coefficients = torch.zeros(residuals.shape[1], width)
        return residuals @ self.coefficients

    def learn(self, residuals: Tensor, errors: Tensor) -> None:
        """Move the coefficients by the errors of the samples that were just predicted."""
        self.steps += 1
        now = residuals.T @ residuals / len(residuals)
        self.moments = now if self.moments is None else averaged(self.moments, now)
        damping = 0.02 * self.moments.diagonal().mean() * torch.eye(len(now))
        change = torch.linalg.solve(self.moments + damping, residuals.T @ errors / len(errors))
        self.coefficients = self.coefficients + max(1 / self.steps, self.rate) * change


class PooledEstimator:
    """The estimates of a layer's region gradients, whatever their directions are drawn in."""

    def __init__(self, a: argparse.Namespace, basis: Tensor | None) -> None:
        self.options = a
        self.basis = basis  # (D, components)
        self.moments: Tensor | None = None  # of the estimates so far, (D, D)
        self.steps = 0
        self.regression = Regression(a.jacobian) if a.jacobian else None

    def estimate(self, true: Tensor, residuals: Tensor, generator: torch.Generator) -> Tensor:
        """Estimate each sample's gradient, (N, D)."""
        a = self.options
        if self.moments is not None and self.steps == a.warm_up:
            self.basis = components(self.moments, a.subspace)
        predicted = torch.zeros_like(true)
        if self.regression:
            predicted = self.regression.predicted(residuals, true.shape[1])
        missing = true - predicted
        if self.basis is not None:
            missing = missing @ self.basis
        found = estimated(missing, a.queries, generator)
        if self.basis is not None:
            found = found @ self.basis.T
        if self.regression:
            self.regression.learn(residuals, found)
        found = predicted + found
        if a.subspace and self.basis is None:
            now = found.T @ found
            self.moments = now if self.moments is None else self.moments + now
        self.steps += 1
        return found


class Whitening:
    """A preconditioner of a layer's inputs: their variances, and the square of their mean."""

    def __init__(self, damping: float) -> None:
        self.damping = damping
        self.mean: Tensor | None = None  # (I,)
        self.squares: Tensor | None = None

    def apply(self, gradient: Tensor, inputs: Tensor) -> Tensor:
        """Solve for the gradient of the weights (O, I) after a batch of inputs (N, P, I)."""
        pooled = inputs.mean(1)
        mean, squares = pooled.mean(0), pooled.square().mean(0)
        self.mean = mean if self.mean is None else averaged(self.mean, mean)
        self.squares = squares if self.squares is None else averaged(self.squares, squares)
        variances = (self.squares - self.mean.square()).clamp(min=0)
        diagonal = variances + self.damping * variances.mean()
        # Sherman and Morrison's inverse of a diagonal plus a matrix of rank one.
        solved, direction = gradient / diagonal, self.mean / diagonal
        return solved - torch.outer(solved @ self.mean, direction) / (1 + self.mean @ direction)


def averaged(average: Tensor, value: Tensor) -> Tensor:
    """Move a running average."""
    return DECAY * average + (1 - DECAY) * value


class LayerTraining:
    """The training of one layer by an estimator."""

    def __init__(
        self, a: argparse.Namespace, layer: Layer, basis: Tensor | None, generator: torch.Generator
    ) -> None:
        self.options = a
        self.layer = layer
        self.generator = generator
        self.pooled = PooledEstimator(a, basis)
        self.whitening = Whitening(a.whiten) if a.whiten else None

    def step(self, trace: Trace, residuals: Tensor, fraction: float) -> None:
        """Estimate the gradients and move the parameters at this fraction of the rates."""
        a = self.options
        match a.estimator:
            case "weight":
                self._move_weights(self._by_weights(trace), fraction)
                return
            case "exact":
                by_sum = trace.by_sum
            case "pooled":
                found = self.pooled.estimate(true_gradients(trace, a), residuals, self.generator)
                channels = a.regions * a.regions * trace.outputs.shape[2]
                by_sum = spread(found[:, :channels], trace, a.regions)
        gradient = torch.einsum("npo,npi->oi", by_sum, trace.inputs) / len(by_sum)
        if self.whitening:
            gradient = self.whitening.apply(gradient, trace.inputs)
        self._move_biases(by_sum.sum(1).mean(0) / trace.output_scales, fraction)
        self._move_weights(gradient, fraction)
        if a.scales:
            self._move_scales(found[:, channels:].mean(0), trace, fraction)

    def _by_weights(self, trace: Trace) -> Tensor:
        true = torch.einsum("npo,npi->noi", trace.by_sum, trace.inputs)
        found = estimated(true.flatten(1), self.options.queries, self.generator)
        return found.mean(0).reshape(true.shape[1:])

    def _move_weights(self, gradient: Tensor, fraction: float) -> None:
        move_weights(self.layer, gradient, fraction * self.options.rate, self.generator)

    def _move_biases(self, by_output: Tensor, fraction: float) -> None:
        update = normalized(torch.where(self.layer.live, by_output, 0.0))
        update = update * (self.options.bias_rate * fraction) / self.layer.output_scales
        self.layer.bias.sub_(torch.where(self.layer.live, update, 0.0).double())

    def _move_scales(self, gradient: Tensor, trace: Trace, fraction: float) -> None:
        shares = normalized(gradient) * self.options.scales * fraction * scale_units(trace)
        self.layer.shrink_scales(shares.clamp(-LARGEST_SCALE_CHANGE, LARGEST_SCALE_CHANGE))


def true_gradients(trace: Trace, a: argparse.Namespace) -> Tensor:
    """Return the exact gradients that directions see: of regions, then of scales if trained."""
    regions = region_gradients(trace, a.regions)
    if not a.scales:
        return regions
    scales = (trace.by_output * trace.outputs).sum(1) * scale_units(trace)
    return torch.cat([regions, scales], 1)


def scale_units(trace: Trace) -> Tensor:
    """Return the share of each channel's scale that moves its outputs by about one step, (O,)."""
    return 1 / (trace.outputs.square().mean((0, 1)).sqrt() + 1)


def normalized(values: Tensor) -> Tensor:
    """Divide by the root mean square."""
    return values / (values.square().mean().sqrt() + 1e-30)


def move_weights(layer: Layer, gradient: Tensor, rate: float, generator: torch.Generator) -> float:
    """Descend in real weights by an update of this rms in weight steps; return its factor."""
    scales = layer.weight_scales[:, None]
    steps = torch.where(layer.live[:, None], gradient / scales**2, 0.0)
    factor = rate / (float(steps.square().mean().sqrt()) + 1e-30)
    layer.add_to_weights(-factor * steps, generator)
    return factor


def train_head(layer: Layer, trace: Trace, rate: float, generator: torch.Generator) -> None:
    """Move the head by its exact gradient; its biases at the weights' real learning rate."""
    gradient = torch.einsum("npo,npi->oi", trace.by_sum, trace.inputs) / len(trace.inputs)
    factor = move_weights(layer, gradient, rate, generator)
    layer.bias.sub_((trace.by_sum.sum(1).mean(0) * factor / layer.sum_scales**2).double())


def batches(a: argparse.Namespace, samples: int) -> Iterator[np.ndarray]:
    """Draw the indices of each step's images: whole batches of a new order in every epoch."""
    rng = np.random.default_rng(a.seed)
    each = samples // a.batch
    for step in range(a.steps):
        if step % each == 0:
            order = rng.permutation(samples)
        yield order[step % each * a.batch :][: a.batch]


def train_by_quarters(
    a: argparse.Namespace, network: WatchedNetwork, train: Dataset, held_out: Dataset
) -> Iterator[tuple[int, pmt.Evaluation]]:
    """Train; evaluate before the first step and after each quarter of the steps."""
    generator = torch.Generator().manual_seed(a.seed)
    images = torch.from_numpy(network.model.prepare(train.images))
    labels = torch.from_numpy(train.labels.astype(np.int64))
    bases = known_bases(a, network, train)
    pairs = zip(network.layers, bases, strict=True)
    trainings = [LayerTraining(a, layer, basis, generator) for layer, basis in pairs]
    quarters = {math.ceil(a.steps * part / 4) for part in (1, 2, 3, 4)}
    yield 0, network.evaluate(held_out)
    for step, chosen in enumerate(batches(a, len(train))):
        (*traces, last), residuals = network.traces(images[chosen], labels[chosen])
        cosine = (1 + math.cos(math.pi * step / a.steps)) / 2
        fraction = LAST_RATE + (1 - LAST_RATE) * cosine
        for training, trace in zip(trainings, traces, strict=True):
            training.step(trace, residuals, fraction)
        train_head(network.head, last, a.head_rate * fraction, generator)
        if step + 1 in quarters:
            yield step + 1, network.evaluate(held_out)


def known_bases(
    a: argparse.Namespace, network: WatchedNetwork, train: Dataset
) -> list[Tensor | None]:
    """Return the components that each layer's directions are drawn in from the first step on."""
    if not a.subspace or a.subspace_of == "estimates":
        return [None] * len(network.layers)
    if a.subspace_of == "clean":
        model = pmt.load(a.model)
        clean = DataSource(a.data).load("test", model, limit=IMAGES)
        # The labels of images that a network knows have hardly a gradient: others at random do.
        labels = np.random.default_rng(a.seed).integers(0, len(clean.class_names), len(clean))
        network = WatchedNetwork(model, a.layers)
        train = dataclasses.replace(clean, labels=labels.astype(clean.labels.dtype))
    found, _ = exact_gradients(network, train, a)
    return [components(each.T @ each, a.subspace) for each in found]


def exact_gradients(
    network: WatchedNetwork, data: Dataset, a: argparse.Namespace
) -> tuple[list[Tensor], Tensor]:
    """Return each layer's exact gradients that directions see, (N, D), and softmax residuals."""
    images = torch.from_numpy(network.model.prepare(data.images))
    labels = torch.from_numpy(data.labels.astype(np.int64))
    found: list[list[Tensor]] = []
    residuals = []
    for start in range(0, len(data), 50):
        (*traces, _), part = network.traces(images[start : start + 50], labels[start : start + 50])
        found.append([true_gradients(trace, a) for trace in traces])
        residuals.append(part)
    return [torch.cat(parts) for parts in zip(*found, strict=True)], torch.cat(residuals)


def spectrum(network: WatchedNetwork, data: Dataset, a: argparse.Namespace) -> str:
    """Return the table of what is predictable in each layer's exact gradients."""
    rows = [
        [name, str(gradients), *(f"{value:.3f}" for value in values)]
        for name, gradients, *values in spectrum_rows(network, data, a)
    ]
    return table(["layer", "gradients", *SPECTRUM], rows, left=["layer"])


def spectrum_rows(
    network: WatchedNetwork, data: Dataset, a: argparse.Namespace
) -> list[tuple[Any, ...]]:
    """Return each layer's name, number of gradients D, and the values of `SPECTRUM`."""
    found, residuals = exact_gradients(network, data, a)
    names = {layer.index: layer.name for layer in network.model.layers}
    pairs = zip(network.layers, found, strict=True)
    return [(names[at.index], g.shape[1], *described(g, residuals)) for at, g in pairs]


def described(gradients: Tensor, residuals: Tensor) -> list[float]:
    """Return the coherence, the leading components' shares, and the regression's, of (N, D)."""
    half = len(gradients) // 2
    fitted, tested = gradients[:half], gradients[half:]
    energy = tested.square().sum()
    coherence = gradients.mean(0).square().sum() / gradients.square().sum(1).mean()
    basis = components(fitted.T @ fitted, gradients.shape[1])
    shares = [(tested @ basis[:, -k:]).square().sum() / energy for k in COMPONENTS]
    # Residuals sum to zero, so the driver has to bear columns that depend on each other.
    coefficients = torch.linalg.lstsq(residuals[:half], fitted, driver="gelsd").solution
    missed = (tested - residuals[half:] @ coefficients).square().sum() / energy
    return [float(value) for value in (coherence, *shares, 1 - missed)]


if __name__ == "__main__":
    main()
