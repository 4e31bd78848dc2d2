"""A study: one table or figure of the paper, measured again and compared with the published one."""

import importlib
import math
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any, Literal

from pmt.datasets.downloading import named

Scale = Literal["small", "full"]
# As a summary counts them; the last one is that of a figure which the paper does not have.
Verdict = Literal[
    "reproduced", "better", "not reproduced", "lower bound", "projected", "not run", "not published"
]
Interval = tuple[float, float]
Data = Mapping[str, Any]

_tomllib = importlib.import_module("tomllib" if sys.version_info >= (3, 11) else "tomli")
_PUBLISHED = Path(__file__).with_name("published.toml")
# Folders by the names that they have as downloads, or as subsets.
_FINE_GRAINED = {
    "cars": ("cars", "stanford_cars", "cars196"),
    "cub": ("cub200", "CUB_200_2011", "cub100"),
    "flowers": ("flowers102", "oxford-102-flowers"),
    "food": ("food101", "food-101", "food10"),
    "pets": ("oxford-pets", "oxford-iiit-pet", "pets"),
}


@dataclass(frozen=True)
class Quantity:
    """The unit of two figures, and how they are compared.

    ``tolerance`` is the difference up to which ours counts as the published one, with ``relative``
    as a share of that; ``better`` the side of it that is the better one: "higher", "lower" or none.
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
LOSS = Quantity("nats", 0.05, better="lower")
MEMORY = Quantity("KB", 0.01, relative=True, better="lower")
COMPUTE = Quantity("MMAC", 0.01, relative=True, better="lower")
FORWARDS = Quantity("forwards", 0.01, relative=True, better="lower")


@dataclass(frozen=True)
class Row:
    """One figure of a study beside the published one, None where there is none.

    ``theirs`` may say in words what a figure shows. ``verdict`` is ``"reproduced"``, ``"better"``,
    ``"not reproduced"`` or ``"not run"``: see :func:`verdict`; ``"lower bound"``: see
    :func:`at_least`; ``"projected"``: see :func:`projected`; ``"not published"``: a figure that the
    paper does not have. ``interval`` is the 95 % interval of ours, ``why`` the cause of a
    difference, or what a run that is missing takes.
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
    """Return the verdict of a figure on the published one.

    Reproduced if ours is within the quantity's tolerance, or the published figure within our 95 %
    interval; beyond both it is better on the better side, and else not reproduced. Without ours it
    is not run.
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
    """Return the row of a figure that was not measured; ``why`` names the obstacle."""
    return Row(what, None, theirs, unit, "not run", None, why)


def beside(
    what: str, ours: float, unit: str, *, interval: Interval | None = None, why: str = ""
) -> Row:
    """Return the row of a figure that the paper does not have."""
    return Row(what, ours, None, unit, "not published", interval, why)


def published(study: str) -> dict[str, Any]:
    """Return the paper's numbers of a study; empty where the paper shows no number."""
    table: dict[str, Any] = _tables().get(study, {})
    return table


@cache
def _tables() -> dict[str, Any]:
    tables: dict[str, Any] = _tomllib.loads(_PUBLISHED.read_text(encoding="utf-8"))
    return tables


class Unfinished(Exception):
    """A study of which there is nothing to collect."""


@dataclass(frozen=True)
class Context:
    """The folder and the inputs of a study.

    In ``folder`` is whatever takes minutes; sweeps, which studies share, have folders beside it.
    ``data`` holds data and models; by default they are in the working directory or downloaded.
    There are as many ``jobs`` (0 for one per CPU), or workers of the Dask scheduler. ``tell`` gets
    lines of progress. With ``collect`` no run is done: what is finished is taken. ``earlier`` is
    ``data`` of this study's earlier result, whose runs are not done again.
    """

    folder: Path
    data: Path | None = None
    jobs: int = 0
    dask: str | None = None
    tell: Callable[[str], None] = lambda text: None
    collect: bool = False
    earlier: Data = field(default_factory=dict)

    def need_cifar10(self) -> Path:
        """Return the folder of CIFAR-10; a FileNotFoundError says how to get it."""
        return self._need(
            ("cifar-10-batches-bin", "cifar10"),
            "fetch it with `pmt download cifar10`, or give --data the folder that holds it",
        )

    def need_mcunet(self) -> Path:
        """Return the paper's network as a file; a FileNotFoundError says how to get it."""
        return self._need(
            ("mcunet-5fps.pkl",),
            "take it from tiny-training's assets (github.com/mit-han-lab/tiny-training) and give "
            "--data the folder that holds it",
        )

    def fine_grained(self) -> dict[str, Path]:
        """Return the folders of the fine-grained data sets that the user has, by their names."""
        found = {name: self._find(names) for name, names in _FINE_GRAINED.items()}
        return {name: path for name, path in found.items() if path is not None}

    def _find(self, names: Sequence[str]) -> Path | None:
        paths = [named(name) if self.data is None else self.data / name for name in names]
        return next((path.absolute() for path in paths if path.exists()), None)

    def _need(self, names: Sequence[str], remedy: str) -> Path:
        found = self._find(names)
        if found is None:
            place = "found" if self.data is None else f"in --data {self.data}"
            raise FileNotFoundError(f"{names[0]} is not {place}; {remedy}")
        return found


@dataclass(frozen=True)
class Study:
    """A table or figure of the paper.

    ``name`` is that of the command line, such as ``"cifar10c-accuracy"``, ``item`` the paper's:
    ``"Table 7"``, ``"Figure 4"``. ``measure(scale, context)`` does the work, or continues it, and
    returns JSON values: ``"full"`` is the paper's budget, or the share of it that is stated;
    ``"small"`` shows in seconds that all works, on what comes with pmt. ``compare(data,
    published)`` puts them beside the paper's numbers, the study's table of ``published.toml``.
    ``plot(data, ax=None)`` draws them, and ``plot_losses(data, corruption, ax=None)`` held-out
    losses over multiply-accumulates; both return the Axes. ``sweeps`` says that it trains, in
    sweeps that can be collected as far as they are finished. ``conditions`` are sentences that say
    where the measurement differs from the paper's, for the page.
    """

    name: str
    item: str
    title: str
    measure: Callable[[Scale, Context], dict[str, Any]]
    compare: Callable[[Data, Data], Sequence[Row]]
    plot: Callable[..., Any]
    plot_losses: Callable[..., Any] | None = None
    sweeps: bool = False
    conditions: str = ""
