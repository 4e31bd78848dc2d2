"""The network and the images on which studies of gradients are made."""

from __future__ import annotations

from dataclasses import dataclass

from pmt import _core
from pmt.baselines.backprop.scheme import head_layer
from pmt.datasets import Dataset
from pmt.datasets.dataset import checksums
from pmt.model import Model, load
from pmt.protocol import DataSource, balanced_order
from pmt_lab.reproduce.study import Context, Scale

__all__ = ["GradientBatch", "gradient_batch"]

# The distribution shift of the paper's ablations (section 4.2.1).
_CORRUPTION, _SEVERITY = "gaussian_noise", 5


@dataclass(frozen=True)
class GradientBatch:
    """A network, a batch of corrupted training images, and both in a few words."""

    network: str
    model: Model
    images: Dataset
    source: str

    @property
    def contents(self) -> dict[str, int]:
        """Checksums of the network, the images and their labels."""
        images, labels = checksums(self.images)
        model = _core.crc32(self.model.image())
        return {"model_crc32": model, "images_crc32": images, "labels_crc32": labels}

    @property
    def convolutions(self) -> str:
        """Names of all layers but the head: the paper's network has no other."""
        head = head_layer(self.model)
        return ",".join(layer.name for layer in self.model.layers if layer.index != head)


def gradient_batch(scale: Scale, context: Context, images: int) -> GradientBatch:
    """Return MCUNet with noisy images of CIFAR-10, or at small scale what comes with pmt.

    Images are balanced over the classes. Raises FileNotFoundError where CIFAR-10 is missing.
    """
    full = scale == "full"
    network = "cifar10_mcunet" if full else "fashion_mnist_dscnn"
    data = str(context.need_cifar10()) if full else "bundled"
    model = load(network)
    pool = DataSource(data, _CORRUPTION, _SEVERITY).pool("train", model)
    batch = pool.take(balanced_order(pool.labels, 0)[:images])
    name = "CIFAR-10" if full else "Fashion-MNIST"
    return GradientBatch(network, model, batch, f"{name}, {_CORRUPTION} severity {_SEVERITY}")
