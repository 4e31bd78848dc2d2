"""Learning rates that a sweep's trials chose, for the reader to see that none was favored."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from pmt._util.text import printable
from pmt_lab.report.finished_runs import FinishedRun
from pmt_lab.report.formats import CellText, TableText
from pmt_lab.sweep.tuning import edge_line

__all__ = ["ChosenRate", "chosen_rates", "rates_text"]

_FIELDS = ("method", "preparation", "layers")


@dataclass(frozen=True)
class ChosenRate:
    """The learning rate of a method with one preparation and one set of layers.

    Attributes
    ----------
    method, preparation, layers : str
        Method, preparation and layers that have the rate.
    factor, learning_rate : float
        The factor of the method's own rate that won, and the rate.
    at_edge : bool
        Whether it is the smallest or the largest factor that was tried.
    losses : dict of float to float or None
        Held-out loss of each trial by its factor; None where it was not finite.
    """

    method: str
    preparation: str
    layers: str
    factor: float
    learning_rate: float
    at_edge: bool
    losses: dict[float, float | None]

    def to_json(self) -> dict[str, Any]:
        """Return it for JSON."""
        return {
            **{name: getattr(self, name) for name in _FIELDS},
            "factor": self.factor,
            "learning_rate": self.learning_rate,
            "at_edge": self.at_edge,
            "trials": [
                {"factor": factor, "held_out_loss": loss} for factor, loss in self.losses.items()
            ],
        }


def chosen_rates(runs: Sequence[FinishedRun]) -> list[ChosenRate]:
    """Return each rate that trials chose for some of the runs, in the order of the grid."""
    found: dict[str, tuple[tuple[Any, ...], ChosenRate]] = {}
    for run in runs:
        if not run.tuning:
            continue
        tuning, names = run.tuning, [str(run.fields[name]) for name in _FIELDS]
        losses = {trial["factor"]: trial["held_out_loss"] for trial in tuning["trials"]}
        chosen = (tuning["factor"], tuning["learning_rate"], tuning["at_edge"], losses)
        method, preparation, layers = names
        rate = ChosenRate(method, preparation, layers, *chosen)
        order = run.result.get("order", {})
        place = (order.get("method", 0), order.get("preparation", 0), *names, rate.learning_rate)
        found.setdefault(repr(rate), (place, rate))
    return [rate for _, rate in sorted(found.values(), key=lambda entry: entry[0])]


def rates_text(rates: Sequence[ChosenRate]) -> TableText:
    """Write the rates, and the held-out loss of each trial; the chosen one is bold."""
    factors = sorted({factor for rate in rates for factor in rate.losses})
    rows = []
    for rate in rates:
        cells = [CellText(printable(str(getattr(rate, name)))) for name in _FIELDS]
        cells += [CellText(f"{rate.factor:g}"), CellText(f"{rate.learning_rate:g}")]
        cells += [_loss(rate, factor) for factor in factors]
        rows.append(tuple(cells))
    notes = [
        "Each method's own rate times every factor, at the budget of the table; the least loss on "
        "the held-out images wins, of equal ones the smaller rate. Bold: the one that won."
    ]
    for rate in rates:
        if rate.at_edge:
            line = edge_line(getattr(rate, name) for name in _FIELDS)
            notes.append(f"{line[0].upper()}{printable(line[1:])}.")
    head = (*_FIELDS, "factor", "rate", *(f"loss at {factor:g}" for factor in factors))
    title = "learning rates, chosen by trials: held-out loss in nats"
    return TableText(title, head, tuple(rows), tuple(notes))


def _loss(rate: ChosenRate, factor: float) -> CellText:
    if factor not in rate.losses:
        return CellText("-")
    loss = rate.losses[factor]
    return CellText("not finite" if loss is None else f"{loss:.4f}", factor == rate.factor)
