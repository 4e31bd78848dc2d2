"""The released settings on a network that has seen random crops, as the authors' has.

    python benchmarks/released_checkpoint.py --data DATA --out runs/checkpoint --seeds 1 2

DATA holds the folder cifar-10-batches-bin. The bundled cifar10_mcunet is trained on in float for
four epochs, with crops of 8 to 100 % of the area, mirrored, of changed brightness, contrast and
saturation, and quantized again: half an hour of two cores. Both networks are then trained by the
preset `released`, without crops, on 1,000 images under Gaussian noise of severity 5 and tested on
900. A stopped run continues.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import Any

import numpy as np
import torch

import pmt
from pmt import Model
from pmt._util.text import table
from pmt.datasets.picture import Fit, resized
from pmt.protocol import split
from pmt.quantization import dequantize, quantize_graph
from pmt_lab.sweep.images import at_size, pools

sys.path.insert(0, str(Path(__file__).parents[2] / "scripts"))
from bundled_model import training
from bundled_model.data import cifar10
from bundled_model.torch_network import TorchNetwork, absorb_statistics, trained_graph

CORRUPTION, SEVERITY = "gaussian_noise", 5
RECIPE = training.Recipe(
    epochs=4,
    batch=100,
    learning_rate=0.02,
    warm_up=0.05,
    weight_decay=1e-4,
    augmentation="crop",
    seed=2,
)
SMALLEST_CROP, JITTER = 0.08, 0.4
LUMA = torch.tensor([0.299, 0.587, 0.114]).reshape(1, 3, 1, 1)


def jittered(pixels: torch.Tensor, generator: np.random.Generator) -> torch.Tensor:
    """Change brightness, contrast and saturation of each image, in random order."""
    for kind in generator.permutation(3):
        drawn = generator.uniform(1 - JITTER, 1 + JITTER, (len(pixels), 1, 1, 1))
        factor = torch.from_numpy(drawn.astype(np.float32))
        gray = (pixels * LUMA).sum(1, keepdim=True)
        base = (torch.zeros(1), gray.mean((2, 3), keepdim=True), gray)[kind]
        pixels = (base + factor * (pixels - base)).clamp(0, 255)
    return pixels.round().contiguous(memory_format=torch.channels_last)


def network_of_crops(data: Path, out: Path) -> Model:
    """Return the network that has seen crops, from its file where it was made."""
    place = out / "crops.pmt"
    if place.is_file():
        return pmt.load(place)
    training.SMALLEST_CROP = SMALLEST_CROP
    plain = training._cropped_and_mirrored
    training._cropped_and_mirrored = lambda images, side, generator: jittered(
        plain(images, side, generator), generator
    )
    images, held_out, _ = cifar10(data)
    torch.manual_seed(0)
    network = TorchNetwork(dequantize(pmt.load("cifar10_mcunet").to_graph()))
    absorb_statistics(network, training.images_for(network, images.images[:128]))
    training.train(network, RECIPE, images, held_out.take(1000), out / "crops.checkpoint")
    calibration = resized(held_out.images[:512], Fit((network.side, network.side)))
    model = Model.from_graph(
        quantize_graph(trained_graph(network), calibration, bias_correction=True)
    )
    model.save(place)
    return model


def trained(model: Model, name: str, seed: int, options: argparse.Namespace) -> tuple[float, float]:
    """Return the accuracy before and after training, in percent."""
    source: dict[str, Any] = {
        "path": str(options.data / "cifar-10-batches-bin"),
        "corruption_seed": 0,
        "coarse_labels": False,
        "constants": "cifar10",
    }
    both = pools(source, CORRUPTION, SEVERITY, model)
    images = split("default", *both, seed=0, images=1100, held_out=100, test_images=900)
    tested = at_size(images.test, model)
    before = model.evaluate(tested).accuracy
    chosen = pmt.preset("released", layers="B2", batch=100, seed=seed, epochs=options.epochs)
    folder = options.out / f"{name}-{options.epochs}-{seed}"
    pmt.ZOTrainer(chosen).fit(model, at_size(images.train, model), out=folder)
    return 100 * before, 100 * model.evaluate(tested).accuracy


def main() -> None:
    """Train both networks and print the table."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--epochs", type=int, default=5)
    parser.add_argument("--seeds", type=int, nargs="+", default=[1, 2])
    options = parser.parse_args()
    options.out.mkdir(parents=True, exist_ok=True)
    models = {
        "cifar10_mcunet": pmt.load("cifar10_mcunet"),
        "crops": network_of_crops(options.data, options.out),
    }
    rows = []
    for name, model in models.items():
        found = [trained(model.copy(), name, seed, options) for seed in options.seeds]
        after = [accuracy for _, accuracy in found]
        each = ", ".join(f"{accuracy:.1f}" for accuracy in after)
        rows.append([name, f"{found[0][0]:.1f}", f"{np.mean(after):.1f}", each])
    print(table(["network", "before", "after", "by seed"], rows, left=("network", "by seed")))


if __name__ == "__main__":
    main()
