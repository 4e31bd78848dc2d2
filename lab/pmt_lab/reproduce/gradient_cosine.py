"""Figure 4: cosines of weight and node perturbation with the exact gradient, layer by layer."""

from typing import Any

import numpy as np

from pmt._util.plots import one_axes
from pmt_lab.reproduce.cosines import (
    above_zero,
    beyond_chance,
    difference,
    gradient_batch,
    mean_cosine,
    mean_row,
    measured_cosines,
    series,
    turns,
    wins,
)
from pmt_lab.reproduce.drawing import draw_study, draw_study_cosines
from pmt_lab.reproduce.study import Context, Data, Row, Scale, Study, beside, claim

# The figure is of perturbations "across the whole model"; mu and baseline are the paper's.
_WEIGHT, _NODE = "weight+model_wise+mu1+clean", "node+model_wise+mu1+clean"
_WEIGHT_ALONE, _NODE_ALONE = "weight+mu1+clean", "node+mu1+clean"
# Nodes as the released settings perturb them, whose weights are perturbed as printed.
_RELEASED, _RELEASED_ALONE = "free_node+model_wise+mu5+clean", "free_node+mu5+clean"
# Layer by layer with the default's mu and baseline.
_OURS = ("weight", "node", "pooled")
_ESTIMATORS = (_WEIGHT, _NODE, _WEIGHT_ALONE, _NODE_ALONE, *_OURS, _RELEASED, _RELEASED_ALONE)
# All with the paper's mu and baseline but the last.
_DRAWN = (_WEIGHT, _NODE, _WEIGHT_ALONE, _NODE_ALONE, "pooled")
_NAMES = {
    _WEIGHT: "weight, model-wise",
    _NODE: "node, model-wise",
    _WEIGHT_ALONE: "weight, layer-wise",
    _NODE_ALONE: "node, layer-wise",
    "weight": "weight, layer-wise, default's mu",
    "node": "node, layer-wise, default's mu",
    "pooled": "one sign per channel, layer-wise",
}


def _measure(scale: Scale, context: Context) -> dict[str, Any]:
    images, queries, repeats = (16, 32, 4) if scale == "full" else (4, 8, 2)
    batch = gradient_batch(scale, context, images)
    asked = dict.fromkeys(_ESTIMATORS, queries)
    return measured_cosines(batch, batch.convolutions, asked, repeats, context)


def _compare(data: Data, paper: Data) -> list[Row]:
    return [
        *_dimensions(data),
        *_weight_or_node(data, "model-wise", _WEIGHT, _NODE),
        *_weight_or_node(data, "layer-wise", _WEIGHT_ALONE, _NODE_ALONE),
        *_weight_or_node(data, "model-wise, released", _WEIGHT, _RELEASED),
        *_weight_or_node(data, "layer-wise, released", _WEIGHT_ALONE, _RELEASED_ALONE),
        *_zigzag(data),
        *_alone(data),
        *_ours(data),
    ]


def _dimensions(data: Data) -> list[Row]:
    fewer_weights = np.array(data["weights"]) < np.array(data["nodes"])
    half = len(fewer_weights) // 2
    first, last = fewer_weights[:half].mean(), 1 - fewer_weights[half:].mean()
    why = "the rest are depthwise convolutions, whose weights are few at any depth"
    return [
        claim("layers of the first half with fewer weights than nodes", 100 * first, "most", "%",
              holds=first > 0.5),
        claim("layers of the second half with fewer nodes than weights", 100 * last, "most", "%",
              holds=last > 0.5, why=why),
    ]  # fmt: skip


def _weight_or_node(data: Data, scope: str, weight: str, node: str) -> list[Row]:
    fewer_nodes = np.array(data["nodes"]) < np.array(data["weights"])
    by_weight, by_node = wins(data, weight, node), wins(data, node, weight)
    rows = [
        _some_layers(data, f"layers where {kind} perturbation is better, {scope}", len(layers), why)
        for kind, layers, why in (("weight", by_weight, ""), ("node", by_node, _node_why(data)))
    ]
    for what, one, other, layers in (
        ("node minus weight, layers with fewer nodes", node, weight, fewer_nodes),
        ("weight minus node, layers with fewer weights", weight, node, ~fewer_nodes),
    ):
        found = difference(data, one, other, list(np.flatnonzero(layers)))
        rows.append(above_zero(f"{what}, {scope}", found))
    return rows


def _some_layers(data: Data, what: str, count: int, none: str) -> Row:
    """Return whether more layers are better than chance gives; `none` says why there is none."""
    holds = beyond_chance(count, len(data["weights"]))
    why = "" if holds else (not count and none) or "no more than chance gives"
    return claim(what, count, "some", "layers", holds=holds, why=why)


def _node_why(data: Data) -> str:
    loo, clean = (mean_cosine(data, name)[0] for name in ("node", _NODE_ALONE))
    return (
        f"with all layers at once the signal is lost: layer by layer nodes have {clean:.3f} with "
        f"the same mu and baseline, and {loo:.3f} with the default's"
    )


def _zigzag(data: Data) -> list[Row]:
    together, alone = turns(data, _NODE), turns(data, _NODE_ALONE)
    fewer_nodes = np.array(data["nodes"]) < np.array(data["weights"])
    cosines = series(data, _NODE_ALONE)[0]
    why = (
        f"nodes alone have {cosines[fewer_nodes].mean():.3f} in layers with fewer nodes than "
        f"weights and {cosines[~fewer_nodes].mean():.3f} in the others, which take turns"
    )
    return [
        claim(
            "inner layers where node perturbation turns up or down, model-wise",
            100 * together,
            "a zigzag",
            "%",
            holds=together >= 0.5,
            why="" if together >= 0.5 else "what there is of it is within the intervals",
        ),
        beside("the same, layer-wise", 100 * alone, "%", why=why),
    ]


def _alone(data: Data) -> list[Row]:
    what = "layer-wise minus model-wise, at the same queries"
    why = "as many for each layer as for all at once; scopes-cosine has equal cost"
    pairs = {"weight": (_WEIGHT_ALONE, _WEIGHT), "node": (_NODE_ALONE, _NODE)}
    return [
        mean_row(f"{kind}, {what}", difference(data, *pair), why) for kind, pair in pairs.items()
    ]


def _ours(data: Data) -> list[Row]:
    best = max((_WEIGHT, _NODE), key=lambda name: mean_cosine(data, name)[0])
    why = (
        f"our run with the paper's settings, {_NAMES[best]}, has {mean_cosine(data, best)[0]:.3f}, "
        "with as many queries for all layers at once as this one for each"
    )
    means = {_NAMES[name]: mean_cosine(data, name) for name in _OURS}
    return [mean_row(f"mean over layers, {name}", found, why) for name, found in means.items()]


def _plot(data: Data, *, ax: Any = None) -> Any:
    """Draw cosines by layer, and on axes of our own the dimensions above them."""
    shown = {name: _NAMES[name] for name in _DRAWN}
    if ax is None:
        return draw_study(data, shown)
    return draw_study_cosines(data, shown, one_axes(ax, 10, 4))


STUDY = Study(
    "gradient-cosine", "Figure 4", "Cosine of estimates with the exact gradient by layer",
    _measure, _compare, _plot,
)  # fmt: skip
