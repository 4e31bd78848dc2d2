"""Protocols of evaluation: which images adapt, choose and test, and how sure a figure is."""

from __future__ import annotations

from pmt.protocol.balanced import balanced_order
from pmt.protocol.image_pool import ImagePool
from pmt.protocol.splitting import PROTOCOLS, Split, split
from pmt.protocol.wilson import wilson_interval, wilson_of_share

__all__ = [
    "PROTOCOLS",
    "ImagePool",
    "Split",
    "balanced_order",
    "split",
    "wilson_interval",
    "wilson_of_share",
]
