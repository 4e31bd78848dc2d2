"""The model and the images that a command line names."""

from __future__ import annotations

import argparse

import pmt
from pmt import corruptions
from pmt.cli.arguments import checked_constants
from pmt.model import Model
from pmt.protocol.data_source import DataSource, data_path

__all__ = ["data_source", "load_model"]


def data_source(arguments: argparse.Namespace) -> DataSource:
    """Return the data that the command line names; its options are checked before any file is."""
    name = arguments.corruption
    labels = "coarse" if arguments.coarse_labels else "fine"
    if name is None:
        if arguments.severity is not None:
            raise ValueError(f"--severity {arguments.severity} needs --corruption NAME")
        if arguments.constants is not None:
            raise ValueError(f"--constants {arguments.constants} needs --corruption NAME")
        return DataSource(data_path(arguments.data), labels=labels)
    if name not in corruptions.names():
        known = ", ".join(corruptions.names())
        raise ValueError(f"--corruption {name!r} is unknown; choose one of {known}")
    severity = 5 if arguments.severity is None else arguments.severity
    if severity not in corruptions.SEVERITIES:
        raise ValueError(f"--severity {severity} must be 1..5")
    seed, constants = arguments.corruption_seed or 0, checked_constants(arguments)
    return DataSource(data_path(arguments.data), name, severity, seed, labels, constants)


def load_model(arguments: argparse.Namespace) -> Model:
    """Load the model that the command line names."""
    options = {"classes": arguments.classes, "resolution": arguments.resolution}
    return pmt.load(arguments.model, **{k: v for k, v in options.items() if v is not None})
