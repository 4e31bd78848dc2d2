"""Which block to train, chosen by trial runs."""

from pmt.train.choose.blocks import (
    CRITERIA,
    Candidate,
    Selection,
    default_candidates,
    select,
    select_block,
)

__all__ = ["CRITERIA", "Candidate", "Selection", "default_candidates", "select", "select_block"]
