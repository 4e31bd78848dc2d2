"""Figure 7: scalings of the learning rate, and estimators of the gradient, on four layers."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from pmt_lab.report import student_t
from pmt_lab.reproduce.drawing import draw_curves
from pmt_lab.reproduce.runs import Found, find, grid_study, joined_reasons
from pmt_lab.reproduce.study import LOSS, Data, Interval, Row, Study, beside, claim, not_run

_CONDITIONS = (
    "Four pointwise convolutions, those of B2: of the blocks it alone has the dimensions that the "
    "paper's text gives for its block 1. 10 queries instead of 100, a sixtieth of the paper's "
    "multiply-accumulates, 10 epochs of back-propagation, and the loss on held-out images where "
    "the figure has that of training."
)
# The comparison of each estimator: with itself layer by layer, and the mixture.
_BETTER = {
    "weight_model_wise": "weight_layer_wise",
    "node_model_wise": "node_layer_wise",
    "weight_layer_wise": "paper",
    "node_layer_wise": "paper",
}
# The same by the settings of the authors' released simulation.
_RELEASED = {
    "weight_model_wise": "released, weights at once",
    "weight_layer_wise": "released, weights",
    "node_model_wise": "released, nodes at once",
    "node_layer_wise": "released, nodes",
    "paper": "released",
    "both_scalings": "released, nodes",
    "quantization_aware": "released, quantization-aware alone",
    "gradient_norm": "released, gradient norm alone",
    "no_scaling": "released, no scaling",
}
# Methods of grids in words.
_LINES = {
    "weight_model_wise": "weight perturbation, model-wise",
    "weight_layer_wise": "weight perturbation, layer-wise",
    "node_model_wise": "node perturbation, model-wise",
    "node_layer_wise": "node perturbation, layer-wise",
    "paper": "paper's mixture, layer-wise",
    "both_scalings": "both scalings",
    "quantization_aware": "quantization-aware scaling alone",
    "gradient_norm": "gradient-norm scaling alone",
    "no_scaling": "no scaling",
    "adam": "Adam",
    "bp_fp32": "back-propagation, float32",
}


def loss_rows(data: Data, grids: Sequence[str], shown: Mapping[str, tuple[str, str]]) -> list[Row]:
    """Return the lowest held-out loss of each method, and differences that the figure shows.

    It is the loss by which trials choose a rate, as a mean over seeds. A difference, paired by
    seed, counts if its whole interval does, or with one seed if it exceeds a loss's tolerance.
    ``shown`` has for a method the one that the figure shows below it, and that in words.
    """
    found = {name: find(data, grids, method=name) for name in _methods(data, grids, shown)}
    rows = []
    for name, one in found.items():
        losses = [loss for loss in _lowest(one).values() if loss is not None]
        what = f"{name}: lowest loss"
        if not losses or len(losses) < len(one.runs):
            rows.append(not_run(what, None, LOSS.unit, one.state or "not finite"))
        else:
            mean, interval = _mean(losses)
            why = joined_reasons(one.rate, _ends(one), one.state)
            rows.append(beside(what, mean, LOSS.unit, interval=interval, why=why))
    for name, (better, words) in shown.items():
        rows.append(_difference(found[name], found[better], f"{name} less {better}", words))
    return rows


def _methods(data: Data, grids: Sequence[str], shown: Mapping[str, tuple[str, str]]) -> list[str]:
    """Return the methods of the grids, and those of the figure that they lack."""
    known = [data["grids"][grid] for grid in grids if grid in data.get("grids", {})]
    names = [run["axes"]["method"] for grid in known for run in grid["runs"]]
    names += [run["method"] for grid in known for run in grid["missing"]]
    pairs = [name for method, (better, _) in shown.items() for name in (better, method)]
    return list(dict.fromkeys([*names, *pairs]))


def _difference(high: Found, low: Found, what: str, words: str) -> Row:
    above, below = _lowest(high), _lowest(low)
    pairs = [(above[seed], below[seed]) for seed in above if seed in below]
    differences = [a - b for a, b in pairs if a is not None and b is not None]
    if high.small or not differences or len(differences) < len(pairs):
        state = "small scale" if high.small else high.state or low.state
        return not_run(what, None if high.small else words, LOSS.unit, state or "not finite")
    mean, interval = _mean(differences)
    holds = interval[0] > 0 if interval else mean > LOSS.tolerance
    why = "" if holds else _why(high, low, mean, interval)
    return claim(what, mean, words, LOSS.unit, holds=holds, interval=interval, why=why)


def _why(high: Found, low: Found, mean: float, interval: Interval | None) -> str:
    """Name likely causes of a comparison that does not come out as published."""
    one, other = high.runs[0], low.runs[0]
    if one["curve"] == other["curve"]:
        return "the same run: the estimators of all layers are the same here"
    unsure = interval[1] > 0 if interval else abs(mean) <= LOSS.tolerance
    edges = [run["axes"]["method"] for run in (one, other) if run.get("tuning", {}).get("at_edge")]
    seeds = (
        f"{len(high.runs)} seeds do not tell them apart"
        if interval
        else f"within {LOSS.tolerance:g} nats, which one seed does not tell apart"
    )
    at_edge = f"at the edge of the rates tried: {', '.join(edges)}" if edges else ""
    return joined_reasons(seeds if unsure else "", at_edge)


def _mean(values: Sequence[float]) -> tuple[float, Interval | None]:
    """Return the mean over seeds and its 95 % interval by Student's t; none of one seed."""
    mean = float(np.mean(values))
    if len(values) < 2:
        return mean, None
    error = float(np.std(values, ddof=1)) / len(values) ** 0.5
    half = student_t(len(values) - 1) * error
    return mean, (mean - half, mean + half)


