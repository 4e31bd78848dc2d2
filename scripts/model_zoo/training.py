"""Float training in torch: seeded, resumable, on a CPU or a GPU."""

from __future__ import annotations

import time
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from torch import nn

from pmt.datasets import Dataset

from .augmentation import Augmentation, augmented, enlarged
from .torch_network import TorchNetwork

EVALUATION_BATCH = 100


@dataclass(frozen=True)
class Recipe:
    """The recipe of a training; a checkpoint of another recipe is refused."""

    epochs: int
    batch: int
    learning_rate: float  # the highest of the schedule
    warm_up: float  # share of the steps that the rate rises
    weight_decay: float
    augmentation: Augmentation
    seed: int


def train(
    network: TorchNetwork, recipe: Recipe, data: Dataset, held_out: Dataset, checkpoint: Path
) -> TorchNetwork:
    """Train with SGD, Nesterov momentum and one cosine cycle; go on where `checkpoint` ends.

    The order and the augmentation of an epoch follow from the seed and the epoch's number alone,
    so an interrupted run goes on as if it had not been.
    """
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    network.to(device, memory_format=torch.channels_last)
    optimizer = torch.optim.SGD(_groups(network, recipe), momentum=0.9, nesterov=True)
    first = _resumed(network, optimizer, recipe, checkpoint)
    for epoch in range(first, recipe.epochs):
        started = time.monotonic()
        loss = _train_epoch(network, optimizer, recipe, data, epoch, device)
        _save(network, optimizer, recipe, epoch + 1, checkpoint)
        right = accuracy(network, held_out)
        print(
            f"epoch {epoch + 1}/{recipe.epochs}: loss {loss:.4f}, held out {100 * right:.2f} %, "
            f"{time.monotonic() - started:.0f} s",
            flush=True,
        )
    return network.eval()


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


def images_for(network: TorchNetwork, images: npt.NDArray[np.uint8]) -> torch.Tensor:
    """Make the network's input of uint8 ``(N, H, W, C)``, on its device."""
    device = next(network.parameters()).device
    return enlarged(torch.from_numpy(images.copy()).to(device), network.side)


def _train_epoch(
    network: TorchNetwork,
    optimizer: torch.optim.Optimizer,
    recipe: Recipe,
    data: Dataset,
    epoch: int,
    device: torch.device,
) -> float:
    network.train()
    generator = np.random.default_rng([recipe.seed, epoch])
    order = generator.permutation(len(data))
    steps = len(data) // recipe.batch
    losses = []
    for step in range(steps):
        for group in optimizer.param_groups:
            group["lr"] = _learning_rate(recipe, (epoch * steps + step) / (recipe.epochs * steps))
        chosen = order[step * recipe.batch : (step + 1) * recipe.batch]
        images = augmented(data.images[chosen], recipe.augmentation, network.side, generator)
        labels = torch.from_numpy(data.labels[chosen]).to(device)
        loss = nn.functional.cross_entropy(network(images.to(device)), labels)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
        if step % 50 == 49:
            print(f"  step {step + 1}/{steps}: loss {np.mean(losses[-50:]):.4f}", flush=True)
    return float(np.mean(losses))


def _learning_rate(recipe: Recipe, share: float) -> float:
    if share < recipe.warm_up:
        return recipe.learning_rate * share / recipe.warm_up
    rest = (share - recipe.warm_up) / (1.0 - recipe.warm_up)
    return recipe.learning_rate * 0.5 * (1.0 + float(np.cos(np.pi * rest)))


def _groups(network: TorchNetwork, recipe: Recipe) -> list[dict[str, Any]]:
    matrices = [p for p in network.parameters() if p.ndim > 1]
    vectors = [p for p in network.parameters() if p.ndim == 1]
    return [
        {"params": matrices, "weight_decay": recipe.weight_decay},
        {"params": vectors, "weight_decay": 0.0},
    ]


def _save(
    network: nn.Module, optimizer: torch.optim.Optimizer, recipe: Recipe, epoch: int, path: Path
) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    partial = path.with_suffix(".partial")
    torch.save(
        {
            "network": network.state_dict(),
            "optimizer": optimizer.state_dict(),
            "recipe": asdict(recipe),
            "epoch": epoch,
        },
        partial,
    )
    partial.replace(path)


def _resumed(
    network: nn.Module, optimizer: torch.optim.Optimizer, recipe: Recipe, path: Path
) -> int:
    if not path.exists():
        return 0
    state = torch.load(path, weights_only=True)
    if state["recipe"] != asdict(recipe):
        raise SystemExit(f"{path}: was trained by {state['recipe']}, not {recipe}; delete it")
    network.load_state_dict(state["network"])
    optimizer.load_state_dict(state["optimizer"])
    print(f"{path}: going on after epoch {state['epoch']}", flush=True)
    return int(state["epoch"])
