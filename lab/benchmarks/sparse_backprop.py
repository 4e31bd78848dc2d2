r"""Measure sparse back-propagation: published schemes, contribution analysis, TinyTrain.

    python benchmarks/sparse_backprop.py cifar10_mcunet --data cifar-10-batches-bin --schemes 99KB
    python benchmarks/sparse_backprop.py fashion_mnist_dscnn --data bundled --memory 12K \\
        --forward --contributions

Every method starts from the same model and sees the same corrupted training images as often; test
images are corrupted with another seed, and nothing is chosen on them. One line of Markdown for each
as it ends.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import pmt
from pmt.baselines.backprop import BackpropTrainer
from pmt.baselines.backprop.cost import Arithmetic, backward_memory
from pmt.baselines.backprop.scheme import UpdateScheme, head_layer
from pmt.baselines.sparse_update.contribution import analyze, scheme_memory
from pmt.baselines.sparse_update.options import TinyTrainOptions
from pmt.baselines.sparse_update.trainer import MCUTrainTrainer, tinytrain_scheme
from pmt.firmware.export.target import parse_size
from pmt.protocol import Split, split, wilson_interval
from pmt.protocol.data_source import DataSource

TITLES = ("update", "weights", "biases", "update memory", "peak", "MMACs", "accuracy", "interval")


def arguments() -> argparse.Namespace:
    """Read the command line."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("model", help="model file, or the name of a bundled one")
    parser.add_argument("--data", required=True, help="data set folder, or bundled")
    parser.add_argument("--corruption", default="gaussian_noise")
    parser.add_argument("--severity", type=int, default=5)
    parser.add_argument("--images", type=int, default=1000, help="training images")
    parser.add_argument("--held-out", type=int, default=400, help="of them, to choose on")
    parser.add_argument("--test", type=int, default=1000, help="test images")
    parser.add_argument("--batch", type=int, default=50)
    parser.add_argument("--epochs", type=int, default=10)
    parser.add_argument("--rates", type=float, nargs="+", default=[0.01])
    parser.add_argument("--memory", default="100K", help="budget of TinyTrain and the analysis")
    parser.add_argument("--backward-macs", type=float, default=0.3, help="budget of TinyTrain")
    parser.add_argument("--inspect", type=int, default=18)
    parser.add_argument("--forward", action="store_true", help="TinyTrain by forward passes too")
    parser.add_argument("--schemes", nargs="*", default=[], help="published schemes")
    parser.add_argument("--contributions", action="store_true", help="make a scheme by analysis")
    parser.add_argument("--cache", type=Path, help="measurements of the analysis")
    parser.add_argument("--threads", type=int, default=1)
    return parser.parse_args()


def main() -> None:
    """Train once for each method and learning rate; the rate is chosen on held-out images."""
    a = arguments()
    model = pmt.load(a.model)
    source = DataSource(a.data, a.corruption, a.severity)
    parts = split(
        "default",
        source.pool("train", model),
        source.pool("test", model),
        images=a.images,
        held_out=a.held_out,
        test_images=a.test,
    )
    before = model.evaluate(parts.test, threads=a.threads)
    print(f"before: {before.accuracy:.3f} of {before.n:,} test images\n", flush=True)
    print(f"| {' | '.join(TITLES)} |\n|{'---|' * len(TITLES)}", flush=True)
    for name, scheme in schemes(a, model, parts).items():
        print(row(a, model, parts, name, scheme), flush=True)


def schemes(a: argparse.Namespace, model: pmt.Model, parts: Split) -> dict[str, UpdateScheme]:
    """Return the scheme of each method."""
    layers = [layer.index for layer in model.layers]
    found = {"all layers": UpdateScheme.whole(layers, model), "biases": biases(layers, model)}
    head = head_layer(model)
    if head is not None:
        found["head"] = UpdateScheme.whole([head], model)
    for name in a.schemes:
        found[f"MCUTrain {name}"] = pmt.baselines.sparse_update.published_scheme(model, name)
    memory = parse_size("--memory", a.memory)
    for potentials in ("fisher", "forward") if a.forward else ("fisher",):
        options = TinyTrainOptions(
            memory=memory,
            backward_macs=a.backward_macs,
            inspect=a.inspect,
            potentials=potentials,
        )
        name = f"TinyTrain, {potentials} potentials"
        found[name] = tinytrain_scheme(model, parts.train, options, threads=a.threads)
    if a.contributions:
        options = pmt.backprop.BackpropOptions(
            epochs=max(1, a.epochs // 4), batch=a.batch, learning_rate=a.rates[0]
        )
        table = analyze(
            model, parts.train, parts.held_out, options=options, cache=a.cache, threads=a.threads
        )
        found["MCUTrain, by contribution"] = table.scheme(model, memory)
    return found


def biases(layers: list[int], model: pmt.Model) -> UpdateScheme:
    """All biases, and the head."""
    head = head_layer(model)
    rest = UpdateScheme.biases_of(op for op in layers if op != head)
    whole = UpdateScheme.whole([head], model).layers if head is not None else ()
    return UpdateScheme((*rest.layers, *whole))


def row(a: argparse.Namespace, model: pmt.Model, parts: Split, name: str, s: UpdateScheme) -> str:
    """Train at every rate; return the line of the one that is best on held-out images."""
    best, chosen = -1.0, model
    for rate in a.rates:
        trainer = trainer_of(a, model, s, rate)
        trained = model.copy()
        trainer.fit(trained, parts.train, progress=False)
        held_out = trained.evaluate(parts.held_out, threads=a.threads).accuracy
        if held_out > best:
            best, chosen = held_out, trained
    after = chosen.evaluate(parts.test, threads=a.threads)
    low, high = wilson_interval(round(after.accuracy * after.n), after.n)
    peak = backward_memory(model, s, Arithmetic(), batch=1).sram
    macs = trainer.cost(model, samples=1).macs / 1e6
    return (
        f"| {name} | {s.weights(model):,} | {s.biases(model):,} "
        f"| {scheme_memory(model, s).total / 1024:.1f} KB | {peak / 1024:.0f} KB | {macs:.1f} "
        f"| {100 * after.accuracy:.1f} | {100 * low:.1f}..{100 * high:.1f} |"
    )


def trainer_of(
    a: argparse.Namespace, model: pmt.Model, scheme: UpdateScheme, rate: float
) -> BackpropTrainer:
    """Return the trainer of a scheme."""
    return MCUTrainTrainer(
        scheme=scheme.text(model),
        epochs=a.epochs,
        batch=a.batch,
        learning_rate=rate,
        threads=a.threads,
    )


if __name__ == "__main__":
    main()
