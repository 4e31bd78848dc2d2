"""A step's memory is taken once: training does not grow."""

from pathlib import Path

import numpy as np
import pytest
from networks import residual_network

from pmt import TrainingOptions, _core

STATM = Path("/proc/self/statm")


def _resident_bytes() -> int:
    return int(STATM.read_text().split()[1]) * 4096


@pytest.mark.skipif(not STATM.exists(), reason="reads Linux's /proc")
def test_a_thousand_steps_take_no_more_memory_than_a_hundred():
    model = residual_network()
    rng = np.random.default_rng(0)
    images = rng.integers(-128, 128, (4, *model.input_shape), dtype=np.int8)
    labels = np.array([0, 1, 2, 3])
    options = TrainingOptions(queries=3, batch=4).to_core()
    trainer = _core.Trainer(model.core, options, model.select_layers("all"), 4, 2)
    arena = trainer.arena_bytes
    for step in range(100):
        trainer.step(images, labels, step, 0.5)
    grown = []
    for first in (100, 400, 700):  # in one of them another thread of pytest may take memory
        before = _resident_bytes()
        for step in range(first, first + 300):
            trainer.step(images, labels, step, 0.5)
        grown.append(_resident_bytes() - before)
    assert min(grown) < 85 * 1024
    assert trainer.arena_bytes == arena
