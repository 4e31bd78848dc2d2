"""Estimators of a study: by name, words joined by plus signs; and the trainers that run them."""

import re
from typing import Any

from pmt import _core
from pmt.model import Model
from pmt.train.options import PRESETS, TrainingOptions, preset

DEFAULT_ESTIMATORS = (
    "weight+mu1+clean",
    "weight+mu1",
    "weight+mu4",
    "node+mu1+clean",
    "node+mu1",
    "node+mu4",
)

# Words that :func:`estimator_options` takes, ``muN`` apart.
WORDS: dict[str, dict[str, Any]] = {
    "weight": {"rule": "weight"},
    "node": {"rule": "node", "nodes": "all"},
    "pooled": {"rule": "pooled"},
    "free_node": {"rule": "node", "nodes": "free"},
    "by_dimension": {
        k: PRESETS["paper"][k] for k in ("rule", "node_dimension", "node_ratio", "nodes")
    },
    "clean": {"baseline": "clean"},
    "leave_one_out": {"baseline": "leave_one_out"},
    "per_sample": {"sharing": "per_sample"},
    "shared": {"sharing": "batch"},
    "layer_wise": {"scope": "layer_wise"},
    "model_wise": {"scope": "model_wise"},
    "xorshift32": {"generator": "xorshift32"},
    "antithetic": {"pairs": "antithetic"},
}
_RULES = ("weight", "node", "free_node", "pooled", "by_dimension")
_MU = re.compile(r"mu([1-9][0-9]?)$")


def estimator_options(name: str, queries: int, seed: int) -> TrainingOptions:
    """Return the options of an estimator: its queries for each image and layer, and their seed.

    The name is words joined by ``+``: ``weight``, ``node``, ``free_node``, ``pooled`` or
    ``by_dimension`` (the paper's mixture: weight or node, whichever has fewer dimensions), then
    what differs from the preset ``default``, for example ``"weight+mu1+clean"``; ``muN`` sets both
    sizes of perturbation. A ValueError says that a word is unknown, or that none or more than one
    of the first words are given. Biases are not perturbed, so that the dimension is that of the
    weights.
    """
    words = name.split("+")
    if len(set(_RULES) & set(words)) != 1:
        *others, last = _RULES
        known = f"{', '.join(others)} or {last}"
        raise ValueError(f"estimator {name!r}: one of its words must be {known}")
    changes: dict[str, Any] = {}
    for word in words:
        mu = _MU.match(word)
        if mu:
            changes |= {"mu_weight": int(mu[1]), "mu_node": int(mu[1])}
        elif word in WORDS:
            changes |= WORDS[word]
        else:
            known = ", ".join(WORDS)
            raise ValueError(f"estimator {name!r}: {word!r} is none of {known}, muN")
    return preset("default", **changes, queries=queries, seed=seed, train_bias=False)


def layer_trainers(
    model: Model, layers: list[int], options: TrainingOptions, batch: int, threads: int
) -> list[tuple[_core.Trainer, int]]:
    """Return for each layer a trainer that estimates its gradient, and its position there."""
    # Layer-wise, a trainer of one layer spares the other layers' queries.
    sets = [[layer] for layer in layers] if options.scope == "layer_wise" else [layers]
    core = options.to_core()
    made = [_core.Trainer(model.core, core, one, batch, threads) for one in sets]
    return [(trainer, position) for trainer in made for position in range(len(trainer.layers()))]
