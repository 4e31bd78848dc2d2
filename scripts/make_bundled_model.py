"""Make a bundled model: train it in float, quantize it, measure it, write it and its card.

    python scripts/make_bundled_model.py [fashion_mnist_dscnn]
    python scripts/make_bundled_model.py cifar10_small --data DIR
    python scripts/make_bundled_model.py cifar10_mcunet --data DIR --archive mcunet-5fps.pkl
    python scripts/make_bundled_model.py head --data DIR --archive mcunet-5fps.pkl --out food10.pmt

DIR is any folder that ``pmt.datasets.load`` reads; `cifar10_*` need CIFAR-10, `fashion_mnist_dscnn`
the Debian package ``dataset-fashion-mnist``, a download, or a folder of the four official files. It
also writes the bundled images. The archive is the int8 MCUNet of the tiny-training project. Needs
``pip install ".[torch,data]"``. CIFAR-10's networks have a checkpoint after every epoch under
--work, and go on from it when called again. On a core of an AMD Zen 3 Fashion-MNIST takes eight
minutes in all, on two an epoch of mcunet four and of small two; a GPU is used where torch finds
one. The same machine, torch and thread count give the same bytes again; another processor may round
a float sum otherwise and end a little elsewhere.
"""

import argparse
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import numpy.typing as npt
import torch
from bundled_model import card
from bundled_model.data import Splits, cifar10, fashion_mnist
from bundled_model.head import with_fitted_head
from bundled_model.networks import fashion_mnist_graph, small_graph
from bundled_model.torch_network import TorchNetwork, absorb_statistics, trained_graph
from bundled_model.training import OneCycle, Recipe, accuracy, images_for, train

from pmt import Model, corruptions, datasets, formats
from pmt.datasets import Dataset
from pmt.datasets.picture import Fit, resized
from pmt.net.graph import Graph, with_new_head
from pmt.quantization import dequantize, format_noise, quantize, signal_to_noise
from pmt.train.prepare.clean_statistics import measure_statistics, with_statistics

DATA_FOLDER = Path(__file__).parents[1] / "python" / "pmt" / "data"
FASHION_MNIST = "fashion_mnist_dscnn"
CLASSES = 10
SEVERITY = 5
TESTED_IMAGES = 1_000  # the first of the test images; those of Fashion-MNIST are bundled
CALIBRATION_IMAGES = 512
NOISE_IMAGES = 100
BATCH_NORM_IMAGES = 128
STATISTICS_IMAGES = 256


@dataclass(frozen=True)
class Configuration:
    """How a bundled model is made.

    Recipes are trained one after another, each with a checkpoint of its own. ``corruptions`` are
    those of the card.
    """

    read: Callable[[Path | None], Splits]
    network: Callable[[argparse.Namespace], TorchNetwork]
    recipes: tuple[Recipe, ...]
    corruptions: tuple[str, ...]
    bias_correction: bool = True
    statistics: bool = True


def _mcunet(options: argparse.Namespace) -> TorchNetwork:
    return TorchNetwork(dequantize(with_new_head(_archive(options), CLASSES)))


def _archive(options: argparse.Namespace) -> Graph:
    if options.archive is None:
        raise SystemExit(f"{options.model} starts from trained weights: add --archive FILE.pkl")
    return formats.read(options.archive)


CONFIGURATIONS = {
    FASHION_MNIST: Configuration(
        read=fashion_mnist,
        network=lambda _: TorchNetwork(fashion_mnist_graph(CLASSES), "random"),
        recipes=(
            OneCycle(
                epochs=14,
                batch=128,
                learning_rate=0.01,
                warm_up=0.3,
                weight_decay=0.01,
                augmentation="shift_black",
                seed=0,
            ),
        ),
        corruptions=(
            *("gaussian_noise", "shot_noise", "impulse_noise"),
            *("contrast", "fog", "brightness"),
        ),
        bias_correction=False,
        statistics=False,
    ),
    "cifar10_small": Configuration(
        read=cifar10,
        network=lambda _: TorchNetwork(small_graph(CLASSES)),
        recipes=(
            Recipe(
                epochs=30,
                batch=100,
                learning_rate=0.1,
                warm_up=0.1,
                weight_decay=2e-4,
                augmentation="shift",
                seed=0,
            ),
        ),
        corruptions=corruptions.names(),
    ),
    # A cycle with crops makes MCUNet as robust to blur as the paper's (lab/pages/results.md).
    "cifar10_mcunet": Configuration(
        read=cifar10,
        network=_mcunet,
        recipes=(
            Recipe(
                epochs=10,
                batch=100,
                learning_rate=0.05,
                warm_up=0.1,
                weight_decay=1e-4,
                augmentation="shift",
                seed=0,
            ),
            Recipe(
                epochs=3,
                batch=100,
                learning_rate=0.02,
                warm_up=0.0,
                weight_decay=1e-4,
                augmentation="crop",
                seed=1,
            ),
        ),
        corruptions=corruptions.names(),
    ),
}


