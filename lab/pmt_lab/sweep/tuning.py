"""Learning rates chosen by trials: one rule and the same effort for every method.

A trial is a run at the grid's budget with the method's own rate times a factor. The one with the
least loss on the held-out images wins; of equal losses the smaller rate does.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from pmt_lab.sweep.grid_file import Tuning
from pmt_lab.sweep.run_spec import RunSpec

__all__ = ["Choice", "Group", "Trial", "choices", "edge_line", "group", "trials_of", "tuned"]

Group = tuple[str, str, str]


@dataclass(frozen=True)
class Trial:
    """A finished trial; ``loss`` is that on the held-out images, infinite where it diverged."""

    factor: float
    rate: float
    loss: float
    hash: str

    def to_record(self) -> dict[str, Any]:
        """Return it as JSON; a loss that is not finite is null."""
        loss = self.loss if math.isfinite(self.loss) else None
        return {
            "factor": self.factor,
            "learning_rate": self.rate,
            "held_out_loss": loss,
            "hash": self.hash,
        }


@dataclass(frozen=True)
class Choice:
    """The trials of a method with one preparation and one set of layers, by ascending factor."""

    group: Group
    trials: tuple[Trial, ...]

    @property
    def best(self) -> Trial:
        """The trial whose rate is taken."""
        return min(self.trials, key=lambda trial: (trial.loss, trial.factor))

    @property
    def at_edge(self) -> bool:
        """Whether the best factor is the smallest or the largest: one beyond it may be better."""
        return self.best in (self.trials[0], self.trials[-1])

    @property
    def title(self) -> str:
        """The choice in a few words."""
        best = self.best
        return f"learning rate of {', '.join(self.group)}: {best.rate:g} (factor {best.factor:g})"

    def to_record(self) -> dict[str, Any]:
        """Return it as JSON, as a run's result keeps it."""
        return {
            "factor": self.best.factor,
            "learning_rate": self.best.rate,
            "at_edge": self.at_edge,
            "trials": [trial.to_record() for trial in self.trials],
        }


def edge_line(group: Iterable[str]) -> str:
    """Say that a rate may not be the best one."""
    return f"the rate of {', '.join(group)} is at the edge of the factors tried"


def group(run: RunSpec) -> Group:
    """Return what has a learning rate of its own: method, preparation, layers."""
    return run.method, run.preparation, run.options.get("layers", "")


def trials_of(run: RunSpec, tuning: Tuning) -> list[RunSpec]:
    """Return a run's trials, which cost as much as it does."""
    return [
        dataclasses.replace(
            run,
            options={
                **run.options,
                "seed": tuning.seed,
                # Six digits, as in a schedule: 0.3 x 0.001 is 0.0003.
                "learning_rate": float(f"{run.options['learning_rate'] * factor:.6g}"),
            },
            corruption=tuning.corruption,
            severity=tuning.severity,
            trial=factor,
            awaits_rate=False,
        )
        for factor in tuning.factors
    ]


def choices(
    trials: Iterable[RunSpec], results: Mapping[str, Mapping[str, Any]]
) -> dict[Group, Choice]:
    """Return the choices of those groups whose trials all have results."""
    by_group: dict[Group, list[RunSpec]] = {}
    for trial in trials:
        by_group.setdefault(group(trial), []).append(trial)
    return {
        key: Choice(key, tuple(_finished(trial, results[trial.hash]) for trial in members))
        for key, members in by_group.items()
        if all(trial.hash in results for trial in members)
    }


def tuned(
    runs: Iterable[RunSpec], chosen: Mapping[Group, Mapping[str, Any]]
) -> tuple[RunSpec, ...]:
    """Return the runs with the rates of those choices, given as `Choice.to_record` returns them."""
    return tuple(
        dataclasses.replace(
            run,
            options={**run.options, "learning_rate": chosen[group(run)]["learning_rate"]},
            awaits_rate=False,
            tuning=chosen[group(run)],
        )
        if run.awaits_rate and group(run) in chosen
        else run
        for run in runs
    )


def _finished(trial: RunSpec, result: Mapping[str, Any]) -> Trial:
    loss = float(result["after"]["held_out"]["loss"])
    rate = float(trial.options["learning_rate"])
    return Trial(trial.trial, rate, loss if math.isfinite(loss) else math.inf, trial.hash)
