"""Make the bundled model and images: ``python/pmt/data/fashion_mnist_*``.

It needs the package itself, torch and Fashion-MNIST::

    apt-get install dataset-fashion-mnist
    pip install ".[torch,data]"
    python scripts/make_bundled_model.py

Training takes about eight minutes on one core. The same machine, torch and NumPy give the same
bytes again; another processor may round a float sum otherwise and end a little elsewhere.
"""

from __future__ import annotations

import argparse
from dataclasses import replace
from pathlib import Path

import numpy as np
from bundled_model import card, fashion_mnist, measurements
from bundled_model.network import float_graph
from bundled_model.training import train

from pmt import Model
from pmt.datasets import Dataset, save_npz
from pmt.quantization import FloatGraph, format_noise, quantize, signal_to_noise

NAME = "fashion_mnist_dscnn"
DATA_FOLDER = Path(__file__).parents[1] / "python" / "pmt" / "data"
TRAINED_IMAGES = 59_000  # the float training sees these; the last 1,000 are bundled instead
BUNDLED_IMAGES = 1_000
CALIBRATION_IMAGES = 512


def main() -> None:
    """Train, quantize, measure, and write the four files."""
    options = _options()
    train_data = fashion_mnist.read_split("train", options.fashion_mnist)
    test_data = fashion_mnist.read_split("t10k", options.fashion_mnist)
    trained = train_data.take(TRAINED_IMAGES)
    network = train(trained, epochs=options.epochs, seed=options.seed)

    floating = float_graph(network)
    calibration = trained.images[:CALIBRATION_IMAGES]
    quantized = quantize(floating, calibration)
    noise = format_noise(signal_to_noise(floating, quantized, test_data.images[:100]))
    print(noise)

    held_out = train_data.subset(np.arange(TRAINED_IMAGES, TRAINED_IMAGES + BUNDLED_IMAGES))
    bundled_test = test_data.take(BUNDLED_IMAGES)
    model = Model.from_graph(quantized)
    accuracies = _accuracies(floating, model, test_data, bundled_test)
    quantized.metadata = {
        "name": NAME,
        "class_names": list(train_data.class_names),
        "source": "Fashion-MNIST (Xiao, Rasul, Vollgraf 2017), trained and quantized by "
        "scripts/make_bundled_model.py",
        "licence": "MIT",
        "command": f"python scripts/make_bundled_model.py --epochs {options.epochs} "
        f"--seed {options.seed}",
        "seed": options.seed,
        **accuracies,
    }
    _write(options.out, Model.from_graph(quantized), held_out, bundled_test)
    corrupted = measurements.corrupted_accuracies(model, bundled_test)
    card.write(options.out, Model.from_graph(quantized), corrupted, noise)
    print((options.out / "CARD.md").read_text(encoding="utf-8"))


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="Train, quantize and write the bundled model.")
    parser.add_argument("--epochs", type=int, default=14)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--out", type=Path, default=DATA_FOLDER, help="folder to write to")
    parser.add_argument(
        "--fashion-mnist", type=Path, help="folder with the four official .gz files"
    )
    return parser.parse_args()


def _accuracies(
    floating: FloatGraph, model: Model, test_data: Dataset, bundled_test: Dataset
) -> dict[str, float]:
    return {
        "float_accuracy": measurements.float_accuracy(floating, test_data),
        "int8_accuracy": measurements.int8_accuracy(model, test_data),
        "int8_accuracy_bundled_test": measurements.int8_accuracy(model, bundled_test),
    }


def _write(folder: Path, model: Model, train_images: Dataset, test_images: Dataset) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    model.save(folder / f"{NAME}.pmt")
    for split, data in (("train", train_images), ("test", test_images)):
        name = f"fashion_mnist_{split}"
        save_npz(replace(data, name=name), folder / f"{name}.npz")


if __name__ == "__main__":
    main()
