"""Protocols of evaluation: which images adapt, choose and test, and how sure a figure is."""

from pmt.protocol.comparison import (
    Comparison,
    EvaluationReport,
    compare,
    evaluate_model,
    wilson_interval,
    wilson_of_share,
)
from pmt.protocol.corrupted_copies import CorruptedCopies, open_copies, write_corrupted
from pmt.protocol.data_source import DataSource, ImagePool, data_path, load_clean, model_path
from pmt.protocol.splitting import PROTOCOLS, Split, SplitChoice, balanced_order, split

__all__ = [
    "PROTOCOLS",
    "Comparison",
    "CorruptedCopies",
    "DataSource",
    "EvaluationReport",
    "ImagePool",
    "Split",
    "SplitChoice",
    "balanced_order",
    "compare",
    "data_path",
    "evaluate_model",
    "load_clean",
    "model_path",
    "open_copies",
    "split",
    "wilson_interval",
    "wilson_of_share",
    "write_corrupted",
]
