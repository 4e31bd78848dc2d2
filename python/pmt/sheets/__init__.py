"""Contact sheets: many small images in one picture, to be looked at."""

from __future__ import annotations

from pmt.sheets.data_sheet import make_sheet
from pmt.sheets.drawing import draw, png
from pmt.sheets.sheet import (
    Group,
    Row,
    Sheet,
    corruption_sheet,
    dataset_sheet,
    stage_sheet,
)

__all__ = [
    "Group",
    "Row",
    "Sheet",
    "corruption_sheet",
    "dataset_sheet",
    "draw",
    "make_sheet",
    "png",
    "stage_sheet",
]
