"""The model card that lies beside the bundled files."""

from __future__ import annotations

from pathlib import Path

from pmt import Model

FILES = ("fashion_mnist_dscnn.pmt", "fashion_mnist_train.npz", "fashion_mnist_test.npz")


def write(folder: Path, model: Model, corrupted: dict[str, float], noise: str) -> None:
    """Write ``CARD.md`` into the folder, beside the bundled files.

    Parameters
    ----------
    folder : pathlib.Path
        Where the files of ``FILES`` already are.
    model : pmt.Model
        The bundled model; its metadata holds the accuracies on clean images.
    corrupted : dict
        Accuracy 0..1 on the bundled test images, by corruption at severity 5.
    noise : str
        The table of signal-to-noise ratios.
    """
    text = TEMPLATE.format(
        layers=len(model.layers),
        weights=sum(layer.weights for layer in model.layers),
        macs=model.macs,
        float_accuracy=100 * model.metadata["float_accuracy"],
        int8_accuracy=100 * model.metadata["int8_accuracy"],
        bundled=100 * model.metadata["int8_accuracy_bundled_test"],
        blocks=_blocks(model),
        corrupted="\n".join(f"| {name} | {100 * a:.1f} |" for name, a in corrupted.items()),
        sizes="\n".join(f"| `{name}` | {(folder / name).stat().st_size:,} |" for name in FILES),
        command=model.metadata["command"],
        seed=model.metadata["seed"],
        noise=noise,
    )
    (folder / "CARD.md").write_text(text, encoding="utf-8")


def _blocks(model: Model) -> str:
    names = {layer.index: layer.name for layer in model.layers}
    return "\n".join(
        f"| `{block}` | {', '.join(names[index] for index in layers)} |"
        for block, layers in model.blocks.items()
        if block != "all"
    )


TEMPLATE = """\
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
| float32 | all 10,000 | {float_accuracy:.2f} |
| int8 | all 10,000 | {int8_accuracy:.2f} |
| int8 | the bundled 1,000 | {bundled:.2f} |

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
