"""The choice of a block on the board: candidates, held-out samples, and what the host found."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from pmt import _core
from pmt._util.checks import checked_candidates
from pmt.datasets import Dataset
from pmt.firmware.export.task import Task

__all__ = ["BlockSelection", "select_blocks", "with_held_out"]


@dataclass(frozen=True)
class BlockSelection:
    """A choice that the board makes: candidates, and what decides between them.

    Attributes
    ----------
    names : tuple of str
        Names of the candidates.
    layers : tuple of list of int
        Op indices of each, ascending.
    streams : tuple of list of (int, int, int)
        Ops that stream while each is trained: first and last op, rows at once.
    scores : tuple of (int, int)
        The host's results on the held-out samples: sum of the fixed-point losses, and hits.
    first_held_out : int
        First of the held-out samples on the card.
    images, labels : numpy.ndarray
        The held-out samples, int8 (N, height, width, channels) and int64 (N,).
    """

    names: tuple[str, ...]
    layers: tuple[list[int], ...]
    streams: tuple[list[tuple[int, int, int]], ...]
    scores: tuple[tuple[int, int], ...]
    first_held_out: int
    images: npt.NDArray[np.int8]
    labels: npt.NDArray[np.int64]

    @property
    def held_out(self) -> int:
        """Number of held-out samples."""
        return len(self.images)

    @property
    def best(self) -> str:
        """The candidate with the smallest loss, the first of equals; as ``layers`` takes it."""
        losses = [loss for loss, _ in self.scores]
        return self.names[losses.index(min(losses))].replace("+", ",")

    def describe(self) -> str:
        """Say in a line what the host found."""
        unit = int(_core.LOSS_ONE) * self.held_out
        found = ", ".join(
            f"{name} {10**4 * loss // unit / 10**4:.4f}"  # cut off, as the board prints it
            for name, (loss, _) in zip(self.names, self.scores, strict=True)
        )
        return f"{self.best}; losses on {self.held_out} held-out samples: {found}"

    def trials(self, task: Task) -> list[Task]:
        """Return the training of every candidate, its scoring as inferences."""
        return [
            dataclasses.replace(task, layers=layers, settings=[], inferences=self.held_out)
            for layers in self.layers
        ]

    def values(self) -> dict[str, object]:
        """Return what the template of ``model/selection.hpp`` takes."""
        rows = zip(self.names, self.layers, self.scores, self.streams, strict=True)
        lists = [
            f"constexpr int32_t layers_of_{i}[] = {{{', '.join(map(str, layers))}}};"
            for i, layers in enumerate(self.layers)
        ]
        lists += [
            f"constexpr StreamedOps streams_of_{i}[] = {{{', '.join(map(_braced, streams))}}};"
            for i, streams in enumerate(self.streams)
            if streams
        ]
        return {
            "CANDIDATE_LISTS": "\n".join(lists),
            "CANDIDATES": "\n".join(
                f"    {{{json.dumps(name)}, layers_of_{i}, {len(layers)}, {_braced(score)}, "
                f"{f'streams_of_{i}' if streams else 'nullptr'}, {len(streams)}}},"
                for i, (name, layers, score, streams) in enumerate(rows)
            ),
            "CANDIDATE_COUNT": len(self.names),
            "FIRST_HELD_OUT": self.first_held_out,
            "HELD_OUT": self.held_out,
        }


def select_blocks(
    task: Task,
    names: Sequence[str] | None,
    held_out: Dataset | None,
    layers: object = None,
    build_system: str = "make",
) -> BlockSelection:
    """Try every candidate on the host, with the steps of a task.

    Names are two or more blocks or layers, or several joined by ``+``. The task's own layers do not
    matter, and ``layers`` must be None: nothing else may say which layers to train.

    Raises
    ------
    ValueError
        If a name is unknown or given twice, or there are fewer than two.
    """
    if names is None or held_out is None:
        raise ValueError("candidates and held_out: a choice needs both; one of them is None")
    if layers is not None:
        raise ValueError(f"layers={layers!r}: the candidates say which layers to train")
    if build_system == "arduino":
        raise ValueError("format='arduino' has its own application; take another to select")
    checked_candidates(names)
    if task.steps[0].step != 0:
        raise ValueError("candidates: a run that has begun has its layers; select from its model")
    layers = tuple(task.model.select_layers(name.replace("+", ",")) for name in names)
    order = np.array([step.samples for step in task.steps]).ravel()
    images = task.model.prepare(held_out.images)
    classes = np.ascontiguousarray(held_out.labels, np.int64)
    rates = np.array([step.learning_rate for step in task.steps], np.float32)
    taught = (task.images[order], task.labels[order], rates)
    core = task.model.core
    scores = _core.select_layers(core, task.options, list(layers), *taught, images, classes)
    streams = tuple(
        _core.DeviceMemory(core, task.options, trained, task.batch).segments() for trained in layers
    )
    return BlockSelection(
        tuple(names), layers, streams, tuple(scores), len(task.images), images, classes
    )


def with_held_out(task: Task, selection: BlockSelection) -> Task:
    """Return the task with the held-out samples after its own."""
    return dataclasses.replace(
        task,
        images=np.concatenate([task.images, selection.images]),
        labels=np.concatenate([task.labels, selection.labels]),
    )


def _braced(values: Sequence[int]) -> str:
    return f"{{{', '.join(map(str, values))}}}"
