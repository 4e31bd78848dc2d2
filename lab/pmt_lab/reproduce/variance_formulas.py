"""Table 2: formulas of the variance of estimates, against measurements."""

from typing import Any

import numpy as np
from joblib import Memory

import pmt
from pmt._util.plots import add_legend, line_style, one_axes
from pmt_lab.files import counted
from pmt_lab.report import student_t
from pmt_lab.reproduce.cosines import GradientBatch, gradient_batch
from pmt_lab.reproduce.study import Context, Data, Quantity, Row, Scale, Study, claim, compared
from pmt_lab.studies.scope_variance import compare_scopes

_SQUARES = Quantity("|g|^2", 0.2, relative=True)
_PRINTED, _RELEASED = ("weight", "node"), ("free_node",)
# Images, words of the estimators and the estimators: where the formulas hold, what images of
# different gradients do to them, the paper's own mu and baseline, and nodes by the released
# settings; weights are perturbed alike in both, so they are left out.
_CASES = (
    (1, "mu4", _PRINTED),
    (4, "mu4", _PRINTED),
    (4, "mu1+clean", _PRINTED),
    (1, "mu5+clean", _RELEASED),
    (4, "mu5+clean", _RELEASED),
)
# Ratios that count as "just below 1".
_JUST_BELOW = 0.8
_EXACT = "exact for a loss that is linear in the perturbation, without rounding and clamps"
_NAMES = {
    "mu4": "mu 4",
    "mu1+clean": "the paper's mu (1), clean baseline",
    "mu5+clean": "the released mu (5), free nodes",
}


def _measure(scale: Scale, context: Context) -> dict[str, Any]:
    full = scale == "full"
    cases, repeats = [], 8 if full else 2
    case = Memory(context.folder / pmt.__version__, verbose=0).cache(
        _case, ignore=["batch", "threads"]
    )
    for images, words, estimators in _CASES:
        context.tell(f"{counted(images, 'image')}, {words}")
        batch = gradient_batch(scale, context, images)
        cases.append(case(batch.contents, scale, batch, context.jobs, words, estimators, repeats))
    network = "cifar10_mcunet" if full else "fashion_mnist_dscnn"
    return {"network": network, "repeats": repeats, "cases": cases}


def _case(
    contents: list[int],
    scale: Scale,
    batch: GradientBatch,
    threads: int,
    words: str,
    estimators: tuple[str, ...],
    repeats: int,
) -> dict[str, Any]:
    """Measure a batch; its contents stand for it in the key of the kept figures."""
    layers, each = ("paper14", 4) if scale == "full" else ("B1,B2", 2)
    count = len(batch.model.select_layers(layers))
    scatter, rows = compare_scopes(
        batch.model,
        batch.images,
        layers=layers,
        queries=each * count,
        words=words,
        repeats=repeats,
        estimators=estimators,
        threads=threads,
    )
    return {
        "images": len(batch.images),
        "words": words,
        "layers": count,
        "queries": each * count,
        "scatter": scatter,
        "rows": rows,
    }


def _compare(data: Data, paper: Data) -> list[Row]:
    rows = [_row(data, case, row) for case in data["cases"] for row in case["rows"]]
    for case in data["cases"]:
        estimators = dict.fromkeys(row["estimator"] for row in case["rows"])
        rows += [_scopes(case, estimator) for estimator in estimators]
    return rows


def _scopes(case: Data, estimator: str) -> Row:
    """Return the factor by which layer-wise perturbation changes the error at equal cost."""
    error = {row["scope"]: row for row in case["rows"] if row["estimator"] == estimator}
    alone, together = error["layer_wise"], error["model_wise"]
    ratio = alone["measured"] / together["measured"]
    expected = alone["expected"] / together["expected"]
    return claim(
        f"{_perturbed(estimator)}, layer-wise over model-wise, {_about(case)}",
        ratio,
        "just below 1",
        "times",
        holds=_JUST_BELOW <= ratio < 1,
        why=f"{_EXACT}: {expected:.2f}; layers differ, and each has few queries of its own",
    )


def _row(data: Data, case: Data, row: Data) -> Row:
    half = student_t(data["repeats"] - 1) * row["measured_error"]
    scope = row["scope"].replace("_", "-")
    return compared(
        f"{_perturbed(row['estimator'])}, {scope}, {_about(case)}",
        row["measured"],
        row["printed"],
        _SQUARES,
        interval=(row["measured"] - half, row["measured"] + half),
        why=_why(case, row),
    )


def _perturbed(estimator: str) -> str:
    return estimator.removeprefix("free_")


def _about(case: Data) -> str:
    images = counted(case["images"], "image")
    return f"{images}, {_NAMES[case['words']]}"


def _why(case: Data, row: Data) -> str:
    exact = f"{_EXACT}: {row['expected']:,.0f}"
    reasons = []
    if row["estimator"] != "weight":
        reasons.append("an error of a node's gradient reaches the weights times the inputs there")
    if row["estimator"] == "node":
        reasons.append("clamps, which no formula has, hold nodes back")
    elif case["images"] > 1:
        reasons.append(f"V, here {case['scatter']:.1f} S, stands in it without the dimension")
    if row["scope"] == "layer_wise" and "clean" not in case["words"]:
        reasons.append("a layer's own mean as baseline costs one of its few queries")
    if "mu1" in case["words"]:
        reasons.append("with mu 1, rounding comes on top")
    return "; ".join([exact, *reasons])


def _plot(data: Data, *, ax: Any = None) -> Any:
    """Draw measured, exact and printed squared errors of every row."""
    axes = one_axes(ax, 7, 4.2)
    rows = [(case, row) for case in data["cases"] for row in case["rows"]]
    places = np.arange(len(rows))
    measured = [row["measured"] for _, row in rows]
    errors = [student_t(data["repeats"] - 1) * row["measured_error"] for _, row in rows]
    points = [{**line_style(place), "linestyle": "none"} for place in range(3)]
    axes.errorbar(measured, places, xerr=errors, capsize=3, label="measured", **points[0])
    for name, title, point in zip(
        ("expected", "printed"), ("exact for a linear loss", "as printed"), points[1:], strict=True
    ):
        axes.plot([row[name] for _, row in rows], places, label=title, **point)
    axes.set_xscale("log")
    axes.set_xlabel("squared error / squared gradient")
    axes.set_yticks(places, [_label(case, row) for case, row in rows])
    axes.invert_yaxis()
    add_legend(axes, beside=ax is None)
    return axes


def _label(case: Data, row: Data) -> str:
    scope = row["scope"].replace("_", "-")
    return f"{row['estimator'].replace('_', ' ')}, {scope}, N = {case['images']}, {case['words']}"


STUDY = Study(
    "variance-formulas", "Table 2", "Variance of gradient estimates", _measure, _compare, _plot
)
