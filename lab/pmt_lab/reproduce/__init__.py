"""The tables and figures of the paper, measured again: all studies by name, in its order."""

from collections.abc import Mapping, Sequence
from typing import Any

from pmt_lab.files import did_you_mean
from pmt_lab.reproduce import (
    bp_free_methods,
    cifar10c_accuracy,
    fgvc_accuracy,
    figure_7,
    fixed_or_adaptive_blocks,
    full_model_cost,
    gradient_cosine,
    memory_formulas,
    memory_overview,
    scopes_cosine,
    sparse_cost,
    variance_formulas,
)
from pmt_lab.reproduce.study import Row, Study, published

__all__ = ["STUDIES", "compared_rows", "find_study"]

# As the figures and tables follow each other in the paper.
_STUDIES: tuple[Study, ...] = (
    memory_overview.STUDY,
    gradient_cosine.STUDY,
    variance_formulas.STUDY,
    scopes_cosine.STUDY,
    memory_formulas.STUDY,
    figure_7.LEARNING_RATE_SCALING,
    figure_7.ESTIMATORS,
    fixed_or_adaptive_blocks.STUDY,
    bp_free_methods.ALL_LAYERS,
    bp_free_methods.SAME_LAYERS,
    cifar10c_accuracy.STUDY,
    full_model_cost.STUDY,
    sparse_cost.STUDY,
    fgvc_accuracy.STUDY,
)
STUDIES: dict[str, Study] = {one.name: one for one in _STUDIES}


def find_study(name: str) -> Study:
    """Return a study by its name; a ValueError says which there are."""
    if name not in STUDIES:
        raise ValueError(f"{name!r} is not a study{did_you_mean(name, STUDIES)}")
    return STUDIES[name]


def compared_rows(study: Study, result: Mapping[str, Any], where: object) -> Sequence[Row]:
    """Compare a result with the published numbers.

    A ValueError says that figures of the file or folder ``where`` are missing or damaged.
    """
    try:
        return study.compare(result["data"], published(study.name))
    except (LookupError, TypeError, AttributeError, ArithmeticError, ValueError) as error:
        raise ValueError(
            f"{where}: figures are missing or damaged ({type(error).__name__}: {error}); remove "
            f"it, and `pmt-lab reproduce {study.name}` makes it again"
        ) from error
