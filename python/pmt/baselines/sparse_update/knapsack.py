"""The best scheme under a memory budget, where gains and memories of layers add up."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

__all__ = ["Choice", "Option", "best_choice"]

# Above so many units memory is counted in coarser ones, rounded up, so that a budget always holds.
_MOST_UNITS = 2**18


@dataclass(frozen=True)
class Option:
    """Weights of one layer at one ratio: what it gains and its ``memory`` in bytes."""

    ratio: float
    gain: float
    memory: int


@dataclass(frozen=True)
class Choice:
    """The best: biases of the last ``biases`` layers, and a ratio for each layer (0: frozen)."""

    biases: int
    ratios: tuple[float, ...]
    gain: float
    memory: int


def best_choice(
    bias_gains: Sequence[float],
    bias_memories: Sequence[int],
    options: Sequence[Sequence[Option]],
    budget: int,
) -> Choice:
    """Choose how many last layers train their biases, and what weights beside them.

    The objective of MCUTrain's contribution analysis: gains of single updates are taken to add up,
    and weights are trained only where biases are. The publication searches by evolution; with sums
    on both sides it is a knapsack with one option for each layer, which dynamic programming over
    the bytes solves exactly. Layers are taken from the last to the first, so one table serves
    every number of biases.

    Parameters
    ----------
    bias_gains, bias_memories : sequences, length L + 1
        Gain, and memory in bytes, of the biases of the last k layers, for k = 0 .. L. ``nan`` where
        a k was not measured: it is not chosen.
    options : sequence of sequence of Option, length L
        What each layer's weights can do, first layer first.
    budget : int
        Bytes.

    Returns
    -------
    Choice
        The one with the largest gain; of equals the one of fewest biases.

    Raises
    ------
    ValueError
        If the lengths do not fit, or not even the choice of no update is within the budget.
    """
    count = len(options)
    if len(bias_gains) != count + 1 or len(bias_memories) != count + 1:
        raise ValueError(
            f"{count} layers need {count + 1} gains and memories of biases; got {len(bias_gains)} "
            f"and {len(bias_memories)}"
        )
    if budget < min(bias_memories):
        raise ValueError(f"budget={budget!r} bytes is below the least, {min(bias_memories)}")
    unit = max(1, -(-budget // _MOST_UNITS))
    best = np.zeros(budget // unit + 1)
    taken: list[np.ndarray] = []
    result = Choice(-1, (), -np.inf, 0)
    for k in range(count + 1):
        if k > 0:
            best, picks = _with_layer(best, options[count - k], unit)
            taken.append(picks)
        left = (budget - bias_memories[k]) // unit
        if left < 0 or np.isnan(bias_gains[k]):
            continue
        gain = float(bias_gains[k] + best[left])
        if gain > result.gain:
            ratios, memory = _trace(taken, options, left, unit)
            result = Choice(k, ratios, gain, memory + bias_memories[k])
    return result


def _with_layer(
    best: np.ndarray, options: Sequence[Option], unit: int
) -> tuple[np.ndarray, np.ndarray]:
    """Offer one more layer: the best gain by memory, and which option it took (0: none)."""
    better = best.copy()
    picks = np.zeros(len(best), np.uint8)
    for number, option in enumerate(options, start=1):
        size = -(-option.memory // unit)
        if size >= len(best):
            continue
        offered = best[: len(best) - size] + option.gain
        wins = offered > better[size:]
        better[size:][wins] = offered[wins]
        picks[size:][wins] = number
    return better, picks


def _trace(
    taken: Sequence[np.ndarray], options: Sequence[Sequence[Option]], left: int, unit: int
) -> tuple[tuple[float, ...], int]:
    """Follow the picks back: the layer that was offered last decides first."""
    ratios, memory = [0.0] * len(options), 0
    for k in range(len(taken), 0, -1):
        layer = len(options) - k
        number = int(taken[k - 1][left])
        if number:
            option = options[layer][number - 1]
            ratios[layer] = option.ratio
            memory += option.memory
            left -= -(-option.memory // unit)
    return tuple(ratios), memory
