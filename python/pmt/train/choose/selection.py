"""Outcome of a selection: the candidates, their cost, and how sure the choice is."""

from dataclasses import asdict, dataclass
from typing import Any

from pmt.protocol.comparison import PairedMargin
from pmt.train.options import TrainingOptions


@dataclass(frozen=True)
class Candidate:
    """A set of layers that was trained on trial.

    Attributes
    ----------
    name : str
        As it was given: a block, a layer, or several joined by ``+``.
    weights, biases : int
        Numbers that are trained.
    memory_bytes : int
        Arena with the trained weights, on a 32-bit target with these options.
    macs : int
        Multiply-accumulates of a training step, for each image.
    forwards, total_macs : int
        Forward passes and multiply-accumulates of the trial runs, over all seeds.
    loss, accuracy : float
        Measures on the held-out images after it (nats; 0..1), the mean over the seeds.
    margin : PairedMargin
        Margin of the criterion by which the chosen candidate is better; 0 for the chosen itself.
    gain : PairedMargin
        Margin by which it is better than no training.
    """

    name: str
    weights: int
    biases: int
    memory_bytes: int
    macs: int
    forwards: int
    total_macs: int
    loss: float
    accuracy: float
    margin: PairedMargin
    gain: PairedMargin

    @property
    def layers(self) -> str:
        """The ``layers`` of :class:`pmt.TrainingOptions`."""
        return self.name.replace("+", ",")


@dataclass(frozen=True)
class Selection:
    """Outcome of a selection.

    Attributes
    ----------
    criterion : str
        Measure that was compared.
    best : Candidate
        The one to train.
    candidates : tuple of Candidate
        In the order given.
    loss, accuracy : float
        Measures on the held-out images before any training.
    held_out : int
        Held-out images.
    seeds : int
        Trial runs of each candidate.
    options : TrainingOptions
        Options of the trial runs, but for their layers and seeds.
    """

    criterion: str
    best: Candidate
    candidates: tuple[Candidate, ...]
    loss: float
    accuracy: float
    held_out: int
    seeds: int
    options: TrainingOptions

    @property
    def forwards(self) -> int:
        """Perturbed forwards of all trial runs."""
        return sum(candidate.forwards for candidate in self.candidates)

    @property
    def macs(self) -> int:
        """Multiply-accumulates of all trial runs."""
        return sum(candidate.total_macs for candidate in self.candidates)

    @property
    def rivals(self) -> tuple[Candidate, ...]:
        """Candidates that the held-out images cannot tell from the best (95 %)."""
        others = (c for c in self.candidates if c is not self.best)
        return tuple(c for c in others if not c.margin.significant)

    @property
    def significant(self) -> bool:
        """Whether the best is told from all others."""
        return not self.rivals

    def verdict(self, candidate: Candidate) -> str:
        """Return the verdict on a candidate, in a word."""
        if candidate is self.best:
            return "chosen" if self.significant else "chosen, not significant"
        return "worse" if candidate.margin.significant else "cannot be told apart"

    def to_json(self) -> dict[str, Any]:
        """Return the figures for JSON."""
        rows = []
        for candidate in self.candidates:
            row = asdict(candidate)
            row["margin"]["significant"] = candidate.margin.significant
            row["gain"]["significant"] = candidate.gain.significant
            rows.append({**row, "layers": candidate.layers, "verdict": self.verdict(candidate)})
        return {
            "best": self.best.name,
            "criterion": self.criterion,
            "significant": self.significant,
            "rivals": [candidate.name for candidate in self.rivals],
            "before": {"loss": self.loss, "accuracy": self.accuracy},
            "held_out": self.held_out,
            "seeds": self.seeds,
            "candidates": rows,
            "forwards": self.forwards,
            "macs": self.macs,
            "options": {k: v for k, v in asdict(self.options).items() if k != "layers"},
        }