def _lowest(found: Found) -> dict[Any, float | None]:
    """Return the least held-out loss after a step of each run, by seed; None without one."""
    lowest = {}
    for run in found.runs:
        losses = [loss for macs, loss in run["curve"] if macs and loss is not None]
        lowest[run["axes"]["seed"]] = min(losses, default=None)
    return lowest


def _ends(found: Found) -> str:
    """Say how many runs ended above where they began; nothing if none did."""
    above = sum(_ended_above(run) for run in found.runs)
    if not above:
        return ""
    if len(found.runs) > 1:
        return f"{above} of {len(found.runs)} runs ended above their initial loss"
    return "ended above its initial loss"


def _ended_above(run: Data) -> bool:
    first, last = run["curve"][0], run["curve"][-1]
    start = first[1] if not first[0] else None
    return start is not None and (last[1] is None or last[1] > start)


def _study(
    name: str, side: str, title: str, grids: tuple[str, ...], better: Mapping[str, str]
) -> Study:
    """Return the study of one side of the figure; ``better`` is the method below each."""

    def compare(data: Data, paper: Data) -> list[Row]:
        printed = {m: (better[m], shows) for m, shows in paper.items()}
        released = {
            _RELEASED[m]: (_RELEASED[low], shows)
            for m, (low, shows) in printed.items()
            if m in _RELEASED
        }
        return loss_rows(data, grids, {**printed, **released})

    def plot(data: Data, *, ax: Any = None) -> Any:
        """Draw the held-out loss of each method's first seed over its multiply-accumulates."""
        found = {name: find(data, grids, method=name) for name in _methods(data, grids, {})}
        firsts = {_LINES.get(name, name): one.runs[0] for name, one in found.items() if one.runs}
        return draw_curves(firsts, ax=ax)

    return grid_study(name, f"Figure 7, {side}", title, grids, compare, plot, None, _CONDITIONS)


LEARNING_RATE_SCALING = _study(
    "learning-rate-scaling",
    "left",
    "Scaling of the learning rate, Gaussian noise",
    (
        "learning_rate_scaling",
        "learning_rate_scaling_backprop",
        "learning_rate_scaling_released",
    ),
    dict.fromkeys(("quantization_aware", "gradient_norm", "no_scaling", "adam"), "both_scalings"),
)
ESTIMATORS = _study(
    "estimators",
    "right",
    "Estimators at the same cost, Gaussian noise",
    ("estimators", "estimators_released"),
    _BETTER,
)
