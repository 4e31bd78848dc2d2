"""Seeded image corruptions with the constants published for CIFAR-10-C and ImageNet-C."""

from __future__ import annotations

from pmt.corruptions.apply import corrupt
from pmt.corruptions.array_writer import ArrayWriter
from pmt.corruptions.catalogue import SEVERITIES, names
from pmt.corruptions.draws import split_seed

__all__ = ["SEVERITIES", "ArrayWriter", "corrupt", "names", "split_seed"]