def main() -> None:
    """Make the model that the command line names."""
    options = _options()
    torch.use_deterministic_algorithms(True)
    if options.model == "head":
        _make_head(options)
    else:
        _make_model(options, CONFIGURATIONS[options.model])


def _make_model(options: argparse.Namespace, configuration: Configuration) -> None:
    fashion = options.model == FASHION_MNIST
    given = {"epochs": options.epochs, "seed": options.seed}
    changes = {name: value for name, value in given.items() if value is not None}
    recipes = [replace(recipe, **changes) for recipe in configuration.recipes]
    data, held_out, test = configuration.read(options.data)
    few = test.take(TESTED_IMAGES)
    if fashion:
        torch.set_num_threads(1)
    torch.manual_seed(recipes[0].seed)
    network = configuration.network(options)
    if options.archive is not None:
        absorb_statistics(network, images_for(network, data.images[:BATCH_NORM_IMAGES]))
    for number, recipe in enumerate(recipes):
        train(
            network, recipe, data, held_out, options.work / f"{options.model}_{number}.checkpoint"
        )
    network.to("cpu")

    floating = trained_graph(network)
    size = floating.tensors[floating.input].shape[:2]
    calibrating, noisy = (data, test) if fashion else (held_out, held_out)
    calibration = fitted(calibrating.images[:CALIBRATION_IMAGES], size)
    graph = quantize(floating, calibration, bias_correction=configuration.bias_correction)
    model = Model.from_graph(graph)
    accuracies = {}
    for place, images in {"held_out": held_out, "test": test, "few": few}.items():
        accuracies[f"float_{place}"] = accuracy(network, images)
        accuracies[f"int8_{place}"] = int8_accuracy(model, images)
    corrupted = {
        name: int8_accuracy(model, corruptions.corrupt(few, name, SEVERITY, seed=0))
        for name in configuration.corruptions
    }
    graph.metadata = card.metadata(options.model, data.class_names, recipes, accuracies, data)
    model = Model.from_graph(graph)
    if configuration.statistics:
        clean = fitted(held_out.images[:STATISTICS_IMAGES], size)
        model = with_statistics(model, measure_statistics(model, clean))

    options.out.mkdir(parents=True, exist_ok=True)
    model.save(options.out / f"{options.model}.pmt")
    if fashion:
        for split, part in (("train", held_out), ("test", few)):
            name = f"fashion_mnist_{split}"
            datasets.save_npz(replace(part, name=name), options.out / f"{name}.npz")
    noise = signal_to_noise(floating, graph, fitted(noisy.images[:NOISE_IMAGES], size))
    path = card.write(options.out, model, recipes, accuracies, corrupted, format_noise(noise))
    print(path.read_text(encoding="utf-8"))


def int8_accuracy(model: Model, data: Dataset) -> float:
    """Return the top-1 accuracy, 0..1, in int8, of images resized to the model's input."""
    return model.evaluate(replace(data, images=fitted(data.images, model.input_shape[:2]))).accuracy


def fitted(images: npt.NDArray[np.uint8], size: tuple[int, int]) -> npt.NDArray[np.uint8]:
    """Resize to a height and width as ``pmt.datasets.load`` does."""
    return images if images.shape[1:3] == size else resized(images, Fit(size))


def _make_head(options: argparse.Namespace) -> None:
    graph = _archive(options)
    size = graph.tensors[graph.input].height
    data = datasets.load(options.data, split="train", size=size)
    names = list(data.class_names)
    graph, decay = with_fitted_head(with_new_head(graph, len(names)), data, seed=0)
    graph.metadata |= {"class_names": names, "head": f"fitted to {data.name}"}
    model = Model.from_graph(graph)
    test = datasets.load(options.data, split="test", size=size, class_names=names)
    print(f"weight decay {decay:g}, chosen on a fifth of the training images")
    print(f"int8: {100 * model.evaluate(data).accuracy:.1f} % of {len(data)} training images")
    print(f"int8: {100 * model.evaluate(test).accuracy:.1f} % of {len(test)} test images")
    model.save(options.out)
    print(f"wrote {options.out}")


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="Make a bundled model: train, quantize, measure.")
    parser.add_argument(
        "model", nargs="?", choices=(*CONFIGURATIONS, "head"), default=FASHION_MNIST
    )
    parser.add_argument("--data", type=Path, help="folder of the data set")
    parser.add_argument("--archive", type=Path, help="int8 MCUNet of tiny-training (.pkl)")
    parser.add_argument("--epochs", type=int, help="of each recipe, in place of its own")
    parser.add_argument("--seed", type=int, help="of each recipe, in place of its own")
    parser.add_argument("--work", type=Path, default=Path("runs/zoo"), help="for checkpoints")
    parser.add_argument("--out", type=Path, help="folder to write to; for a head, the .pmt file")
    options = parser.parse_args()
    if options.model == "head" and None in (options.data, options.out):
        parser.error("a head needs --data DIR and --out NAME.pmt")
    options.out = options.out or DATA_FOLDER
    return options


if __name__ == "__main__":
    main()
