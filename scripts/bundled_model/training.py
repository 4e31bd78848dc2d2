"""Float training in torch: seeded, and resumable where it takes long; and its augmentation.

No noise, blur, contrast or brightness is ever shown: these are the shifts that a user adapts the
model to, so they must be new to it. Crops are the exception that proves how much this matters:
enlarged, they are as smooth as a blurred image, and a network that saw them stands blur.
"""

import time
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Literal

import numpy as np
import numpy.typing as npt
import torch
from torch import nn

from pmt.datasets import Dataset

from .torch_network import TorchNetwork

Augmentation = Literal["shift", "crop", "shift_black"]
Pixels = npt.NDArray[np.uint8]

EVALUATION_BATCH = 100
SMALLEST_CROP = 0.25  # of the area
WIDEST_CROP = 4 / 3  # width by height; the narrowest is the inverse


@dataclass(frozen=True)
class Recipe:
    """SGD with Nesterov momentum and one cosine cycle; a checkpoint of another recipe is refused.

    The order and the augmentation of an epoch follow from the seed and the epoch's number alone,
    so an interrupted run goes on as if it had not been.
    """

    epochs: int
    batch: int
    learning_rate: float  # the highest of the schedule
    warm_up: float  # share of the steps that the rate rises
    weight_decay: float
    augmentation: Augmentation
    seed: int

    def rate(self, share: float) -> float:
        """Return the learning rate after a share of all steps."""
        if share < self.warm_up:
            return self.learning_rate * share / self.warm_up
        rest = (share - self.warm_up) / (1.0 - self.warm_up)
        return self.learning_rate * 0.5 * (1.0 + float(np.cos(np.pi * rest)))


class OneCycle(Recipe):
    """AdamW with one cycle of torch's: for minutes of training, which leave no checkpoint."""


def train(
    network: TorchNetwork, recipe: Recipe, data: Dataset, held_out: Dataset, checkpoint: Path
) -> None:
    """Train in place; a :class:`Recipe` goes on where ``checkpoint`` ends."""
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    # Channels last takes a quarter less time on a CPU.
    network.to(device, memory_format=torch.channels_last)
    steps, first, cycle = len(data) // recipe.batch, 0, None
    generator = np.random.default_rng(recipe.seed)
    if isinstance(recipe, OneCycle):
        peak, decay = recipe.learning_rate, recipe.weight_decay
        optimizer: Any = torch.optim.AdamW(network.parameters(), peak, weight_decay=decay)
        cycle = torch.optim.lr_scheduler.OneCycleLR(
            optimizer, peak, epochs=recipe.epochs, steps_per_epoch=steps, pct_start=recipe.warm_up
        )
    else:
        optimizer = torch.optim.SGD(_groups(network, recipe), momentum=0.9, nesterov=True)
        first = _resumed(network, optimizer, recipe, checkpoint)
    for epoch in range(first, recipe.epochs):
        started, losses = time.monotonic(), []
        network.train()
        if cycle is None:
            generator = np.random.default_rng([recipe.seed, epoch])
        order = generator.permutation(len(data))
        for step in range(steps):
            if cycle is None:
                for group in optimizer.param_groups:
                    group["lr"] = recipe.rate((epoch * steps + step) / (recipe.epochs * steps))
            chosen = order[step * recipe.batch : (step + 1) * recipe.batch]
            images = augmented(data.images[chosen], recipe.augmentation, network.side, generator)
            labels = torch.from_numpy(data.labels[chosen]).to(device)
            loss = nn.functional.cross_entropy(network(images.to(device)), labels)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            if cycle is not None:
                cycle.step()
            losses.append(loss.item())
            if step % 50 == 49:
                print(f"  step {step + 1}/{steps}: loss {np.mean(losses[-50:]):.4f}", flush=True)
        if cycle is None:
            _save(network, optimizer, recipe, epoch + 1, checkpoint)
        print(
            f"epoch {epoch + 1}/{recipe.epochs}: loss {np.mean(losses):.4f}, held out "
            f"{100 * accuracy(network, held_out):.2f} %, {time.monotonic() - started:.0f} s",
            flush=True,
        )
    network.eval()


def accuracy(network: TorchNetwork, data: Dataset) -> float:
    """Return the top-1 accuracy, 0..1, in float."""
    network.eval()
    right = 0
    with torch.inference_mode():
        for first in range(0, len(data), EVALUATION_BATCH):
            part = slice(first, first + EVALUATION_BATCH)
            guesses = network(images_for(network, data.images[part])).argmax(1).cpu()
            right += int((guesses.numpy() == data.labels[part]).sum())
    return right / len(data)


