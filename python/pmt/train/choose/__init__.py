"""Which block to train, chosen by trial runs."""

from pmt.train.choose.blocks import CRITERIA, default_candidates, select, select_block
from pmt.train.choose.selection import Candidate, Selection

__all__ = ["CRITERIA", "Candidate", "Selection", "default_candidates", "select", "select_block"]
