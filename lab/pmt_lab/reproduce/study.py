"""A study: one table or figure of the paper, measured again and put beside what was published."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

__all__ = [
    "ACCURACY",
    "COMPUTE",
    "COSINE",
    "FORWARDS",
    "LATENCY",
    "LOSS",
    "MEMORY",
    "TIME",
    "Context",
    "Forecast",
    "Quantity",
    "Row",
    "Scale",
    "Study",
    "Unfinished",
    "Verdict",
    "at_least",
    "beside",
    "claim",
    "compared",
    "not_run",
    "projected",
    "verdict",
]

Scale = Literal["small", "full"]
# The last one is that of a figure which the paper does not have.
Verdict = Literal[
    "reproduced", "better", "not reproduced", "lower bound", "projected", "not run", "not published"
]
Interval = tuple[float, float]


@dataclass(frozen=True)
class Quantity:
    """How figures of one unit are compared.

    Attributes
    ----------
    unit : str
        Unit of both figures.
    tolerance : float
        Difference up to which ours counts as the published one.
    relative : bool
        Whether the tolerance is a share of the published figure.
    better : {"higher", "lower", ""}
        Which side of the published figure is the better one, if any.
    """

    unit: str
    tolerance: float
    relative: bool = False
    better: Literal["higher", "lower", ""] = ""

    def near(self, ours: float, theirs: float) -> bool:
        """Whether ours is within the tolerance of the published figure."""
        allowed = self.tolerance * (abs(theirs) if self.relative else 1.0)
        return abs(ours - theirs) <= allowed * (1 + 1e-9)


ACCURACY = Quantity("%", 2.0, better="higher")
COSINE = Quantity("cosine", 0.05, better="higher")
LOSS = Quantity("nats", 0.05, better="lower")
MEMORY = Quantity("KB", 0.01, relative=True, better="lower")
COMPUTE = Quantity("MMAC", 0.01, relative=True, better="lower")
FORWARDS = Quantity("forwards", 0.01, relative=True, better="lower")
LATENCY = Quantity("ms", 0.01, relative=True, better="lower")
TIME = Quantity("s", 0.01, relative=True, better="lower")


@dataclass(frozen=True)
class Row:
    """One figure of a study beside the published one.

    Attributes
    ----------
    what : str
        What was measured.
    ours : float or None
        Our figure; None where it was not measured.
    theirs : float, str or None
        The published figure, or in words what a figure shows; None where there is neither.
    unit : str
        Unit of both.
    verdict : str
        ``"reproduced"``, ``"better"``, ``"not reproduced"`` or ``"not run"``: see :func:`verdict`;
        ``"lower bound"``: see :func:`at_least`; ``"projected"``: see :func:`projected`;
        ``"not published"``: a figure that the paper does not have.
    interval : (float, float) or None
        95 % interval of ours.
    why : str
        Cause of a difference, or what a run that is missing takes.
    """

    what: str
    ours: float | None
    theirs: float | str | None
    unit: str
    verdict: Verdict
    interval: Interval | None = None
    why: str = ""


def verdict(
    ours: float | None, theirs: float, quantity: Quantity, interval: Interval | None = None
) -> Verdict:
    """Decide what a figure says about the published one.

    Parameters
    ----------
    ours : float or None
        Our figure; None or not finite where there is none.
    theirs : float
        The published figure.
    quantity : Quantity
        How the two are compared.
    interval : (float, float), optional
        95 % interval of ours.

    Returns
    -------
    {"reproduced", "better", "not reproduced", "not run"}
        Reproduced if ours is within the quantity's tolerance, or the published figure within our
        interval; beyond both it is better on the better side, and else not reproduced.
    """
    if ours is None:
        return "not run"
    if not math.isfinite(ours):
        return "not reproduced"
    if quantity.near(ours, theirs) or (interval and interval[0] <= theirs <= interval[1]):
        return "reproduced"
    better = ours > theirs if quantity.better == "higher" else ours < theirs
    return "better" if quantity.better and better else "not reproduced"


def compared(
    what: str,
    ours: float | None,
    theirs: float,
    quantity: Quantity,
    *,
    interval: Interval | None = None,
    why: str = "",
) -> Row:
    """Return the row of a published number."""
    said = verdict(ours, theirs, quantity, interval)
    return Row(what, ours, theirs, quantity.unit, said, interval, why)


def at_least(what: str, ours: float, theirs: float, quantity: Quantity, *, why: str = "") -> Row:
    """Return the row of a figure of which ours is a lower bound.

    A bound below the published figure does not contradict it: its verdict is ``"lower bound"``.
    """
    said = verdict(ours, theirs, quantity)
    beneath = said != "reproduced" and ours < theirs
    return Row(what, ours, theirs, quantity.unit, "lower bound" if beneath else said, None, why)


def projected(what: str, ours: float, theirs: float, unit: str, *, why: str) -> Row:
    """Return the row of a figure that is computed from another one, for it was not measured."""
    return Row(what, ours, theirs, unit, "projected", None, why)


def claim(
    what: str,
    ours: float,
    shows: str,
    unit: str,
    *,
    holds: bool,
    interval: Interval | None = None,
    why: str = "",
) -> Row:
    """Return the row of something that a figure shows without a number."""
    return Row(what, ours, shows, unit, "reproduced" if holds else "not reproduced", interval, why)


def not_run(what: str, theirs: float | str | None, unit: str, why: str) -> Row:
    """Return the row of what was not measured; ``why`` says what it takes."""
    return Row(what, None, theirs, unit, "not run", None, why)


def beside(
    what: str, ours: float, unit: str, *, interval: Interval | None = None, why: str = ""
) -> Row:
    """Return the row of a figure that the paper does not have."""
    return Row(what, ours, None, unit, "not published", interval, why)


class Unfinished(Exception):
    """A study of which there is nothing to collect."""


@dataclass(frozen=True)
class Forecast:
    """The work that is left of a study: ``runs`` of ``of``, and ``hours`` on this machine."""

    runs: int
    of: int
    hours: float


def _silent(text: str) -> None:
    """Tell nobody."""


@dataclass(frozen=True)
class Context:
    """Where a study works and what it has.

    Attributes
    ----------
    folder : pathlib.Path
        Folder of the study: whatever takes minutes is kept there.
    data : pathlib.Path or None
        Folder that the user gave for data and models, for errors.
    cifar10 : pathlib.Path or None
        Folder of CIFAR-10 (``cifar-10-batches-bin``); None where the user has none.
    models : pathlib.Path or None
        Folder of ``mcunet-5fps.pkl``, the paper's network.
    fine_grained : dict of str to pathlib.Path
        Folders of fine-grained data sets, by ``cars``, ``cub``, ``flowers``, ``food``, ``pets``.
    jobs : int
        Processes; 0 for one per CPU.
    shard : (int, int)
        The part of a sweep that is done here.
    dask : str or None
        Address of a Dask scheduler.
    tell : callable
        Gets lines of progress.
    collect : bool
        Do no run: take what is finished.
    kept : dict of str to list
        Grids of earlier results, by name: their runs are not done again.
    earlier : dict
        ``data`` of this study's earlier result; empty without one.
    timed : sequence of sequences of dict
        Earlier runs of this study, then of the others: they tell how long a method takes.
    """

    folder: Path
    data: Path | None = None
    cifar10: Path | None = None
    models: Path | None = None
    fine_grained: Mapping[str, Path] = field(default_factory=dict)
    jobs: int = 0
    shard: tuple[int, int] = (1, 1)
    dask: str | None = None
    tell: Callable[[str], None] = _silent
    collect: bool = False
    kept: Mapping[str, Sequence[Mapping[str, Any]]] = field(default_factory=dict)
    earlier: Mapping[str, Any] = field(default_factory=dict)
    timed: Sequence[Sequence[Mapping[str, Any]]] = ()

    @property
    def runs(self) -> Path:
        """Folder of the sweeps' folders, which studies share."""
        return self.folder.parent

    def need_cifar10(self) -> Path:
        """Return the folder of CIFAR-10; a FileNotFoundError says how to get it."""
        if self.cifar10 is None:
            raise FileNotFoundError(
                f"cifar-10-batches-bin is not {self._place()}; fetch it with `pmt download "
                "cifar10`, or give --data the folder that holds it"
            )
        return self.cifar10

    def need_mcunet(self) -> Path:
        """Return the paper's network as a file; a FileNotFoundError says how to get it."""
        if self.models is None:
            raise FileNotFoundError(
                f"mcunet-5fps.pkl is not {self._place()}; take it from tiny-training's assets "
                "(github.com/mit-han-lab/tiny-training) and give --data the folder that holds it"
            )
        return self.models / "mcunet-5fps.pkl"

    def _place(self) -> str:
        return "found" if self.data is None else f"in --data {self.data}"


