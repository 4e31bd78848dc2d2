"""Protocols of evaluation: which images adapt, choose and test, and how sure a figure is."""

from __future__ import annotations

from pmt.protocol.image_pool import ImagePool
from pmt.protocol.intervals import wilson_interval, wilson_of_share
from pmt.protocol.splitting import PROTOCOLS, Split, balanced_order, split

__all__ = [
    "PROTOCOLS",
    "ImagePool",
    "Split",
    "balanced_order",
    "split",
    "wilson_interval",
    "wilson_of_share",
]
