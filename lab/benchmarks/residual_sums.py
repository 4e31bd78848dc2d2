r"""The released settings with residual sums in int8, as on a microcontroller, or as real numbers.

    python benchmarks/residual_sums.py --data DATA --out runs/sums --epochs 5 --seeds 1

DATA holds the folder cifar-10-batches-bin. cifar10_mcunet is trained in torch, so that one switch
differs: how the sum of a residual block goes on. Images and settings are those of the row "factor
of a tensor's own directions" of released_settings.py. Before training, the first 1,000 test images
are predicted. A stopped run repeats the row that it was in.

    python benchmarks/residual_sums.py --table results/residual-sums.json
"""

from __future__ import annotations

import argparse
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from released_settings import chosen_images, image_pools

import pmt
from pmt._util.text import table
from pmt.baselines.backprop.networks import IntegerNetwork, quantize, tensor_of, torch
from pmt.datasets import Dataset
from pmt.train.schedule import Schedule
from pmt_lab.kept_benchmark import run_benchmark
from pmt_lab.sweep.images import at_size

SUMS = ("int8", "real, layers round their input", "real")
OPTIONS = pmt.preset("released", layers="B2", batch=100)
TESTED = 1000  # before training
# A layer's queries, of which weights and biases have half each.
HALF = OPTIONS.queries // 2

Known = dict[int, Any]
Parts = dict[str, Any]


class Network(IntegerNetwork):
    """The int8 network, whose residual sums go on as one of SUMS; real ones are not clipped."""

    def __init__(self, model: pmt.Model, sums: str) -> None:
        super().__init__(model)
        self.residual_sums = sums

    def layer_input(self, op: Any, x: Any) -> Any:
        """Return the values that a layer reads: whole ones, unless it reads a real sum as it is."""
        if self.residual_sums != SUMS[1]:
            return x
        zero = self.graph.tensors[op.inputs[0]].zero_point
        return quantize(x, -128 - zero, 127 - zero)

    def _op(self, index: int, op: Any, sources: list[Any]) -> Any:
        if op.kind == "add" and self.residual_sums != SUMS[0]:
            return self._real_sum(op, sources)
        return super()._op(index, op, [self.layer_input(op, sources[0]), *sources[1:]])

    def run_from(self, first: int, known: Known) -> Any:
        """Return the logits, computed again from an op on, whose inputs are known."""
        known, last = dict(known), len(self.graph.ops) - 1
        for index, op in enumerate(self.graph.ops[first:last], first):
            known[op.output] = self._op(index, op, [known[i] for i in op.inputs])
        sums = self._sums(last, known[self.graph.ops[last].inputs[0]])
        bias = self.biases[str(last)].round().float()
        return ((sums + bias) * self._buffer("accumulator", last)).flatten(1)


class Trainer:
    """Steps of the released settings: an estimate of each layer's gradient, then the updates."""

    def __init__(self, network: Network, seed: int) -> None:
        self.network = network
        self.random = torch.Generator().manual_seed(seed)
        ops = {op.name: index for index, op in enumerate(network.graph.ops)}
        self.by_weights = [ops[f"b{block}.pointwise1"] for block in (4, 5)]
        self.by_nodes = [ops[f"b{block}.pointwise1"] for block in (6, 7)]

    def step(self, images: Any, labels: Any, rate: float) -> None:
        """Do a step on a batch."""
        network = self.network
        count = len(network.graph.ops) - 1
        known = network._activations(images, count)
        clean = self._losses(count, known, labels)
        found = {i: self._weight_gradient(i, known, labels, clean) for i in self.by_weights}
        found |= {i: self._node_gradient(i, known, labels, clean) for i in self.by_nodes}
        for index, parts in found.items():
            op = network.graph.ops[index]
            scales = torch.from_numpy(op.weight_scales)
            accumulators = network._buffer("accumulator", index).double()
            weights, biases = network.weights[str(index)], network.biases[str(index)]
            step = rate * parts["weights"] / scales[:, None, None, None] ** 2
            weights.copy_((weights - step.round()).clamp(-127, 127))
            biases.sub_((rate * parts["biases"] / accumulators**2).round())

    def _losses(self, first: int, known: Known, labels: Any) -> Any:
        logits = self.network.run_from(first, known)
        return torch.nn.functional.cross_entropy(logits, labels, reduction="none")

    def _signs(self, shape: Any) -> Any:
        return torch.randint(0, 2, shape, generator=self.random).mul_(2).sub_(1).float()

    def _weight_gradient(self, index: int, known: Known, labels: Any, clean: Any) -> Parts:
        """Return an estimate by perturbing weights, then biases, for the whole batch at once."""
        found = {}
        for part, size in (("weights", OPTIONS.mu_weight), ("biases", OPTIONS.mu_bias)):
            values = getattr(self.network, part)[str(index)]
            kept, total = values.clone(), torch.zeros_like(values)
            for _ in range(HALF):
                signs = self._signs(values.shape)
                values.copy_(kept + size * signs)
                difference = (self._losses(index, known, labels) - clean).mean()
                total += difference * signs
            values.copy_(kept)
            found[part] = total / (size * HALF) * shortened(HALF, values.numel())
        return found

    def _node_gradient(self, index: int, known: Known, labels: Any, clean: Any) -> Parts:
        """Return an estimate by perturbing each image's free nodes, through the chain rule."""
        op = self.network.graph.ops[index]
        nodes = known[op.output]
        low, high = (bound - self.network.graph.tensors[op.output].zero_point for bound in op.clamp)
        free = (nodes > low) & (nodes < high)
        total = torch.zeros_like(nodes)
        for _ in range(OPTIONS.queries):
            signs = self._signs(nodes.shape) * free
            moved = (nodes + OPTIONS.mu_node * signs).clamp_(low, high)
            losses = self._losses(index + 1, {**known, op.output: moved}, labels)
            total += (losses - clean)[:, None, None, None] * signs
        total *= self.network._buffer("output", index) / (OPTIONS.mu_node * OPTIONS.queries)
        total *= shortened(OPTIONS.queries * len(nodes), float(free.sum()) / len(nodes))
        read = self.network.layer_input(op, known[op.inputs[0]])
        by_weights = torch.einsum("nhwo,nhwi->oi", total, read) / len(nodes)
        return {
            "weights": by_weights[:, None, None, :],
            "biases": total.sum((0, 1, 2)).double() / len(nodes),
        }


