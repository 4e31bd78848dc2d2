"""Which block to train, chosen by trial runs."""

from pmt.train.choose.blocks import CRITERIA, default_candidates, select, select_block
from pmt.train.choose.selection import Candidate, Selection, SelectionResult

__all__ = [
    "CRITERIA",
    "Candidate",
    "Selection",
    "SelectionResult",
    "default_candidates",
    "select",
    "select_block",
]