@dataclass(frozen=True)
class Study:
    """A table or figure of the paper.

    Attributes
    ----------
    name : str
        Name on the command line, such as ``"cifar10c-accuracy"``.
    item : str
        The paper's table or figure: ``"Table 7"``, ``"Figure 4"``.
    title : str
        Subject in a few words.
    measure : callable
        ``measure(scale, context)`` does the work, or continues it, and returns JSON values.
        ``"full"`` is the paper's budget, or the share of it that is stated; ``"small"`` shows in
        seconds that all works, on what comes with pmt.
    compare : callable
        ``compare(data, published)`` puts what was measured beside the paper's numbers, the
        study's table of ``published.toml``.
    plot : callable or None
        ``plot(data, ax=None)`` draws what was measured and returns the Axes.
    forecast : callable or None
        ``forecast(scale, context)`` says what is left, and does none of it; None for a study of
        minutes.
    plot_losses : callable or None
        ``plot_losses(data, corruption, ax=None)`` draws held-out losses over multiply-accumulates
        and returns the Axes.
    conditions : str
        Sentences that say where the measurement differs from the paper's, for the page.
    """

    name: str
    item: str
    title: str
    measure: Callable[[Scale, Context], dict[str, Any]]
    compare: Callable[[Mapping[str, Any], Mapping[str, Any]], Sequence[Row]]
    plot: Callable[..., Any] | None = None
    forecast: Callable[[Scale, Context], Forecast] | None = None
    plot_losses: Callable[..., Any] | None = None
    conditions: str = ""
