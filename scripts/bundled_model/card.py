"""The metadata inside a bundled model, and the card beside it."""

import json
import textwrap
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from pmt import Model
from pmt.datasets import Dataset
from pmt.model.data_checks import SEEN_IMAGES, range_of_images

from .training import Recipe

FILES = ("fashion_mnist_dscnn.pmt", "fashion_mnist_train.npz", "fashion_mnist_test.npz")
SCRIPT = "python scripts/make_bundled_model.py"
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
WIDTH = 100


def metadata(
    name: str,
    class_names: Sequence[str],
    recipes: Sequence[Recipe],
    accuracies: dict[str, float],
    seen: Dataset,
) -> dict[str, Any]:
    """Return the metadata of the model.

    ``accuracies``, 0..1, are of the ``float`` and the ``int8`` network on the images ``held_out``
    of training, all of the ``test``, and its ``few`` first ones: ``float_held_out`` and so on. The
    network was trained on the images ``seen``, the first of the official ones.
    """
    common = {"name": name, "class_names": list(class_names), "licence": "MIT"}
    if name in DESCRIPTIONS:
        archive = " --archive mcunet-5fps.pkl" if name == "cifar10_mcunet" else ""
        return common | {
            "source": f"{DESCRIPTIONS[name]} {ORIGINS[name]}",
            "data": DATA,
            "command": f"{SCRIPT} {name} --data cifar-10-batches-bin{archive}",
            "recipes": [asdict(recipe) for recipe in recipes],
            SEEN_IMAGES: [range_of_images(seen, 0, len(seen))],
            "float_accuracy": accuracies["float_few"],
            "int8_accuracy": accuracies["int8_few"],
        }
    (recipe,) = recipes
    return common | {
        "source": "Fashion-MNIST (Xiao, Rasul, Vollgraf 2017), trained and quantized by "
        "scripts/make_bundled_model.py",
        "command": f"{SCRIPT} --epochs {recipe.epochs} --seed {recipe.seed}",
        "seed": recipe.seed,
        "float_accuracy": accuracies["float_test"],
        "int8_accuracy": accuracies["int8_test"],
        "int8_accuracy_bundled_test": accuracies["int8_few"],
    }


def write(
    folder: Path,
    model: Model,
    recipes: Sequence[Recipe],
    accuracies: dict[str, float],
    corrupted: dict[str, float],
    noise: str,
) -> Path:
    """Write the card, as Markdown, beside the model's files, and return its path.

    ``corrupted`` are accuracies, 0..1, on the few test images by corruption, ``noise`` is the table
    of signal-to-noise ratios.
    """
    name = model.metadata["name"]
    fields = {key: 100 * value for key, value in accuracies.items()} | {
        "corrupted": "\n".join(f"| {n} | {100 * a:.1f} |" for n, a in corrupted.items()),
        "noise": noise,
        "command": model.metadata["command"],
    }
    weights = sum(layer.weights for layer in model.layers)
    if name in DESCRIPTIONS:
        path = folder / f"{name}.md"
        text = CIFAR10.format(
            name=name,
            description=textwrap.fill(
                f"{DESCRIPTIONS[name]} {len(model.layers)} layers with weights, {weights:,} "
                f"weights, {model.macs:,} multiply-accumulates an image, "
                f"{len(model.image()):,} bytes.",
                WIDTH,
            ),
            origin=textwrap.fill(ORIGINS[name], WIDTH, break_on_hyphens=False),
            data=textwrap.fill(f"{DATA} The weights are under the MIT license.", WIDTH),
            recipes="\n".join(f"- `{json.dumps(asdict(recipe))}`" for recipe in recipes),
            **fields,
        )
    else:
        path = folder / "CARD.md"
        text = FASHION_MNIST.format(
            layers=len(model.layers),
            weights=weights,
            macs=model.macs,
            blocks=_blocks(model),
            sizes="\n".join(f"| `{file}` | {(folder / file).stat().st_size:,} |" for file in FILES),
            seed=model.metadata["seed"],
            **fields,
        )
    path.write_text(text, encoding="utf-8")
    return path


