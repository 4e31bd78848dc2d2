"""Float training: deterministic on one machine (one thread, seeded generators)."""

from __future__ import annotations

import time

import numpy as np
import torch
from torch import nn

from pmt.datasets import Dataset

from .network import Network

BATCH = 128
PEAK_LEARNING_RATE = 0.01
WEIGHT_DECAY = 0.01
LARGEST_SHIFT = 2  # pixels


def train(data: Dataset, *, epochs: int, seed: int) -> Network:
    """Train with AdamW, one learning-rate cycle, random shifts and mirror images.

    No noise, contrast or brightness is ever shown: these are the shifts that a user of the bundled
    model adapts it to, so they must be new to it.
    """
    torch.set_num_threads(1)
    torch.use_deterministic_algorithms(True)
    torch.manual_seed(seed)
    generator = np.random.default_rng(seed)
    # Channels last takes a quarter less time on a CPU.
    network = Network().to(memory_format=torch.channels_last)
    optimizer = torch.optim.AdamW(
        network.parameters(), PEAK_LEARNING_RATE, weight_decay=WEIGHT_DECAY
    )
    steps = len(data) // BATCH
    schedule = torch.optim.lr_scheduler.OneCycleLR(
        optimizer, PEAK_LEARNING_RATE, epochs=epochs, steps_per_epoch=steps
    )
    for epoch in range(epochs):
        started, total_loss = time.monotonic(), 0.0
        network.train()
        order = generator.permutation(len(data))
        for step in range(steps):
            chosen = order[step * BATCH : (step + 1) * BATCH]
            images = torch.from_numpy(_augmented(data.images[chosen], generator))
            labels = torch.from_numpy(data.labels[chosen])
            loss = nn.functional.cross_entropy(network(images), labels)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            schedule.step()
            total_loss += loss.item()
        seconds = time.monotonic() - started
        print(
            f"epoch {epoch + 1}/{epochs}: loss {total_loss / steps:.4f}, {seconds:.0f} s",
            flush=True,
        )
    return network.eval()


def _augmented(images: np.ndarray, generator: np.random.Generator) -> np.ndarray:
    """Shift and mirror uint8 ``(N, 28, 28, 1)``; return float32 ``(N, 1, 28, 28)`` in 0..1."""
    shift = LARGEST_SHIFT
    padded = np.pad(images[..., 0], ((0, 0), (shift, shift), (shift, shift)))
    rows, columns = generator.integers(0, 2 * shift + 1, size=(2, len(images)))
    mirrored = generator.random(len(images)) < 0.5
    result = np.empty((len(images), 28, 28), np.uint8)
    for i, (row, column) in enumerate(zip(rows, columns, strict=True)):
        image = padded[i, row : row + 28, column : column + 28]
        result[i] = image[:, ::-1] if mirrored[i] else image
    return result[:, None].astype(np.float32) / 255.0
