"""The clean images that a command corrupts or shows."""

from __future__ import annotations

import argparse
from dataclasses import replace

from pmt import datasets
from pmt.cli.sources import BUNDLED
from pmt.datasets import Dataset
from pmt.datasets.image_folder import resized

__all__ = ["read_clean"]


def read_clean(arguments: argparse.Namespace) -> Dataset:
    """Read the split that the command line names."""
    if arguments.data == BUNDLED:
        data = datasets.bundled(arguments.split)
        if arguments.size is None:
            return data
        return replace(data, images=resized(data.images, (arguments.size, arguments.size)))
    return datasets.load(
        arguments.data,
        split=arguments.split,
        size=arguments.size,
        labels="coarse" if arguments.coarse_labels else "fine",
    )