def _blocks(model: Model) -> str:
    names = {layer.index: layer.name for layer in model.layers}
    return "\n".join(
        f"| `{block}` | {', '.join(names[index] for index in layers)} |"
        for block, layers in model.blocks.items()
        if block != "all"
    )


CIFAR10 = """\
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
| float32 | first 1,000 of the official test images | {float_few:.2f} |
| int8 | first 1,000 of the official test images | {int8_few:.2f} |

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

FASHION_MNIST = """\
# Bundled model and images

## Model: `fashion_mnist_dscnn.pmt`

A depthwise-separable int8 network for 28 x 28 gray images of clothes in ten classes: {layers}
layers with weights, {weights:,} weights, {macs:,} multiply-accumulates an image. The int8 input is
the pixel - 128. Its purpose is to show training on a device; it is too small and too narrow in
what it has seen for any use beyond that.

| block | layers |
| --- | --- |
{blocks}

Trained in float32 on the first 59,000 Fashion-MNIST training images (random shifts of up to two
pixels, mirror images, AdamW with one learning-rate cycle), batch norm folded, quantized with
`pmt.quantization.quantize`: weights per output channel, activations by minimum and maximum over the
first 512 of these images. No corruption was shown at any point.

| network | test images | accuracy in % |
| --- | --- | --- |
| float32 | all 10,000 | {float_test:.2f} |
| int8 | all 10,000 | {int8_test:.2f} |
| int8 | the bundled 1,000 | {int8_few:.2f} |

Int8 on the bundled 1,000 test images, corrupted with `pmt.corruptions` at severity 5, seed 0:

| corruption | accuracy in % |
| --- | --- |
{corrupted}

Signal-to-noise ratio of the int8 activations, against the float network's, on 100 test images:

```
{noise}
```

Made, with the image files and this card, by `{command}` (seed {seed}).

## Images: `fashion_mnist_train.npz`, `fashion_mnist_test.npz`

`fashion_mnist_train.npz`: the last 1,000 of the 60,000 official training images. The float network
was neither trained nor calibrated on them: they are what a device meets later.
`fashion_mnist_test.npz`: the first 1,000 of the 10,000 official test images. Arrays: `images` uint8
(1000, 28, 28, 1), `labels` int64 (1000,), `class_names`, `name`.

## File sizes

| file | bytes |
| --- | --- |
{sizes}

## Source and license

H. Xiao, K. Rasul, R. Vollgraf: "Fashion-MNIST: a Novel Image Dataset for Benchmarking Machine
Learning Algorithms", 2017, arXiv:1708.07747, https://github.com/zalandoresearch/fashion-mnist.
The images carry the license below; the model is under the same terms.

The MIT License (MIT)

Copyright (c) 2017 Zalando SE, https://tech.zalando.com

Permission is hereby granted, free of charge, to any person obtaining a copy of this software and
associated documentation files (the "Software"), to deal in the Software without restriction,
including without limitation the rights to use, copy, modify, merge, publish, distribute,
sublicense, and/or sell copies of the Software, and to permit persons to whom the Software is
furnished to do so, subject to the following conditions:

The above copyright notice and this permission notice shall be included in all copies or substantial
portions of the Software.

THE SOFTWARE IS PROVIDED "AS IS", WITHOUT WARRANTY OF ANY KIND, EXPRESS OR IMPLIED, INCLUDING BUT
NOT LIMITED TO THE WARRANTIES OF MERCHANTABILITY, FITNESS FOR A PARTICULAR PURPOSE AND
NONINFRINGEMENT. IN NO EVENT SHALL THE AUTHORS OR COPYRIGHT HOLDERS BE LIABLE FOR ANY CLAIM, DAMAGES
OR OTHER LIABILITY, WHETHER IN AN ACTION OF CONTRACT, TORT OR OTHERWISE, ARISING FROM, OUT OF OR IN
CONNECTION WITH THE SOFTWARE OR THE USE OR OTHER DEALINGS IN THE SOFTWARE.
"""
