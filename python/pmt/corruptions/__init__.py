"""Seeded image corruptions with the constants published for CIFAR-10-C and ImageNet-C."""

from __future__ import annotations

from pmt.corruptions.apply import corrupt
from pmt.corruptions.catalogue import SEVERITIES, names

__all__ = ["SEVERITIES", "corrupt", "names"]
