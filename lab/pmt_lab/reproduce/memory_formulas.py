"""Table 3: formulas of peak memory, against the bytes that are planned."""

from typing import Any

import numpy as np

from pmt._util.plots import SMALL, add_legend, line_style, one_axes
from pmt.model import Model, load
from pmt.profiling.profile import Profile, profile_method
from pmt_lab.files import counted
from pmt_lab.reproduce.costs import NETWORK, kilobytes
from pmt_lab.reproduce.costs import QUERIES as _QUERIES
from pmt_lab.reproduce.study import (
    Context,
    Data,
    Quantity,
    Row,
    Scale,
    Study,
    at_least,
    claim,
    compared,
    not_run,
)

_BATCHES = (1, 8)
_SCALAR = 4  # bytes of a loss
# A formula is of the largest terms alone.
_FORMULA = Quantity("KB", 0.25, relative=True, better="lower")
# Back-propagation is planned as what must be alive at once.
_BP_FORMULA = Quantity("KB", 0.25, relative=True)
# The variants that keep perturbations.
_VANILLA = "vanilla"
_WEIGHT, _NODE, _BP = "weight perturbation", "node perturbation", "back-propagation"
_METHODS = {_WEIGHT: "weight_layer_wise", _NODE: "node_layer_wise", _BP: "bp_int8"}


def _measure(scale: Scale, context: Context) -> dict[str, Any]:
    model = load(NETWORK)
    return {
        "network": NETWORK,
        "queries": _QUERIES,
        "forward_bytes": _forward_bytes(model),
        "batches": [_batch(model, images) for images in _BATCHES],
    }


def _forward_bytes(model: Model) -> int:
    """Return the activations and scratch of a forward: the plan of training the last layer."""
    last = model.layers[-1].name
    memory = profile_method(model, "node_layer_wise", layers=last, batch=1, queries=2).memory
    return memory.activations + memory.input


def _batch(model: Model, images: int) -> dict[str, Any]:
    profiles = {
        name: profile_method(model, method, layers="all", batch=images, queries=_QUERIES)
        for name, method in _METHODS.items()
    }
    return {
        "images": images,
        "printed": _printed(model, images),
        "planned": {name: _extra(profile) for name, profile in profiles.items()},
        "all": {name: profile.memory.sram for name, profile in profiles.items()},
    }


def _extra(profile: Profile) -> int:
    """Return the memory of a method beyond parameters and a forward.

    Of zeroth-order training the losses with the states of the random numbers, and gradients; of
    back-propagation activations, masks and gradients.
    """
    memory = profile.memory
    kept = memory.weight_gradients + memory.tables + memory.saved_activations + memory.masks
    return kept + memory.activation_gradients


def _printed(model: Model, images: int) -> dict[str, int]:
    """Return the formulas in bytes: 1 for an activation or a weight, 4 for a loss."""
    tensors = model.core.tensors()
    sizes = [int(t["height"] * t["width"] * t["channels"]) for t in tensors]
    ops = {op["index"]: op for op in model.core.ops()}
    outputs = [sizes[ops[layer.index]["output"]] for layer in model.layers]
    inputs = [sizes[ops[layer.index]["inputs"][0]] for layer in model.layers]
    weights = [layer.weights for layer in model.layers]
    around = [sum(of_layer) for of_layer in zip(inputs, outputs, weights, strict=True)]
    losses = _SCALAR * _QUERIES * len(weights)
    return {
        "inference": images * max(around),
        f"{_WEIGHT}, vanilla": sum(weights),
        f"{_WEIGHT}, efficient": losses,
        f"{_NODE}, vanilla": images * sum(outputs) + sum(weights),
        f"{_NODE}, efficient": images * losses + max(weights),
        _BP: images * sum(outputs) + sum(weights),
    }


_WHY = {
    f"{_WEIGHT}, vanilla": "not in pmt, which draws signs again and keeps no perturbation",
    f"{_NODE}, vanilla": "not in pmt, whose layers take their inputs from a second forward",
    f"{_NODE}, efficient": "gradients are summed up channel by channel, where activations are free "
    "or in 64 KB",
    _BP: "clamps need a bit for each output, and gradients of activations have four bytes; a batch "
    "is taken image by image",
}


def _compare(data: Data, paper: Data) -> list[Row]:
    single = data["batches"][0]
    rows = [
        compared(
            "inference, 1 image, 2 d_a + d_w",
            kilobytes(data["forward_bytes"]),
            kilobytes(single["printed"]["inference"]),
            _FORMULA,
            why="weights stay in flash, and the largest activations stream through line buffers",
        )
    ]
    for batch in data["batches"]:
        names = [name for name in batch["printed"] if name != "inference"]
        rows += [_row(batch, name) for name in names if batch is single or _VANILLA not in name]
    return [*rows, *_order(single)]


def _row(batch: Data, name: str) -> Row:
    method = name.split(",")[0]
    images = counted(batch["images"], "image")
    why = _WHY.get(name, "")
    if name == f"{_WEIGHT}, efficient" and batch["images"] > 1:
        why = "losses of every image are kept, N L Q of them, for each has directions of its own"
    what = f"{name}, {images}, beyond parameters and a forward"
    ours, theirs = kilobytes(batch["planned"][method]), kilobytes(batch["printed"][name])
    if _VANILLA in name:
        return not_run(what, theirs, _FORMULA.unit, why)
    if method == _BP:
        return at_least(what, ours, theirs, _BP_FORMULA, why=why)
    return compared(what, ours, theirs, _FORMULA, why=why)


def _order(batch: Data) -> list[Row]:
    size = {name: kilobytes(sram) for name, sram in batch["all"].items()}
    above, below = size[_NODE] - size[_WEIGHT], size[_BP] / size[_NODE]
    return [
        claim(
            "peak of node over weight perturbation, 1 image",
            above,
            "slightly larger",
            "KB",
            holds=0 <= above < 0.1 * size[_WEIGHT],
        ),
        claim(
            "peak of back-propagation over node perturbation, 1 image",
            below,
            "much larger",
            "times",
            holds=below > 2,
        ),
    ]


def _plot(data: Data, *, ax: Any = None) -> Any:
    """Draw the planned bytes and the printed formulas of a step of one image."""
    axes = one_axes(ax, 8, 3.5)
    batch = data["batches"][0]
    names = [name for name in batch["printed"] if name != "inference"]
    places = np.arange(len(names))
    known = [place for place in places if _VANILLA not in names[place]]
    planned = [kilobytes(batch["planned"][names[place].split(",")[0]]) for place in known]
    printed = [kilobytes(batch["printed"][name]) for name in names]
    marks: dict[str, Any] = {"linestyle": "none", "markersize": 7}
    axes.plot(planned, known, **{**line_style(0), **marks}, label="planned by pmt")
    axes.plot(printed, places, **{**line_style(1), **marks}, label="printed formula")
    # A point, as bars on a logarithmic axis have no length that means anything.
    for place in sorted({*places} - {*known}):
        left = {"textcoords": "offset points", "ha": "right", "va": "center", "fontsize": SMALL}
        axes.annotate("(not in pmt)", (printed[place], place), (-8, 0), **left)
    axes.set_yticks(places, names)
    axes.set_ylim(-0.5, len(names) - 0.5)
    axes.grid(axis="x", linewidth=0.4)
    axes.invert_yaxis()
    axes.set_xscale("log")
    axes.set_xlabel("KB beyond parameters and a forward, one image")
    add_legend(axes, beside=ax is None)
    return axes


STUDY = Study("memory-formulas", "Table 3", "Peak memory by formula", _measure, _compare, _plot)
