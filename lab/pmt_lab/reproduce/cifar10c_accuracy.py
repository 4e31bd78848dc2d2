"""Table 7: accuracy on twelve corruptions, before and after training."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from pmt_lab.reproduce.drawing import draw_sheet, plot_losses_of_lines
from pmt_lab.reproduce.runs import Found, accuracy_row, find, grid_study
from pmt_lab.reproduce.study import ACCURACY, Data, Quantity, Row, compared, published

_DEFAULT, _TENFOLD = "cifar10c_default", "cifar10c_default_tenfold"
_WHOLE_BUDGET = "cifar10c_default_whole"
_FILTERS, _FILTERS_BACKPROP = "cifar10c_filters", "cifar10c_filters_backprop"
_BACKPROP, _PRINTED = "cifar10c_backprop", "cifar10c_paper_printed"
_PAPER, _RATES = ("cifar10c_paper", "cifar10c_paper_seeds"), "cifar10c_paper_rates"
_RELEASED = ("cifar10c_released", "cifar10c_released_seeds")
_OTHER_COPY = "another copy of the network, other test images"


@dataclass(frozen=True)
class _Line:
    """A line of the table: its runs, and the published line beside it, if there is one."""

    title: str
    grids: str | tuple[str, ...]
    method: str
    published: str = ""
    preparation: str = "none"
    why: str = ""
    drawn: bool = True  # else it is in the table alone

    def found(self, data: Data, **axes: Any) -> Found:
        return find(data, self.grids, method=self.method, preparation=self.preparation, **axes)


_OURS = "default, 2.4e12 MACs"
_ALIGNED, _WHOLE = "align+head", "input+align+head"
_INT8 = ("all layers, int8 with float32 copies", "all layers, int8 alone", "MCUTrain")
_POINTS = Quantity("points", ACCURACY.tolerance, better=ACCURACY.better)
_LINES = (
    _Line("no adaptation", _DEFAULT, "no_adaptation", "no_adaptation", why=_OTHER_COPY),
    _Line("all layers, float32", _BACKPROP, "bp_fp32", "fp32_full"),
    _Line(
        "all layers, int8 with float32 copies",
        _BACKPROP,
        "bp_int8_shadow",
        "int8_full",
        drawn=False,
    ),
    _Line("all layers, int8 alone", _BACKPROP, "bp_int8", "int8_full"),
    _Line("MCUTrain", _BACKPROP, "mcutrain", "mcutrain"),
    _Line("TinyTrain", _BACKPROP, "tinytrain"),
    _Line("paper's method, rate 0.001", _PAPER, "paper", "bp_free"),
    _Line("paper's method, rate 0.01 as printed", _PRINTED, "paper", "bp_free", drawn=False),
    _Line("paper's method, rate 0.003", _RATES, "rate 0.003", "bp_free", drawn=False),
    _Line("paper's method, rate 0.0003", _RATES, "rate 0.0003", "bp_free", drawn=False),
    _Line("released settings", _RELEASED, "released", "bp_free"),
    _Line(
        "released, nodes alone, stochastic rounding", _RELEASED, "released, nodes alone", "bp_free"
    ),
    _Line("unprepared default, 2.4e12 MACs", _DEFAULT, "default", "bp_free"),
    _Line("unprepared default, 2.4e13 MACs", _TENFOLD, "default", "bp_free"),
    _Line("unprepared default, 2.4e14 MACs", _WHOLE_BUDGET, "default", "bp_free", drawn=False),
    _Line(
        "preparation without filters",
        _DEFAULT,
        "preparation_only",
        preparation=_ALIGNED,
        drawn=False,
    ),
    _Line("default without filters, 2.4e12 MACs", _DEFAULT, "default", "bp_free", _ALIGNED),
    _Line("preparation alone", _FILTERS, "preparation_only", preparation=_WHOLE),
    _Line(_OURS, _FILTERS, "default", "bp_free", _WHOLE),
    _Line("float32 after the preparation", _FILTERS_BACKPROP, "bp_fp32", preparation=_WHOLE),
)
_PUBLISHED = {
    "no_adaptation": "published: no adaptation",
    "fp32_full": "published: all layers, float32",
    "int8_full": "published: all layers, int8",
    "mcutrain": "published: MCUTrain",
    "bp_free": "published: paper's method",
}


def _compare(data: Data, paper: Data) -> list[Row]:
    """Return for each line the mean of the corruptions, and each of them that was run."""
    rows = []
    for line in _LINES:
        theirs = dict(zip(paper["corruptions"], paper.get(line.published, ()), strict=False))
        found = {name: line.found(data, corruption=name) for name in paper["corruptions"]}
        known = {name: one for name, one in found.items() if one.runs or one.missing} or found
        if len(known) > 1:
            mean = round(float(np.mean([theirs[name] for name in known])), 2) if theirs else None
            title = f"{line.title}: mean of {len(known)} corruptions"
            even, seeds = _even(known)
            rows.append(accuracy_row(title, even, mean, why=seeds, whole=True))
        # The row of the mean says it for all.
        rated = len(known) == 1
        rows += [
            accuracy_row(f"{line.title}: {name}", one, theirs.get(name), why=line.why, rated=rated)
            for name, one in known.items()
            if one.runs or len(known) == 1
        ]
    return [*rows, *_over_int8(rows, paper)]


def _over_int8(rows: Sequence[Row], paper: Data) -> list[Row]:
    """Return the gain over back-propagation in int8 that the paper's introduction claims."""
    known = {row.what: row.ours for row in rows if row.ours is not None}
    ending = f": mean of {len(paper['corruptions'])} corruptions"
    means = {one: known[one + ending] for one in (_OURS, *_INT8) if one + ending in known}
    if len(means) < 1 + len(_INT8):
        return []
    ours = means.pop(_OURS)
    theirs = {name: float(np.mean(paper[name])) for name in ("bp_free", "mcutrain", "int8_full")}
    best = max(means, key=lambda title: means[title])
    why = (
        f"less {best}; in the published table {theirs['bp_free'] - theirs['mcutrain']:.2f} over "
        f"MCUTrain, {theirs['bp_free'] - theirs['int8_full']:.2f} over all layers"
    )
    gain = ours - means[best]
    what = "default less the best back-propagation in int8"
    return [compared(what, gain, paper["improvement_over_int8"], _POINTS, why=why)]


