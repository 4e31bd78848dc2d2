"""The metadata inside a zoo model and the card beside it."""

from __future__ import annotations

import json
import textwrap
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from pmt import Model

from .measurements import Accuracies
from .training import Recipe

COMMANDS = {
    "cifar10_mcunet": "python scripts/make_zoo_model.py cifar10_mcunet --data cifar-10-batches-bin "
    "--archive mcunet-5fps.pkl",
    "cifar10_small": "python scripts/make_zoo_model.py cifar10_small --data cifar-10-batches-bin",
}
DESCRIPTIONS = {
    "cifar10_mcunet": "MCUNet (mcunet-5fps of tiny-training) for CIFAR-10 images upscaled to "
    "128x128: the network of the paper.",
    "cifar10_small": "A small network of MCUNet's family (inverted bottlenecks, ReLU6) for "
    "CIFAR-10 at 32x32: for quick studies.",
}
ORIGINS = {
    "cifar10_mcunet": "Starts from the int8 weights that the tiny-training project publishes under "
    "the MIT license (https://github.com/mit-han-lab/tiny-training; Lin, Zhu, Chen, Wang, Gan, "
    "Han: On-Device Training Under 256KB Memory, NeurIPS 2022), dequantized; the head is new.",
    "cifar10_small": "Starts from random weights.",
}
DATA = (
    "CIFAR-10 (A. Krizhevsky: Learning Multiple Layers of Features from Tiny Images, 2009). Its "
    "authors state no license; only weights are stored here, no image."
)
LICENSE = "MIT"
WIDTH = 100


def metadata(
    name: str, class_names: Sequence[str], recipes: Sequence[Recipe], accuracies: Accuracies
) -> dict[str, Any]:
    """The metadata of the model."""
    return {
        "name": name,
        "class_names": list(class_names),
        "source": f"{DESCRIPTIONS[name]} {ORIGINS[name]}",
        "data": DATA,
        "licence": LICENSE,
        "command": COMMANDS[name],
        "recipes": [asdict(recipe) for recipe in recipes],
        "float_accuracy": accuracies.float_test,
        "int8_accuracy": accuracies.int8_test,
    }


def write(
    path: Path, model: Model, recipes: Sequence[Recipe], accuracies: Accuracies, noise: str
) -> None:
    """Write the card as Markdown."""
    name = model.metadata["name"]
    size = f"{len(model.image()):,}"
    description = (
        f"{DESCRIPTIONS[name]} {len(model.layers)} layers with weights, "
        f"{sum(layer.weights for layer in model.layers):,} weights, {model.macs:,} "
        f"multiply-accumulates an image, {size} bytes."
    )
    path.write_text(
        TEMPLATE.format(
            name=name,
            description=textwrap.fill(description, WIDTH),
            origin=textwrap.fill(ORIGINS[name], WIDTH, break_on_hyphens=False),
            data=textwrap.fill(f"{DATA} The weights are under the MIT license.", WIDTH),
            recipes="\n".join(f"- `{json.dumps(asdict(recipe))}`" for recipe in recipes),
            command=COMMANDS[name],
            corrupted="\n".join(
                f"| {n} | {100 * a:.1f} |" for n, a in accuracies.corrupted.items()
            ),
            noise=noise,
            **{key: 100 * value for key, value in asdict(accuracies).items() if key != "corrupted"},
        ),
        encoding="utf-8",
    )


TEMPLATE = """\
# `{name}`

{description}

{origin}

Trained in float32 on the first 45,000 CIFAR-10 training images (shifts of up to four pixels and
mirror images; SGD with Nesterov momentum, a cosine cycle for each recipe below; a recipe with crops
enlarges parts of the images instead of shifting them), batch norm folded, quantized with
`pmt.quantization.quantize` (minimum and maximum, bias correction) on the first 512 of the last
5,000 training images, which also show how training goes. No corruption was shown at any point. The
test images chose no setting (that MCUNet wanted crops was first seen on corrupted ones).

| network | images | accuracy in % |
| --- | --- | --- |
| float32 | 5,000 held out of training | {float_held_out:.2f} |
| int8 | 5,000 held out of training | {int8_held_out:.2f} |
| float32 | first 1,000 of the official test images | {float_test:.2f} |
| int8 | first 1,000 of the official test images | {int8_test:.2f} |

Int8 on these test images, corrupted at 32x32 with `pmt.corruptions` at severity 5, seed 0:

| corruption | accuracy in % |
| --- | --- |
{corrupted}

Signal-to-noise ratio of the int8 activations, against the float network's, on held-out images:

```
{noise}
```

It holds the mean and deviation of its channels on the first 256 of the 5,000 held-out images, for
`pmt align`.

Made by `{command}`, with

{recipes}

{data}
"""
