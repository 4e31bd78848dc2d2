"""Figure 5: layer-wise against model-wise perturbation at equal cost, and their mixture."""

from typing import Any

from pmt._util.plots import one_axes, panels
from pmt_lab.files import counted
from pmt_lab.reproduce.cosines import (
    above_zero,
    difference,
    gradient_batch,
    mean_cosine,
    mean_expected,
    mean_row,
    measured_cosines,
    series,
    wins,
)
from pmt_lab.reproduce.drawing import draw_study_cosines
from pmt_lab.reproduce.study import Context, Data, Row, Scale, Study, claim

_KINDS = {"weight": "weight", "node": "node", "by_dimension": "mixture"}
# Settings of the paper, then those of the default.
_SETTINGS = {"mu1+clean": "the paper's mu (1), clean baseline", "mu4": "mu 4"}
# Nodes as the released settings perturb them, whose weights are perturbed as printed.
_RELEASED = ("free_node", "mu5+clean", "the released mu (5), free nodes")
_OURS = "pooled"


def _name(kind: str, scope: str, words: str) -> str:
    return f"{kind}+{scope}+{words}"


def _measure(scale: Scale, context: Context) -> dict[str, Any]:
    images, each, repeats = (8, 8, 4) if scale == "full" else (4, 2, 2)
    batch = gradient_batch(scale, context, images)
    layers = "paper14" if scale == "full" else "B1,B2"
    all_at_once = each * len(batch.model.select_layers(layers))
    pairs = [*((kind, words) for words in _SETTINGS for kind in _KINDS), _RELEASED[:2]]
    # The cheap ones first.
    queries = {_name(kind, "layer_wise", words): each for kind, words in pairs}
    queries[_OURS] = each
    queries |= {_name(kind, "model_wise", words): all_at_once for kind, words in pairs}
    return measured_cosines(batch, layers, queries, repeats, context)


def _compare(data: Data, paper: Data) -> list[Row]:
    rows: list[Row] = []
    for words, setting in _SETTINGS.items():
        rows += [_layer_wise(data, kind, words, setting) for kind in _KINDS]
        rows += [_mixture(data, words, setting), _picks(data, words, setting)]
    return [*rows, _layer_wise(data, *_RELEASED), _ours(data)]


def _layer_wise(data: Data, kind: str, words: str, setting: str) -> Row:
    alone, together = (_name(kind, scope, words) for scope in ("layer_wise", "model_wise"))
    better, worse = wins(data, alone, together), wins(data, together, alone)
    return above_zero(
        f"{_KINDS.get(kind, 'node')}, layer-wise minus model-wise, {setting}",
        difference(data, alone, together),
        f"better in {len(better)} of {len(data['layers'])} layers, worse in {len(worse)}; "
        f"layer-wise has {_beside_theory(data, alone)}, "
        f"model-wise {_beside_theory(data, together)}",
    )


def _beside_theory(data: Data, name: str) -> str:
    """Return the mean cosine, and the theoretical one without rounding."""
    return f"{mean_cosine(data, name)[0]:.3f} of expected {mean_expected(data, name):.3f}"


def _mixture(data: Data, words: str, setting: str) -> Row:
    mixed, weight, node = (
        _name(kind, "layer_wise", words) for kind in ("by_dimension", "weight", "node")
    )
    best = max((weight, node), key=lambda name: mean_cosine(data, name)[0])
    other = "weight" if best == weight else "node"
    return above_zero(
        f"mixture minus {other} alone, the better one, layer-wise, {setting}",
        difference(data, mixed, best),
        _where_nodes(data, mixed, node, weight),
    )


def _where_nodes(data: Data, mixed: str, node: str, weight: str) -> str:
    """Compare both in the layers where the mixture takes nodes."""
    perturbed = data["estimators"][mixed]["perturbed"]
    nodes = [k for k, kind in enumerate(perturbed) if kind == "node"]
    if not nodes:
        return "it takes weights in every layer"
    by_node, by_weight = (series(data, name)[0][nodes].mean() for name in (node, weight))
    layers = counted(len(nodes), "layer")
    return (
        f"where it takes nodes, in {layers}, these have {by_node:.3f} and weights {by_weight:.3f}"
    )


def _picks(data: Data, words: str, setting: str) -> Row:
    """Count the layers in which the rule of dimensions takes the worse estimator for certain."""
    weight, node = (_name(kind, "layer_wise", words) for kind in ("weight", "node"))
    chosen = data["estimators"][_name("by_dimension", "layer_wise", words)]["perturbed"]
    by_weight, by_node = wins(data, weight, node), wins(data, node, weight)
    wrong = [k for k in by_weight if chosen[k] == "node"]
    wrong += [k for k in by_node if chosen[k] == "weight"]
    names = ", ".join(data["layers"][k] for k in sorted(wrong))
    return claim(
        f"layers in which the mixture takes the worse of both, {setting}",
        len(wrong),
        "0",
        "layers",
        holds=not wrong,
        why=names,
    )


def _ours(data: Data) -> Row:
    theirs = mean_cosine(data, _name("by_dimension", "layer_wise", "mu1+clean"))[0]
    return mean_row(
        "mean over layers, one sign per channel, layer-wise",
        mean_cosine(data, _OURS),
        f"our run with the paper's settings, mixture, layer-wise, has {theirs:.3f} at the same "
        "queries",
    )


def _plot(data: Data, *, ax: Any = None) -> Any:
    """Draw both scopes of weight, node and mixture, with the paper's mu, and ours.

    On axes of our own each of the three has a panel, as in the paper; the first one is returned.
    """
    kinds = {kind: _of_kind(kind, title) for kind, title in _KINDS.items()}
    if ax is not None:
        shown = {name: label for each in kinds.values() for name, label in each.items()}
        return draw_study_cosines(data, shown, one_axes(ax, 9, 5))
    axes = panels(None, len(kinds), 1, (6.5, 4.4), sharex=True, sharey=True).ravel()
    for each, shown in zip(axes, kinds.values(), strict=True):
        draw_study_cosines(data, shown, each).set_ylabel("")
    axes[0].figure.supylabel("cosine with the exact gradient")
    return axes[0]


def _of_kind(kind: str, title: str) -> dict[str, str]:
    """Name the drawn curves of a kind: both scopes, and ours."""
    scopes = ("layer_wise", "model_wise")
    both = {_name(kind, s, "mu1+clean"): f"{title}, {s.replace('_', '-')}" for s in scopes}
    return {**both, _OURS: "one sign per channel, layer-wise"}


STUDY = Study(
    "scopes-cosine", "Figure 5", "Layer-wise and model-wise perturbation at equal cost",
    _measure, _compare, _plot,
)  # fmt: skip