def _even(found: Mapping[str, Found]) -> tuple[Found, str]:
    """Return as many seeds of each corruption, so that all weigh alike in a mean, and say which."""
    seeds = {
        name: sorted(
            {*(run["axes"]["seed"] for run in one.runs), *(r["seed"] for r in one.missing)}
        )
        for name, one in found.items()
    }
    least = min(map(len, seeds.values()))
    taken = {name: own[:least] for name, own in seeds.items()}
    even = Found(
        tuple(r for n, one in found.items() for r in one.runs if r["axes"]["seed"] in taken[n]),
        tuple(r for n, one in found.items() for r in one.missing if r["seed"] in taken[n]),
        any(one.small for one in found.values()),
    )
    more = [f"{len(own)} seeds of {name}" for name, own in seeds.items() if len(own) > least]
    if more:
        return even, f"the first {'' if least == 1 else f'{least} '}of {', '.join(more)}"
    return even, f"{least} seeds of each corruption" if least > 1 else ""


def _plot(data: Data, *, ax: Any = None) -> Any:
    """Draw the accuracy of each line on each corruption, and the published line below it."""
    paper = published("cifar10c-accuracy")
    names = paper["corruptions"]
    columns = [*names, f"mean of {len(names)} corruptions"]
    rows = {row.what: row for row in _compare(data, paper)}
    lines: dict[str, list[float | None]] = {}
    for place, line in enumerate(_LINES):
        if not line.drawn:
            continue
        found = [rows.get(f"{line.title}: {column}") for column in columns]
        lines[line.title] = [None if row is None else row.ours for row in found]
        # Below the last of the lines that it stands beside; not beside another network's, small.
        last = line.published not in {one.published for one in _LINES[place + 1 :]}
        if last and any(row is not None and row.theirs is not None for row in found):
            theirs = paper[line.published]
            lines[_PUBLISHED[line.published]] = [*theirs, round(float(np.mean(theirs)), 2)]
    # A single corruption's accuracy is sure to three points.
    return draw_sheet(lines, [*names, "mean"], set(_PUBLISHED.values()), whole=names, ax=ax)


def _plot_losses(data: Data, corruption: str, *, ax: Any = None) -> Any:
    """Draw the held-out losses of every line on a corruption."""
    found = {line.title: line.found(data, corruption=corruption) for line in _LINES}
    return plot_losses_of_lines(data, found, corruption, ax=ax)


STUDY = grid_study(
    "cifar10c-accuracy",
    "Table 7",
    "CIFAR-10-C: accuracy on twelve corruptions of severity 5",
    (
        *(_DEFAULT, _BACKPROP, *_PAPER, _PRINTED, _RATES, *_RELEASED, _TENFOLD),
        _WHOLE_BUDGET,
        *(_FILTERS, _FILTERS_BACKPROP),
    ),
    _compare,
    _plot,
    _plot_losses,
    "The paper's method trains block 2 for every corruption, at one rate, the best of four on "
    "Gaussian noise, and the head with its exact gradient; the paper chooses a block for each "
    "corruption, and prints 0.01 as the rate of all methods. The released settings train block 2 "
    "without the head. Back-propagation has the best of five rates. Methods are tested in the "
    "state with the least held-out loss, which is the original model where no epoch is clearly "
    "better; float32 is tested after its last step.",
)
