"""The runs of a sweep as a report sees them: fields to group by, metrics, test images."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from pmt.train.run.folder import RunFolder
from pmt_lab.sweep.result import unpack

__all__ = ["METRICS", "FinishedRun", "chosen", "higher_is_better", "matching"]

_IMAGES = ("test", "clean", "held_out")
# Measured with the chosen checkpoint; with before_ in front, with the untrained model.
METRICS = (
    *(f"{part}_{what}" for part in _IMAGES for what in ("accuracy", "loss")),
    *(f"before_{part}_{what}" for part in _IMAGES for what in ("accuracy", "loss")),
    "macs",
    "forwards",
    "train_seconds",
)


def higher_is_better(metric: str) -> bool:
    """Whether a larger value of the metric is the better one."""
    return metric.endswith("accuracy")


@dataclass(frozen=True)
class FinishedRun:
    """A run folder with its ``result.json``, or the record of a run that was kept.

    A record has the curve of the loss in it, and its folder is only the name of the run. That of a
    failed run has its error and no measurements.
    """

    folder: Path
    result: Mapping[str, Any]

    @cached_property
    def fields(self) -> dict[str, Any]:
        """Axes, method, options, protocol and checksums, in which runs may differ; not the seed."""
        result = self.result
        fields = {
            **result["options"],
            "preparation": _preparation(result["options"]),
            **result["contents"],
            **{f"protocol_{key}": value for key, value in result["protocol"].items()},
            "base": result["base"],
            "trainer": result["trainer"],
            **result["axes"],
        }
        del fields["seed"]
        return fields

    @property
    def tuning(self) -> Mapping[str, Any]:
        """How trials chose the learning rate; empty where they did not."""
        found: Mapping[str, Any] = self.result.get("tuning", {})
        return found

    @property
    def seed(self) -> int | None:
        """The seed; None for a method that has none."""
        seed: int | None = self.result["axes"]["seed"]
        return seed

    def value(self, metric: str) -> float | None:
        """Return a metric; None where the run has none, such as clean images without corruption."""
        if metric in self.result:
            return float(self.result[metric])
        found, what = self._measured(metric)
        return None if found is None else float(found[what])

    def right(self, metric: str) -> tuple[int, npt.NDArray[np.bool_]] | None:
        """Return which images an accuracy counts as right, and the images' CRC-32."""
        found, what = self._measured(metric) if metric not in self.result else (None, "")
        if found is None or what != "accuracy" or "right" not in found:
            return None
        return int(found["crc32"]), unpack(found["right"], int(found["n"]))

    def images(self, metric: str) -> int:
        """Return on how many images an accuracy was measured; 0 for other metrics."""
        found, what = self._measured(metric) if metric not in self.result else (None, "")
        return int(found["n"]) if found is not None and what == "accuracy" else 0

    def curve(self, measure: str = "loss") -> list[tuple[int, float]]:
        """Return MACs and loss or accuracy on the held-out images after every epoch, 0 first."""
        points = []
        if "curve" in self.result:
            kept = self.result["curve"] if measure == "loss" else []
            return [(int(macs), math.nan if loss is None else float(loss)) for macs, loss in kept]
        for record in RunFolder(self.folder).read_metrics():
            if record["kind"] not in ("start", "phase", "epoch"):
                continue
            # Runs of earlier versions have the held-out images as those to watch.
            value = record.get(f"held_out_{measure}", record.get(f"valid_{measure}"))
            if value is not None:
                points.append((int(record.get("macs", 0)), float(value)))
        return points

    def _measured(self, metric: str) -> tuple[Mapping[str, Any] | None, str]:
        when = "after"
        if metric.startswith("before_"):
            when, metric = "before", metric.removeprefix("before_")
        part, _, what = metric.rpartition("_")
        return self.result[when].get(part), what


def _preparation(options: Mapping[str, Any]) -> str:
    """Return the preparation, also of a run from before the option, whose numbers said it."""
    if "preparation" in options:
        return str(options["preparation"])
    said = {"align": options.get("align_images", 0), "head": options.get("head_epochs", 0)}
    return "+".join(name for name, count in said.items() if count) or "none"


def chosen(runs: Sequence[FinishedRun], where: Mapping[str, Sequence[str]]) -> list[FinishedRun]:
    """Return the runs whose fields have one of the given values, compared as text.

    Raises
    ------
    ValueError
        If a field is unknown, or no run is left.
    """
    left = list(runs)
    for name, wanted in where.items():
        _check_field(name, runs)
        have = {_shown(run, name) for run in left}
        left = matching(left, {name: wanted})
        if not left:
            raise ValueError(
                f"--where {name}={'|'.join(wanted)} leaves no run; there are "
                f"{', '.join(sorted(have))}"
            )
    return left


def matching(runs: Sequence[FinishedRun], where: Mapping[str, Sequence[str]]) -> list[FinishedRun]:
    """Return the runs whose fields have one of the given values, compared as text; maybe none."""
    return [
        run for run in runs if all(_shown(run, name) in wanted for name, wanted in where.items())
    ]


def _shown(run: FinishedRun, name: str) -> str:
    value = run.seed if name == "seed" else run.fields.get(name, "")
    return str(value).lower() if isinstance(value, bool) else str(value)


def _check_field(name: str, runs: Sequence[FinishedRun]) -> None:
    known = {"seed"}.union(*(run.fields for run in runs))
    if name not in known:
        raise ValueError(
            f"{name!r} is not a field of these runs; there are {', '.join(sorted(known))}"
        )
