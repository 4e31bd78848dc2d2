"""All studies by name, in the paper's order."""

from __future__ import annotations

from pmt._util.text import did_you_mean
from pmt_lab.reproduce import (
    bp_free_methods,
    cifar10c_accuracy,
    estimators,
    fgvc_accuracy,
    fixed_or_adaptive_blocks,
    full_model_cost,
    gradient_cosine,
    learning_rate_scaling,
    memory_formulas,
    memory_overview,
    scopes_cosine,
    sparse_cost,
    variance_formulas,
)
from pmt_lab.reproduce.study import Study

__all__ = ["STUDIES", "study"]

# As the figures and tables follow each other in the paper.
_STUDIES: tuple[Study, ...] = (
    memory_overview.STUDY,
    gradient_cosine.STUDY,
    variance_formulas.STUDY,
    scopes_cosine.STUDY,
    memory_formulas.STUDY,
    learning_rate_scaling.STUDY,
    estimators.STUDY,
    fixed_or_adaptive_blocks.STUDY,
    bp_free_methods.ALL_LAYERS,
    bp_free_methods.SAME_LAYERS,
    cifar10c_accuracy.STUDY,
    full_model_cost.STUDY,
    sparse_cost.STUDY,
    fgvc_accuracy.STUDY,
)
STUDIES: dict[str, Study] = {one.name: one for one in _STUDIES}


def study(name: str) -> Study:
    """Return a study by its name; a ValueError says which there are."""
    if not isinstance(name, str):
        known = ", ".join(STUDIES)
        raise TypeError(f"study={name!r} must be the name of a study; there are {known}")
    if name not in STUDIES:
        raise ValueError(f"{name!r} is not a study{_remedy(name)}")
    return STUDIES[name]


def _remedy(name: str) -> str:
    """Say which studies begin like this name, or which one is spelled most alike."""
    begin = [one for one in STUDIES if name and one.startswith(name.lower())]
    return (
        f"; did you mean {' or '.join(map(repr, begin))}?" if begin else did_you_mean(name, STUDIES)
    )
