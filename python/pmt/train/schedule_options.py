"""The options that every trainer has, to be declared with the trainer's own defaults."""

from __future__ import annotations

from functools import partial

from pmt.train.option_fields import Range, option

__all__ = [
    "BATCH",
    "EPOCHS",
    "FINAL_LEARNING_RATE",
    "LAYERS",
    "LEARNING_RATES",
    "MACS",
    "SEEDS",
    "WARMUP_EPOCHS",
]

LEARNING_RATES = Range(0.0, low_open=True)
SEEDS = Range(0, 2**32 - 1)

LAYERS = partial(
    option,
    metavar="SPEC",
    help="names of blocks or layers, separated by commas, for example B2,head",
)
EPOCHS = partial(
    option, metavar="N", help="passes over the training images", values=Range(1, 10**6)
)
MACS = partial(
    option,
    metavar="N",
    help="budget of multiply-accumulates, for example 2e12: training ends after the last whole "
    "step within it, not after {epochs}, and the learning rate's schedule spans it; 0 is none",
    values=Range(0, 10**18, why="0 is no budget"),
)
BATCH = partial(option, metavar="N", help="images of a step", values=Range(1, 10**6))
FINAL_LEARNING_RATE = partial(
    option,
    metavar="F",
    help="end of the cosine schedule, as a fraction of {learning_rate}; 1 keeps the rate",
    values=Range(0.0, 1.0, why="a fraction of learning_rate"),
)
WARMUP_EPOCHS = partial(
    option,
    metavar="N",
    help="first epochs, in which the learning rate rises from 0 along a line",
    values=Range(0, 10**6),
)