def images_for(network: TorchNetwork, images: Pixels) -> torch.Tensor:
    """Make the network's input of uint8 ``(N, H, W, C)``, on its device."""
    device = next(network.parameters()).device
    return _enlarged(torch.from_numpy(images.copy()).to(device), network.side)


def _groups(network: TorchNetwork, recipe: Recipe) -> list[dict[str, Any]]:
    matrices = [p for p in network.parameters() if p.ndim > 1]
    vectors = [p for p in network.parameters() if p.ndim == 1]
    return [
        {"params": matrices, "weight_decay": recipe.weight_decay},
        {"params": vectors, "weight_decay": 0.0},
    ]


def _save(network: nn.Module, optimizer: Any, recipe: Recipe, epoch: int, path: Path) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    partial = path.with_suffix(".partial")
    state = {"network": network.state_dict(), "optimizer": optimizer.state_dict()}
    torch.save({**state, "recipe": asdict(recipe), "epoch": epoch}, partial)
    partial.replace(path)


def _resumed(network: nn.Module, optimizer: Any, recipe: Recipe, path: Path) -> int:
    if not path.exists():
        return 0
    state = torch.load(path, weights_only=True)
    if state["recipe"] != asdict(recipe):
        raise SystemExit(f"{path}: was trained by {state['recipe']}, not {recipe}; delete it")
    network.load_state_dict(state["network"])
    optimizer.load_state_dict(state["optimizer"])
    print(f"{path}: going on after epoch {state['epoch']}", flush=True)
    return int(state["epoch"])


def augmented(
    images: Pixels, kind: Augmentation, side: int, generator: np.random.Generator
) -> torch.Tensor:
    """Augment ``(N, H, W, C)``; return pixels 0..255, ``(N, C, side, side)``."""
    if kind == "crop":
        return _cropped_and_mirrored(torch.from_numpy(images.copy()), side, generator)
    return _enlarged(torch.from_numpy(_shifted_and_mirrored(images, kind, generator)), side)


def _enlarged(images: torch.Tensor, side: int) -> torch.Tensor:
    """Upscale uint8 ``(N, H, W, C)`` as :func:`pmt.datasets.load` does: bilinear, whole pixels."""
    pixels = images.permute(0, 3, 1, 2).float()
    if pixels.shape[-1] != side:
        pixels = nn.functional.interpolate(pixels, (side, side), mode="bilinear").round()
    return pixels.contiguous(memory_format=torch.channels_last)


def _shifted_and_mirrored(
    images: Pixels, kind: Augmentation, generator: np.random.Generator
) -> Pixels:
    """Shift by up to 4 pixels (mirrored edges), or 2 (black edges), and mirror."""
    margin: int
    margin, mode = (2, "constant") if kind == "shift_black" else (4, "reflect")
    count, side = len(images), images.shape[1]
    padded = np.pad(images, ((0, 0), (margin, margin), (margin, margin), (0, 0)), mode=mode)
    rows, columns = generator.integers(0, 2 * margin + 1, size=(2, count))
    row_indices = rows[:, None] + np.arange(side)
    column_indices = columns[:, None] + np.arange(side)
    mirrored = generator.random(count) < 0.5
    column_indices[mirrored] = column_indices[mirrored, ::-1]
    every = np.arange(count)[:, None, None]
    return padded[every, row_indices[:, :, None], column_indices[:, None, :]]


def _cropped_and_mirrored(
    images: torch.Tensor, side: int, generator: np.random.Generator
) -> torch.Tensor:
    """Enlarge a random part of each image, as torchvision's ``RandomResizedCrop`` does."""
    count = len(images)
    area = generator.uniform(SMALLEST_CROP, 1.0, count)
    ratio = np.exp(generator.uniform(-np.log(WIDEST_CROP), np.log(WIDEST_CROP), count))
    width, height = np.minimum(np.sqrt(area * ratio), 1.0), np.minimum(np.sqrt(area / ratio), 1.0)
    transform = np.zeros((count, 2, 3), np.float32)
    transform[:, 0, 0] = width * np.where(generator.random(count) < 0.5, -1.0, 1.0)
    transform[:, 1, 1] = height
    transform[:, 0, 2] = generator.uniform(-1.0, 1.0, count) * (1.0 - width)
    transform[:, 1, 2] = generator.uniform(-1.0, 1.0, count) * (1.0 - height)
    grid = nn.functional.affine_grid(
        torch.from_numpy(transform), [count, 3, side, side], align_corners=False
    )
    pixels = nn.functional.grid_sample(
        images.permute(0, 3, 1, 2).float(), grid, padding_mode="border", align_corners=False
    )
    return pixels.contiguous(memory_format=torch.channels_last)
