"""Make a network of the model zoo: train it in float, quantize it, measure it, write its card.

    python scripts/make_zoo_model.py cifar10_mcunet --data DIR --archive mcunet-5fps.pkl
    python scripts/make_zoo_model.py cifar10_small --data DIR
    python scripts/make_zoo_model.py head --data DIR --archive mcunet-5fps.pkl --out food10.pmt

DIR is any folder that ``pmt.datasets.load`` reads; `cifar10_*` need CIFAR-10. The archive is the
int8 MCUNet of the tiny-training project. Needs ``pip install "poor-mans-training[torch,data]"``.
Training writes a checkpoint after every epoch under --work and goes on from it when called again.
On two cores of an AMD Zen 3 an epoch takes about four minutes (mcunet) and two (small); a GPU is
used where torch finds one. The same machine, torch and thread count give the same bytes again.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import numpy as np
import numpy.typing as npt
import torch
from model_zoo import card, small_network
from model_zoo.cifar10 import read_splits
from model_zoo.head import with_fitted_head
from model_zoo.measurements import measure
from model_zoo.torch_network import TorchNetwork, absorb_statistics, trained_graph
from model_zoo.training import Recipe, images_for, train

from pmt import Model, datasets, formats
from pmt.datasets.picture import Fit, resized
from pmt.quantization import FloatGraph, dequantize, format_noise, quantize, signal_to_noise
from pmt.train.prepare import measure_statistics, with_statistics

DATA_FOLDER = Path(__file__).parents[1] / "python" / "pmt" / "data"
CLASSES = 10
CALIBRATION_IMAGES = 512
NOISE_IMAGES = 100
BATCH_NORM_IMAGES = 128
STATISTICS_IMAGES = 256

# One after another; each has a checkpoint of its own. A cycle with crops makes MCUNet as robust to
# blur as the paper's (docs/lab/results.md).
RECIPES = {
    "cifar10_mcunet": (
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
    "cifar10_small": (
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
}


def main() -> None:
    """Make the network that the command line names."""
    options = _options()
    torch.use_deterministic_algorithms(True)
    if options.model == "head":
        _make_head(options)
    else:
        _make_cifar10(options)


def _make_cifar10(options: argparse.Namespace) -> None:
    recipes = RECIPES[options.model][: options.cycles]
    data, held_out, test = read_splits(options.data)
    network = TorchNetwork(_float_graph(options))
    if options.archive is not None:
        absorb_statistics(network, images_for(network, data.images[:BATCH_NORM_IMAGES]))
    for number, recipe in enumerate(recipes):
        checkpoint = options.work / f"{options.model}_{number}.checkpoint"
        train(network, recipe, data, held_out, checkpoint)
    network.to("cpu")

    floating = trained_graph(network)
    calibration = upscaled(held_out.images[:CALIBRATION_IMAGES], floating)
    graph = quantize(floating, calibration, bias_correction=True)
    accuracies = measure(network, Model.from_graph(graph), held_out, test)
    graph.metadata = card.metadata(options.model, data.class_names, recipes, accuracies)
    plain = Model.from_graph(graph)
    clean = upscaled(held_out.images[:STATISTICS_IMAGES], floating)
    model = with_statistics(plain, measure_statistics(plain, clean))
    model.save(options.out / f"{options.model}.pmt")
    noise = format_noise(signal_to_noise(floating, graph, calibration[:NOISE_IMAGES]))
    card.write(options.out / f"{options.model}.md", model, recipes, accuracies, noise)
    print((options.out / f"{options.model}.md").read_text(encoding="utf-8"))


def _float_graph(options: argparse.Namespace) -> FloatGraph:
    if options.model == "cifar10_small":
        return small_network.float_graph(CLASSES, seed=0)
    if options.archive is None:
        raise SystemExit(
            "cifar10_mcunet starts from trained weights: add --archive mcunet-5fps.pkl"
        )
    return dequantize(formats.read(options.archive, classes=CLASSES))


def upscaled(images: npt.NDArray[np.uint8], graph: FloatGraph) -> npt.NDArray[np.uint8]:
    """Resize to the network's input as ``pmt.datasets.load`` does."""
    height, width, _ = graph.tensors[graph.input].shape
    return images if images.shape[1:3] == (height, width) else resized(images, Fit((height, width)))


def _make_head(options: argparse.Namespace) -> None:
    if options.archive is None:
        raise SystemExit("a head is fitted to trained features: add --archive mcunet-5fps.pkl")
    data = datasets.load(options.data, split="train")
    graph = formats.read(options.archive, classes=len(data.class_names))
    size = graph.tensors[graph.input].height
    data = datasets.load(options.data, split="train", size=size)
    graph, decay = with_fitted_head(graph, data, seed=0)
    graph.metadata |= {"class_names": list(data.class_names), "head": f"fitted to {data.name}"}
    model = Model.from_graph(graph)
    test = datasets.load(options.data, split="test", size=size, class_names=list(data.class_names))
    print(f"weight decay {decay:g}, chosen on a fifth of the training images")
    print(f"int8: {100 * model.evaluate(data).accuracy:.1f} % of {len(data)} training images")
    print(f"int8: {100 * model.evaluate(test).accuracy:.1f} % of {len(test)} test images")
    model.save(options.out)
    print(f"wrote {options.out}")


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description="Make a network of the model zoo: train, quantize, measure."
    )
    parser.add_argument("model", choices=(*RECIPES, "head"))
    parser.add_argument("--data", type=Path, required=True, help="folder of the data set")
    parser.add_argument("--archive", type=Path, help="int8 MCUNet of tiny-training (.pkl)")
    parser.add_argument("--work", type=Path, default=Path("runs/zoo"), help="for checkpoints")
    parser.add_argument("--cycles", type=int, help="stop after so many training cycles")
    parser.add_argument("--out", type=Path, help="folder to write to; for a head, the .pmt file")
    options = parser.parse_args()
    if options.out is None:
        if options.model == "head":
            parser.error("a head needs --out NAME.pmt")
        options.out = DATA_FOLDER
    return options


if __name__ == "__main__":
    main()
