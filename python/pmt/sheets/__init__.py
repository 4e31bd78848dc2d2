"""Contact sheets: many small images in one picture, to be looked at."""

from pmt.sheets.sheet import (
    Group,
    Row,
    Sheet,
    corruption_sheet,
    dataset_sheet,
    make_sheet,
    stage_sheet,
)

__all__ = [
    "Group",
    "Row",
    "Sheet",
    "corruption_sheet",
    "dataset_sheet",
    "make_sheet",
    "stage_sheet",
]