def shortened(directions: float, entries: float) -> float:
    """Return the factor of a gradient whose entries are estimated from random directions."""
    return directions / (directions + entries - 1)


def prepared(data: Dataset, model: pmt.Model) -> Any:
    """Return a data set's int8 images."""
    return model.prepare(at_size(data, model).images)


def measured(network: Network, model: pmt.Model, data: Dataset) -> dict[str, float]:
    """Return loss and accuracy on images."""
    logits = tensor_of(network.logits(prepared(data, model), 0))
    labels = tensor_of(data.labels.astype(np.int64))
    loss = torch.nn.functional.cross_entropy(logits, labels)
    return {"loss": float(loss), "accuracy": float((logits.argmax(1) == labels).double().mean())}


def row_before(sums: str, corruption: str, data: Path) -> dict[str, Any]:
    """Return loss and accuracy of the network as it is."""
    model = pmt.load("cifar10_mcunet")
    _, test = image_pools(data, corruption, model)
    found = measured(Network(model, sums), model, test.take(np.arange(TESTED)))
    return {"sums": sums, "corruption": corruption, **found}


def row_trained(sums: str, seed: int, epochs: int, data: Path) -> dict[str, Any]:
    """Return loss and accuracy on 900 test images before training and after each epoch."""
    model = pmt.load("cifar10_mcunet")
    chosen = chosen_images(image_pools(data, "gaussian_noise", model))
    images, labels = prepared(chosen.train, model), chosen.train.labels.astype(np.int64)
    network = Network(model, sums)
    trainer = Trainer(network, seed)
    schedule = Schedule(replace(OPTIONS, seed=seed, epochs=epochs), len(labels))
    found = [measured(network, model, chosen.test)]
    with torch.no_grad():
        for step in range(schedule.steps):
            batch, rate = schedule.indices(step), schedule.learning_rate(step)
            trainer.step(tensor_of(images[batch]), tensor_of(labels[batch]), rate)
            if schedule.ends_epoch(step + 1):
                found.append(measured(network, model, chosen.test))
                print(f"{sums}, seed {seed}: {found[-1]}", flush=True)
    return {"sums": sums, "seed": seed, **{name: [one[name] for one in found] for name in found[0]}}


def table_before(found: list[dict[str, Any]]) -> str:
    """Return the table of rows before training."""
    rows = [
        [row["corruption"], row["sums"], f"{100 * row['accuracy']:.1f}", f"{row['loss']:.3f}"]
        for row in found
    ]
    return table(["images", "sums", "accuracy", "loss"], rows, left=("images", "sums"))


def table_trained(found: list[dict[str, Any]]) -> str:
    """Return the table of rows of training: accuracies after each epoch, and the last loss."""
    rows = [
        [
            row["sums"],
            str(row["seed"]),
            *(f"{100 * one:.1f}" for one in row["accuracy"]),
            f"{row['loss'][-1]:.3f}",
        ]
        for row in found
    ]
    epochs = [f"after {epoch}" for epoch in range(len(found[0]["accuracy"]))]
    return table(["sums", "seed", *epochs, "last loss"], rows, left=("sums",))


def tables_of(found: list[dict[str, Any]]) -> str:
    """Return both tables, as far as there are rows."""
    trained = [row for row in found if "seed" in row]
    before = [row for row in found if "seed" not in row]
    parts = [(table_before, before), (table_trained, trained)]
    return "\n\n".join(table_of(rows) for table_of, rows in parts if rows)


def rows_by_name(arguments: argparse.Namespace) -> dict[str, Any]:
    """Return the function for each row."""
    data, epochs = arguments.data, arguments.epochs
    names = {sums: sums.replace(" ", "_").replace(",", "") for sums in arguments.sums}
    before = {
        f"{corruption}-{name}": partial(row_before, sums, corruption, data)
        for corruption in ("none", "gaussian_noise")
        for sums, name in names.items()
    }
    trained = {
        f"{name}-{epochs}-{seed}": partial(row_trained, sums, seed, epochs, data)
        for seed in arguments.seeds
        for sums, name in names.items()
    }
    return {**before, **(trained if epochs else {})}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare which cases are run."""
    parser.add_argument("--sums", nargs="+", default=SUMS, choices=SUMS, metavar="NAME")
    parser.add_argument("--seeds", type=int, nargs="+", default=[1])
    parser.add_argument("--epochs", type=int, default=5, help="0 trains nothing")


def main() -> None:
    """Run the missing rows and print the tables."""
    run_benchmark(__doc__, rows_by_name, tables_of, add_arguments)


if __name__ == "__main__":
    main()
