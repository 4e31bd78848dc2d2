"""A study's result beside the paper's numbers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from pmt_lab.reproduce.published import published
from pmt_lab.reproduce.study import Row, Study

__all__ = ["compared_rows"]


def compared_rows(study: Study, result: Mapping[str, Any], where: str) -> Sequence[Row]:
    """Compare a result with the published numbers.

    Parameters
    ----------
    study : Study
        The table or figure.
    result : dict
        Its result, as :func:`pmt_lab.reproduce.results.record` makes it.
    where : str
        File or folder of the result, for the error.

    Returns
    -------
    sequence of Row
        The rows.

    Raises
    ------
    ValueError
        If figures are missing or damaged.
    """
    try:
        return study.compare(result["data"], published(study.name))
    except (LookupError, TypeError, AttributeError, ArithmeticError, ValueError) as error:
        raise ValueError(
            f"{where}: figures are missing or damaged ({type(error).__name__}: {error}); remove "
            f"it, and `pmt-lab reproduce {study.name}` makes it again"
        ) from error
