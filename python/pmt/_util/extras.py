"""Optional packages: imported where they are used, or an error that says how to install them."""

import importlib
from collections.abc import Iterable, Sequence
from typing import Any

from pmt._util.optional_types import DataFrame
from pmt.errors import MissingExtraError


def import_extra(module: str, need: str, extra: str) -> Any:
    """Import a module of an optional package, or raise :func:`missing_extra`."""
    try:
        # The package first: a module of it may be in the cache although it is gone.
        importlib.import_module(module.partition(".")[0])
        return importlib.import_module(module)
    except ImportError as error:
        raise missing_extra(need, extra) from error


def load_pyplot() -> Any:
    """Return matplotlib's pyplot, or raise :func:`missing_extra`."""
    return import_extra("matplotlib.pyplot", "plots need matplotlib", "plot")


def missing_extra(need: str, extra: str) -> MissingExtraError:
    """Make the error for a missing package: "plots need matplotlib", and the extra it is in."""
    return MissingExtraError(
        f'{need}: pip install "poor-mans-training[{extra}]", or in a clone pip install ".[{extra}]"'
    )


def data_frame(
    rows: Any, index: Sequence[Any], name: str, columns: Iterable[Any] | None = None
) -> DataFrame:
    """Make a data frame whose index has a name; ImportError says how to install pandas."""
    pandas = import_extra("pandas", "a data frame needs pandas", "callbacks")
    frame: DataFrame = pandas.DataFrame(rows, pandas.Index(index, name=name), columns)
    return frame
