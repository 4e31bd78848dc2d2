"""Data frames of pandas, which is optional."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from pmt._util.extras import import_extra
from pmt._util.optional_types import DataFrame


def data_frame(
    rows: Any, index: Sequence[Any], name: str, columns: Iterable[Any] | None = None
) -> DataFrame:
    """Make a data frame whose index has a name; ImportError says how to install pandas."""
    pandas = import_extra("pandas", "a data frame needs pandas", "callbacks")
    frame: DataFrame = pandas.DataFrame(rows, pandas.Index(index, name=name), columns)
    return frame
