"""Seeded image corruptions with the constants published for CIFAR-10-C and ImageNet-C."""

# Imported to be declared.
from pmt.corruptions import blur, digital, weather  # noqa: F401
from pmt.corruptions.apply import corrupt, split_seed
from pmt.corruptions.array_writer import ArrayWriter
from pmt.corruptions.catalog import CONSTANTS, SEVERITIES, names

__all__ = ["CONSTANTS", "SEVERITIES", "ArrayWriter", "corrupt", "names", "split_seed"]
