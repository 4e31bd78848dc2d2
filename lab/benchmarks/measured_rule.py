"""Which estimator ``rule="measured"`` gives every layer, with few and with many queries.

    python benchmarks/measured_rule.py cifar10_mcunet --data cifar-10-batches-bin

Measured on 25 corrupted training images with 32 queries of each candidate, from the network as it
is and after alignment and the exact head. lab/pages/gradient_quality.md shows the tables of
lab/results/measured-rule.json, which --results writes:

    python benchmarks/measured_rule.py --table results/measured-rule.json
"""

from __future__ import annotations

import argparse
from typing import Any

import numpy as np
from kept_table import add_model_and_data, measure_or_show, parser_of

import pmt
from pmt import _core
from pmt.cli.output import table
from pmt.protocol.data_source import DataSource
from pmt.train.prepare.preparation import Preparation

CORRUPTIONS = ("gaussian_noise", "contrast")
PREPARATIONS = ("none", "align+head")
QUERIES = (8, 64)
LAYERS = "paper14,head"
IMAGES, PREPARED_ON, PROBE_QUERIES = 25, 1000, 32


def measure(options: argparse.Namespace) -> dict[str, Any]:
    """Return the estimators that are chosen."""
    found = [
        {"corruption": name, "preparation": preparation, "queries": queries, "layers": layers}
        for name in CORRUPTIONS
        for preparation in PREPARATIONS
        for queries, layers in choices(options.model, options.data, name, preparation).items()
    ]
    settings = {"model": options.model, "images": IMAGES, "probe_queries": PROBE_QUERIES}
    return {**settings, "choices": found}


def choices(name: str, folder: str, corruption: str, preparation: str) -> dict[int, dict[str, str]]:
    """Return the estimator of every layer by the number of queries."""
    model = pmt.load(name)
    data = DataSource(folder, corruption, 5).load("train", model, limit=PREPARED_ON)
    prepared = pmt.methods.options_of("default", layers=LAYERS, preparation=preparation)
    Preparation(prepared, threads=0).apply(model, data)
    return {queries: chosen(model, data.take(IMAGES), queries) for queries in QUERIES}


def chosen(model: pmt.Model, data: pmt.Dataset, queries: int) -> dict[str, str]:
    """Return the estimators that the rule chooses on some images."""
    options = pmt.preset("default", rule="measured", queries=queries, probe_queries=PROBE_QUERIES)
    layers = model.select_layers(LAYERS)
    trainer = _core.Trainer(model.core, options.to_core(), layers, len(data), 1)
    images = model.prepare(data.images)
    settings = trainer.calibrate(images, data.labels.astype(np.int64), 0)["settings"]
    names = {layer.index: layer.name for layer in model.layers}
    pairs = zip(layers, settings, strict=True)
    return {names[op]: words(one) for op, one in pairs if one.estimator.name != "closed_form"}


def words(settings: _core.LayerSettings) -> str:
    """Return "weight" or "node"; of pooled nodes the regions of the plane."""
    name = settings.estimator.name.removesuffix("_perturbation")
    return f"{settings.regions}x{settings.regions}" if name == "pooled" else name


def table_of(kept: dict[str, Any]) -> str:
    """Return a table for each preparation."""
    title = "regions of pooled nodes, or another estimator; queries of an image"
    parts = [f"preparation {name}: {title}\n{one_table(kept, name)}" for name in PREPARATIONS]
    return "\n\n".join(parts)


def one_table(kept: dict[str, Any], preparation: str) -> str:
    """Return a row for each layer, and a column for each corruption and number of queries."""
    found = [one for one in kept["choices"] if one["preparation"] == preparation]
    titles = ["layer", *(f"{one['corruption']}, {one['queries']}" for one in found)]
    rows = [[name, *(one["layers"][name] for one in found)] for name in found[0]["layers"]]
    return table(titles, rows, left=["layer"])


if __name__ == "__main__":
    arguments = parser_of(__doc__)
    add_model_and_data(arguments)
    measure_or_show(arguments, measure, table_of)
