"""Runs that are interrupted."""

from pathlib import Path
from typing import Any

import pytest

import pmt
from pmt.datasets import Dataset


def cut_and_resumed(
    trainer: pmt.ZOTrainer, start: pmt.Model, data: Dataset, valid: Dataset, folder: Path
) -> pmt.RunResult:
    """Return what a run becomes that Ctrl-C ends after its first step, then resumes."""

    def stop(step: int, record: dict[str, Any]) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        trainer.fit(start.copy(), data, valid=valid, out=folder, progress=stop)
    return trainer.fit(start.copy(), data, valid=valid, out=folder, progress=False)
