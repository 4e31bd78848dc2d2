"""The records of a run so far, and their sums, which every record changes by itself alone."""

from __future__ import annotations

from typing import Any

from pmt import _core
from pmt.train.cost import Cost

__all__ = ["RunHistory"]


class RunHistory:
    """Adds up what the steps of a run took.

    Parameters
    ----------
    step_cost : Cost
        Of a step whose record does not say.
    preparation : Cost
        What came before the first step.
    """

    def __init__(self, step_cost: Cost, preparation: Cost) -> None:
        self.step_cost = step_cost
        self.records: list[dict[str, Any]] = []
        self.best: dict[str, Any] | None = None  # the last one marked so
        self.recorded_to = -1  # steps before the end of the last epoch that is recorded
        self._forwards = preparation.forwards
        self._macs = preparation.macs
        self._seconds = 0.0
        self._epoch: list[dict[str, Any]] = []  # the steps after it

    def add(self, record: dict[str, Any]) -> None:
        """Take a record in, the next one."""
        self.records.append(record)
        if record.get("best"):
            self.best = record
        if record["kind"] == "step":
            self._epoch.append(record)
            self._forwards += record.get("forwards", self.step_cost.forwards)
            self._macs += record.get("macs", self.step_cost.macs)
            self._seconds += record["seconds"]
        elif record["kind"] == "epoch":
            self.recorded_to = record["step"] + 1
            self._epoch = []

    def of_kind(self, kind: str) -> list[dict[str, Any]]:
        """Return the records of a kind."""
        return [record for record in self.records if record["kind"] == kind]

    def training_figures(self, batch: int) -> dict[str, float]:
        """Return mean loss and accuracy over the samples of the present epoch, if it has any."""
        if not self._epoch:
            return {}
        seen = len(self._epoch) * batch
        correct = sum(r["correct"] for r in self._epoch)
        return {
            "train_loss": _loss_sum(self._epoch, batch) / seen,
            "train_accuracy": correct / seen,
        }

    def totals(self) -> dict[str, Any]:
        """Return the weights changed in the present epoch, and what the run has taken so far."""
        return {
            "changed": sum(r["changed"] for r in self._epoch),
            "forwards": self._forwards,
            "macs": self._macs,
            "seconds": round(self._seconds, 2),
        }


def _loss_sum(records: list[dict[str, Any]], batch: int) -> float:
    """Sum the loss over the samples of some steps, in nats."""
    if all("loss_sum" in r for r in records):
        return float(sum(r["loss_sum"] for r in records) / _core.LOSS_ONE)
    return float(sum(r["loss"] * batch for r in records))
