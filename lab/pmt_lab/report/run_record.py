"""A finished run of a sweep as JSON, without weights, and back as a report reads runs."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from pmt_lab.report.finished_runs import FinishedRun
from pmt_lab.sweep.methods import changed_options

__all__ = ["CURVE_POINTS", "finished_run", "run_record", "thinned", "whole_record"]

CURVE_POINTS = 40
# Enough for the shape of a curve in a report's plot.
_FEW_POINTS = 12
_FIGURES = ("macs", "forwards", "steps", "epochs", "train_seconds", "threads")
_STATE = ("chosen_state", "chosen_epoch")


def run_record(run: FinishedRun) -> dict[str, Any]:
    """Return what a study keeps of a run.

    Parameters
    ----------
    run : FinishedRun
        The run; its folder holds the curve.

    Returns
    -------
    dict
        ``axes``, ``base``, ``trainer``; ``options`` that differ from the method's defaults,
        ``tuning``; ``macs``, ``forwards``, ``steps``, ``epochs``, ``train_seconds``, ``threads``;
        ``chosen_state``, ``chosen_epoch``; ``before`` and ``after`` as in ``result.json``, with the
        test images that are right only after training; ``curve``, at most 40 pairs of MACs and
        held-out loss. Numbers that are not finite are None.
    """
    result = run.result
    return {
        "axes": dict(result["axes"]),
        "base": result["base"],
        "trainer": result["trainer"],
        "options": changed_options(result["base"], result["options"]),
        **({"tuning": _tuning(result["tuning"])} if "tuning" in result else {}),
        **{name: result[name] for name in _FIGURES if name in result},
        **{name: result[name] for name in _STATE if name in result},
        "before": {name: _measured(one) for name, one in result["before"].items()},
        "after": {
            name: _measured(one, right=name != "held_out") for name, one in result["after"].items()
        },
        "curve": _curve(run, CURVE_POINTS),
    }


def whole_record(run: FinishedRun) -> dict[str, Any]:
    """Return all that reports read of a run, so that its tables stay the same to the last digit.

    Parameters
    ----------
    run : FinishedRun
        The run; its folder holds the curve.

    Returns
    -------
    dict
        As :func:`run_record`, with all ``options`` but those of the axes, ``contents``,
        ``protocol``, ``order``, and ``before`` and ``after`` without rounding and with the images
        that are right, wherever the result says them. ``curve`` has 12 points at most.
    """
    result, axes = run.result, run.result["axes"]
    names = ("contents", "protocol", *_FIGURES, *_STATE)
    return {
        "axes": dict(axes),
        "base": result["base"],
        "trainer": result["trainer"],
        "order": dict(result.get("order", {})),
        "options": {name: one for name, one in result["options"].items() if name not in axes},
        **({"tuning": _tuning(result["tuning"])} if "tuning" in result else {}),
        **{name: result[name] for name in names if name in result},
        **{when: _exact(result[when]) for when in ("before", "after")},
        "curve": _curve(run, _FEW_POINTS),
    }


def finished_run(record: Mapping[str, Any], folder: Path | None = None) -> FinishedRun:
    """Return a run that was kept as a record, for the tables and intervals of reports."""
    return FinishedRun(folder or Path(), {"contents": {}, "protocol": {}, **record})


def thinned(curve: Sequence[Any], points: int = CURVE_POINTS) -> list[Any]:
    """Return so many points of a curve, the first and the last among them, evenly."""
    if len(curve) <= points:
        return [list(point) for point in curve]
    last = len(curve) - 1
    return [list(curve[round(i * last / (points - 1))]) for i in range(points)]


def _tuning(tuning: Mapping[str, Any]) -> dict[str, Any]:
    """Return how trials chose the learning rate, without the names of their folders."""
    trials = [
        {name: trial[name] for name in ("factor", "learning_rate", "held_out_loss")}
        for trial in tuning["trials"]
    ]
    return {**tuning, "trials": trials}


def _measured(one: Mapping[str, Any], *, right: bool = False) -> dict[str, Any]:
    kept = {"accuracy": _rounded(one["accuracy"]), "loss": _rounded(one["loss"])}
    kept |= {name: one[name] for name in ("n", "crc32")}
    return {**kept, "right": one["right"]} if right and "right" in one else kept


def _exact(measured: Mapping[str, Any]) -> dict[str, Any]:
    """Return measurements without the count of right images, which the accuracy says."""
    return {
        part: {name: value for name, value in one.items() if name != "correct"}
        for part, one in measured.items()
    }


def _curve(run: FinishedRun, points: int) -> list[Any]:
    return thinned([(macs, _rounded(loss)) for macs, loss in run.curve()], points)


def _rounded(value: float | None) -> float | None:
    """Return six digits; None for what JSON has no number for."""
    return float(f"{value:.6g}") if value is not None and math.isfinite(value) else None
